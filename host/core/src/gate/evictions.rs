//! Checks the evictions of an answer.

use std::{collections::BTreeSet, fmt};

use pintle_wit::{EvictionMode, Evictions};

use super::{GateContext, Violations, reasons};
use crate::object;

pub(super) fn check(
    context: &GateContext<'_>,
    evictions: Option<Evictions>,
    found: &mut Violations,
) -> Option<Evictions> {
    let evictions = evictions?;
    let before = found.count();
    let limit = context.limits.children as usize;
    let granted = match evictions.mode {
        EvictionMode::Evict => context.grants.evictions,
        EvictionMode::Delete => context.grants.pod_deletions,
    };
    if !context.manifest.evictions {
        let message = "the manifest does not declare that it evicts Pods";
        found.add(reasons::EVICTION_NOT_DECLARED, "evictions", message);
    } else if !granted {
        let (what, grant) = match evictions.mode {
            EvictionMode::Evict => ("evicted", "grants.evictions"),
            EvictionMode::Delete => ("deleted", "grants.podDeletions"),
        };
        let message =
            format_args!("Reconciler {} does not grant that Pods are {what} ({grant})", context.reconciler);
        found.add(reasons::EVICTION_NOT_GRANTED, "evictions.mode", message);
    }
    if !context.status.takes_evicting() {
        let message = "the root's CRD has no status.pintle.evicting to name the Pods in before the first of them goes: add it (pintle \
                       crds DIR prints a guest's CRD with it)";
        found.add(reasons::STATUS_CANNOT_RECORD, "evictions", message);
    }
    if object::namespace(context.root).is_none() {
        let message = "a root of cluster scope has no namespace whose Pods it could have evicted";
        found.add(reasons::EVICTION_INVALID, "evictions", message);
    }
    if evictions.pods.len() > limit {
        let message = format_args!("{} Pods, the limit is that of children, {limit}", evictions.pods.len());
        found.add(reasons::EVICTION_INVALID, "evictions.pods", message);
    }
    let mut seen = BTreeSet::new();
    for (index, pod) in evictions.pods.iter().enumerate() {
        let mut invalid = |field: &str, message: fmt::Arguments<'_>| {
            found.add(reasons::EVICTION_INVALID, format_args!("evictions.pods[{index}].{field}"), message);
        };
        if !object::is_name(&pod.name) {
            invalid("name", format_args!("{:?} is no name of a Pod", pod.name));
        }
        if pod.uid.is_empty() || pod.uid.len() > 128 || !seen.insert(&pod.uid) {
            invalid("uid", format_args!("Pod {:?} has no uid, or one that stands twice", pod.name));
        }
    }
    (found.count() == before).then_some(evictions)
}
