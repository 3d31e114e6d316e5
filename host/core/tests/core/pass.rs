//! The pass, driven against a small API server in memory.

mod any_outcome;
mod api;
mod breaker;
mod children;
mod cluster_scope;
mod deletion;
mod displaced;
mod errors;
mod failures;
mod fields;
mod killed;
mod labels;
mod needs;
mod ownership;
mod powers;
mod preview;
mod recorded;
mod refusals;
mod stages;
mod status;
mod unwatched;
mod world;
