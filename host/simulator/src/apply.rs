//! Server-side apply: which manager owns which field, what an apply changes, and with which managers it conflicts.
//!
//! The rules are those of Kubernetes' structured-merge-diff: [`walk`] compares, merges and prunes values by their
//! [`shape`](pintle_schema::shape), and [`managed`] keeps the managed fields.

pub(crate) mod fields;
pub(crate) mod managed;
pub(crate) mod walk;
