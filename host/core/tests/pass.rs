//! The pass, driven against a small API server in memory.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "what helps a test may fail it")]

#[path = "pass/any_outcome.rs"]
mod any_outcome;
#[path = "pass/api.rs"]
mod api;
#[path = "pass/at_rest.rs"]
mod at_rest;
#[path = "pass/children.rs"]
mod children;
#[path = "pass/failures.rs"]
mod failures;
#[path = "pass/fields.rs"]
mod fields;
#[path = "pass/ownership.rs"]
mod ownership;
#[path = "pass/refusals.rs"]
mod refusals;
#[path = "pass/status.rs"]
mod status;
#[path = "pass/unwatched.rs"]
mod unwatched;
#[path = "pass/world.rs"]
mod world;
