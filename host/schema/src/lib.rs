//! Schemas, as far as the host itself has to know them.
//!
//! [`openapi`] reads the schemas of a CRD, for those who have no API server at hand. [`config_schema`] judges the schema that a guest has
//! for its config, and checks configs against it.

pub mod config_schema;
pub mod openapi;
