//! Rules for writes: what must hold before an object is stored, and which fields a write cannot change.

use pintle_core::view::status::fault;
use serde_json::Value;

use super::{super::options, OBJECT_BYTES_MAX};
use crate::{
    Failure,
    apply::walk,
    custom,
    failure::cause,
    faults::Verb,
    kinds::Served,
    request::Request,
    store::{Key, Store},
    validate,
};

pub(super) fn invalid(served: &Served, name: &str, causes: Vec<pintle_wit::Cause>) -> Failure {
    Failure::invalid(&served.qualified_kind(), name, causes)
}

/// Refuses requests with invalid parameters, or that are too large.
pub(super) fn acceptable(request: &Request) -> Result<(), Failure> {
    options::of_write(request)?;
    let bytes = request.body.to_string().len();
    if bytes > OBJECT_BYTES_MAX {
        return Err(Failure::new(413, "RequestEntityTooLarge", "etcdserver: request is too large"));
    }
    Ok(())
}

pub(super) fn applier(request: &Request) -> Result<String, Failure> {
    request.parameter("fieldManager").map(Into::into).ok_or_else(|| {
        let causes = vec![fault::required("fieldManager", "is required for apply patch")];
        Failure::invalid("PatchOptions.meta.k8s.io", "", causes)
    })
}

/// What must hold for an apply before anything else is checked.
pub(super) fn appliable(served: &Served, request: &Request) -> Result<(), Failure> {
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
        // The API server stores it and loses it with the next read, so any later write counts as a change.
        return Err(Failure::not_modelled("empty labels or annotations in an apply of a custom kind"));
    }
    match walk::misfit(served.shape(), sent) {
        None => Ok(()),
        Some(why) => {
            let of = |field: &str| sent["metadata"][field].as_str().unwrap_or_default();
            let Served { group, version, kind, .. } = served;
            let about = format!("{}/{}; {group}/{version}, Kind={kind}", of("namespace"), of("name"));
            Err(Failure::new(500, "", format!("failed to create typed patch object ({about}): {why}")))
        }
    }
}

/// The body and the path must name the same object.
pub(super) fn agrees(
    served: &Served,
    request: &Request,
    object: &Value,
    live: Option<&Value>,
) -> Result<(), Failure> {
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

/// What must hold for versions and uids before anything else is checked.
pub(super) fn precede(served: &Served, request: &Request, live: &Value, next: &Value) -> Result<(), Failure> {
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
        let conditional = ["Lease", "CustomResourceDefinition", "PodDisruptionBudget"];
        let is_conditional = served.custom || conditional.contains(&served.kind.as_str());
        if request.verb == Verb::Update && is_conditional {
            let at = "metadata.resourceVersion";
            let causes = vec![fault::invalid_value(at, "0", "must be specified for an update")];
            return Err(invalid(served, name, causes));
        }
    } else if version != of(live, "resourceVersion") {
        return Err(Failure::modified(&resource, name));
    }
    Ok(())
}

/// Only the subresource writes the status, and it writes little else.
pub(super) fn isolate(served: &Served, subresource: Option<&str>, live: &Value, next: &mut Value) {
    match subresource {
        None if served.status => put(next, "status", live.get("status")),
        None => {}
        Some(_) if served.custom => {
            let mut whole = live.clone();
            put(&mut whole, "status", next.get("status"));
            // A client that sends another uid gets an error about it.
            whole["metadata"]["uid"] = next["metadata"]["uid"].clone();
            *next = whole;
        }
        Some(_) => {
            put(next, "spec", live.get("spec"));
            if served.is("Deployment") || served.is("ReplicaSet") {
                put(&mut next["metadata"], "labels", live["metadata"].get("labels"));
            }
        }
    }
}

/// Sets a field, or takes it away.
fn put(map: &mut Value, field: &str, value: Option<&Value>) {
    let Some(fields) = map.as_object_mut() else { return };
    match value {
        Some(value) => drop(fields.insert(field.into(), value.clone())),
        None => drop(fields.remove(field)),
    }
}

/// Keeps the metadata that no client can change.
pub(super) fn keep_metadata(served: &Served, live: &Value, next: &mut Value) {
    let (before, metadata) = (&live["metadata"], &mut next["metadata"]);
    if metadata["uid"].as_str().unwrap_or_default().is_empty() {
        put(metadata, "uid", before.get("uid"));
    }
    for field in
        ["creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"]
    {
        put(metadata, field, before.get(field));
    }
    put(metadata, "managedFields", None);
    if served.namespaced {
        put(metadata, "namespace", before.get("namespace"));
    }
}

/// Refuses objects that would change what the API server does, but not what the simulator does.
fn not_modelled(served: &Served, next: &Value) -> Result<(), Failure> {
    if served.is("CustomResourceDefinition")
        && let Some(what) = custom::not_modelled(next)
    {
        return Err(Failure::not_modelled(&what));
    }
    const POLICY: &str = "pod-security.kubernetes.io/enforce";
    if served.is("Namespace") && next["metadata"]["labels"].get(POLICY).is_some() {
        return Err(Failure::not_modelled(&format!("Pod Security ({POLICY})")));
    }
    Ok(())
}

pub(super) fn check(served: &Served, live: Option<&Value>, next: &Value) -> Result<(), Failure> {
    let mut causes = validate::findings(served, live, next);
    if let Some(structural) = &served.structural {
        causes = structural.validate_after(causes, next, live);
    } else if live.is_none_or(|live| {
        live["spec"] != next["spec"] || live["metadata"]["labels"] != next["metadata"]["labels"]
    }) {
        not_modelled(served, next)?;
    }
    if causes.is_empty() {
        return Ok(());
    }
    Err(invalid(served, next["metadata"]["name"].as_str().unwrap_or_default(), causes))
}

pub(super) fn namespace_takes(store: &Store, served: &Served, key: &Key) -> Result<(), Failure> {
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
            let why = format!("namespace {} is being terminated", key.namespace);
            let causes = vec![cause("metadata.namespace", "NamespaceTerminating", why)];
            Err(Failure { causes, ..Failure::new(403, "Forbidden", message) })
        }
        Some(_) => Ok(()),
    }
}

pub(super) fn is_new_generation(served: &Served, live: &Value, next: &Value) -> bool {
    let annotations = |object: &Value| object["metadata"]["annotations"].clone();
    // A Deployment's annotations are copied to its ReplicaSets.
    let annotated = served.is("Deployment") && annotations(live) != annotations(next);
    annotated || wanted(live) != wanted(next)
}

/// The object without metadata and status. A change of it changes the generation.
pub(super) fn wanted(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("metadata");
        fields.remove("status");
    }
    object
}

/// Whether the object is being deleted and nothing holds it any longer.
pub(super) fn is_finalized(object: &Value) -> bool {
    let metadata = &object["metadata"];
    let held = metadata["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty());
    let stops = metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) > 0;
    metadata.get("deletionTimestamp").is_some() && !held && !stops && object["kind"] != "Namespace"
}

/// Refuses changes of a Service that the simulator does not model.
pub(super) fn becomes(served: &Served, live: &Value, next: &Value) -> Result<(), Failure> {
    let is = |object: &Value| served.is("Service") && object["spec"]["type"] == "ExternalName";
    if !is(live) && is(next) {
        // The API server's reply then differs from what it stores.
        return Err(Failure::not_modelled("a Service that becomes an ExternalName"));
    }
    Ok(())
}
