//! The schemas that the host itself needs.
//!
//! [`structural`] is what the API server does with an object of a custom kind: prune, default, validate. [`typed`] reads objects of
//! built-in kinds and the metadata of all, and [`strict`] reports what a client wrote that nobody knows.
//! [`openapi`] takes objects of a CRD where there is no API server. [`builtin`] has the schemas of Kubernetes' kinds, and [`fit`] finds
//! what the kind of an object does not allow. [`generate`] makes objects of a kind. [`config_schema`] checks configs against the schema in
//! a guest's manifest. [`admission`] is what the API server refuses of a CRD itself.

pub mod admission;
pub mod builtin;
mod cause;
pub mod config_schema;
pub mod fit;
pub mod generate;
pub mod metadata;
pub mod nearest;
pub mod openapi;
mod pattern;
pub mod shape;
pub mod strict;
pub mod structural;
pub mod typed;
