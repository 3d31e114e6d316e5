//! What the integration tests of the host share.

pub mod modules;
mod wait;

pub use pintle_testbed::{Look, Patience, count_failed_wait};
pub use wait::eventually;
