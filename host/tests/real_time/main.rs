//! What runs in real time and needs no control plane: hosts on an API server in memory.
#![allow(clippy::disallowed_methods, reason = "it runs in real time")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "the helpers of a test fail as the test does")]

mod previews;
