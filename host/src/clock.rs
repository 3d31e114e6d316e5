//! The only place that asks the operating system for the time and for randomness, so that a simulator can be given instead.
#![allow(clippy::disallowed_methods, reason = "this is the module that the lint sends everybody to")]

use std::{io::Read, sync::LazyLock, time::Duration};

use tokio::time::Instant;

/// The time on the wall.
pub fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

/// The time since the process first asked: it only runs forward. It is tokio's, which a test can stop and turn.
pub fn monotonic() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed()
}

/// Bytes that nobody can guess, from the operating system.
///
/// # Errors
/// When the operating system has none to give.
pub fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}
