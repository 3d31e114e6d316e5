//! What an answer would change: the gated answer against what is live.
//!
//! Two *answers* are compared here, and not two passes: what was allowed now, and what an earlier answer left in the cluster. Whether a
//! child changes is decided as a pass decides it ([`crate::pass::Preview`]); the differences only explain it. What cannot be known is said.
//!
//! * [`PlannedRoot`], [`Summary`], [`Inspected`]: the documents that the command line and the console show.
//! * [`explain`]: which fields differ, in the words of managed fields.
//! * [`Mask`]: puts something else in the place of what nobody is to read: values of Secrets, and what is [marked](Marks).

mod documents;
pub(crate) mod explain;
mod marks;
mod mask;
mod root;
pub(crate) mod shown;
mod summary;

pub use documents::{
    Change, ChildChange, Example, FieldChange, Inspected, InspectedChild, JudgedModule, KindRights, Limits,
    ModuleName, PlannedRoot, Problem, RootRef, Roots, Standing, StatusChanges, Summary, SummaryLine, Unknown,
    Verdict,
};
pub use explain::{Explained, explain, join};
pub use marks::Marks;
pub use mask::{Instead, Mask};
pub use root::{Live, POD_COUNTS, Render, changes_of, fails_now, planned, sources, verdict_of};
use shown::is_secret;
pub use shown::{TIME, plain};
pub use summary::Tally;
