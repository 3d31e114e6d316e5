//! The sandbox: loads guests and calls them.
//!
//! A guest is a WebAssembly component that exports the contract of `pintle-wit` and imports nothing. [`Engine::load`] checks bytes and
//! turns them into a [`Module`]. [`Module::reconcile`] calls the guest in its own store and instance, which are dropped after the call.
//! Nothing that a guest does affects another call: no trap, no loop, and nothing that it left in memory.
//!
//! Everything that can go wrong is a [`Failure`](pintle_wit::Failure) with a reason from [`pintle_wit::reasons`]. The only errors of the
//! engine's own are those of its start ([`EngineError`]).
//!
//! A call is bounded by a [`Meter`]: by time where roots wait for it, and by fuel where the outcome must be the same on every machine.

mod call;
mod compiler;
mod config;
mod digest;
mod engine;
mod failure;
#[cfg(feature = "fixtures")]
pub mod fixtures;
mod module;
mod ticker;
mod verify;
mod worlds;

pub use call::{Answer, CallError, CallLimits, CallStats, Origin};
pub use compiler::{Compiler, Job, Precompile, Precompiler, Target};
pub use config::{Allocation, EngineConfig, MODULE_BYTES_MAX, Meter, Monotonic};
pub use digest::{Digest, DigestError};
pub use engine::{Engine, EngineError};
pub use module::Module;
pub use ticker::TICK;
pub use verify::{Excess, FUNCTION_BYTES_MAX, FUNCTIONS_MAX, LOCALS_MAX, Refused};
