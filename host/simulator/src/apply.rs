//! Server-side apply: who set which field, what an apply changes, and with whom it conflicts.
//!
//! The rules are those of Kubernetes' structured-merge-diff: [`walk`] compares, merges and cuts values by their [`shape`](pintle_schema::shape), and
//! [`managed`] keeps the books of the managers.

pub(crate) mod fields;
pub(crate) mod managed;
pub(crate) mod walk;
