//! Schemas, as far as the host itself has to know them.
//!
//! [`openapi`] reads the schemas of a CRD, for those who have no API server at hand. [`builtin`] has those of the kinds of Kubernetes,
//! and [`fit`] says which field of an object its kind does not have. [`config_schema`] judges the schema that a guest has for its
//! config, and checks configs against it.

pub mod builtin;
pub mod config_schema;
pub mod fit;
pub mod nearest;
pub mod openapi;
pub mod shape;
