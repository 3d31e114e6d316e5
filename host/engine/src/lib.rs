//! The sandbox: loads guests and calls them.
//!
//! A guest is a WebAssembly component that exports the contract of `pintle-wit` and imports nothing. [`Engine::load`] checks bytes and
//! turns them into a [`Module`], whose parts say what it can do: [`Guest`] reconciles, [`Views`] serves views. Each call has its own store
//! and instance, which are dropped after it. Nothing that a guest does affects another call: no trap, no loop, and nothing that it left in
//! memory.
//!
//! Everything that can go wrong is a [`Failure`](pintle_wit::Failure) with a reason from [`pintle_wit::reasons`]. The only errors of the
//! engine's own are those of its start ([`EngineError`]).
//!
//! The files stand in this order, and each uses only those before it:
//!
//! 1. `digest`, `ticker`: names, and time.
//! 2. `config`, `limits`: what an engine and a call may use.
//! 3. `error`, `failure`: what can go wrong.
//! 4. `verify`, `worlds`, `compiler`: from bytes to a component that exports the contract.
//! 5. `sandbox`, `call`, `at_once`: what all calls share, one call, and one that may not wait.
//! 6. `loaded`, `guest`, `views`: what was loaded, and how each of its parts is called.
//! 7. `module`, `engine`: all of a module, and who keeps it.
//!
//! A call is bounded by a [`Meter`]: by time where roots wait for it, and by fuel where the outcome must be the same on every machine.

mod at_once;
mod call;
mod compiler;
mod config;
mod digest;
mod engine;
mod error;
mod failure;
#[cfg(feature = "fixtures")]
pub mod fixtures;
mod guest;
mod limits;
mod loaded;
mod module;
mod sandbox;
mod ticker;
mod verify;
mod views;
mod worlds;

pub use call::{Answer, CallError, CallStats, Origin};
pub use compiler::{Compiler, Job, Precompile, Precompiler};
pub use config::{Allocation, EngineConfig, MODULE_BYTES_MAX, Meter, Monotonic, Target};
pub use digest::{Digest, DigestError};
pub use engine::Engine;
pub use error::EngineError;
pub use guest::Guest;
pub use limits::CallLimits;
pub use module::Module;
pub use ticker::TICK;
pub use verify::{Excess, FUNCTION_BYTES_MAX, FUNCTIONS_MAX, LOCALS_MAX, Refused};
pub use views::{ShowAnswer, StoreAnswer, Views};
