//! How far a search is.

use std::{
    io::{self, IsTerminal, Write},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use pintle_runtime::clock;

/// Tells how far a search is, on the standard error: on a terminal in one line that is written over, otherwise a line now and then, so
/// that a log shows that something goes on.
pub(crate) struct Progress {
    plans: usize,
    is_terminal: bool,
    /// When something was told, and how many plans were done then.
    told: Mutex<Vec<(Duration, usize)>>,
}

impl Progress {
    pub(crate) fn new(plans: usize) -> Self {
        let begun = (clock::monotonic(), 0);
        Self { plans, is_terminal: io::stderr().is_terminal(), told: Mutex::new(vec![begun]) }
    }

    pub(crate) fn tell(&self, done: usize, failed: usize) {
        let every = if self.is_terminal { Duration::from_millis(250) } else { Duration::from_secs(10) };
        let now = clock::monotonic();
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let is_recent = told.last().is_some_and(|(last, _)| now.saturating_sub(*last) < every);
        // The plans that failed are shortened then, which takes as many runs again.
        let is_over = done == self.plans && failed > 0;
        if is_recent && !is_over {
            return;
        }
        told.push((now, done));
        let begun = told.first().map_or(now, |(begun, _)| *begun);
        let seconds = now.saturating_sub(begun).as_secs_f64();
        let then = if is_over {
            "; what failed is shortened".to_owned()
        } else {
            format!(", about {:.0} s left", seconds_left(&told, self.plans))
        };
        let line = format!("{done} of {} plans, {failed} failed; {seconds:.0} s{then}", self.plans);
        // Who cannot be told loses nothing of the result.
        let _ = match self.is_terminal {
            true => write!(io::stderr(), "\r\x1b[K{line}"),
            false => writeln!(io::stderr(), "{line}"),
        };
    }

    pub(crate) fn end(&self) {
        if self.is_terminal {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

/// How long the other plans take. Those with several faults come last and take longer, so the pace is that of the second half of what is
/// done.
fn seconds_left(told: &[(Duration, usize)], plans: usize) -> f64 {
    let Some((now, done)) = told.last().copied() else { return 0.0 };
    let (since, before) =
        told.iter().rev().copied().find(|(_, before)| *before <= done / 2).unwrap_or((now, done));
    let pace = now.saturating_sub(since).as_secs_f64() / done.saturating_sub(before).max(1) as f64;
    pace * plans.saturating_sub(done) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_told_by_the_pace_of_late() {
        let told = [(0, 0), (10, 50), (30, 100)].map(|(at, done)| (Duration::from_secs(at), done));
        // Fifty took twenty seconds.
        assert_eq!(seconds_left(&told, 200).round(), 40.0);
        assert_eq!(seconds_left(&told[..2], 50).round(), 0.0);
    }
}
