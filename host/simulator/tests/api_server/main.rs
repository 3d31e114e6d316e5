//! The API server in memory as its clients see it: rights, a client of kube, and the controllers that run beside it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "what helps a test may fail it")]

mod access;
mod client;
mod controllers;
