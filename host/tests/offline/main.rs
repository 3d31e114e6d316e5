//! The built binary, the files of deploy/ and docs/, and the guests of this repository, without a control plane.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "what helps a test may fail it")]

mod cli;
mod control_loop;
mod deploy;
mod docs;
mod large;
mod panic;
mod snapshot;
mod views;
