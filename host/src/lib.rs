//! Pintle: a Kubernetes operator whose reconcile logic is WebAssembly.

pub mod api;
pub mod cli;
pub mod clock;
pub mod config_schema;
pub mod kubernetes;
mod limits;
mod memory_limit;
pub mod offline;
pub mod openapi;
pub mod operator;
pub mod scenario;
pub mod simulate;
pub mod spawner;
