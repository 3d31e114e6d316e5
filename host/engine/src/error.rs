//! [`EngineError`]: what can go wrong at the start of an engine.

use std::io;

/// The engine cannot start, or does not enforce its limits.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// wasmtime refuses the configuration, or this machine.
    #[error("the engine cannot be set up: {0}")]
    Setup(String),
    /// The thread that watches deadlines cannot be started.
    #[error("the thread that watches deadlines cannot be started")]
    Thread(#[source] io::Error),
    /// A guest that loops for ever was not stopped by its limit.
    #[error("a guest that loops for ever was not stopped as it should be: {0}")]
    Unlimited(String),
}
