//! [`Engine`]: loads guests, and keeps each module once however often it is used.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use pintle_wit::Failure;
use wasmtime::{Store, Trap, component::Linker};

use crate::{
    at_once::Patience,
    call::Callee,
    compiler::{self, Compiler, Job, LOOP},
    config::{Allocation, EngineConfig, Meter, Target},
    digest::Digest,
    error::EngineError,
    failure,
    loaded::{Loaded, Parts, Size},
    module::Module,
    sandbox::Sandbox,
    ticker,
    verify::{self, Refused},
    worlds::Worlds,
};

/// Loads guests and calls them. It is cheap to clone. Its resources are freed with the last clone and the last of its modules.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

struct Inner {
    sandbox: Arc<Sandbox>,
    /// The modules in use, and those that are being loaded. This lock is never held for longer than a lookup. While a module is loaded,
    /// only the lock of its own entry is held, so that it is compiled once, and loads of other modules do not wait.
    modules: Mutex<BTreeMap<Digest, Entry>>,
}

type Entry = Arc<Mutex<Weak<Loaded>>>;

impl Engine {
    /// Starts an engine.
    ///
    /// # Errors
    /// When wasmtime does not support this machine or this configuration, or no thread can be started.
    pub fn new(config: EngineConfig) -> Result<Self, EngineError> {
        let sandbox = Arc::new(Sandbox::start(config)?);
        let modules = Mutex::new(BTreeMap::new());
        Ok(Self(Arc::new(Inner { sandbox, modules })))
    }

    /// Checks everything that can be checked without compiling a module: its size, its digest, that it is a valid component, and that it
    /// imports nothing. Blocks for some milliseconds for each megabyte.
    ///
    /// # Errors
    /// The first check that failed.
    pub fn verify(&self, bytes: &[u8], expected: Option<&Digest>) -> Result<Digest, Refused> {
        verify::verify(bytes, expected, &self.0.sandbox.config).map_err(|mut refused| {
            refused.failure = failure::bounded(refused.failure);
            refused
        })
    }

    /// Turns bytes into a module, compiled in this process: as [`Self::load_by`].
    ///
    /// # Errors
    /// As [`Self::load_by`].
    pub fn load(&self, bytes: &[u8], expected: Option<&Digest>) -> Result<Module, Failure> {
        self.load_by(Compiler::Here, bytes, expected)
    }

    /// Turns bytes into a module: checks them as [`Self::verify`] does, compiles them, checks that they export the contract, and asks the
    /// guest for its manifests.
    ///
    /// This blocks for as long as compiling takes: some 50 ms for a guest of 100 KB. A module that is still in use is not compiled again.
    /// If another thread is loading the same module, this waits for it. It does not wait for other modules.
    ///
    /// # Errors
    /// The first check that failed, or why it was not compiled.
    pub fn load_by(
        &self,
        compiler: Compiler<'_>,
        bytes: &[u8],
        expected: Option<&Digest>,
    ) -> Result<Module, Failure> {
        let digest = self.verify(bytes, expected)?;
        self.load_verified(compiler, bytes, digest).map_err(failure::bounded)
    }

    fn load_verified(&self, compiler: Compiler<'_>, bytes: &[u8], digest: Digest) -> Result<Module, Failure> {
        let entry = {
            let mut modules = self.modules();
            // If another thread holds the lock of an entry, the result of its load is not known yet.
            modules.retain(|_, entry| Arc::strong_count(entry) > 1 || lock(entry).strong_count() > 0);
            Arc::clone(modules.entry(digest).or_default())
        };
        // A panic under the lock is caught below. If one escapes, the entry is still valid.
        let mut entry = lock(&entry);
        if let Some(loaded) = entry.upgrade() {
            return Ok(Module(loaded));
        }
        let started = (self.0.sandbox.config.monotonic)();
        let component = match compiler {
            Compiler::Here => compiler::compile(&self.0.sandbox.wasmtime, bytes)?,
            Compiler::Elsewhere(precompile) => {
                let artifact = precompile(Job { bytes, digest, target: self.target() })?;
                compiler::component(&self.0.sandbox.wasmtime, &artifact)?
            }
        };
        let compile_duration = (self.0.sandbox.config.monotonic)().saturating_sub(started);
        let worlds = Worlds::of(&component)?;
        let image = component.image_range();
        let code_bytes = image.end.addr().saturating_sub(image.start.addr());
        let instance =
            Linker::new(&self.0.sandbox.wasmtime).instantiate_pre(&component).map_err(compiler::invalid)?;
        let callee = Callee { sandbox: Arc::clone(&self.0.sandbox), component: instance };
        let parts = Parts::probe(&callee, worlds)?;
        let size = Size { bytes: bytes.len(), code_bytes };
        let patience = Patience::default();
        let loaded = Arc::new(Loaded { callee, digest, size, compile_duration, parts, patience });
        *entry = Arc::downgrade(&loaded);
        Ok(Module(loaded))
    }

    /// The module with this digest, if it is in use.
    pub fn loaded(&self, digest: &Digest) -> Option<Module> {
        let entry = Arc::clone(self.modules().get(digest)?);
        // A thread that holds the lock is loading the module, so it does not exist yet.
        let loaded = entry.try_lock().ok()?.upgrade();
        loaded.map(Module)
    }

    fn modules(&self) -> MutexGuard<'_, BTreeMap<Digest, Entry>> {
        lock(&self.0.modules)
    }

    /// The target for which modules must be compiled, so that this engine can load them.
    pub fn target(&self) -> Target {
        self.0.sandbox.config.target(self.0.sandbox.allocation)
    }

    /// Runs a guest that loops for ever, and checks that its limit stops it. A host must be sure of that before it is ready. This takes
    /// some milliseconds, or does not return.
    ///
    /// # Errors
    /// When the loop ends for another reason.
    pub fn self_test(&self, compiler: Compiler<'_>) -> Result<(), EngineError> {
        /// Two ticks.
        const TIMEOUT: Duration = Duration::from_millis(4);
        /// Fuel for less than a millisecond.
        const FUEL: u64 = 100_000;
        let unlimited = |error: wasmtime::Error| EngineError::Unlimited(format!("{error:#}"));
        let module = match compiler {
            Compiler::Here => {
                wasmtime::Module::from_binary(&self.0.sandbox.wasmtime, LOOP).map_err(unlimited)?
            }
            Compiler::Elsewhere(precompile) => {
                precompile(Job { bytes: LOOP, digest: Digest::of(LOOP), target: self.target() })
                    .and_then(|artifact| compiler::module(&self.0.sandbox.wasmtime, &artifact))
                    .map_err(|failure| EngineError::Setup(failure.to_string()))?
            }
        };
        let _slot = self.0.sandbox.ticker.enter();
        let mut store = Store::new(&self.0.sandbox.wasmtime, ());
        let expected = match self.0.sandbox.config.meter {
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

    /// How calls are bounded.
    pub fn meter(&self) -> Meter {
        self.0.sandbox.config.meter
    }

    /// Where the memory of calls comes from.
    pub fn allocation(&self) -> Allocation {
        self.0.sandbox.allocation
    }

    /// The most memory that any call is given, in bytes, whatever its limits say.
    pub fn memory_bytes_max(&self) -> usize {
        self.0.sandbox.config.memory_bytes_max
    }

    /// How many calls run now.
    pub fn calls_in_flight(&self) -> usize {
        self.0.sandbox.ticker.in_flight()
    }

    /// How often the deadlines of running calls were checked. It stands still while no call runs.
    pub fn ticks(&self) -> u64 {
        self.0.sandbox.ticker.ticks()
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("config", &self.0.sandbox.config).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
