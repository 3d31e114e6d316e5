//! What the integration tests of the host share.
#![allow(missing_docs, reason = "tests are its only readers")]
#![allow(clippy::disallowed_methods, reason = "processes are waited for in real time")]

pub mod group;
pub mod host;
pub mod modules;
pub mod process;

pub use pintle_testbed::{Look, Patience, asynchronous::eventually, count_failed_wait};
