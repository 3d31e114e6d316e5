//! Create, update, patch and server-side apply.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Context, Done, target};
use crate::{
    Failure,
    failure::cause,
    faults::Verb,
    kinds::{self, Served},
    request::{PatchForm, Request},
    store::{Key, Store},
    watch::shown,
};

pub(super) fn create(context: &mut Context<'_>, request: &Request) -> Result<Done, Failure> {
    let path = &request.path;
    let served = kinds::find(context.store, &path.group, &path.version, &path.resource)
        .filter(|served| served.namespaced == path.namespace.is_some())
        .ok_or_else(Failure::unknown_path)?;
    let mut object = request.body.clone();
    if !object.is_object() {
        return Err(Failure::bad_request("an object is expected"));
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let name = match object["metadata"]["generateName"].as_str() {
        Some(prefix) if name.is_empty() => format!("{prefix}{}", context.random.suffix()),
        _ => name,
    };
    if name.is_empty() {
        let causes = vec![cause(
            "metadata.name",
            "FieldValueRequired",
            "Required value: name or generateName is required",
        )];
        return Err(Failure::invalid(&served.qualified_kind(), "", causes));
    }
    if object["metadata"]["resourceVersion"].as_str().is_some_and(|version| !version.is_empty()) {
        return Err(Failure::bad_request("resourceVersion should not be set on objects to be created"));
    }
    object["metadata"]["name"] = name.clone().into();
    let key = served.key(path.namespace.as_deref(), &name);
    if context.store.get(&key).is_some() {
        let message = format!("{} {name:?} already exists", served.qualified());
        return Err(Failure::new(409, "AlreadyExists", message));
    }
    let after = insert(context, &served, key, object)?;
    let body = shown(&served, &after, request.metadata_only);
    Ok(Done { code: 201, body, before: None, after: Some(after) })
}

/// Stores a new object.
fn insert(
    context: &mut Context<'_>,
    served: &Served,
    key: Key,
    mut object: Value,
) -> Result<Arc<Value>, Failure> {
    namespace_takes(context.store, served, &key)?;
    object["apiVersion"] = served.api_version().into();
    object["kind"] = served.kind.as_str().into();
    object["metadata"]["uid"] = context.random.uid().into();
    object["metadata"]["creationTimestamp"] = context.time().into();
    if served.namespaced {
        object["metadata"]["namespace"] = key.namespace.as_str().into();
    }
    if served.generation {
        object["metadata"]["generation"] = 1.into();
    }
    if served.is_custom()
        && served.status
        && let Some(fields) = object.as_object_mut()
    {
        fields.remove("status");
    }
    Ok(context.store.put(key, object))
}

fn namespace_takes(store: &Store, served: &Served, key: &Key) -> Result<(), Failure> {
    if !served.namespaced {
        return Ok(());
    }
    let namespace = Key {
        group: String::new(),
        resource: "namespaces".into(),
        namespace: String::new(),
        name: key.namespace.clone(),
    };
    match store.get(&namespace) {
        None => Err(Failure::not_found("namespaces", &key.namespace)),
        Some(found) if found["metadata"].get("deletionTimestamp").is_some() => {
            let message = format!(
                "{} {:?} is forbidden: unable to create new content in namespace {} because it is being terminated",
                served.qualified(),
                key.name,
                key.namespace
            );
            Err(Failure::new(403, "Forbidden", message))
        }
        Some(_) => Ok(()),
    }
}

pub(super) fn change(context: &mut Context<'_>, request: &Request) -> Result<Done, Failure> {
    let (served, key) = target(context.store, request)?;
    let before = context.store.get(&key).cloned();
    let resource = served.qualified();
    let Some(live) = &before else {
        if request.verb != Verb::Apply || request.path.subresource.is_some() {
            return Err(Failure::not_found(&resource, &key.name));
        }
        if request.body["metadata"]["uid"].as_str().is_some_and(|uid| !uid.is_empty()) {
            return Err(Failure::conflict(
                &resource,
                &key.name,
                "uid mismatch: the provided object specified a uid, and no existing object was found",
            ));
        }
        let mut object = request.body.clone();
        object["metadata"]["name"] = key.name.clone().into();
        let after = insert(context, &served, key, object)?;
        let body = shown(&served, &after, request.metadata_only);
        return Ok(Done { code: 201, body, before: None, after: Some(after) });
    };
    let sent = &request.body;
    let mut next = match (request.verb, request.patch) {
        (Verb::Update, _) => sent.clone(),
        (Verb::Patch, Some(PatchForm::Json)) => json_patched(live, sent)?,
        _ => {
            let mut next = Value::clone(live);
            json_patch::merge(&mut next, sent);
            next
        }
    };
    let version = &live["metadata"]["resourceVersion"];
    let names = &next["metadata"]["resourceVersion"];
    if names.as_str().is_some_and(|names| !names.is_empty()) && names != version {
        return Err(Failure::modified(&resource, &key.name));
    }
    let uid = &next["metadata"]["uid"];
    if uid.as_str().is_some_and(|uid| !uid.is_empty()) && *uid != live["metadata"]["uid"] {
        let causes = vec![cause("metadata.uid", "FieldValueInvalid", "field is immutable")];
        return Err(Failure::invalid(&served.qualified_kind(), &key.name, causes));
    }
    // The status is the subresource's alone, and the subresource writes nothing else.
    if request.path.subresource.is_some() {
        let mut whole = Value::clone(live);
        whole["status"] = next["status"].clone();
        next = whole;
    } else if served.status {
        match live.get("status") {
            Some(status) => next["status"] = status.clone(),
            None => drop(next.as_object_mut().map(|fields| fields.remove("status"))),
        }
    }
    for field in ["uid", "creationTimestamp", "generation", "deletionTimestamp", "namespace"] {
        match live["metadata"].get(field) {
            Some(value) => next["metadata"][field] = value.clone(),
            None => drop(next["metadata"].as_object_mut().map(|fields| fields.remove(field))),
        }
    }
    next["apiVersion"] = live["apiVersion"].clone();
    next["kind"] = live["kind"].clone();
    if served.generation && wanted(&next) != wanted(live) {
        let generation = live["metadata"]["generation"].as_i64().unwrap_or(0);
        next["metadata"]["generation"] = (generation + 1).into();
    }
    next["metadata"]["resourceVersion"] = version.clone();
    let after = if next == **live {
        Arc::clone(live)
    } else if is_finalized(&next) {
        context.store.put(key.clone(), next.clone());
        let last = context.store.remove(&key);
        let body = shown(&served, &last.unwrap_or_default(), request.metadata_only);
        return Ok(Done { code: 200, body, before, after: None });
    } else {
        context.store.put(key, next)
    };
    let body = shown(&served, &after, request.metadata_only);
    Ok(Done { code: 200, body, before, after: Some(after) })
}

/// What counts as a change of what is wanted.
fn wanted(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("metadata");
        fields.remove("status");
    }
    object
}

/// Whether it is being deleted, and nothing holds it any longer.
fn is_finalized(object: &Value) -> bool {
    let metadata = &object["metadata"];
    let held = metadata["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty());
    metadata.get("deletionTimestamp").is_some() && !held
}

fn json_patched(live: &Value, operations: &Value) -> Result<Value, Failure> {
    let patch: json_patch::Patch = serde_json::from_value(operations.clone())
        .map_err(|error| Failure::bad_request(format!("the patch is no JSON patch: {error}")))?;
    let mut next = live.clone();
    json_patch::patch(&mut next, &patch).map_err(|error| Failure {
        causes: vec![],
        ..Failure::new(
            422,
            "Invalid",
            format!("the server rejected our request due to an error in our request: {error}"),
        )
    })?;
    if next.get("metadata").is_none() {
        next["metadata"] = json!({});
    }
    Ok(next)
}
