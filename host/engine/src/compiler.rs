//! Where modules are compiled, and how what another process made of one is taken in.

use std::{
    any::Any,
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
    panic::{AssertUnwindSafe, catch_unwind},
};

use pintle_wit::{Failure, reasons};
use wasmtime::{Engine, Module, OutOfMemory, component::Component};

use crate::{Allocation, Digest, EngineError, Meter, config::compile_config};

/// What an artifact is made for: all that the compiler must know of the engine that is to take it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Where that engine's memory comes from: machine code is made for the guards around it.
    pub allocation: Allocation,
    /// What that engine counts calls in.
    pub meter: Meter,
    /// The most memory that any call of it may be given, in bytes.
    pub memory_bytes_max: usize,
}

/// A module that is to be compiled.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Their digest.
    pub digest: Digest,
    /// What for.
    pub target: Target,
}

/// Has a [`Precompiler`] somewhere else compile a module.
pub type Precompile<'a> = dyn Fn(Job<'_>) -> Result<Vec<u8>, Failure> + 'a;

/// Where modules are compiled.
#[derive(Clone, Copy, Default)]
pub enum Compiler<'a> {
    /// In this process, with as much time and memory as it takes.
    #[default]
    Here,
    /// In another process of the same program, which can be limited and ended, so that neither the memory of a compiler nor its
    /// mistakes stay with one that runs for months. Nothing is compiled in this one, whatever becomes of the other.
    ///
    /// What the function returns is run as machine code. It must come from the same program, by a way that nobody else can write
    /// to: a pipe.
    Elsewhere(&'a Precompile<'a>),
}

impl fmt::Debug for Compiler<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Here => "Here",
            Self::Elsewhere(_) => "Elsewhere",
        })
    }
}

/// Compiles modules for an engine of another process of the same program. It calls nothing, and sets no memory aside for calls.
pub struct Precompiler(Engine);

impl fmt::Debug for Precompiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Precompiler")
    }
}

impl Precompiler {
    /// A compiler for this.
    ///
    /// # Errors
    /// When wasmtime does not support this machine.
    pub fn new(target: &Target) -> Result<Self, EngineError> {
        Engine::new(&compile_config(target))
            .map(Self)
            .map_err(|error| EngineError::Setup(format!("{error:#}")))
    }

    /// Compiles a module. Nothing is checked that [`Engine::load`](crate::Engine::load) checks.
    ///
    /// # Errors
    /// A terminal one when the bytes are no component and no core module that this engine takes; a transient one when the compiler
    /// panicked or had too little memory.
    pub fn precompile(&self, bytes: &[u8]) -> Result<Vec<u8>, Failure> {
        let compiled = catch_unwind(AssertUnwindSafe(|| {
            if bytes == LOOP { self.0.precompile_module(bytes) } else { self.0.precompile_component(bytes) }
        }));
        let made = match compiled {
            Ok(Ok(made)) => made,
            Ok(Err(error)) if error.is::<OutOfMemory>() => return Err(failed(&format!("{error:#}"))),
            Ok(Err(error)) => return Err(invalid(error)),
            // Often for want of memory or of threads, in which there is no saying.
            Err(panic) => {
                return Err(failed(&format!("the compiler panicked: {}", panic_text(panic.as_ref()))));
            }
        };
        let mut artifact = Vec::with_capacity(FINGERPRINT_BYTES + made.len());
        artifact.extend(fingerprint(&self.0));
        artifact.extend(made);
        Ok(artifact)
    }
}

/// `(module (func $loop (loop (br 0))) (start $loop))`
pub(crate) const LOOP: &[u8] =
    b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x03\x02\x01\0\x08\x01\0\x0a\x09\x01\x07\0\x03\x40\x0c\0\x0b\x0b";

const FINGERPRINT_BYTES: usize = 8;

/// What an artifact begins with. wasmtime itself refuses one that was made for another engine, but does not tell that from a module
/// that this engine does not take.
fn fingerprint(engine: &Engine) -> [u8; FINGERPRINT_BYTES] {
    let mut hasher = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    hasher.finish().to_le_bytes()
}

/// What wasmtime made, if it made it for an engine like this.
fn made_for<'a>(engine: &Engine, artifact: &'a [u8]) -> Result<&'a [u8], Failure> {
    match artifact.split_first_chunk() {
        Some((made_for, made)) if *made_for == fingerprint(engine) => Ok(made),
        _ => Err(failed("what it made is for another engine than this")),
    }
}

/// Loads what was compiled elsewhere.
#[allow(
    unsafe_code,
    reason = "the only way to take in what another process compiled; see Compiler::Elsewhere"
)]
pub(crate) fn component(engine: &Engine, artifact: &[u8]) -> Result<Component, Failure> {
    let made = made_for(engine, artifact)?;
    // SAFETY: the artifact was made by wasmtime in a process of this very program and came through a pipe from it, as
    // `Compiler::Elsewhere` demands. wasmtime refuses one of another version or configuration itself.
    unsafe { Component::deserialize(engine, made) }.map_err(invalid)
}

/// The same for a core module.
#[allow(unsafe_code, reason = "as for components")]
pub(crate) fn module(engine: &Engine, artifact: &[u8]) -> Result<Module, Failure> {
    let made = made_for(engine, artifact)?;
    // SAFETY: as for components.
    unsafe { Module::deserialize(engine, made) }.map_err(invalid)
}

/// Compiles here. A compiler is large, and its panics on odd input are not held to be vulnerabilities; here one costs a module, not
/// the process.
pub(crate) fn compile(engine: &Engine, bytes: &[u8]) -> Result<Component, Failure> {
    match catch_unwind(AssertUnwindSafe(|| Component::from_binary(engine, bytes))) {
        Ok(result) => result.map_err(invalid),
        Err(panic) => {
            let message = format!("the compiler panicked: {}", panic_text(panic.as_ref()));
            Err(Failure::terminal(reasons::INVALID_WASM, message))
        }
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("it did not say why")
}

pub(crate) fn invalid(error: wasmtime::Error) -> Failure {
    Failure::terminal(reasons::INVALID_WASM, format!("the component cannot be compiled: {error:#}"))
}

fn failed(why: &str) -> Failure {
    Failure::transient(reasons::COMPILER_FAILED, format!("the module was not compiled: {why}"))
}
