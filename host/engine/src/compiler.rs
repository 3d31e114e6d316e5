//! Where modules are compiled, and how the result of another process is loaded.

use std::{
    any::Any,
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
    panic::{AssertUnwindSafe, catch_unwind},
};

use pintle_wit::{Failure, reasons};
use wasmtime::{Engine, Module, OutOfMemory, component::Component};

use crate::{
    config::{Target, compile_config},
    digest::Digest,
    error::EngineError,
};

/// A module to compile.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Their digest.
    pub digest: Digest,
    /// The engine that it is compiled for.
    pub target: Target,
}

/// The function that lets a [`Precompiler`] in another process compile a module.
pub type Precompile<'a> = dyn Fn(Job<'_>) -> Result<Vec<u8>, Failure> + 'a;

/// Where modules are compiled.
#[derive(Clone, Copy, Default)]
pub enum Compiler<'a> {
    /// In this process, without a limit of time and memory.
    #[default]
    Here,
    /// In another process of the same program, which can be limited and ended. So neither the memory nor the bugs of a compiler affect this
    /// process, which runs for months. If the other process fails, nothing is compiled in this one instead.
    ///
    /// The bytes that the function returns are run as machine code. They must come from the same program, through a channel that nobody
    /// else can write to, which is a pipe.
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

/// Compiles modules for an engine in another process of the same program. It calls no guest, and reserves no memory for calls.
pub struct Precompiler(Engine);

impl fmt::Debug for Precompiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Precompiler")
    }
}

impl Precompiler {
    /// A compiler for this target.
    ///
    /// # Errors
    /// When wasmtime does not support this machine.
    pub fn new(target: &Target) -> Result<Self, EngineError> {
        Engine::new(&compile_config(target))
            .map(Self)
            .map_err(|error| EngineError::Setup(format!("{error:#}")))
    }

    /// Compiles a module. This makes none of the checks of [`Engine::load`](crate::Engine::load).
    ///
    /// # Errors
    /// A terminal failure if the bytes are no component and no core module that this engine accepts; a transient one if the compiler
    /// panicked or had too little memory.
    pub fn precompile(&self, bytes: &[u8]) -> Result<Vec<u8>, Failure> {
        let compiled = catch_unwind(AssertUnwindSafe(|| {
            if bytes == LOOP { self.0.precompile_module(bytes) } else { self.0.precompile_component(bytes) }
        }));
        let made = match compiled {
            Ok(Ok(made)) => made,
            Ok(Err(error)) if error.is::<OutOfMemory>() => return Err(failed(&format!("{error:#}"))),
            Ok(Err(error)) => return Err(invalid(error)),
            // The cause often is a lack of memory or threads, which cannot be told apart from others.
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

/// The first bytes of an artifact. wasmtime itself refuses an artifact for another engine, but its error does not differ from that for a
/// module that this engine does not accept.
fn fingerprint(engine: &Engine) -> [u8; FINGERPRINT_BYTES] {
    let mut hasher = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    hasher.finish().to_le_bytes()
}

/// The artifact of wasmtime, if it was made for an engine like this one.
fn made_for<'a>(engine: &Engine, artifact: &'a [u8]) -> Result<&'a [u8], Failure> {
    match artifact.split_first_chunk() {
        Some((made_for, made)) if *made_for == fingerprint(engine) => Ok(made),
        _ => Err(failed("what it made is for another engine than this")),
    }
}

/// Loads an artifact that was compiled elsewhere.
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

/// Compiles in this process. A compiler is large, and panics on odd input do not count as vulnerabilities of it. Here, a panic fails the
/// module and not the process.
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
