//! Deletion, with preconditions and finalizers.

use serde_json::{Value, json};

use super::{Context, Done, read, target};
use crate::{Failure, kinds::Served, request::Request, store::Key, watch::Selection};

fn not_allowed() -> Failure {
    Failure::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
}

pub(super) fn delete(context: &mut Context<'_>, request: &Request) -> Result<Done, Failure> {
    let (served, key) = target(context.store, request)?;
    if request.path.subresource.is_some() {
        return Err(not_allowed());
    }
    delete_one(context, request, &served, key)
}

/// Deletes every object that a list would show, each as if by itself. The reply is that list.
pub(super) fn collection(context: &mut Context<'_>, request: &Request) -> Result<Done, Failure> {
    let selection = Selection::of(context.store, request)?;
    if selection.served.is("Namespace") {
        return Err(not_allowed());
    }
    let listed = read::list(context.store, request, None)?;
    let objects = context.store.objects().iter();
    let selected = objects.filter(|(key, object)| selection.has(key, object));
    let keys: Vec<Key> = selected.map(|(key, _)| key.clone()).collect();
    for key in keys {
        delete_one(context, request, &selection.served, key)?;
    }
    Ok(listed)
}

fn delete_one(
    context: &mut Context<'_>,
    request: &Request,
    served: &Served,
    key: Key,
) -> Result<Done, Failure> {
    let resource = served.qualified();
    let live = context.store.get(&key).cloned().ok_or_else(|| Failure::not_found(&resource, &key.name))?;
    let metadata = &live["metadata"];
    for (field, called) in [("uid", "UID"), ("resourceVersion", "ResourceVersion")] {
        let wanted = request.body["preconditions"][field].as_str();
        let found = metadata[field].as_str().unwrap_or_default();
        if let Some(wanted) = wanted.filter(|wanted| *wanted != found) {
            let why = format!(
                "the {called} in the precondition ({wanted}) does not match the {called} in record ({found}). The object might \
                 have been deleted and then recreated"
            );
            return Err(Failure::conflict(&resource, &key.name, &why));
        }
    }
    let policy = request.parameter("propagationPolicy").or(request.body["propagationPolicy"].as_str());
    let mut finalizers: Vec<Value> = metadata["finalizers"].as_array().cloned().unwrap_or_default();
    // The finalizers of the garbage collector are those of the policy, if one is given, and else stay.
    let wanted = match policy {
        None => None,
        Some("Background") => Some(None),
        Some("Orphan") => Some(Some("orphan")),
        Some("Foreground") => Some(Some("foregroundDeletion")),
        Some(other) => return Err(Failure::bad_request(format!("invalid propagation policy {other:?}"))),
    };
    if let Some(wanted) = wanted {
        finalizers.retain(|one| one != "orphan" && one != "foregroundDeletion");
        finalizers.extend(wanted.map(Value::from));
    }
    let before = Some(live.clone());
    let has_namespaced_content = served.plural == "namespaces";
    // A Pod on a node stops before it is deleted.
    let stops = served.plural == "pods"
        && !live["spec"]["nodeName"].as_str().unwrap_or_default().is_empty()
        && request.body["gracePeriodSeconds"] != 0;
    if !stops && finalizers.is_empty() && !has_namespaced_content {
        let last = context.store.remove(&key);
        // For some kinds, the reply is the deleted object instead of a Status.
        const TOLD: [&str; 4] = ["PersistentVolumeClaim", "Pod", "Service", "ServiceAccount"];
        if TOLD.iter().any(|kind| served.is(kind))
            && let Some(last) = last
        {
            let body = crate::watch::shown(served, &last, false);
            return Ok(Done { code: 200, body, before, after: None });
        }
        let details =
            json!({"name": key.name, "group": served.group, "kind": served.plural, "uid": metadata["uid"]});
        let body = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details,
        });
        return Ok(Done { code: 200, body, before, after: None });
    }
    let mut next = Value::clone(&live);
    if next["metadata"].get("deletionTimestamp").is_none() {
        next["metadata"]["deletionTimestamp"] = context.time().into();
        next["metadata"]["deletionGracePeriodSeconds"] = if stops { 30 } else { 0 }.into();
        if let Some(generation) = next["metadata"]["generation"].as_i64() {
            next["metadata"]["generation"] = (generation + 1).into();
        }
    }
    if let Some(metadata) = next["metadata"].as_object_mut() {
        match finalizers.is_empty() {
            true => drop(metadata.remove("finalizers")),
            false => drop(metadata.insert("finalizers".into(), finalizers.into())),
        }
    }
    if has_namespaced_content {
        next["status"] = json!({"phase": "Terminating"});
    }
    let after = if next == *live { live } else { context.store.put(key, next) };
    let body = crate::watch::shown(served, &after, false);
    Ok(Done { code: 200, body, before, after: Some(after) })
}
