//! Pintle's decisions.
//!
//! Everything here takes values and returns values: no async, no Kubernetes client, no WebAssembly, no clock. The operator carries
//! the decisions out against an API server, `pintle render` and `pintle test` against files, and a simulator against faults; so
//! the same code decides offline and in a cluster.
//!
//! * [`Pass`]: one reconcile as a state machine, from a [`Snapshot`] to [`Done`].
//! * [`gate`]: the one function through which every guest answer passes. Only what comes out of it can become a write.
//! * [`violations`]: why an answer, or an object, is refused: all that is wrong with it in one failure.
//! * [`managed`]: whether an object drifted, read off its managed fields.
//! * [`readiness`], [`conditions`] and [`reasons`]: what the status says.
//! * [`account`]: as whom a Reconciler's children are written.
//! * [`Queue`]: which root a worker takes next; [`bulk`]: how much a text takes as values.
//! * [`plan`]: what an answer would change, against what is live. [`pass::Preview`] is a pass that stops where it would begin to write.
//! * [`number`]: when two numbers are the same; [`names`]: what is wrong with a name or a label.
//! * [`reconciler`]: the parts of a Reconciler's spec that decide what its guest may do: grants and limits. Which module and config are
//!   in force is decided in `pintle_operator::bind`.

pub mod account;
pub mod bulk;
pub mod conditions;
pub mod config;
pub mod desired;
pub mod gate;
pub mod managed;
pub mod names;
pub mod needs;
pub mod number;
pub mod object;
pub mod observed;
pub mod pass;
pub mod plan;
pub mod quantity;
pub mod queue;
pub mod readiness;
pub mod reasons;
pub mod reconciler;
pub mod request;
pub mod status;
pub mod text;
pub mod view;
pub mod violations;

pub use config::Config;
pub use desired::{DesiredHash, SealingKey};
pub use gate::{Allowed, AllowedChild, GateContext, KindInfo};
pub use observed::{Kept, Names, Observed, Uid};
pub use pass::{
    ApiError, Applied, Apply, Binding, Claim, Counts, Deletion, Done, Duty, EvictionWrite, FinalizerWrite,
    Hits, Judged, Outcome, Pass, RootMemory, Snapshot, StatusWrite, Step, Wake,
};
pub use queue::{Finished, Priority, Queue};
pub use status::StatusSchema;

/// The version of the rules in [`gate`] and [`pass`]. It enters the memo of every root, so that a host with other rules asks every
/// guest again after its start; it enters nothing that is written to the cluster. Raise it when a rule changes.
pub const POLICY_VERSION: u32 = 4;
