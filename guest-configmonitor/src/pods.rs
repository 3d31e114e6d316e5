//! The strategies Evict and Delete: they replace the Pods that were there when the ConfigMap changed.

use pintle_guest::{Eviction, EvictionMode, Evictions, Response, Value};

use crate::{
    Change,
    resource::{PodRef, Root, Strategy},
    response, some_of,
};

/// The Pods that are not on their way out.
pub(crate) fn live(pods: &[Value]) -> Vec<&Value> {
    pods.iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_null()).collect()
}

/// The controller of an object: its owner reference.
pub(crate) fn controller(object: &Value) -> Option<&Value> {
    object["metadata"]["ownerReferences"].as_array()?.iter().find(|owner| owner["controller"] == true)
}

/// Whether a Pod is one of a Job, which is to run once and not again.
pub(crate) fn is_of_a_job(controller: &Value) -> bool {
    controller["kind"] == "Job"
}

/// Evicts or deletes the Pods that were there when the ConfigMap changed. Those that are left are named in every answer, and
/// remembered in the status, until they are gone.
pub(crate) fn replace(root: &Root, strategy: Strategy, change: &Change<'_>, pods: &[&Value]) -> Response {
    let before = &root.status;
    let reference = |pod: &&Value| PodRef { name: text(pod, "name"), uid: text(pod, "uid") };
    let left: Vec<PodRef> = if change.is_change {
        pods.iter().filter(|pod| may_go(root, pod)).map(reference).collect()
    } else {
        let remembered = |pod: &PodRef| before.pods_to_replace.iter().any(|left| left.uid == pod.uid);
        pods.iter().map(reference).filter(remembered).collect()
    };

    let mut next = change.status(before, pods.len(), change.is_change && !left.is_empty());
    let names = some_of(left.iter().map(|pod| pod.name.clone()));
    let (what, waiting) = match left.len() {
        0 => ("there is no Pod to restart".to_owned(), None),
        1 => (format!("replacing the Pod {names}"), Some(format!("the Pod {names} is to be replaced"))),
        many => (
            format!("replacing {many} Pods: {names}"),
            Some(format!("{many} Pods are to be replaced: {names}")),
        ),
    };
    let evictions = (!left.is_empty()).then(|| Evictions {
        pods: left.iter().map(|pod| Eviction { name: pod.name.clone(), uid: pod.uid.clone() }).collect(),
        mode: if strategy == Strategy::Delete { EvictionMode::Delete } else { EvictionMode::Evict },
        one_at_a_time: strategy == Strategy::Evict,
    });
    next.pods_to_replace = left;
    Response { evictions, ..response(&next, waiting, change.event(change.is_change, &what)) }
}

fn may_go(root: &Root, pod: &Value) -> bool {
    controller(pod).map_or(root.spec.evict_unowned, |owner| !is_of_a_job(owner))
}

fn text(object: &Value, field: &str) -> String {
    object["metadata"][field].as_str().unwrap_or_default().to_owned()
}
