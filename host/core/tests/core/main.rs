//! What decides, from outside the crate: the gate, a pass over a root, and how the crates depend on each other.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "what helps a test may fail it")]

mod bytes;
mod dependencies;
mod gate;
mod pass;
