//! From what a preview found to what is said of a root.

use pintle_wit::{Condition, ConditionStatus, Kind, ObjectRef};
use serde_json::Value;

use super::{
    Change, ChildChange, Explained, FieldChange, Mask, PlannedRoot, Problem, RootRef, Standing,
    StatusChanges, Unknown, Verdict, explain,
};
use crate::{
    Binding, conditions, managed, object,
    observed::status_conditions,
    pass::{Fate, PatchFate, Previewed},
    reasons, request,
};

/// The live objects, whole, as far as they were read.
pub type Live<'a> = &'a dyn Fn(&ObjectRef) -> Option<&'a Value>;

/// Writes the difference between two objects as text.
pub type Render<'a> = &'a dyn Fn(&ObjectRef, Option<&Value>, Option<&Value>) -> String;

/// The fields of a status that count Pods: those of a Deployment and its like, of a DaemonSet, and of a Job.
pub const POD_COUNTS: [&str; 3] = ["replicas", "currentNumberScheduled", "active"];

/// The reasons of a root's Ready that tell of a refusal: those of this host, and the words of the API server.
const REFUSALS: [&str; 15] = [
    reasons::ADOPTION_CONFLICT,
    reasons::CHILD_REFUSED,
    reasons::LABEL_REMOVED,
    reasons::PATCH_CONFLICT,
    reasons::PATCH_REFUSED,
    reasons::INVALID,
    reasons::CONFLICT,
    reasons::FORBIDDEN,
    reasons::BAD_REQUEST,
    "AlreadyExists",
    "MethodNotAllowed",
    "NotAcceptable",
    reasons::OBJECT_TOO_LARGE,
    "UnsupportedMediaType",
    "InternalError",
];

/// The kinds of workloads that keep their Pods when their Pod template changes.
const KINDS_WITHOUT_ROLLOUT: [&str; 3] = ["Job", "ReplicaSet", "ReplicationController"];

/// The objects in which there may be what nobody is to read, besides what the guest was shown: the children and patches of an answer, and
/// what is there of them.
pub fn sources<'a>(previewed: &'a Previewed, live: Live<'a>) -> Vec<&'a Value> {
    let mut found: Vec<&Value> = Vec::new();
    for child in previewed.answer.iter().flat_map(|answer| answer.children()) {
        found.push(child.object());
        found.extend(live(child.reference()));
    }
    found.extend(previewed.doomed.iter().filter_map(live));
    for patch in &previewed.patches {
        found.push(&patch.sent);
        found.extend(&patch.live);
    }
    found
}

/// What would become of a root. `unknown` is what its driver could not read. The mask knows the root, what the guest was shown and the
/// [`sources`].
pub fn planned(
    root: &Value,
    binding: &Binding,
    previewed: &Previewed,
    mut unknown: Vec<Unknown>,
    live: Live<'_>,
    mask: &Mask,
    render: Render<'_>,
) -> PlannedRoot {
    let (mut children, patches) = changes_of(binding, previewed, live, mask, render);
    let conditions = root.get("status").map(status_conditions).unwrap_or_default();
    keep_while_refused(&mut children);
    for (reference, error) in &previewed.unread {
        unknown.push(Unknown { what: reference.to_string(), why: error.to_string() });
    }
    for change in children.iter().chain(&patches).filter(|change| change.change == Change::Unknown) {
        let known = unknown.iter().any(|unknown| unknown.what == change.reference.to_string());
        if !known {
            let why = change.why.clone().unwrap_or_default();
            unknown.push(Unknown { what: change.reference.to_string(), why });
        }
    }
    let pods = previewed.evictions.iter().map(|pod| ObjectRef {
        api_version: "v1".into(),
        kind: "Pod".into(),
        namespace: object::namespace(root).map(Into::into),
        name: pod.name.clone(),
    });
    let mut planned = PlannedRoot {
        root: RootRef::of(root),
        verdict: Verdict::Unchanged,
        failure: previewed.failure.clone().map(Into::into),
        fails_now: fails_now(&conditions),
        has_answer: previewed.answer.is_some(),
        unknown,
        standing_refusals: standing(&conditions),
        note: previewed.idle.clone(),
        children,
        patches,
        evictions: pods.collect(),
        status: status(&object::kind(root), previewed, mask),
    };
    hide_words(&mut planned, mask);
    if planned.failure.is_none() {
        planned.failure = conflict(&planned);
    }
    planned.verdict = verdict_of(&planned);
    planned
}

/// Takes out of what is said of a root what nobody is to read: guests and API servers repeat what they refuse.
fn hide_words(planned: &mut PlannedRoot, mask: &Mask) {
    let failure = planned.failure.iter_mut().map(|failure| &mut failure.message);
    let unknown = planned.unknown.iter_mut().map(|unknown| &mut unknown.why);
    let standing = planned.standing_refusals.iter_mut().map(|standing| &mut standing.message);
    let whys =
        planned.children.iter_mut().chain(&mut planned.patches).filter_map(|change| change.why.as_mut());
    let words = failure.chain(unknown).chain(standing).chain(&mut planned.note).chain(whys);
    words.for_each(|text| mask.replace_in_text(text));
}

/// What would become of a root, in one word. What is certain to be written counts, whatever else cannot be known.
pub fn verdict_of(planned: &PlannedRoot) -> Verdict {
    let writes = planned.children.iter().chain(&planned.patches).any(|change| change.change.writes());
    let is_conflict = |change: &ChildChange| change.change == Change::Conflict;
    let conflicts = planned.children.iter().chain(&planned.patches).any(is_conflict);
    match &planned.failure {
        Some(_) if !conflicts => Verdict::Fails,
        _ if writes || !planned.evictions.is_empty() || planned.status.is_some() => Verdict::Changed,
        _ if !planned.unknown.is_empty() => Verdict::Unknown,
        Some(_) => Verdict::Fails,
        None => Verdict::Unchanged,
    }
}

/// What would become of the children of an answer, of those that it no longer has, and of the objects that it patches.
pub fn changes_of(
    binding: &Binding,
    previewed: &Previewed,
    live: Live<'_>,
    mask: &Mask,
    render: Render<'_>,
) -> (Vec<ChildChange>, Vec<ChildChange>) {
    let wanted = previewed.answer.as_ref().map_or(&[][..], |answer| answer.children());
    let mut children = Vec::with_capacity(wanted.len() + previewed.doomed.len());
    for (child, fate) in wanted.iter().zip(&previewed.children) {
        let found = live(child.reference());
        let sent = child.object();
        // The number of replicas is given up before the apply, and stays.
        let entry = found.and_then(|found| managed::entry(found, &binding.field_manager, None));
        let given_up = entry.filter(|_| managed::gives_up_replicas(sent)).and_then(managed::without_replicas);
        let entry = given_up.as_ref().or(entry);
        children.push(change(child.reference(), fate, found, sent, entry, mask, render));
    }
    for reference in &previewed.doomed {
        let found = live(reference);
        let before = found.map(|found| shown(found, mask));
        children.push(ChildChange {
            reference: reference.clone(),
            change: Change::Delete,
            why: None,
            fields: Vec::new(),
            pods: found.map_or(0, pods),
            diff: render(reference, before.as_ref(), None),
        });
    }
    let patches = previewed.patches.iter().map(|patch| {
        let PatchFate { reference, fate, live, sent, entry } = patch;
        change(reference, fate, live.as_ref(), sent, entry.as_ref(), mask, render)
    });
    (children, patches.collect())
}

/// An object without what only the API server wants to know.
fn shown(live: &Value, mask: &Mask) -> Value {
    let mut shown = request::project(live);
    if let Some(fields) = shown.as_object_mut() {
        fields.remove("status");
    }
    mask.replace(&mut shown);
    shown
}

fn change(
    reference: &ObjectRef,
    fate: &Fate,
    live: Option<&Value>,
    sent: &Value,
    entry: Option<&Value>,
    mask: &Mask,
    render: Render<'_>,
) -> ChildChange {
    let (word, why) = match fate {
        Fate::Unchanged => (Change::Unchanged, None),
        Fate::Create => (Change::Create, None),
        Fate::Update => (Change::Update, None),
        Fate::Adopt => (Change::Adopt, Some("it exists, and may become the root's".to_owned())),
        Fate::Conflict(why) => (Change::Conflict, Some(why.clone())),
        Fate::Held(why) | Fate::Unknown(why) => (Change::Unknown, Some(why.clone())),
    };
    let mut change = ChildChange {
        reference: reference.clone(),
        change: word,
        why,
        fields: Vec::new(),
        pods: 0,
        diff: String::new(),
    };
    let whole = live;
    let masked;
    let (live, sent) = match mask.covers(&reference.kind()) {
        true => {
            masked = (live.map(|live| mask.object(live)), mask.object(sent));
            (masked.0.as_ref(), &masked.1)
        }
        false => (live, sent),
    };
    match word {
        Change::Create => {
            let mut explained = explain(None, Some(sent), None);
            hide(&mut explained, mask);
            change.diff = render(reference, None, explained.after.as_ref());
        }
        Change::Update | Change::Adopt => {
            let mut explained = explain(live, Some(sent), entry);
            hide(&mut explained, mask);
            change.diff = render(reference, explained.before.as_ref(), explained.after.as_ref());
            change.fields = explained.fields;
            if change.fields.is_empty() {
                change.fields.push(taken_back(live, sent, entry));
            }
            if !KINDS_WITHOUT_ROLLOUT.contains(&reference.kind.as_str())
                && change.fields.iter().any(|field| field.path.starts_with("spec.template."))
            {
                change.pods = whole.map_or(0, pods);
            }
        }
        _ => {}
    }
    change
}

/// How many Pods a live workload has, as its status says. A Pod counts itself.
fn pods(live: &Value) -> usize {
    if object::kind(live).kind == "Pod" {
        return 1;
    }
    let mut counts = POD_COUNTS.iter().filter_map(|field| live.get("status")?.get(field)?.as_u64());
    let count = counts.next().filter(|_| live.pointer("/spec/template").is_some());
    count.unwrap_or_default() as usize
}

/// Replaces copies of what nobody is to read.
fn hide(explained: &mut Explained, mask: &Mask) {
    let fields = explained.fields.iter_mut().flat_map(|field| field.from.iter_mut().chain(&mut field.to));
    fields
        .chain(&mut explained.before)
        .chain(&mut explained.after)
        .for_each(|value| mask.replace_copies(value));
}

/// The field that is written although its value is the same: somebody else has taken it over, or the object was not made by this host.
fn taken_back(live: Option<&Value>, sent: &Value, entry: Option<&Value>) -> FieldChange {
    let nothing = Value::Object(serde_json::Map::new());
    let path = managed::lost(entry.unwrap_or(&nothing), sent);
    let path =
        path.unwrap_or_else(|| format!("metadata.annotations[{}]", pintle_wit::names::ANNOTATION_DESIRED));
    let at = |object: &Value| path.split('.').try_fold(object, |value, key| value.get(key)).cloned();
    FieldChange { from: live.and_then(at), to: at(sent), path }
}

/// Nothing is deleted while a child is refused.
fn keep_while_refused(children: &mut [ChildChange]) {
    if !children.iter().any(|child| child.change == Change::Conflict) {
        return;
    }
    for child in children.iter_mut().filter(|child| child.change == Change::Delete) {
        child.change = Change::Unchanged;
        child.why = Some("it is no longer wanted, and stays as long as another child is refused".into());
        child.pods = 0;
        child.diff = String::new();
    }
}

fn status(kind: &Kind, previewed: &Previewed, mask: &Mask) -> Option<StatusChanges> {
    let mut changes = Vec::new();
    if let Some((from, to)) = &previewed.finalizers {
        changes.push(FieldChange {
            path: "metadata.finalizers".into(),
            from: Some(from.clone().into()),
            to: Some(to.clone().into()),
        });
    }
    if let Some((before, after)) = &previewed.status {
        let shown = |status: &Value| {
            let mut status = status.clone();
            mask.replace_in(kind, "status", &mut status);
            status
        };
        differences("status", Some(&shown(before)), Some(&shown(after)), &mut changes);
    }
    (!changes.is_empty()).then_some(StatusChanges { changes })
}

/// Where two values differ. Both are ours, so that whatever is in one alone comes or goes.
fn differences(path: &str, from: Option<&Value>, to: Option<&Value>, found: &mut Vec<FieldChange>) {
    match (from, to) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            let mut keys: Vec<&String> = old.keys().chain(new.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                differences(&super::join(path, key), old.get(key), new.get(key), found);
            }
        }
        (from, to) if from == to => {}
        (from, to) => {
            found.push(FieldChange { path: path.into(), from: from.cloned(), to: to.cloned() });
        }
    }
}

fn conflict(planned: &PlannedRoot) -> Option<Problem> {
    let mut conflicts = planned.children.iter().chain(&planned.patches);
    let found = conflicts.find(|change| change.change == Change::Conflict)?;
    let is_child = planned.children.iter().any(|child| child.reference == found.reference);
    let reason = if is_child { reasons::ADOPTION_CONFLICT } else { reasons::PATCH_TARGET_MISSING };
    Some(Problem { reason: reason.into(), message: found.why.clone().unwrap_or_default(), path: None })
}

fn standing(conditions: &[Condition]) -> Vec<Standing> {
    let ready =
        conditions::find(conditions, conditions::READY).filter(|ready| ready.status != ConditionStatus::True);
    let refused = ready.filter(|ready| REFUSALS.contains(&ready.reason.as_str()));
    let standing =
        |ready: &Condition| Standing { reason: ready.reason.clone(), message: ready.message.clone() };
    refused.map(standing).into_iter().collect()
}

/// Whether a root with these conditions fails now, for whatever reason, as the operator counts it. Ready also repeats a condition of the
/// guest, which is no failure.
pub fn fails_now(conditions: &[Condition]) -> Option<bool> {
    let ready = conditions::find(conditions, conditions::READY)?;
    let (host, guest): (Vec<&Condition>, Vec<&Condition>) = conditions
        .iter()
        .partition(|condition| conditions::HOST_CONDITIONS.contains(&condition.r#type.as_str()));
    let is_repeated = guest.iter().any(|condition| {
        condition.reason == ready.reason && conditions::message(&condition.message) == ready.message
    });
    // Where the root is slowed besides, Stalled alone says that something is refused.
    let fails = host.iter().any(|condition| {
        let says_why = match condition.r#type.as_str() {
            conditions::READY => condition.status == ConditionStatus::False && !is_repeated,
            conditions::STALLED => condition.status == ConditionStatus::True,
            _ => false,
        };
        says_why && !reasons::WAITS.contains(&condition.reason.as_str())
    });
    Some(fails)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::plan::{Instead, Marks};

    #[test]
    fn a_root_fails_now_for_whatever_reason_and_not_while_something_is_still_to_come() {
        let own = ("Open", "False", "Closed");
        for (conditions, fails) in [
            (vec![], None),
            (vec![("Ready", "True", "Succeeded")], Some(false)),
            (vec![("Ready", "False", "GuestTrapped"), ("Stalled", "True", "GuestTrapped")], Some(true)),
            (vec![("Ready", "False", "Forbidden"), ("Reconciling", "True", "Forbidden")], Some(true)),
            (vec![("Ready", "False", "ChildNotReady"), ("Stalled", "True", "ChildNotReady")], Some(false)),
            (vec![("Ready", "False", "Progressing"), ("Reconciling", "True", "Progressing")], Some(false)),
            (vec![("Ready", "False", "Throttled"), ("Stalled", "True", "Invalid")], Some(true)),
            (vec![("Ready", "False", "Closed"), own], Some(false)),
            (vec![("Ready", "False", "Invalid"), own], Some(true)),
            (vec![("Ready", "Unknown", "NotReconciled")], Some(false)),
        ] {
            let list: Vec<Value> = conditions
                .iter()
                .map(|(name, status, reason)| json!({"type": name, "status": status, "reason": reason}))
                .collect();
            let parsed = status_conditions(&json!({"conditions": list}));
            assert_eq!(fails_now(&parsed), fails, "{conditions:?}");
        }
    }

    #[test]
    fn another_template_replaces_the_pods_of_those_workloads_alone_that_replace_them() {
        let mask = Mask::new([1; 32], Instead::Word, Marks::default(), Vec::new());
        for (kind, pods) in [("Deployment", 2), ("StatefulSet", 2), ("ReplicaSet", 0)] {
            let workload = |image: &str| {
                json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "a", "namespace": "n"},
                    "spec": {"template": {"spec": {"containers": [{"name": "a", "image": image}]}}}})
            };
            let (mut live, sent) = (workload("a:1"), workload("a:2"));
            live["status"] = json!({"replicas": 2});
            let reference = object::reference(&live);
            let render = |_: &ObjectRef, _: Option<&Value>, _: Option<&Value>| String::new();
            let change = change(&reference, &Fate::Update, Some(&live), &sent, None, &mask, &render);
            assert_eq!(change.pods, pods, "{change:?}");
        }
    }
}
