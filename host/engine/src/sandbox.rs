//! [`Sandbox`]: what all calls of an engine share.

use crate::{
    config::{Allocation, EngineConfig, Meter, wasmtime_config},
    error::EngineError,
    ticker::Ticker,
};

/// What all calls of an engine share. Its resources are freed with the engine and the last of its modules.
pub(crate) struct Sandbox {
    pub(crate) wasmtime: wasmtime::Engine,
    pub(crate) ticker: Ticker,
    pub(crate) config: EngineConfig,
    pub(crate) allocation: Allocation,
}

impl Sandbox {
    pub(crate) fn start(config: EngineConfig) -> Result<Self, EngineError> {
        // The address space may be limited; then every call maps its own memory.
        let (wasmtime, allocation) = match start(&config, Allocation::Pool) {
            Ok(engine) => (engine, Allocation::Pool),
            Err(_) => {
                let engine = start(&config, Allocation::OnDemand)
                    .map_err(|error| EngineError::Setup(format!("{error:#}")))?;
                (engine, Allocation::OnDemand)
            }
        };
        let ticker = match config.meter {
            Meter::Deadline => {
                let ticked = wasmtime.clone();
                Ticker::start(config.concurrent_calls, move || ticked.increment_epoch())
                    .map_err(EngineError::Thread)?
            }
            Meter::Fuel => Ticker::without_thread(config.concurrent_calls),
        };
        Ok(Self { wasmtime, ticker, config, allocation })
    }
}

fn start(config: &EngineConfig, allocation: Allocation) -> wasmtime::Result<wasmtime::Engine> {
    wasmtime::Engine::new(&wasmtime_config(config, allocation))
}
