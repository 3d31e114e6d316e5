//! Pintle: a Kubernetes operator whose reconcile logic is WebAssembly. This is its command line; each command is a few lines over the crates
//! that do the work.

pub mod cli;
