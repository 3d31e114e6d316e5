//! The contract between Pintle's host and its guests: the worlds of a component, and the JSON documents that cross them.
//!
//! This crate is their only source. Both sides use these types, the JSON Schemas in `schemas/` are generated from them, and a guest in
//! another language needs only those schemas and the files in `worlds/`.
//!
//! * [`Manifest`]: the result of `describe`.
//! * [`Request`]: the argument of `reconcile`.
//! * [`Response`]: the result of `reconcile` if the guest could decide.
//! * [`views`]: the documents of guests that serve views.
//! * [`Failure`]: the error of `reconcile` if it could not. The host reports its own refusals in the same form.
//! * [`HostStatus`]: the part of a root's status that the host writes.
//!
//! Unknown fields in a request are ignored, so that newer hosts may add fields. Unknown fields in a document of a guest are refused by
//! name, so that a misspelt field is never taken for an absent one.

#[cfg(feature = "host")]
mod bounded;
mod failure;
mod host_status;
mod kind;
mod manifest;
pub mod names;
mod request;
mod response;
#[cfg(feature = "schema")]
pub mod schema;
mod strict;
pub mod syntax;
mod version;
pub mod views;
#[cfg(feature = "host")]
mod weight;
pub mod worlds;

#[cfg(feature = "host")]
pub use bounded::bounded;
pub use failure::{Failure, reasons};
pub use host_status::{Condition, ConditionStatus, HostStatus, PintleStatus};
pub use kind::{Kind, ObjectRef};
pub use manifest::{ChildKind, Manifest, NeedKind, PatchKind, limits as manifest_limits};
pub use request::{Cause, Host, NeedAnswer, Refusal, Request, capabilities};
pub use response::{
    Child, Event, EventType, Eviction, EvictionMode, Evictions, FieldEquals, GuestCondition, LabelSelector,
    Need, ObjectsNeed, Patch, Readiness, Response, Select, SelectorOperator, SelectorRequirement,
};
#[cfg(feature = "host")]
pub use strict::{
    Limits, VALUES_PER_KIBIBYTE, parse_failure, parse_manifest, parse_response, parse_views_manifest,
    weigh_and_parse_response, weigh_and_parse_show_response, weigh_and_parse_store_response,
};
pub use version::{API_VERSION, ApiVersion};
#[cfg(feature = "host")]
pub use weight::{Beyond, Weight};
pub use worlds::reconciler::INTERFACE;
