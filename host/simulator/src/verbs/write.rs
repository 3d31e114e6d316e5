//! Create, update, patch and server-side apply. All of them take the same way from the body of a request to the stored object.

mod body;
mod rules;

use std::sync::Arc;

use pintle_core::view::{query::FieldValidation, status::fault};
use serde_json::{Value, json};

use self::{
    body::{
        Decoded, applied, blank, complete, decoded, json_patched, managers_of, patched, plain, resets,
        unpatchable, unreadable,
    },
    rules::{
        acceptable, agrees, appliable, applier, becomes, check, invalid, is_finalized, is_new_generation,
        isolate, keep_metadata, namespace_takes, precede,
    },
};
use super::{Context, Done, target};
use crate::{
    Failure, allocate,
    apply::managed::{Manager, Managers, Write},
    faults::Verb,
    kinds::{self, Served},
    random,
    request::{PatchForm, Request},
    store::Key,
    watch::shown,
};

/// The largest object that etcd accepts, in bytes.
const OBJECT_BYTES_MAX: usize = 1_572_864;

/// The finalizer that keeps a CRD until its objects are gone.
pub(crate) const CRD_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// How many managers may have written in another way than by apply. With more, the API server merges the oldest ones.
const UPDATERS_MAX: usize = 10;

pub(super) fn create(context: &mut Context<'_>, request: &Request) -> Result<Done, Failure> {
    let path = &request.path;
    let served = kinds::find(context.store, path)?;
    if served.namespaced != path.namespace.is_some() {
        return Err(Failure::unknown_path());
    }
    acceptable(request)?;
    let object = sent(context, &served, request)?;
    agrees(&served, request, &object, None)?;
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let name = match object["metadata"]["generateName"].as_str() {
        Some(prefix) if name.is_empty() => format!("{prefix}{}", random::suffix(context.random)),
        _ => name,
    };
    if object["metadata"]["resourceVersion"].as_str().is_some_and(|version| !version.is_empty()) {
        return Err(Failure::new(
            500,
            "InternalError",
            "resourceVersion should not be set on objects to be created",
        ));
    }
    if name.is_empty() {
        let causes = vec![fault::required("metadata.name", "name or generateName is required")];
        return Err(invalid(&served, "", causes));
    }
    let key = served.key(path.namespace.as_deref(), &name);
    namespace_takes(context.store, &served, &key)?;
    let (time, resets) = (context.time(), resets(&served, None));
    let write = Write {
        shape: served.shape(),
        manager: Manager::update(&request.manager(), &served.api_version(), None),
        api_version: &served.api_version(),
        time: &time,
        resets: &resets,
    };
    let managers = Managers::default().updated(&write, &blank(&served), &plain(&object));
    make(context, request, &served, key, &managers, object)
}

/// The object in the body of a create or an update. Fields that nobody knows are dealt with as the client wants.
fn sent(context: &mut Context<'_>, served: &Served, request: &Request) -> Result<Value, Failure> {
    let Decoded { object, unknown } = decoded(served, &request.body)?;
    let judged = validation(request).judge(&request.duplicates, &unknown);
    context.warnings.extend(judged.map_err(|why| unreadable(served, &why))?);
    Ok(object)
}

/// The object that a patch leads to.
fn patch(
    context: &mut Context<'_>,
    served: &Served,
    request: &Request,
    next: &Value,
) -> Result<Value, Failure> {
    let Decoded { object, unknown } = patched(served, next)?;
    let duplicates: &[String] = match request.patch {
        Some(PatchForm::Merge) => &request.duplicates,
        _ => &[],
    };
    let judged = validation(request).judge(duplicates, &unknown);
    context.warnings.extend(judged.map_err(|why| unpatchable(next, &why))?);
    Ok(object)
}

fn validation(request: &Request) -> FieldValidation {
    request.parameter("fieldValidation").and_then(FieldValidation::of).unwrap_or_default()
}

/// Stores a new object, with the fields that the server sets.
fn make(
    context: &mut Context<'_>,
    request: &Request,
    served: &Served,
    key: Key,
    managers: &Managers,
    mut object: Value,
) -> Result<Done, Failure> {
    managers.write(&mut object);
    let metadata = &mut object["metadata"];
    metadata["name"] = key.name.as_str().into();
    if served.namespaced {
        metadata["namespace"] = key.namespace.as_str().into();
    }
    metadata["uid"] = random::uid(context.random).into();
    metadata["creationTimestamp"] = context.time().into();
    if let Some(fields) = metadata.as_object_mut() {
        for field in
            ["resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation"]
        {
            fields.remove(field);
        }
    }
    if served.generation {
        metadata["generation"] = 1.into();
    }
    if served.status
        && let Some(fields) = object.as_object_mut()
    {
        fields.remove("status");
    }
    complete(served, &mut object);
    if served.is("CustomResourceDefinition") {
        establish(context, &mut object);
        object["metadata"]["finalizers"] = json!([CRD_FINALIZER]);
    }
    check(served, None, &object)?;
    if served.is("Service") {
        allocate::service(context, served, &key, None, &mut object)?;
    }
    if context.store.get(&key).is_some() {
        let message = format!("{} {:?} already exists", served.qualified(), key.name);
        return Err(Failure::new(409, "AlreadyExists", message).about(&served.qualified(), &key.name));
    }
    let after = context.store.put(key, object);
    done(served, request, 201, None, Some(after))
}

/// A CRD is established at once.
fn establish(context: &Context<'_>, object: &mut Value) {
    let time = context.time();
    let condition = |kind: &str, reason: &str, message: &str| json!({"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": time});
    let stored: Vec<Value> = object["spec"]["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|version| version["storage"] == true)
        .map(|version| version["name"].clone())
        .collect();
    object["status"] = json!({
        "acceptedNames": object["spec"]["names"], "storedVersions": stored,
        "conditions": [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
    });
}

pub(super) fn change(context: &mut Context<'_>, request: &Request) -> Result<Done, Failure> {
    let (served, key) = target(context.store, request)?;
    acceptable(request)?;
    let before = context.store.get(&key).cloned();
    let subresource = request.path.subresource.as_deref();
    let (time, resets) = (context.time(), resets(&served, subresource));
    let api_version = served.api_version();
    let manager = match request.verb {
        Verb::Apply => Manager::apply(&applier(request)?, subresource),
        _ => Manager::update(&request.manager(), &api_version, subresource),
    };
    let write =
        Write { shape: served.shape(), manager, api_version: &api_version, time: &time, resets: &resets };
    // An error in the body comes before an error about a missing object.
    let update = match request.verb {
        Verb::Update => {
            let object = sent(context, &served, request)?;
            agrees(&served, request, &object, None)?;
            Some(object)
        }
        _ => None,
    };
    let Some(live) = &before else { return absent(context, request, &served, key, &write, update) };
    let (body, plain_live) = (&request.body, plain(live));
    let (mut next, managers) = match (update, request.patch) {
        (Some(object), _) => (object, None),
        (None, Some(PatchForm::Json)) => {
            let next = json_patched(live, body)?;
            (patch(context, &served, request, &next)?, None)
        }
        (None, Some(PatchForm::Merge)) => {
            let mut next = Value::clone(live);
            json_patch::merge(&mut next, body);
            (patch(context, &served, request, &next)?, None)
        }
        (None, None) => {
            appliable(&served, request)?;
            let (merged, managers) = managers_of(&served, live, &write).applied(
                &write,
                &plain_live,
                &plain(body),
                request.is_set("force"),
            )?;
            (applied(&served, &merged)?, Some(managers))
        }
    };
    agrees(&served, request, &next, Some(live))?;
    let managers = match managers {
        Some(managers) => managers,
        None => {
            let before = Managers::of_replacement(live, &next, subresource.is_some());
            // If somebody removed the managed fields of an object, it gets new ones only from an apply.
            let plain_next = plain(&next);
            let managers = match before.is_empty() {
                true => before.clone(),
                false => before.clone().updated(&write, &plain_live, &plain_next),
            };
            if plain_next == plain_live { managers.with_times_of(&before) } else { managers }
        }
    };
    if managers.updaters() > UPDATERS_MAX {
        return Err(Failure::not_modelled("more than ten managers that do not apply"));
    }
    precede(&served, request, live, &next)?;
    becomes(&served, live, &next)?;
    isolate(&served, subresource, live, &mut next);
    keep_metadata(&served, live, &mut next);
    complete(&served, &mut next);
    if served.is("Service") && subresource.is_none() {
        allocate::service(context, &served, &key, Some(live), &mut next)?;
    }
    if served.generation && subresource.is_none() && is_new_generation(&served, live, &next) {
        let generation = live["metadata"]["generation"].as_i64().unwrap_or(0);
        next["metadata"]["generation"] = (generation + 1).into();
    }
    check(&served, Some(live), &next)?;
    managers.write(&mut next);
    next["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
    if next == **live {
        return done(&served, request, 200, before.clone(), before);
    }
    if is_finalized(&next) {
        // The reply shows the requested change, but it is never stored: the object is deleted as it was.
        context.store.remove(&key);
        let body = shown(&served, &next, request.metadata_only);
        return Ok(Done { code: 200, body, before, after: None });
    }
    let after = context.store.put(key, next);
    done(&served, request, 200, before, Some(after))
}

/// A change of an object that does not exist. Only an apply creates it, and for some kinds an update.
fn absent(
    context: &mut Context<'_>,
    request: &Request,
    served: &Served,
    key: Key,
    write: &Write<'_>,
    update: Option<Value>,
) -> Result<Done, Failure> {
    const CREATED_BY_UPDATE: [&str; 6] = ["ClusterRole", "Event", "Lease", "Role", "RoleBinding", "Service"];
    let resource = served.qualified();
    let by_status = request.path.subresource.is_some();
    let has_uid = request.body["metadata"]["uid"].as_str().is_some_and(|uid| !uid.is_empty());
    if let Some(object) = update
        && !by_status
        && CREATED_BY_UPDATE.iter().any(|kind| served.is(kind))
    {
        if has_uid {
            return Err(Failure::conflict(&resource, &key.name, "Precondition failed: UID in precondition"));
        }
        namespace_takes(context.store, served, &key)?;
        let managers = Managers::default().updated(write, &blank(served), &plain(&object));
        return make(context, request, served, key, &managers, object);
    }
    if by_status && request.verb == Verb::Apply && served.is("Service") {
        // It is treated as a creation, and validated as one.
        let mut object = decoded(served, &request.body)?.object;
        object["status"] = Value::Null;
        check(served, None, &object)?;
        return Err(Failure::not_modelled("creation by the status"));
    }
    if request.verb != Verb::Apply || by_status {
        return Err(Failure::not_found(&resource, &key.name));
    }
    appliable(served, request)?;
    if has_uid {
        let why = "uid mismatch: the provided object specified a uid, and no existing object was found";
        return Err(Failure::conflict(&resource, &key.name, why));
    }
    namespace_takes(context.store, served, &key)?;
    let empty = json!({"apiVersion": served.api_version(), "kind": served.kind});
    let (merged, managers) = Managers::default().applied(write, &empty, &plain(&request.body), false)?;
    let object = applied(served, &merged)?;
    agrees(served, request, &object, None)?;
    make(context, request, served, key, &managers, object)
}

fn done(
    served: &Served,
    request: &Request,
    code: u16,
    before: Option<Arc<Value>>,
    after: Option<Arc<Value>>,
) -> Result<Done, Failure> {
    let body = after.as_ref().map(|object| shown(served, object, request.metadata_only)).unwrap_or_default();
    Ok(Done { code, body, before, after })
}
