//! A guest without a cluster: its root, its children and what the API server refuses come from files.
//!
//! The decisions are those of the operator, made by the same code: [`pintle_core::Pass`] says what is to be done, and an in-memory
//! [`cluster`] carries it out. What `pintle render`, `pintle test` and `pintle check` print is what came of it.

pub mod case;
pub mod cluster;
pub mod difference;
pub mod documents;
mod guest;

pub mod run;
pub mod setting;

use std::path::Path;

use anyhow::Context;
use pintle_engine::{Engine, EngineConfig, Meter, Module};
use pintle_runtime::clock;
use pintle_wit::Failure;

/// An engine for calls without a cluster. Calls are counted in fuel, so that they end alike on every machine.
///
/// # Errors
/// When the engine does not start on this machine.
pub fn engine() -> anyhow::Result<Engine> {
    Ok(Engine::new(EngineConfig::new(Meter::Fuel, clock::monotonic))?)
}

/// Loads the module in a file; the outer error is about the file, the inner one about what is in it.
///
/// # Errors
/// The file cannot be read, or is no module that a host would take.
pub fn load(engine: &Engine, path: &Path) -> anyhow::Result<Result<Module, Failure>> {
    let bytes = std::fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
    Ok(engine.load(&bytes, None))
}
