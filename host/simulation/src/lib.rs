//! Runs the operator on an API server in memory, with faults, and reproducibly.
//!
//! A [`Setting`] is a cluster with modules and Reconcilers, in which a host has nothing left to do. A run applies a scenario to a copy of
//! it, and runs the operator's own code on [`pintle_simulator`], on one thread whose time stands still until nothing is left to do. A
//! [`Plan`] lists the faults. A [`RunOutcome`] is the result; it names the property that broke, and the step at which it broke.
//!
//! [`views`] does the same with the gateway.
//!
//! [`choice`] makes plans: each fault at each place, and mixtures. [`search`] runs them, and shortens those that break a property.

mod backend;
pub mod choice;
mod class;
mod differing;
mod hosts;
mod meddling;
#[macro_use]
mod plan;
mod properties;
mod readiness;
mod run;
pub mod scenario;
mod script;
mod seam;
pub mod search;
pub mod views;
pub mod words;
mod world;

pub use class::Class;
pub use differing::Differing;
pub use plan::{Fault, OnEvent, OnRequest, OnWrite, Plan, PlanError, Replay};
pub use properties::{Broken, Property};
pub use readiness::NotReady;
pub use run::{NamedModule, Reference, Resolve, RunOutcome, Setting, Simulation};
pub use script::TraceEntry;
pub use seam::{Seam, Seams, Sent};
