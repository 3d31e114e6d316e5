//! Runs the operator on an API server in memory, with faults, and reproducibly.
//!
//! A [`Setting`] is a cluster with modules and Reconcilers, in which a host has nothing left to do. A run applies a scenario to a copy of
//! it, and runs the operator's own code on [`pintle_simulator`], on one thread whose time stands still until nothing is left to do. A
//! [`Plan`] lists the faults. A [`RunOutcome`] is the result; it names the property that broke, and says when that was seen.
//!
//! [`views`] does the same with the gateway.
//!
//! [`choice`] makes plans: each fault at each place, and mixtures. [`search`] runs them, and shortens those that break a property. It takes
//! either system as a type ([`run::Replicas`]).

mod acts;
mod corpus;
mod life;
#[macro_use]
pub mod plan;
mod operator;
pub mod run;
pub mod scenario;
mod script;
mod seam;
pub mod search;
pub mod views;
mod world;

pub use corpus::corpus;
pub use operator::{
    Class, Differing, Evidence, Failure, Fault, Hosts, NamedModule, OnEvent, OnRequest, OnWrite, Plan,
    Property, Replay, Resolve, RunOutcome, Setting, Simulation, Subject, Tally, UnknownKinds, choice,
};
pub use pintle_core::pass::RECORDING;
pub use run::TraceEntry;
pub use seam::{Seam, Seams, Sent};
