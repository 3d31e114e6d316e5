//! A guest without a cluster: its root, its children and what the API server refuses come from files.
//!
//! The decisions are those of the operator, made by the same code: [`pintle_core::Pass`] says what is to be done, and an in-memory
//! [`cluster`] carries it out. What `pintle render`, `pintle test` and `pintle check` print is what came of it: all of them [`ask`](ask::ask).

pub mod ask;
pub mod case;
pub mod cluster;
pub mod difference;
pub mod documents;
mod elsewhere;
mod guest;
pub mod numbers;
pub mod run;
pub mod setting;
pub mod shown;
mod siblings;
pub mod views;

use pintle_engine::{Engine, EngineConfig, Meter};
use pintle_runtime::clock;

/// An engine for calls without a cluster. Calls are counted in fuel, so that they end alike on every machine.
///
/// # Errors
/// When the engine does not start on this machine.
pub fn engine() -> anyhow::Result<Engine> {
    Ok(Engine::new(EngineConfig::new(Meter::Fuel, clock::monotonic))?)
}
