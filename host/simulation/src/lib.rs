//! The operator on an API server in memory, where everything that can go wrong does, repeatably.
//!
//! A [`Setting`] is a cluster with modules and Reconcilers, in which a host has come to rest. A run puts a scenario on a copy of it,
//! with the operator's own code over [`pintle_simulator`], on one thread whose time stands still until nothing is left to do. What goes
//! wrong is a [`Plan`]; what came of it is an [`Outcome`], which names the property that broke and the step at which it did.
//! [`choice`] makes plans, of each fault at each place and of mixtures; [`search`] runs them, and shortens those that break a property.

mod backend;
pub mod choice;
mod class;
mod differing;
mod hosts;
mod meddling;
mod plan;
mod properties;
mod run;
pub mod scenario;
mod script;
mod seam;
pub mod search;
pub mod words;
mod world;

pub use class::Class;
pub use differing::Differing;
pub use plan::{Fault, OnEvent, OnRequest, OnWrite, Plan, Replay};
pub use properties::{Broken, Property};
pub use run::{NamedModule, Outcome, Reference, Resolve, Setting, Simulation};
pub use script::Step;
pub use seam::{Seam, Seams, Sent};
