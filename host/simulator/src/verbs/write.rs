//! Create, update, patch and server-side apply: one way for all, from what is sent to what is stored.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Context, Done, target};
use crate::{
    Failure, allocate,
    apply::{
        managed::{Manager, Managers, Write},
        walk,
    },
    custom, defaults,
    failure::cause,
    faults::Verb,
    kinds::{self, Served},
    request::{PatchForm, Request},
    schema,
    store::{Key, Store},
    validate,
    watch::shown,
};

/// The largest object that etcd takes, in bytes.
const OBJECT_BYTES_MAX: usize = 1_572_864;

/// What keeps a CRD until its objects are gone.
pub(crate) const CRD_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// How many managers may have written other than by apply: beyond, the API server folds the oldest together.
const UPDATERS_MAX: usize = 10;

pub(super) fn create(context: &mut Context<'_>, request: &Request) -> Result<Done, Failure> {
    let path = &request.path;
    let served = kinds::find(context.store, &path.group, &path.version, &path.resource)
        .ok_or_else(|| kinds::unknown(&path.group, &path.resource))?;
    if served.namespaced != path.namespace.is_some() {
        return Err(Failure::unknown_path());
    }
    modelled(request)?;
    let mut object = decoded(&served, &request.body)?;
    agrees(&served, request, &object, None)?;
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let name = match object["metadata"]["generateName"].as_str() {
        Some(prefix) if name.is_empty() => format!("{prefix}{}", context.random.suffix()),
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
        let why = "Required value: name or generateName is required";
        return Err(invalid(&served, "", vec![cause("metadata.name", "FieldValueRequired", why)]));
    }
    object["metadata"]["name"] = name.clone().into();
    let key = served.key(path.namespace.as_deref(), &name);
    namespace_takes(context.store, &served, &key)?;
    if served.namespaced {
        object["metadata"]["namespace"] = key.namespace.as_str().into();
    }
    let (time, resets) = (context.time(), resets(&served, None));
    let write = Write {
        shape: served.shape(),
        manager: Manager::update(&request.manager(), &served.api_version(), None),
        api_version: &served.api_version(),
        time: &time,
        resets: &resets,
    };
    let blank = blank(&served);
    let managers = Managers::default().updated(&write, &blank, &plain(&object));
    managers.write(&mut object);
    let after = insert(context, &served, key, object)?;
    done(&served, request, 201, None, Some(after))
}

/// Stores a new object, with what it is given.
fn insert(
    context: &mut Context<'_>,
    served: &Served,
    key: Key,
    mut object: Value,
) -> Result<Arc<Value>, Failure> {
    let metadata = &mut object["metadata"];
    metadata["uid"] = context.random.uid().into();
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
    if served.kind == "CustomResourceDefinition" && !served.custom {
        establish(context, &mut object);
        object["metadata"]["finalizers"] = json!([CRD_FINALIZER]);
    }
    check(served, None, &object)?;
    if served.kind == "Service" && !served.custom {
        allocate::service(context, served, &key, None, &mut object)?;
    }
    if context.store.get(&key).is_some() {
        let message = format!("{} {:?} already exists", served.qualified(), key.name);
        return Err(Failure::new(409, "AlreadyExists", message));
    }
    Ok(context.store.put(key, object))
}

/// A CRD is served at once.
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
    modelled(request)?;
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
    // What cannot be read is told before what it is about is looked for.
    if request.verb == Verb::Update {
        agrees(&served, request, &decoded(&served, &request.body)?, None)?;
    }
    let Some(live) = &before else { return absent(context, request, &served, key, &write) };
    let (sent, plain_live) = (&request.body, plain(live));
    let (mut next, managers) = match (request.verb, request.patch) {
        (Verb::Apply, _) => {
            appliable(&served, request)?;
            let (merged, managers) = managers_of(&served, live, &write).applied(
                &write,
                &plain_live,
                &plain(sent),
                request.is_set("force"),
            )?;
            (decoded(&served, &merged)?, Some(managers))
        }
        (Verb::Update, _) => (decoded(&served, sent)?, None),
        (_, Some(PatchForm::Json)) => (patched(&served, &json_patched(live, sent)?)?, None),
        _ => {
            let mut next = Value::clone(live);
            json_patch::merge(&mut next, sent);
            (patched(&served, &next)?, None)
        }
    };
    agrees(&served, request, &next, Some(live))?;
    let managers = match managers {
        Some(managers) => managers,
        None => {
            let before = Managers::of_replacement(live, &next, subresource.is_some());
            // An object whose books were thrown away is not written down anew before somebody applies it.
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
    if served.kind == "Service" && !served.custom && subresource.is_none() {
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
        // What is asked for is told, and never stored: the object goes as it was.
        context.store.remove(&key);
        let body = shown(&served, &next, request.metadata_only);
        return Ok(Done { code: 200, body, before, after: None });
    }
    let after = context.store.put(key, next);
    done(&served, request, 200, before, Some(after))
}

/// A change of an object that is not there: only an apply creates it.
fn absent(
    context: &mut Context<'_>,
    request: &Request,
    served: &Served,
    key: Key,
    write: &Write<'_>,
) -> Result<Done, Failure> {
    let resource = served.qualified();
    const CREATED_BY_PUT: [&str; 6] =
        ["services", "leases", "events", "roles", "rolebindings", "clusterroles"];
    if request.verb == Verb::Update
        && request.path.subresource.is_none()
        && !served.custom
        && CREATED_BY_PUT.contains(&served.plural.as_str())
    {
        return put(context, request, served, key, write);
    }
    let by_status = request.path.subresource.is_some();
    if by_status && request.verb == Verb::Apply && served.plural == "services" && !served.custom {
        // It is taken for a creation, and judged as one.
        let mut object = decoded(served, &request.body)?;
        object["status"] = Value::Null;
        check(served, None, &object)?;
        return Err(Failure::not_modelled("creation by the status"));
    }
    if request.verb != Verb::Apply || by_status {
        return Err(Failure::not_found(&resource, &key.name));
    }
    appliable(served, request)?;
    if request.body["metadata"]["uid"].as_str().is_some_and(|uid| !uid.is_empty()) {
        let why = "uid mismatch: the provided object specified a uid, and no existing object was found";
        return Err(Failure::conflict(&resource, &key.name, why));
    }
    namespace_takes(context.store, served, &key)?;
    let empty = json!({"apiVersion": served.api_version(), "kind": served.kind});
    let (merged, managers) = Managers::default().applied(write, &empty, &plain(&request.body), false)?;
    let mut object = decoded(served, &merged)?;
    agrees(served, request, &object, None)?;
    object["metadata"]["name"] = key.name.as_str().into();
    if served.namespaced {
        object["metadata"]["namespace"] = key.namespace.as_str().into();
    }
    managers.write(&mut object);
    let after = insert(context, served, key, object)?;
    done(served, request, 201, None, Some(after))
}

/// Some kinds are also created by a PUT.
fn put(
    context: &mut Context<'_>,
    request: &Request,
    served: &Served,
    key: Key,
    write: &Write<'_>,
) -> Result<Done, Failure> {
    if request.body["metadata"]["uid"].as_str().is_some_and(|uid| !uid.is_empty()) {
        return Err(Failure::conflict(
            &served.qualified(),
            &key.name,
            "Precondition failed: UID in precondition",
        ));
    }
    let mut object = decoded(served, &request.body)?;
    agrees(served, request, &object, None)?;
    namespace_takes(context.store, served, &key)?;
    object["metadata"]["name"] = key.name.as_str().into();
    if served.namespaced {
        object["metadata"]["namespace"] = key.namespace.as_str().into();
    }
    Managers::default().updated(write, &blank(served), &plain(&object)).write(&mut object);
    let after = insert(context, served, key, object)?;
    done(served, request, 201, None, Some(after))
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

fn invalid(served: &Served, name: &str, causes: Vec<pintle_wit::Cause>) -> Failure {
    Failure::invalid(&served.qualified_kind(), name, causes)
}

/// What no request may ask here.
fn modelled(request: &Request) -> Result<(), Failure> {
    match request.parameter("fieldValidation") {
        Some("Strict") => return Err(Failure::not_modelled("strict field validation")),
        _ if request.parameter("dryRun").is_some() => return Err(Failure::not_modelled("dry runs")),
        _ => {}
    }
    let bytes = request.body.to_string().len();
    if bytes > OBJECT_BYTES_MAX {
        return Err(Failure::new(413, "RequestEntityTooLarge", "etcdserver: request is too large"));
    }
    Ok(())
}

fn applier(request: &Request) -> Result<String, Failure> {
    let manager = request.parameter("fieldManager").ok_or_else(|| {
        let why = "Required value: is required for apply patch";
        Failure {
            causes: vec![cause("fieldManager", "FieldValueRequired", why)],
            ..Failure::new(
                422,
                "Invalid",
                format!("PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: {why}"),
            )
        }
    })?;
    Ok(manager.to_owned())
}

/// What an apply must be before it is looked at.
fn appliable(served: &Served, request: &Request) -> Result<(), Failure> {
    let sent = &request.body;
    if !sent.is_object() {
        return Err(Failure::bad_request("error decoding YAML"));
    }
    if sent["metadata"].get("managedFields").is_some_and(|fields| !fields.is_null()) {
        return Err(Failure::bad_request("metadata.managedFields must be nil"));
    }
    if sent["apiVersion"].as_str() != Some(&served.api_version())
        || sent["kind"].as_str() != Some(&served.kind)
    {
        return Err(Failure::bad_request("Incorrect version specified in apply patch"));
    }
    let is_empty = |field: &str| sent["metadata"][field].as_object().is_some_and(serde_json::Map::is_empty);
    if served.custom && (is_empty("labels") || is_empty("annotations")) {
        // The API server stores it, loses it with the next read, and so takes any later write for a change.
        return Err(Failure::not_modelled("empty labels or annotations in an apply of a custom kind"));
    }
    match walk::misfit(served.shape(), sent) {
        None => Ok(()),
        Some(why) => {
            let kind = format!(
                "{}; {}, Kind={}",
                request.path.name.as_deref().unwrap_or_default(),
                served.api_version(),
                served.kind
            );
            Err(Failure::new(500, "", format!("failed to create typed patch object ({kind}): {why}")))
        }
    }
}

/// The books of an object; one that has none counts as written by somebody before.
fn managers_of(served: &Served, live: &Value, write: &Write<'_>) -> Managers {
    let managers = Managers::of(live);
    if !managers.is_empty() {
        return managers;
    }
    let before = Write {
        shape: write.shape,
        manager: Manager::update("before-first-apply", write.api_version, Some(&write.manager.subresource)),
        api_version: write.api_version,
        time: write.time,
        resets: write.resets,
    };
    Managers::default().updated(&before, &blank(served), &plain(live))
}

/// Without the books.
fn plain(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}

/// An object of a kind in which nothing is set: what a create is compared with.
fn blank(served: &Served) -> Value {
    let mut blank = json!({"apiVersion": served.api_version(), "kind": served.kind});
    if served.custom {
        return blank;
    }
    blank["metadata"] = json!({});
    let template = json!({"metadata": {}, "spec": {"containers": null}});
    match served.kind.as_str() {
        "Deployment" => {
            blank["spec"] = json!({"selector": null, "template": template, "strategy": {}});
            blank["status"] = json!({});
        }
        "ReplicaSet" => {
            blank["spec"] = json!({"selector": null, "template": template});
            blank["status"] = json!({"replicas": 0});
        }
        "Job" => {
            blank["spec"] = json!({"template": template});
            blank["status"] = json!({});
        }
        "Pod" => {
            blank["spec"] = json!({"containers": null});
            blank["status"] = json!({});
        }
        "Service" | "Ingress" => {
            blank["spec"] = json!({});
            blank["status"] = json!({"loadBalancer": {}});
        }
        "PersistentVolumeClaim" => {
            blank["spec"] = json!({"resources": {}});
            blank["status"] = json!({});
        }
        "Namespace" => {
            blank["spec"] = json!({});
            blank["status"] = json!({});
        }
        "Lease" => blank["spec"] = json!({}),
        "PodDisruptionBudget" => {
            blank["spec"] = json!({});
            blank["status"] = no_disruptions();
        }
        _ => {}
    }
    blank
}

/// The status of a PodDisruptionBudget that nobody has looked at.
fn no_disruptions() -> Value {
    json!({"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0})
}

fn resets(served: &Served, subresource: Option<&str>) -> crate::apply::fields::FieldSet {
    schema::resets(&served.kind, served.custom, served.status, subresource.is_some())
}

/// What is sent, as the API server reads it, filled in.
///
/// # Errors
/// 400 when it cannot be read.
fn decoded(served: &Served, sent: &Value) -> Result<Value, Failure> {
    if !sent.is_object() {
        return Err(Failure::bad_request(
            "couldn't get version/kind; json parse error: an object is expected",
        ));
    }
    let shape = served.shape();
    let mut object = sent.clone();
    if object.get("metadata").is_none_or(Value::is_null) {
        object["metadata"] = json!({});
    }
    for (field, value) in [("apiVersion", served.api_version()), ("kind", served.kind.clone())] {
        if object[field].as_str().unwrap_or_default().is_empty() {
            object[field] = value.into();
        }
    }
    if served.custom {
        let metadata = schema::normal(shape.field("metadata").unwrap_or(shape), &object["metadata"])
            .map_err(Failure::bad_request)?;
        object = custom::pruned(shape, &object);
        object["metadata"] = metadata;
    } else {
        object = schema::normal(shape, &object).map_err(|why| {
            Failure::bad_request(format!(
                "{} in version {:?} cannot be handled as a {}: json: {why}",
                served.kind, served.version, served.kind
            ))
        })?;
    }
    if object.get("metadata").is_none() {
        object["metadata"] = json!({});
    }
    complete(served, &mut object);
    Ok(object)
}

fn complete(served: &Served, object: &mut Value) {
    if served.custom {
        defaults::by_schema(served.shape(), object);
    } else {
        defaults::builtin(&served.kind, object);
    }
}

/// Body and path must name the same.
fn agrees(served: &Served, request: &Request, object: &Value, live: Option<&Value>) -> Result<(), Failure> {
    let (api_version, kind) = (served.api_version(), &served.kind);
    if object["apiVersion"].as_str() != Some(&api_version) || object["kind"].as_str() != Some(kind) {
        let message = format!(
            "the API version in the data ({}) does not match the expected API version ({api_version})",
            object["apiVersion"].as_str().unwrap_or_default()
        );
        return Err(Failure::bad_request(message));
    }
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    if !namespace.is_empty() && request.path.namespace.as_deref().unwrap_or_default() != namespace {
        let message = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Failure::bad_request(message));
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    match request.path.name.as_deref() {
        Some(expected) if name != expected && !(name.is_empty() && live.is_none()) => {
            let message =
                format!("the name of the object ({name}) does not match the name on the URL ({expected})");
            Err(Failure::bad_request(message))
        }
        _ => Ok(()),
    }
}

/// What must hold of versions and uids before anything is looked at further.
fn precede(served: &Served, request: &Request, live: &Value, next: &Value) -> Result<(), Failure> {
    let (resource, name) = (served.qualified(), live["metadata"]["name"].as_str().unwrap_or_default());
    let of = |object: &Value, field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    let (uid, version) = (of(next, "uid"), of(next, "resourceVersion"));
    if request.verb == Verb::Update && !uid.is_empty() && uid != of(live, "uid") {
        let why = format!(
            "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
            of(live, "uid")
        );
        return Err(Failure::conflict(&resource, name, &why));
    }
    if version.is_empty() {
        let unconditional = !served.custom
            && !["Lease", "CustomResourceDefinition", "PodDisruptionBudget"].contains(&served.kind.as_str());
        if request.verb == Verb::Update && !unconditional {
            let why = "Invalid value: 0: must be specified for an update";
            return Err(invalid(
                served,
                name,
                vec![cause("metadata.resourceVersion", "FieldValueInvalid", why)],
            ));
        }
    } else if version != of(live, "resourceVersion") {
        return Err(Failure::modified(&resource, name));
    }
    Ok(())
}

/// The status is the subresource's alone, and the subresource writes little else.
fn isolate(served: &Served, subresource: Option<&str>, live: &Value, next: &mut Value) {
    let mut take = |field: &str| match live.get(field) {
        Some(value) => next[field] = value.clone(),
        None => drop(next.as_object_mut().map(|fields| fields.remove(field))),
    };
    match subresource {
        None if served.status && served.kind != "CustomResourceDefinition" => take("status"),
        None if served.kind == "CustomResourceDefinition" => take("status"),
        None => {}
        Some(_) if served.custom => {
            let mut whole = live.clone();
            match next.get("status") {
                Some(status) => whole["status"] = status.clone(),
                None => drop(whole.as_object_mut().map(|fields| fields.remove("status"))),
            }
            // A client that names another uid gets an error that says so.
            whole["metadata"]["uid"] = next["metadata"]["uid"].clone();
            *next = whole;
        }
        Some(_) => {
            take("spec");
            if ["Deployment", "ReplicaSet"].contains(&served.kind.as_str()) {
                match live["metadata"].get("labels") {
                    Some(labels) => next["metadata"]["labels"] = labels.clone(),
                    None => drop(next["metadata"].as_object_mut().map(|fields| fields.remove("labels"))),
                }
            }
        }
    }
}

/// What nobody changes of an object's metadata.
fn keep_metadata(served: &Served, live: &Value, next: &mut Value) {
    let before = &live["metadata"];
    let Some(metadata) = next["metadata"].as_object_mut() else { return };
    if metadata.get("uid").and_then(Value::as_str).unwrap_or_default().is_empty() {
        metadata.insert("uid".into(), before["uid"].clone());
    }
    for field in
        ["creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"]
    {
        match before.get(field) {
            Some(value) => drop(metadata.insert(field.into(), value.clone())),
            None => drop(metadata.remove(field)),
        }
    }
    metadata.remove("managedFields");
    if served.namespaced {
        metadata.insert("namespace".into(), before["namespace"].clone());
    }
}

/// An object that has one of these is not looked at further.
const BLOCKING: [&str; 5] = [
    "FieldValueNotSupported",
    "FieldValueRequired",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
];
const NOT_CHECKED: &str = "Invalid value: null: some validation rules were not checked because the object was invalid; correct the \
                           existing errors to complete validation";

/// What would change what the API server does, and is not looked at here.
fn not_modelled(kind: &str, next: &Value) -> Result<(), Failure> {
    match kind {
        "CustomResourceDefinition" => match custom::not_modelled(next) {
            Some(what) => Err(Failure::not_modelled(&what)),
            None => Ok(()),
        },
        "Namespace" => {
            let labels = next["metadata"]["labels"].as_object();
            let is_policy = |key: &&String| key.starts_with("pod-security.kubernetes.io/enforce");
            match labels.into_iter().flatten().map(|(key, _)| key).find(is_policy) {
                Some(label) => Err(Failure::not_modelled(&format!("Pod Security ({label})"))),
                None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

fn check(served: &Served, live: Option<&Value>, next: &Value) -> Result<(), Failure> {
    let mut causes = validate::findings(&served.kind, served.custom, live, next);
    if served.custom {
        causes.extend(custom::misfits(served.shape(), next));
        match causes.iter().any(|cause| BLOCKING.contains(&cause.reason.as_str())) {
            true if served.rules.are_any() => causes.push(cause("<nil>", "FieldValueInvalid", NOT_CHECKED)),
            true => {}
            false => causes.extend(served.rules.broken(live, next)?),
        }
    } else if live.is_none_or(|live| {
        live["spec"] != next["spec"] || live["metadata"]["labels"] != next["metadata"]["labels"]
    }) {
        not_modelled(&served.kind, next)?;
    }
    if causes.is_empty() {
        return Ok(());
    }
    Err(invalid(served, next["metadata"]["name"].as_str().unwrap_or_default(), causes))
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

fn is_new_generation(served: &Served, live: &Value, next: &Value) -> bool {
    let annotations = |object: &Value| object["metadata"]["annotations"].clone();
    // A Deployment's annotations are passed on to its ReplicaSets.
    let annotated = served.kind == "Deployment" && !served.custom && annotations(live) != annotations(next);
    annotated || wanted(live) != wanted(next)
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
    let stops = metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) > 0;
    metadata.get("deletionTimestamp").is_some() && !held && !stops && object["kind"] != "Namespace"
}

/// What a JSON patch makes of an object. As with the API server, a field that is replaced need not be there.
fn json_patched(live: &Value, operations: &Value) -> Result<Value, Failure> {
    let wrong =
        |error: serde_json::Error| Failure::bad_request(format!("the patch is no JSON patch: {error}"));
    let unfit =
        |_| Failure::new(422, "Invalid", "the server rejected our request due to an error in our request");
    let mut next = live.clone();
    for operation in operations.as_array().into_iter().flatten() {
        let mut operation = operation.clone();
        let path = operation["path"].as_str().unwrap_or_default();
        if operation["op"] == "test" && operation["value"].is_null() && next.pointer(path).is_none() {
            // What is not there is null.
            continue;
        }
        if operation["op"] == "replace" && next.pointer(path).is_none() {
            operation["op"] = "add".into();
        }
        let patch: json_patch::Patch = serde_json::from_value(json!([operation])).map_err(wrong)?;
        json_patch::patch(&mut next, &patch).map_err(unfit)?;
    }
    Ok(next)
}

/// A patched object as it is read. What cannot be read is the patch's fault.
fn patched(served: &Served, next: &Value) -> Result<Value, Failure> {
    decoded(served, next).map_err(|failure| {
        let causes = vec![cause("patch", "FieldValueInvalid", failure.message)];
        Failure::invalid("", "", causes)
    })
}

/// What a Service cannot become here.
fn becomes(served: &Served, live: &Value, next: &Value) -> Result<(), Failure> {
    let is = |object: &Value| {
        served.kind == "Service" && !served.custom && object["spec"]["type"] == "ExternalName"
    };
    if !is(live) && is(next) {
        // What the API server stores then is not what it replies.
        return Err(Failure::not_modelled("a Service that becomes an ExternalName"));
    }
    Ok(())
}
