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
mod run;
mod script;
mod world;

use crate::{run::Replicas, search};

pub use class::Class;
pub use differing::Differing;
pub use fault::{Fault, OnEvent, OnRequest, OnWrite, Plan, Replay};
pub use hosts::Hosts;
pub use properties::Property;
pub use readiness::UnknownKinds;
pub use run::{Evidence, NamedModule, Resolve, Setting, Simulation};

/// The outcome of a run of a scenario.
pub type RunOutcome = crate::run::RunOutcome<Hosts>;

/// A property that did not hold.
type Broken = crate::run::Broken<Property>;

/// A scenario, and the run that others are compared with.
pub type Subject<'a> = search::Subject<Simulation<'a>>;

/// A run of a scenario that broke a property.
pub type Failure = search::Failure<Hosts>;

/// The result of many runs of scenarios.
pub type Tally = search::Tally<Hosts>;

impl Replicas for Hosts {
    type Fault = Fault;
    type Class = Class;
    type Property = Property;
    type Evidence = Evidence;

    const PREFIX: &'static str = "host-";
    const REPEATABLE: Property = Property::Repeatable;

    fn classes() -> Vec<Class> {
        Class::ALL.to_vec()
    }

    fn classes_of(faults: &[Fault]) -> Vec<Class> {
        choice::classes(faults)
    }
}
