//! Where modules are compiled.

use std::{fmt, sync::Arc};

use pintle_wit::Failure;
use wasmtime::{Engine, Module, component::Component};

/// Turns the bytes of a module into what [`Engine::precompile`](crate::Engine::precompile) makes of them, somewhere else.
pub type Precompile = Arc<dyn Fn(&[u8]) -> Result<Vec<u8>, Failure> + Send + Sync>;

/// Where modules are compiled.
#[derive(Clone, Default)]
pub enum Compiler {
    /// In this process.
    #[default]
    Here,
    /// In another process of the same program, so that the memory of a compiler, some 20 MiB of code and heap, does not stay with
    /// one that runs for months, and so that a module which makes the compiler fail takes nothing else with it.
    ///
    /// What the function returns is run as machine code. It must come from the same program, by a way that nobody else can write
    /// to: a pipe.
    Elsewhere(Precompile),
}

impl fmt::Debug for Compiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Here => "Here",
            Self::Elsewhere(_) => "Elsewhere",
        })
    }
}

/// Loads what was compiled elsewhere. An error means that it was compiled for another engine than this.
#[allow(
    unsafe_code,
    reason = "the only way to take in what another process compiled; see Compiler::Elsewhere"
)]
pub(crate) fn component(engine: &Engine, artifact: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: the artifact was made by wasmtime in a process of this very program and came through a pipe from it, as
    // `Compiler::Elsewhere` demands. wasmtime refuses one of another version or configuration itself.
    unsafe { Component::deserialize(engine, artifact) }
}

/// The same for a core module.
#[allow(unsafe_code, reason = "as for components")]
pub(crate) fn module(engine: &Engine, artifact: &[u8]) -> wasmtime::Result<Module> {
    // SAFETY: as for components.
    unsafe { Module::deserialize(engine, artifact) }
}
