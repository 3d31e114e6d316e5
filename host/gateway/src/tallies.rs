//! [`Tallies`]: what lists of all objects of a View found that cannot be shown, until the control loop has told the Views.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use pintle_core::view::{BackingObject, Epoch, Lens, Status};
use pintle_wit::Failure;
use tracing::warn;

use crate::metrics::Metrics;

/// How often a gateway writes into a View, and into its log, what cannot be shown. Lists are frequent, and the count may change with each.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// How many objects that cannot be shown an error names, and how many the log.
const NAMED: usize = 10;
const LOGGED: usize = 100;

/// What a list of all objects found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The epoch in which they were to be shown.
    pub epoch: Epoch,
    /// How many cannot be shown.
    pub count: usize,
    /// The first of them, each with what is wrong.
    pub names: Vec<String>,
}

/// The objects of a list that cannot be shown.
#[derive(Debug, Default)]
pub(crate) struct Unshown {
    count: usize,
    /// The first of them, each with what is wrong.
    names: Vec<String>,
}

impl Unshown {
    pub(crate) fn add(&mut self, lens: &Lens, object: &BackingObject, failure: &Failure) {
        self.count += 1;
        if self.names.len() < LOGGED {
            self.names.push(format!("{}: {}", lens.names.shown(object.name()), failure.where_and_why()));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// What is wrong with a list that fails over them.
    pub(crate) fn error(&self) -> Status {
        let named: Vec<&str> = self.names.iter().take(NAMED).map(String::as_str).collect();
        let more = match self.count.saturating_sub(named.len()) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        Status::internal_error(&format!("some objects cannot be shown: {}{more}", named.join("; ")))
    }

    pub(crate) fn found(&self, epoch: Epoch) -> Found {
        Found { epoch, count: self.count, names: self.names.clone() }
    }
}

/// What was found of each View.
pub struct Tallies {
    metrics: Arc<Metrics>,
    by_view: Mutex<BTreeMap<String, Tally>>,
}

#[derive(Default)]
struct Tally {
    /// What the View has not been told yet.
    found: Option<Found>,
    /// When it was told last.
    told_at: Option<Duration>,
}

impl Tallies {
    /// Nothing yet. These metrics have the counts.
    pub fn new(metrics: Arc<Metrics>) -> Self {
        Self { metrics, by_view: Mutex::default() }
    }

    /// A list of all objects of a View found this.
    pub fn saw(&self, view: &str, found: Found) {
        self.metrics.unshowable(view, found.count);
        self.with(|tallies| tallies.entry(view.to_owned()).or_default().found = Some(found));
    }

    /// What Views are to be told now.
    pub(crate) fn due(&self, now: Duration) -> BTreeMap<String, Found> {
        let is_due = |tally: &Tally| tally.told_at.is_none_or(|at| now.saturating_sub(at) >= TELL_EVERY);
        let due = |(view, tally): (&String, &Tally)| {
            Some((view.clone(), tally.found.clone().filter(|_| is_due(tally))?))
        };
        self.with(|tallies| tallies.iter().filter_map(due).collect())
    }

    /// A View has been told this. The log gets the names.
    pub(crate) fn told(&self, view: &str, told: &Found, now: Duration) {
        if told.count > 0 {
            let more = told.count.saturating_sub(told.names.len());
            warn!(view, count = told.count, more, objects = told.names.join("; "), "Objects cannot be shown");
        }
        self.with(|tallies| {
            if let Some(tally) = tallies.get_mut(view) {
                tally.told_at = Some(now);
                // Another list may have ended meanwhile.
                tally.found.take_if(|found| found == told);
            }
        });
    }

    /// Forgets the Views that are gone.
    pub(crate) fn keep(&self, is_there: impl Fn(&str) -> bool) {
        self.with(|tallies| {
            tallies.retain(|view, _| {
                let is_kept = is_there(view);
                if !is_kept {
                    self.metrics.forget_unshowable(view);
                }
                is_kept
            });
        });
    }

    fn with<T>(&self, look: impl FnOnce(&mut BTreeMap<String, Tally>) -> T) -> T {
        // A panic leaves nothing in it half-changed.
        look(&mut self.by_view.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn found(count: usize) -> Found {
        Found { epoch: Epoch::default(), count, names: vec!["dolly: has no weight".into()] }
    }

    #[test]
    fn a_view_is_told_once_a_minute_what_the_last_list_found_and_nothing_twice() {
        let metrics = Arc::new(Metrics::default());
        let tallies = Tallies::new(Arc::clone(&metrics));
        let due = |seconds: u32| tallies.due(SECOND * seconds).remove("llamas").map(|found| found.count);
        assert_eq!(due(0), None);
        tallies.saw("llamas", found(3));
        assert_eq!(due(0), Some(3));
        assert_eq!(due(1), Some(3), "it could not be written");
        tallies.told("llamas", &found(3), SECOND);
        assert_eq!(due(90), None, "it was told");
        tallies.saw("llamas", found(2));
        tallies.saw("llamas", found(1));
        assert_eq!((due(60), due(61)), (None, Some(1)));
        tallies.saw("llamas", found(4));
        tallies.told("llamas", &found(1), SECOND * 61);
        assert_eq!(due(121), Some(4), "a list ended while the View was written");
        assert!(metrics.text(&[]).contains("pintle_unshowable_objects{view=\"llamas\"} 4"));
        tallies.keep(|_| false);
        assert_eq!(due(500), None);
        assert!(!metrics.text(&[]).contains("llamas"), "a View that is gone has no metric");
    }
}
