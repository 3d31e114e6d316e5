//! [`Served`]: how the API server serves kinds, and which it does not serve.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use pintle_kubernetes::Resource;
use pintle_wit::Kind;

/// When the API server is asked again about a kind that it did not serve. A CRD's arrival is seen by watch; this is for aggregated
/// APIs.
const MISSING_RETRY: Duration = Duration::from_secs(30);
/// When it is asked again about a kind of which it did not say whether it serves it.
const UNCLEAR_RETRY: Duration = Duration::from_secs(1);

/// For how long discovery is not repeated for a kind that is not served and that only a root's status names, and how many such kinds are
/// remembered.
const UNDECLARED_FOR: Duration = Duration::from_secs(1);
const UNDECLARED_MAX: usize = 1024;

/// How the API server serves the kinds that are in use.
#[derive(Default)]
pub(crate) struct Served {
    resources: BTreeMap<Kind, Resource>,
    /// Kinds that it was asked about and does not serve, with the time to ask again.
    missing: BTreeMap<Kind, Duration>,
    /// Those of them of which it did not say whether it serves them, and since when.
    unclear: BTreeMap<Kind, Duration>,
    /// Kinds that only a root's status names and that it does not serve, with the time to ask again.
    undeclared: BTreeMap<Kind, Duration>,
}

impl Served {
    /// How a kind is served, if that is known.
    pub(crate) fn get(&self, kind: &Kind) -> Option<&Resource> {
        self.resources.get(kind)
    }

    /// Whether a kind is served, as far as that is known.
    pub(crate) fn has(&self, kind: &Kind) -> bool {
        self.resources.contains_key(kind)
    }

    /// Since when it is unclear whether a kind is served.
    pub(crate) fn unclear_since(&self, kind: &Kind) -> Option<Duration> {
        self.unclear.get(kind).copied()
    }

    /// A CRD says how a kind is served.
    pub(crate) fn learn(&mut self, resource: Resource) {
        self.resources.insert(resource.kind.clone(), resource);
    }

    /// A CRD changed: what is known of its kind may be wrong.
    pub(crate) fn forget(&mut self, group: &str, kind: &str) {
        let same = |found: &Kind| found.group() == group && found.kind == kind;
        self.resources.retain(|found, _| !same(found));
        self.missing.retain(|found, _| !same(found));
    }

    /// Which of the kinds in use the API server is to be asked about now. What nobody wants any more is asked for no more, and wakes
    /// nobody.
    pub(crate) fn due(&mut self, wanted: BTreeSet<Kind>, now: Duration) -> BTreeSet<Kind> {
        self.missing.retain(|kind, _| wanted.contains(kind));
        self.unclear.retain(|kind, _| wanted.contains(kind));
        let is_open = |kind: &Kind| !self.has(kind) && self.missing.get(kind).is_none_or(|at| *at <= now);
        wanted.into_iter().filter(is_open).collect()
    }

    /// The API server said how it serves a kind, or that it does not.
    pub(crate) fn answered(&mut self, kind: Kind, found: Option<Resource>, now: Duration) {
        self.unclear.remove(&kind);
        match found {
            Some(resource) => {
                self.missing.remove(&kind);
                self.resources.insert(kind, resource);
            }
            None => {
                self.missing.insert(kind, now + MISSING_RETRY);
            }
        }
    }

    /// The API server did not say whether it serves a kind.
    pub(crate) fn not_answered(&mut self, kind: Kind, now: Duration) {
        self.unclear.entry(kind.clone()).or_insert(now);
        self.missing.insert(kind, now + UNCLEAR_RETRY);
    }

    /// When the API server is asked again.
    pub(crate) fn asks_at(&self) -> Option<Duration> {
        self.missing.values().min().copied()
    }

    /// Whether a kind that only a root's status names is not served, as was found out a moment ago.
    pub(crate) fn lacks(&self, kind: &Kind, now: Duration) -> bool {
        self.undeclared.get(kind).is_some_and(|until| now < *until)
    }

    /// A kind that only a root's status names is not served.
    pub(crate) fn lacking(&mut self, kind: Kind, now: Duration) {
        self.undeclared.retain(|_, until| now < *until);
        if self.undeclared.len() < UNDECLARED_MAX {
            self.undeclared.insert(kind, now + UNDECLARED_FOR);
        }
    }
}
