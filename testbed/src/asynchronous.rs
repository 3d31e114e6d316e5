//! Waiting in an asynchronous test.

use std::{fmt::Display, time::Duration};

use anyhow::{Result, bail};

use crate::{Look, Patience};

/// Waits until something is so, and looks twenty times a second: as [`crate::eventually`], but other tasks go on meanwhile.
///
/// # Errors
/// When it is not so in time; the error ends with what the last look showed. Also when a look fails: that ends the wait at once.
pub async fn eventually<T>(what: impl Display, mut look: impl AsyncFnMut() -> Result<Look<T>>) -> Result<T> {
    let patience = Patience::default();
    loop {
        let is_over = patience.is_over();
        match look().await? {
            Look::Reached(reached) => return Ok(reached),
            Look::NotYet(state) if is_over => bail!(patience.lost(&what, &state)),
            Look::NotYet(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}
