//! The operator: scenarios, what goes wrong in them, and what must hold.

mod backend;
pub mod choice;
mod class;
mod differing;
mod fault;
mod hosts;
mod meddling;
mod properties;
mod readiness;
pub(crate) mod run;
pub(crate) mod script;
pub mod search;
pub mod words;
mod world;

pub use class::Class;
pub use differing::Differing;
pub use fault::{Fault, OnEvent, OnRequest, OnWrite, Plan, Replay};
pub use properties::{Broken, Property};
pub use readiness::NotReady;
pub use run::{NamedModule, Reference, Resolve, RunOutcome, Setting, Simulation};
pub use script::TraceEntry;
