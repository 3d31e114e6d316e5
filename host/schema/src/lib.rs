//! The schemas that the host itself needs.
//!
//! [`openapi`] reads the schemas of a CRD where there is no API server. [`builtin`] has the schemas of Kubernetes' kinds, and [`fit`] finds
//! fields that the kind of an object does not have. [`config_schema`] compiles the schema of a guest's config, and checks configs against
//! it.

pub mod builtin;
pub mod config_schema;
pub mod fit;
pub mod nearest;
pub mod openapi;
pub mod shape;
