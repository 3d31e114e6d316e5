//! Checks the children of an answer: kinds, scope, names, metadata and size.

use std::collections::BTreeSet;

use base64::{Engine, prelude::BASE64_STANDARD};
use pintle_wit::{Child, Kind, bounded, names};
use serde_json::{Map, Value, json};

use super::{
    AllowedChild, GateContext, Violations,
    pods::{self, Sibling},
    reasons, services,
};
use crate::{desired::DesiredHash, object, reconciler};

/// Groups and kinds that no grant gives to a namespaced root: a user who may write them controls the cluster, or more than one
/// namespace. An empty kind stands for the whole group.
const FORBIDDEN: [(&str, &str); 14] = [
    ("rbac.authorization.k8s.io", ""),
    ("admissionregistration.k8s.io", ""),
    ("apiextensions.k8s.io", ""),
    ("apiregistration.k8s.io", ""),
    ("certificates.k8s.io", ""),
    ("flowcontrol.apiserver.k8s.io", ""),
    ("scheduling.k8s.io", ""),
    ("storage.k8s.io", ""),
    ("node.k8s.io", ""),
    ("authentication.k8s.io", ""),
    ("authorization.k8s.io", ""),
    ("", "Namespace"),
    ("", "Node"),
    ("", "PersistentVolume"),
];

/// Whether no grant gives objects of this kind to a namespaced root.
pub(super) fn is_forbidden(kind: &Kind) -> bool {
    FORBIDDEN
        .iter()
        .any(|(group, forbidden)| *group == kind.group() && (forbidden.is_empty() || *forbidden == kind.kind))
}

pub(super) fn check(
    context: &GateContext<'_>,
    children: Vec<Child>,
    found: &mut Violations,
) -> Vec<AllowedChild> {
    let limit = context.limits.children as usize;
    if children.len() > limit {
        let message = format_args!("{} children, the limit is {limit}", children.len());
        found.add(reasons::TOO_MANY_CHILDREN, "children", message);
        return Vec::new();
    }
    // Only kinds of the core group count: a kind of another group may also be called Secret.
    let siblings: BTreeSet<Sibling> = children
        .iter()
        .filter(|child| object::text(&child.object, &["apiVersion"]) == Some("v1"))
        .map(|child| Sibling {
            namespace: context.namespace_of(&child.object).map(Into::into),
            kind: object::kind(&child.object).kind,
            name: object::name(&child.object).into(),
        })
        .collect();
    let (mut ids, mut seen) = (BTreeSet::new(), BTreeSet::new());
    let above = root_and_owners(context.root);
    let mut allowed = Vec::with_capacity(children.len());
    for (index, child) in children.into_iter().enumerate() {
        let at = format!("children[{index}]");
        let before = found.count();
        let label = label(&child);
        if child.id.is_empty() || !ids.insert(child.id.clone()) {
            found.add(
                reasons::DUPLICATE_CHILD,
                format_args!("{at}.id"),
                format_args!("the id {:?} is empty or stands twice", child.id),
            );
        }
        let path = format!("{at}.object");
        let Some(object) = shape(child.object, &path, found) else {
            found.name_since(before, &label);
            continue;
        };
        let kind = object::kind(&object);
        let name = label.as_str();
        let namespace = object::namespace(&object).or(object::namespace(context.root)).map(ToOwned::to_owned);
        let key = (kind.group().to_owned(), kind.kind.clone(), namespace, object::name(&object).to_owned());
        if above.contains(&key) {
            found.add(
                reasons::CHILD_IS_ROOT,
                format_args!("{path}.metadata.name"),
                format_args!(
                    "give {name} another name, or leave it out: it is the root itself, or an owner of it, and deleting either \
                     would delete both. What the root is to show belongs into the answer's status"
                ),
            );
        }
        if !seen.insert(key) {
            found.add(
                reasons::DUPLICATE_CHILD,
                format_args!("{path}.metadata.name"),
                format_args!("{name} stands twice"),
            );
        }
        kinds(context, &kind, name, &path, found);
        let object = place(context, object, &path, found);
        services::check(context, &object, name, &path, found);
        let references = pods::check(context, &siblings, &object, name, &path, found);
        found.name_since(before, name);
        if found.count() == before {
            allowed.push(complete(context, child.stage, child.readiness, references, object));
        }
    }
    if found.is_empty() {
        references_in_order(&allowed, found);
    }
    allowed
}

/// Group, kind, namespace and name of the root and of its owners. An owner is in the root's namespace, or of cluster scope.
fn root_and_owners(root: &Value) -> Vec<(String, String, Option<String>, String)> {
    let owners = object::at(root, &["metadata", "ownerReferences"]).and_then(Value::as_array);
    let owners = owners.into_iter().flatten().filter_map(|owner| {
        let (kind, name) = (object::kind(owner), object::text(owner, &["name"])?);
        Some((kind, name.to_owned()))
    });
    std::iter::once((object::kind(root), object::name(root).to_owned()))
        .chain(owners)
        .map(|(kind, name)| {
            (kind.group().to_owned(), kind.kind, object::namespace(root).map(Into::into), name)
        })
        .collect()
}

/// A child is held back until the objects that its pod template refers to exist, so these objects must not wait for the child.
fn references_in_order(children: &[AllowedChild], found: &mut Violations) {
    for (index, child) in children.iter().enumerate() {
        let later = children.iter().find(|other| {
            let reference = other.reference();
            other.stage > child.stage
                && reference.api_version == "v1"
                && reference.namespace == child.reference.namespace
                && child
                    .references
                    .iter()
                    .any(|(kind, name)| *kind == reference.kind && *name == reference.name)
        });
        if let Some(later) = later {
            let (name, of) = (&child.reference, &later.reference);
            let message = format_args!(
                "put {} {:?} into stage {} or an earlier one: the pod template of {} {:?} refers to it, and it is of stage {}",
                of.kind, of.name, child.stage, name.kind, name.name, later.stage
            );
            found.add(reasons::REFERENCE_IN_LATER_STAGE, format_args!("children[{index}].stage"), message);
        }
    }
}

/// How messages name a child: by kind and name, or by the guest's id for it if it has no name.
fn label(child: &Child) -> String {
    let name = Some(object::name(&child.object)).filter(|name| !name.is_empty()).unwrap_or(&child.id);
    label_of(&child.object, "child", name)
}

/// How messages name an object of this kind, or else what it is.
pub(super) fn label_of(object: &Value, otherwise: &str, name: &str) -> String {
    /// Longer than any kind and name in Kubernetes.
    const BYTES_MAX: usize = 320;
    let kind = object::text(object, &["kind"]).filter(|kind| !kind.is_empty()).unwrap_or(otherwise);
    bounded(format_args!("{kind} {name:?}"), BYTES_MAX)
}

/// The object's outer form: a map with kind, name and nothing in metadata that is not the guest's.
pub(super) fn shape(child: Value, path: &str, found: &mut Violations) -> Option<Value> {
    let Value::Object(mut fields) = child else {
        found.add(reasons::OBJECT_INVALID, path, "a child is a JSON object");
        return None;
    };
    for key in ["apiVersion", "kind"] {
        if fields.get(key).and_then(Value::as_str).is_none_or(str::is_empty) {
            found.add(
                reasons::OBJECT_INVALID,
                format_args!("{path}.{key}"),
                format_args!("the object has no {key}"),
            );
            return None;
        }
    }
    without_nothing(&mut fields);
    if fields.contains_key("status") {
        found.add(
            reasons::CHILD_STATUS_FORBIDDEN,
            format_args!("{path}.status"),
            "leave the status out: a child's status is written by its controller",
        );
    }
    string_data(&mut fields, path, found);
    let Some(Value::Object(metadata)) = fields.get_mut("metadata") else {
        found.add(reasons::OBJECT_INVALID, format_args!("{path}.metadata"), "the object has no metadata");
        return None;
    };
    check_metadata(metadata, &format!("{path}.metadata"), found)?;
    let mut object = Value::Object(fields);
    pods::each_template(&mut object, without_nothing);
    Some(object)
}

/// Drops what Go's types and `kubectl create --dry-run` print for nothing: `creationTimestamp: null` and `labels: null` in metadata, and
/// a status that says nothing.
fn without_nothing(fields: &mut Map<String, Value>) {
    if fields.get("status").is_some_and(is_zero) {
        fields.remove("status");
    }
    if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|_, value| !value.is_null());
    }
}

/// Whether a value is what a type of Go begins with, in all its fields.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.values().all(is_zero),
        Value::Array(items) => items.is_empty(),
        value => !pods::is_set(value),
    }
}

fn check_metadata(metadata: &Map<String, Value>, path: &str, found: &mut Violations) -> Option<()> {
    let name = metadata.get("name").and_then(Value::as_str).unwrap_or_default();
    if !object::is_name(name) {
        let message =
            format_args!("{name:?} is no object name: lower-case letters, digits, '-' and '.', at most 253");
        found.add(reasons::NAME_INVALID, format_args!("{path}.name"), message);
        return None;
    }
    for (key, value) in metadata.iter() {
        match key.as_str() {
            "name" => {}
            // The name becomes a part of a path. Which names are valid depends on the kind.
            "namespace" if value.as_str().is_some_and(object::is_namespace) => {}
            "namespace" => {
                let message = format_args!("{value} is no namespace");
                found.add(reasons::NAMESPACE_FORBIDDEN, format_args!("{path}.namespace"), message);
            }
            "labels" | "annotations" => check_map(value, &format!("{path}.{key}"), found),
            _ => {
                let message = format_args!(
                    "leave metadata.{key} out: a guest may set name, namespace, labels and annotations alone"
                );
                found.add(reasons::METADATA_FORBIDDEN, format_args!("{path}.{key}"), message);
            }
        }
    }
    Some(())
}

fn check_map(map: &Value, path: &str, found: &mut Violations) {
    let Some(map) = map.as_object() else {
        return found.add(reasons::OBJECT_INVALID, path, "labels and annotations are maps of strings");
    };
    for (key, value) in map {
        if !value.is_string() {
            found.add(
                reasons::OBJECT_INVALID,
                format_args!("{path}[{key}]"),
                "labels and annotations are strings",
            );
        }
        if names::is_ours(key) {
            let message = format_args!("leave {key} out: {} is reserved for the host", names::DOMAIN);
            found.add(reasons::METADATA_RESERVED, format_args!("{path}[{key}]"), message);
        }
    }
}

/// Turns `stringData` into `data`: it is write-only and leaves no trace in managed fields, so drift in it could not be seen.
fn string_data(fields: &mut Map<String, Value>, path: &str, found: &mut Violations) {
    // Only in the core group: in a kind of another group the field is an ordinary one.
    let text = |key: &str| fields.get(key).and_then(Value::as_str);
    if (text("apiVersion"), text("kind")) != (Some("v1"), Some("Secret")) {
        return;
    }
    let Some(strings) = fields.remove("stringData").filter(|strings| !strings.is_null()) else { return };
    let Value::Object(strings) = strings else {
        return found.add(
            reasons::OBJECT_INVALID,
            format_args!("{path}.stringData"),
            "stringData is a map of strings",
        );
    };
    let data = fields.entry("data").or_insert(Value::Null);
    if data.is_null() {
        *data = Value::Object(Map::new());
    }
    let Some(data) = data.as_object_mut() else {
        return found.add(reasons::OBJECT_INVALID, format_args!("{path}.data"), "data is a map");
    };
    for (key, value) in strings {
        match value {
            Value::String(text) => {
                data.insert(key, BASE64_STANDARD.encode(text).into());
            }
            _ => found.add(
                reasons::OBJECT_INVALID,
                format_args!("{path}.stringData[{key}]"),
                "stringData is a map of strings",
            ),
        }
    }
}

fn kinds(context: &GateContext<'_>, kind: &Kind, name: &str, path: &str, found: &mut Violations) {
    let at = format_args!("{path}.kind");
    if is_forbidden(kind) && object::namespace(context.root).is_some() {
        found.add(
            reasons::KIND_FORBIDDEN,
            at,
            format_args!("{name}: no namespaced root may have a child of kind {kind}"),
        );
    } else if !context.manifest.children.iter().any(|child| child.kind() == *kind) {
        found.add(
            reasons::KIND_NOT_DECLARED,
            at,
            format_args!(
                "{name}: add ChildKind::new({:?}, {:?}) to the manifest's children, which do not have this kind",
                kind.api_version, kind.kind
            ),
        );
    } else if !context.grants.allows_child(kind) {
        let message = reconciler::child_not_granted(context.reconciler, kind);
        let message = format_args!("{name}: {message}");
        found.add(reasons::KIND_NOT_GRANTED, at, message);
    } else {
        match context.kinds.get(kind) {
            Some(info) if !info.namespaced && object::namespace(context.root).is_some() => {
                let message =
                    format_args!("{name}: {kind} is of cluster scope, and a namespaced root cannot own it");
                found.add(reasons::CLUSTER_SCOPED_CHILD, at, message);
            }
            Some(_) => {}
            None => {
                let message = format_args!("{name}: the API server does not serve {kind}; install its CRD");
                found.add_for_now(reasons::KIND_MISSING, at, message);
            }
        }
    }
}

/// The child in its namespace, which is the root's. A root of cluster scope has children in the namespaces that the grant names.
fn place(context: &GateContext<'_>, mut object: Value, path: &str, found: &mut Violations) -> Value {
    let kind = object::kind(&object);
    // A kind that is not served is refused already.
    let Some(info) = context.kinds.get(&kind) else { return object };
    let (root, named) = (object::namespace(context.root), object::namespace(&object));
    let refusal = match (info.namespaced, root, named) {
        (true, Some(root), None) => {
            object["metadata"]["namespace"] = root.into();
            return object;
        }
        (false, _, None) => return object,
        (true, Some(root), Some(named)) if root == named => return object,
        (true, None, Some(named)) if context.grants.allows_child_in(&kind, named) => return object,
        (false, _, Some(_)) => {
            format!("leave the namespace out: {kind} is of cluster scope, and its objects have none")
        }
        (true, Some(root), Some(named)) => {
            format!(
                "leave the namespace out: a child is in that of its root, {root:?}, and never in {named:?}"
            )
        }
        (true, None, None) => {
            "set the namespace: the root is of cluster scope, and has none that the child could be in".into()
        }
        (true, None, Some(named)) => format!(
            "Reconciler {} does not grant children of kind {kind} in namespace {named:?}: an administrator can name it in \
             grants.children[].namespaces",
            context.reconciler
        ),
    };
    found.add(reasons::NAMESPACE_FORBIDDEN, format_args!("{path}.metadata.namespace"), refusal);
    object
}

/// The object as it will be sent: owned by the root, labelled, and with its hash.
fn complete(
    context: &GateContext<'_>,
    stage: u32,
    readiness: Option<pintle_wit::Readiness>,
    references: Vec<(String, String)>,
    mut object: Value,
) -> AllowedChild {
    let root = context.root;
    let owner = object::reference(root);
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        // The hash ignores an empty map of annotations. Without the map, the object need not be cloned for the hash.
        if metadata.get("annotations").and_then(Value::as_object).is_some_and(Map::is_empty) {
            metadata.remove("annotations");
        }
        let labels = metadata.entry("labels").or_insert_with(|| json!({}));
        labels[names::LABEL_RECONCILER] = context.reconciler.into();
        labels[names::LABEL_ROOT] = object::uid(root).into();
        metadata.insert(
            "ownerReferences".into(),
            json!([{
                "apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": object::uid(root),
                "controller": true, "blockOwnerDeletion": true,
            }]),
        );
    }
    let desired = DesiredHash::of(&object, context.key);
    object["metadata"]["annotations"][names::ANNOTATION_DESIRED] = desired.as_str().into();
    AllowedChild { reference: object::reference(&object), object, desired, stage, readiness, references }
}
