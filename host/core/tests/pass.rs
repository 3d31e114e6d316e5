//! The pass, driven against a small API server in memory.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "what helps a test may fail it")]

#[path = "pass/any_outcome.rs"]
mod any_outcome;
#[path = "pass/api.rs"]
mod api;
#[path = "pass/at_rest.rs"]
mod at_rest;
#[path = "pass/breaker.rs"]
mod breaker;
#[path = "pass/children.rs"]
mod children;
#[path = "pass/deletion.rs"]
mod deletion;
#[path = "pass/displaced.rs"]
mod displaced;
#[path = "pass/elsewhere.rs"]
mod elsewhere;
#[path = "pass/errors.rs"]
mod errors;
#[path = "pass/failures.rs"]
mod failures;
#[path = "pass/fields.rs"]
mod fields;
#[path = "pass/killed.rs"]
mod killed;
#[path = "pass/labels.rs"]
mod labels;
#[path = "pass/needs.rs"]
mod needs;
#[path = "pass/ownership.rs"]
mod ownership;
#[path = "pass/powers.rs"]
mod powers;
#[path = "pass/preview.rs"]
mod preview;
#[path = "pass/recorded.rs"]
mod recorded;
#[path = "pass/refusals.rs"]
mod refusals;
#[path = "pass/stages.rs"]
mod stages;
#[path = "pass/status.rs"]
mod status;
#[path = "pass/suspension.rs"]
mod suspension;
#[path = "pass/unwatched.rs"]
mod unwatched;
#[path = "pass/world.rs"]
mod world;
