//! How an engine is built: what bounds a call, where its memory comes from, and how large things may be.

use std::{fmt, num::NonZeroUsize, sync::Arc, thread, time::Duration};

use wasmtime::{Config, OptLevel, PoolingAllocationConfig, Strategy, WasmBacktraceDetails};

use crate::ticker::LANES;

/// A clock that only runs forward, for durations. The engine has none of its own, so that the simulator can replace it.
pub type Monotonic = Arc<dyn Fn() -> Duration + Send + Sync>;

/// How a call is bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meter {
    /// By elapsed time, with the limit [`CallLimits::timeout`](crate::CallLimits::timeout): for the operator, where roots wait.
    Deadline,
    /// By instructions, with the limit [`CallLimits::fuel`](crate::CallLimits::fuel). They are the same on every machine and at every load,
    /// so that offline tests have the same result everywhere. There is no deadline, and no thread.
    Fuel,
}

/// Where the memory of calls comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// From a pool that was reserved at the start, so that a call needs no system call.
    Pool,
    /// Mapped for every call, because the address space has no room for the pool. This is slower, but otherwise the same.
    OnDemand,
}

/// The target of an artifact: everything that the compiler must know about the engine that will load it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Where that engine's memory comes from. Machine code depends on the guard pages around it.
    pub allocation: Allocation,
    /// The meter of that engine's calls.
    pub meter: Meter,
    /// The most memory that any call of it may be given, in bytes.
    pub memory_bytes_max: usize,
}

/// How an [`Engine`](crate::Engine) is built.
#[derive(Clone)]
pub struct EngineConfig {
    /// How many calls may run at once that may use their whole deadline; further ones wait for their turn. As many may run besides that
    /// answer in a moment ([`Module::reconcile_at_once`](crate::Module::reconcile_at_once)). Default: one for each processor, since a call
    /// only computes.
    pub concurrent_calls: usize,
    /// The largest module, in bytes. Default: 8 MiB, some fifty times as large as a guest in Rust, and enough for a language with a runtime
    /// of its own.
    pub module_bytes_max: usize,
    /// The most memory that any call may be given, in bytes, whatever its limits say. Default: 512 MiB, so that a Reconciler
    /// can raise its limit eightfold. It costs address space, not memory.
    pub memory_bytes_max: usize,
    /// How calls are bounded.
    pub meter: Meter,
    /// The clock for durations.
    pub monotonic: Monotonic,
}

/// The largest module, in bytes, unless an engine is built with another limit.
pub const MODULE_BYTES_MAX: usize = 8 << 20;

impl EngineConfig {
    /// The defaults, with this meter and this clock.
    pub fn new(meter: Meter, monotonic: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self {
            concurrent_calls: thread::available_parallelism().map_or(1, NonZeroUsize::get),
            module_bytes_max: MODULE_BYTES_MAX,
            memory_bytes_max: 512 << 20,
            meter,
            monotonic: Arc::new(monotonic),
        }
    }

    /// The target for compilers that compile for an engine of this configuration.
    pub(crate) fn target(&self, allocation: Allocation) -> Target {
        Target { allocation, meter: self.meter, memory_bytes_max: self.memory_bytes_max }
    }
}

impl fmt::Debug for EngineConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineConfig")
            .field("concurrent_calls", &self.concurrent_calls)
            .field("module_bytes_max", &self.module_bytes_max)
            .field("memory_bytes_max", &self.memory_bytes_max)
            .field("meter", &self.meter)
            .finish_non_exhaustive()
    }
}

/// The largest stack of a guest, in bytes: wasmtime's own default, and a quarter of the smallest stack of a thread of the host. Rust guests
/// have another 64 KiB of stack in their memory.
const STACK_BYTES_MAX: usize = 512 << 10;

/// How much of a memory stays mapped between calls, in bytes. Memory above this costs page faults in each call, and memory below it must be
/// cleared. A guest with a 64 KiB stack and the SDK's bump allocator stays within it for roots of up to some 50 KB.
const MEMORY_KEEP_RESIDENT_BYTES: usize = 256 << 10;

/// The same for tables, in bytes: 2000 entries. guest-webserver has 57.
const TABLE_KEEP_RESIDENT_BYTES: usize = 16 << 10;

/// How many core instances, memories and tables one guest may consist of. `wit-component` makes at most four instances, and a component
/// that is wrapped in another one (for instance an emulation of WASI) has twice as many.
pub(crate) const CORE_INSTANCES_MAX: usize = 8;
pub(crate) const MEMORIES_MAX: usize = 2;
pub(crate) const TABLES_MAX: usize = 4;

/// The largest table, in entries: wasmtime's own default.
pub(crate) const TABLE_ELEMENTS_MAX: usize = 20_000;

/// The WebAssembly features that guests may use: those that `rustc` emits for `wasm32-unknown-unknown`. Any other proposal would only add
/// attack surface, and with threads and relaxed SIMD answers could differ. The first check of a module, [`verify`](crate::verify), and the
/// compiler, [`compile_config`], must agree.
pub(crate) fn features() -> wasmparser::WasmFeatures {
    use wasmparser::WasmFeatures as F;
    F::MUTABLE_GLOBAL
        | F::SATURATING_FLOAT_TO_INT
        | F::SIGN_EXTENSION
        | F::REFERENCE_TYPES
        | F::MULTI_VALUE
        | F::BULK_MEMORY
        | F::EXTENDED_CONST
        | F::FLOATS
        | F::COMPONENT_MODEL
}

pub(crate) fn wasmtime_config(config: &EngineConfig, allocation: Allocation) -> Config {
    let mut wasmtime = compile_config(&config.target(allocation));
    if allocation == Allocation::Pool {
        wasmtime.allocation_strategy(pool(config));
    }
    wasmtime
}

/// All settings on which machine code depends, and none that takes address space, since a compiler needs no pool. Artifacts of an engine
/// with a pool and of one without must be compatible; `tests/engine/load.rs` checks that.
pub(crate) fn compile_config(target: &Target) -> Config {
    let mut wasmtime = Config::new();
    wasmtime
        .strategy(Strategy::Cranelift)
        .cranelift_opt_level(OptLevel::Speed)
        // A NaN may have many bit patterns, but equal requests must get byte-equal answers on every processor.
        .cranelift_nan_canonicalization(true)
        .concurrency_support(false)
        .epoch_interruption(target.meter == Meter::Deadline)
        .consume_fuel(target.meter == Meter::Fuel)
        .max_wasm_stack(STACK_BYTES_MAX)
        // Names of functions are enough to find a panic. Reading DWARF would be work on untrusted input.
        .wasm_backtrace_details(WasmBacktraceDetails::Disable)
        .generate_address_map(false)
        .native_unwind_info(false)
        .wasm_tail_call(false)
        .wasm_multi_memory(false)
        .wasm_memory64(false)
        .wasm_simd(false)
        .wasm_relaxed_simd(false)
        .wasm_wide_arithmetic(false)
        .wasm_custom_page_sizes(false);
    if target.allocation == Allocation::OnDemand {
        // With 4 GiB for each call, bounds checks would not be needed. If there is no room for the pool, there is none for that either.
        let bytes = target.memory_bytes_max as u64;
        wasmtime.memory_reservation(bytes).memory_guard_size(64 << 10).memory_reservation_for_growth(0);
    }
    wasmtime
}

fn pool(config: &EngineConfig) -> PoolingAllocationConfig {
    let calls = config.concurrent_calls.max(1).saturating_mul(LANES);
    let each = |count: usize| u32::try_from(calls.saturating_mul(count)).unwrap_or(u32::MAX);
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(each(1))
        .total_core_instances(each(CORE_INSTANCES_MAX))
        .total_memories(each(MEMORIES_MAX))
        .total_tables(each(TABLES_MAX))
        .max_core_instances_per_component(CORE_INSTANCES_MAX as u32)
        .max_memories_per_component(MEMORIES_MAX as u32)
        .max_tables_per_component(TABLES_MAX as u32)
        .max_tables_per_module(TABLES_MAX as u32)
        .table_elements(TABLE_ELEMENTS_MAX)
        .max_memory_size(config.memory_bytes_max)
        .linear_memory_keep_resident(MEMORY_KEEP_RESIDENT_BYTES)
        .table_keep_resident(TABLE_KEEP_RESIDENT_BYTES);
    pool
}
