//! The roots that fail, and why: kept up to date with each root, so that asking costs nothing that grows with the number of roots.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use pintle_api::Namespaces;
use pintle_core::text;

use super::RootKey;

/// How many failing roots are named.
pub(crate) const NAMED: usize = 3;

/// The most bytes of a message that are kept for each root that fails.
const MESSAGE_BYTES_MAX: usize = 256;

/// Why a root fails: the reason and the message with which its last pass ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cause {
    /// In one CamelCase word.
    pub(crate) reason: Arc<str>,
    /// For people.
    pub(crate) message: Box<str>,
}

impl Cause {
    pub(crate) fn new(reason: &str, message: &str) -> Self {
        // The message of a failure begins with its reason.
        let rest = message.strip_prefix(reason).and_then(|rest| rest.strip_prefix(": "));
        let message = text::clean(rest.unwrap_or(message), MESSAGE_BYTES_MAX);
        Self { reason: reason.into(), message: message.into() }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        size_of::<Self>() + self.reason.len() + self.message.len()
    }
}

/// The failing roots of a kind, by namespace.
#[derive(Debug, Default)]
pub(super) struct Failing(BTreeMap<Option<Arc<str>>, OfNamespace>);

#[derive(Debug, Default)]
struct OfNamespace {
    names: BTreeSet<Box<str>>,
    reasons: BTreeMap<Arc<str>, u32>,
}

impl Failing {
    pub(super) fn insert(&mut self, namespace: &Option<Arc<str>>, name: &str, cause: &Cause) {
        let of = self.0.entry(namespace.clone()).or_default();
        of.names.insert(name.into());
        *of.reasons.entry(Arc::clone(&cause.reason)).or_default() += 1;
    }

    pub(super) fn remove(&mut self, namespace: &Option<Arc<str>>, name: &str, cause: &Cause) {
        let Some(of) = self.0.get_mut(namespace) else { return };
        of.names.remove(name);
        if let Some(count) = of.reasons.get_mut(&cause.reason) {
            *count = count.saturating_sub(1);
        }
        of.reasons.retain(|_, count| *count > 0);
        if of.names.is_empty() {
            self.0.remove(namespace);
        }
    }

    /// The first of them in these namespaces.
    pub(super) fn first(&self, namespaces: &Namespaces) -> Vec<RootKey> {
        let of = self.0.iter().filter(|(namespace, _)| namespaces.includes(namespace.as_deref()));
        let keys = of.flat_map(|(namespace, of)| {
            of.names.iter().map(move |name| RootKey {
                namespace: namespace.as_deref().map(Into::into),
                name: name.as_ref().into(),
            })
        });
        keys.take(NAMED).collect()
    }

    /// How many of them there are in these namespaces for each reason, the commonest first.
    pub(super) fn reasons(&self, namespaces: &Namespaces) -> Vec<(Arc<str>, u32)> {
        let mut sum: BTreeMap<Arc<str>, u32> = BTreeMap::new();
        for (_, of) in self.0.iter().filter(|(namespace, _)| namespaces.includes(namespace.as_deref())) {
            for (reason, count) in &of.reasons {
                *sum.entry(Arc::clone(reason)).or_default() += count;
            }
        }
        let mut reasons: Vec<(Arc<str>, u32)> = sum.into_iter().collect();
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        reasons
    }
}

/// The roots of a Reconciler that fail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Failures {
    /// The first [`NAMED`] of them.
    pub(crate) first: Vec<(RootKey, Cause)>,
    /// How many of them there are for each reason, the commonest first.
    pub(crate) reasons: Vec<(Arc<str>, u32)>,
}
