//! The operator: watches, a queue, workers, and the control loop that decides which module is in force for which kind.
//!
//! - [`state`]: what it knows, behind one lock, and what its parts share.
//! - [`watch`] and [`intake`]: what the API server tells, and what the workers have written, on its way into the state.
//! - [`control`]: from Modules, Reconcilers and CRDs to watches, bindings and their statuses.
//! - [`load`]: from a Module to a guest that can be called, by means of `pintle-modules`, and what stays compiled.
//! - [`worker`]: carries out the passes of `pintle-core`, one step after the other.
//! - [`host`] puts the parts together, and [`run`](mod@run) makes a process of them.

mod access;
mod bind;
mod configs;
mod control;
mod events;
mod flags;
mod host;
mod in_flight;
mod intake;
mod lanes;
mod lease;
mod limits;
mod load;
mod metrics;
mod needs;
mod own_status;
mod policy;
mod run;
mod scrape;
mod sealing_key;
mod served;
mod server;
mod state;
mod store;
mod watch;
mod worker;

pub use flags::Flags;
pub use host::Host;
pub use lease::NAME as LEASE;
pub use metrics::Metrics;
pub use run::run;
pub use server::Readiness;
pub use state::CallGuest;
pub use store::RootLimits;
