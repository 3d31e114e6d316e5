//! The sandbox: loads guests and calls them.
//!
//! A guest is a WebAssembly component that exports the contract of `pintle-wit` and imports nothing. [`Engine::load`] turns bytes
//! into a [`Module`] once they have proved to be one; [`Module::reconcile`] asks it, in a store and an instance of its own, which
//! are dropped with the answer. Nothing that a guest does reaches another call: not a trap, not a loop, not what it left in memory.
//!
//! Whatever can go wrong is a [`Failure`](pintle_wit::Failure) with a reason from [`pintle_wit::reasons`]; the engine has no
//! errors of its own but those of its start ([`EngineError`]).
//!
//! A call is counted by a [`Meter`]: in time where roots wait for it, in fuel where the outcome must be the same on every machine.

mod call;
mod compiler;
mod config;
mod contract;
mod digest;
mod engine;
mod failure;
#[cfg(feature = "fixtures")]
pub mod fixtures;
mod module;
mod ticker;
mod verify;

pub use call::{Answer, CallError, CallLimits, CallStats, Origin};
pub use compiler::{Compiler, Job, Precompile, Precompiler, Target};
pub use config::{Allocation, EngineConfig, MODULE_BYTES_MAX, Meter, Monotonic};
pub use digest::{Digest, DigestError};
pub use engine::{Engine, EngineError};
pub use module::Module;
pub use ticker::TICK;
pub use verify::{Excess, FUNCTION_BYTES_MAX, FUNCTIONS_MAX, LOCALS_MAX, Refused};
