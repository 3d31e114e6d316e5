//! The strategy that restarts workloads: it sets an annotation on the pod template of the Deployments, StatefulSets and DaemonSets that
//! own the Pods.

use std::collections::BTreeSet;

use pintle_guest::{GuestCondition, Needs, ObjectsNeed, Patch, Response, Rollout, Value, json, sha256_hex};

use crate::{
    Change, RESTARTABLE, pods,
    resource::{Root, Workload},
    response, some_of,
};

/// Where the annotation goes.
pub(crate) const ANNOTATIONS: &str = "spec.template.metadata.annotations";

/// The longest name of an annotation, without its prefix.
const NAME_MAX: usize = 63;

/// Restarts the workloads that own the Pods, by an annotation on their pod template. The annotation stays there, since removing it would
/// restart them as well. Its value is the hash of the content for which they were last restarted, and the number of restarts:
/// `<hash>.<count>`.
pub(crate) fn restart(root: &Root, change: &Change<'_>, pods: &[&Value], needs: &mut Needs<'_>) -> Response {
    let before = &root.status;
    let (owners, skipped) = owners(pods, needs);
    let annotation = annotation(&root.metadata.name);
    let mut workloads = Vec::new();
    let mut patches = Vec::new();
    let mut restarts = false;
    for mut workload in owners {
        let live = needs.object(
            ObjectsNeed::named("apps/v1", workload.kind.as_str(), workload.name.as_str()).with_fields(&[
                "spec.replicas",
                ANNOTATIONS,
                "status",
            ]),
        );
        let Some(live) = live.filter(|live| live["metadata"]["uid"] == workload.uid.as_str()) else {
            continue;
        };
        let shown =
            live["spec"]["template"]["metadata"]["annotations"][&annotation].as_str().unwrap_or_default();
        let generation = live["metadata"]["generation"].as_i64().unwrap_or(0);
        let known = before.workloads.iter().find(|known| known.uid == workload.uid);
        workload.restarts = known.map_or_else(|| count(shown), |known| known.restarts);
        // A restart that no status tells of: the host died between the two, and the content may have changed back since.
        let is_untold = known.is_some_and(|known| count(shown) > known.restarts);
        if change.is_change || is_untold {
            let is_repeated = known.is_none() && content(shown) == change.hash;
            workload.restarts += i64::from(!is_repeated);
            workload.annotation = format!("{}.{}", change.hash, workload.restarts);
            workload.restarting = true;
            workload.generation = generation + i64::from(workload.annotation != shown);
            restarts = true;
        } else {
            // While a restart is under way, what is seen may be older than its patch.
            let is_behind = |known: &Workload| known.restarting && generation <= known.generation;
            match known.filter(|known| known.annotation == shown || is_behind(known)) {
                Some(known) => {
                    let is_over = known.annotation == shown && is_complete(&workload.kind, live);
                    workload.annotation.clone_from(&known.annotation);
                    workload.restarting = known.restarting && !is_over;
                    workload.generation = if workload.restarting { known.generation } else { 0 };
                }
                // Somebody rolled it back, and restarted it by that, or it is seen for the first time. What is there is left, and made
                // ours too, so that the next change finds it ours.
                None => shown.clone_into(&mut workload.annotation),
            }
        }
        if !workload.annotation.is_empty() {
            patches.push(patch(&workload, &annotation));
        }
        workloads.push(workload);
    }

    let said = |workload: &Workload| format!("{} {}", workload.kind, workload.name);
    let what = if workloads.is_empty() {
        "there is nothing to restart".to_owned()
    } else {
        format!("restarting {}", some_of(workloads.iter().map(said)))
    };
    let restarting: Vec<&Workload> = workloads.iter().filter(|workload| workload.restarting).collect();
    let waiting = (!restarting.is_empty()).then(|| {
        format!("waiting for {} to roll out", some_of(restarting.iter().map(|workload| said(workload))))
    });

    let mut next = change.status(before, pods.len(), restarts);
    next.workloads = workloads;
    let events = change.event(change.is_change || restarts, &what);
    let mut response = Response { patches, ..response(&next, waiting, events) };
    if !skipped.is_empty() {
        let message = format!(
            "no Deployment, StatefulSet or DaemonSet owns {}: not restarted",
            some_of(skipped.into_iter())
        );
        response.conditions.push(GuestCondition::new("PodsSkipped", true, "NotRestartable", message));
    }
    response
}

/// What owns the Pods, and the names of those that nothing owns that can be restarted. Pods of Jobs are passed over.
fn owners(pods: &[&Value], needs: &mut Needs<'_>) -> (BTreeSet<Workload>, Vec<String>) {
    let mut owners = BTreeSet::new();
    let mut skipped = Vec::new();
    for pod in pods {
        let mut owner = pods::controller(pod);
        if owner.is_some_and(pods::is_of_a_job) {
            continue;
        }
        if let Some(name) =
            owner.filter(|owner| is(owner, "ReplicaSet")).and_then(|owner| owner["name"].as_str())
        {
            let need = ObjectsNeed::named("apps/v1", "ReplicaSet", name);
            let Some(replica_set) = needs.object(need.with_fields(&["metadata.ownerReferences"])) else {
                // Not shown yet, or gone, and its Pods are about to go as well.
                continue;
            };
            owner = pods::controller(replica_set);
        }
        match owner.filter(|owner| RESTARTABLE.iter().any(|kind| is(owner, kind))) {
            Some(owner) => {
                let text = |field: &str| owner[field].as_str().unwrap_or_default().to_owned();
                owners.insert(Workload {
                    kind: text("kind"),
                    name: text("name"),
                    uid: text("uid"),
                    ..Workload::default()
                });
            }
            None => skipped.push(pod["metadata"]["name"].as_str().unwrap_or_default().to_owned()),
        }
    }
    (owners, skipped)
}

/// Whether an owner reference names something of this kind of Kubernetes' own.
fn is(owner: &Value, kind: &str) -> bool {
    owner["kind"] == kind && owner["apiVersion"] == "apps/v1"
}

fn patch(workload: &Workload, annotation: &str) -> Patch {
    let object = json!({
        "apiVersion": "apps/v1",
        "kind": workload.kind,
        "metadata": {"name": workload.name},
        "spec": {"template": {"metadata": {"annotations": {annotation: workload.annotation}}}},
    });
    Patch { object }
}

/// The annotation of a ConfigMonitor: several may be about one workload, so each has its own.
fn annotation(monitor: &str) -> String {
    let name = format!("config-hash-{monitor}");
    if name.len() <= NAME_MAX {
        return format!("magalix.com/{name}");
    }
    let hash = sha256_hex(monitor);
    format!("magalix.com/config-hash-{}", hash.get(..16).unwrap_or_default())
}

/// The content that an annotation is about.
fn content(annotation: &str) -> &str {
    annotation.rsplit_once('.').map_or(annotation, |(content, _)| content)
}

/// How many restarts an annotation counts.
fn count(annotation: &str) -> i64 {
    annotation.rsplit_once('.').and_then(|(_, count)| count.parse().ok()).unwrap_or(0)
}

/// Whether every Pod of a workload is of its newest form and ready.
fn is_complete(kind: &str, workload: &Value) -> bool {
    let status = &workload["status"];
    let count = |field: &str| status[field].as_i64().unwrap_or(0);
    let current = status["observedGeneration"].as_i64() >= workload["metadata"]["generation"].as_i64();
    let wanted = workload["spec"]["replicas"].as_i64().unwrap_or(1);
    match kind {
        "Deployment" => Rollout::of(Some(workload)).is_complete(),
        "StatefulSet" => current && count("updatedReplicas") >= wanted && count("readyReplicas") >= wanted,
        _ => {
            let wanted = count("desiredNumberScheduled");
            current && count("updatedNumberScheduled") >= wanted && count("numberAvailable") >= wanted
        }
    }
}
