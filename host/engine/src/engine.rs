use std::{
    any::Any,
    collections::BTreeMap,
    fmt, io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use pintle_wit::{Failure, reasons};
use wasmtime::{
    Store, Trap,
    component::{Component, Linker},
};

use crate::{
    Allocation, Compiler, Digest, EngineConfig, Meter, Module, compiler,
    config::wasmtime_config,
    contract, failure,
    module::Loaded,
    ticker::{self, Ticker},
    verify,
};

/// Loads guests and calls them. Cheap to clone; what it holds ends with the last engine and the last of its modules.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

/// The engine does not start, or does not do its duty.
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

pub(crate) struct Inner {
    pub(crate) wasmtime: wasmtime::Engine,
    pub(crate) ticker: Ticker,
    pub(crate) config: EngineConfig,
    allocation: Allocation,
    /// The modules in use. Held while one is loaded, so that compiling, which takes every processor it finds and has no
    /// deadline, happens once a module and one at a time.
    modules: Mutex<BTreeMap<Digest, Weak<Loaded>>>,
}

/// `(module (func $loop (loop (br 0))) (start $loop))`
const LOOP: &[u8] =
    b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x03\x02\x01\0\x08\x01\0\x0a\x09\x01\x07\0\x03\x40\x0c\0\x0b\x0b";

impl Engine {
    /// Starts an engine.
    ///
    /// # Errors
    /// When wasmtime does not support this machine or this configuration, or no thread can be started.
    pub fn new(config: EngineConfig) -> Result<Self, EngineError> {
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
        let modules = Mutex::new(BTreeMap::new());
        Ok(Self(Arc::new(Inner { wasmtime, ticker, config, allocation, modules })))
    }

    /// Turns bytes into a module: checks their size, their digest, that they are a valid component, that it imports nothing and
    /// exports the contract, compiles it and asks it for its manifest.
    ///
    /// This blocks, for as long as compiling takes: some 50 ms for a guest of 100 KB. A module that is still in use is not
    /// compiled again.
    ///
    /// # Errors
    /// The first check that failed.
    pub fn load(&self, bytes: &[u8], expected: Option<&Digest>) -> Result<Module, Failure> {
        self.load_unbounded(bytes, expected).map_err(failure::bounded)
    }

    fn load_unbounded(&self, bytes: &[u8], expected: Option<&Digest>) -> Result<Module, Failure> {
        let bytes_max = self.0.config.module_bytes_max;
        if bytes.len() > bytes_max {
            let message = format!("the module has {} bytes, the limit is {bytes_max}", bytes.len());
            return Err(Failure::terminal(reasons::MODULE_TOO_LARGE, message));
        }
        let digest = Digest::of(bytes);
        if let Some(expected) = expected.filter(|expected| **expected != digest) {
            let message = format!("the bytes have the digest {digest}, and should have {expected}");
            return Err(Failure::terminal(reasons::DIGEST_MISMATCH, message));
        }
        // A panic under the lock is caught below; should one escape, the map is still sound.
        let mut modules = self.0.modules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = modules.get(&digest).and_then(Weak::upgrade) {
            return Ok(Module(loaded));
        }
        verify::verify(bytes, self.0.config.memory_bytes_max)?;
        let started = (self.0.config.monotonic)();
        let component = self.compile(bytes)?;
        let compile_duration = (self.0.config.monotonic)().saturating_sub(started);
        let exports = contract::exports(&component)?;
        let guest = Linker::new(&self.0.wasmtime).instantiate_pre(&component).map_err(invalid)?;
        let loaded =
            Loaded::probe(Arc::clone(&self.0), guest, exports, digest, bytes.len(), compile_duration)?;
        let loaded = Arc::new(loaded);
        modules.retain(|_, module| module.strong_count() > 0);
        modules.insert(digest, Arc::downgrade(&loaded));
        Ok(Module(loaded))
    }

    fn compile(&self, bytes: &[u8]) -> Result<Component, Failure> {
        if let Compiler::Elsewhere(precompile) = &self.0.config.compiler
            && let Ok(component) = compiler::component(&self.0.wasmtime, &precompile(bytes)?)
        {
            return Ok(component);
        }
        // Also where the other process had another engine: it may have found less address space.
        compile(&self.0.wasmtime, bytes)
    }

    /// Compiles a module for an engine of another process that was built alike, see [`Compiler::Elsewhere`]. Nothing is checked that
    /// [`Engine::load`] checks.
    ///
    /// # Errors
    /// When the bytes are no component and no core module that this engine takes.
    pub fn precompile(&self, bytes: &[u8]) -> Result<Vec<u8>, Failure> {
        let wasmtime = &self.0.wasmtime;
        let compiled = catch_unwind(AssertUnwindSafe(|| {
            if bytes == LOOP {
                wasmtime.precompile_module(bytes)
            } else {
                wasmtime.precompile_component(bytes)
            }
        }));
        compiled
            .unwrap_or_else(|panic| Err(wasmtime::Error::msg(panic_text(panic.as_ref()).to_owned())))
            .map_err(invalid)
    }

    /// Runs a guest that loops for ever and demands that its limit stops it: a host that is not sure of that is not ready.
    /// Takes some milliseconds, or does not return.
    ///
    /// # Errors
    /// When the loop ends otherwise.
    pub fn self_test(&self) -> Result<(), EngineError> {
        /// Two ticks.
        const TIMEOUT: Duration = Duration::from_millis(4);
        /// What burns in less than a millisecond.
        const FUEL: u64 = 100_000;
        let unlimited = |error: wasmtime::Error| EngineError::Unlimited(format!("{error:#}"));
        let precompiled = match &self.0.config.compiler {
            Compiler::Elsewhere(precompile) => precompile(LOOP).ok(),
            Compiler::Here => None,
        };
        let module = precompiled
            .and_then(|artifact| compiler::module(&self.0.wasmtime, &artifact).ok())
            .map_or_else(|| wasmtime::Module::from_binary(&self.0.wasmtime, LOOP), Ok)
            .map_err(unlimited)?;
        let _slot = self.0.ticker.enter();
        let mut store = Store::new(&self.0.wasmtime, ());
        let expected = match self.0.config.meter {
            Meter::Deadline => {
                store.set_epoch_deadline(ticker::ticks(TIMEOUT));
                Trap::Interrupt
            }
            Meter::Fuel => {
                store.set_fuel(FUEL).map_err(unlimited)?;
                Trap::OutOfFuel
            }
        };
        match wasmtime::Instance::new(&mut store, &module, &[]) {
            Err(error) if error.downcast_ref() == Some(&expected) => Ok(()),
            Err(error) => Err(unlimited(error)),
            Ok(_) => Err(EngineError::Unlimited("it ended".into())),
        }
    }

    /// What calls are counted in.
    pub fn meter(&self) -> Meter {
        self.0.config.meter
    }

    /// Where the memory of calls comes from.
    pub fn allocation(&self) -> Allocation {
        self.0.allocation
    }

    /// How many calls run now.
    pub fn calls_in_flight(&self) -> usize {
        self.0.ticker.in_flight()
    }

    /// How often the deadlines of running calls were checked. It stands still while no call runs.
    pub fn ticks(&self) -> u64 {
        self.0.ticker.ticks()
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("config", &self.0.config).finish_non_exhaustive()
    }
}

fn start(config: &EngineConfig, allocation: Allocation) -> wasmtime::Result<wasmtime::Engine> {
    wasmtime::Engine::new(&wasmtime_config(config, allocation))
}

/// A compiler is large, and its panics on odd input are not held to be vulnerabilities; here one costs a module, not the host.
fn compile(engine: &wasmtime::Engine, bytes: &[u8]) -> Result<Component, Failure> {
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

fn invalid(error: wasmtime::Error) -> Failure {
    Failure::terminal(reasons::INVALID_WASM, format!("the component cannot be compiled: {error:#}"))
}
