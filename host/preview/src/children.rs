//! [`Children`]: the children of all roots, listed once a kind and told apart by the root that their label names.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures::{StreamExt, stream};
use pintle_api::Namespaces;
use pintle_core::{
    ApiError, Observed, managed, object,
    observed::is_controlled_by,
    plan::{POD_COUNTS, Unknown},
    reconciler,
};
use pintle_wit::{Kind, ObjectRef, names};
use serde_json::Value;

use crate::{reader::Reader, target::Target};

/// How many kinds are read at once.
pub(crate) const KINDS_AT_ONCE: usize = 4;

/// The children of all roots.
#[derive(Default)]
pub(crate) struct Children {
    /// By the root's uid in their label, which says where to look and proves nothing.
    by_root: BTreeMap<String, Vec<Arc<Value>>>,
    /// The kinds that could not be listed.
    pub(crate) unread: Vec<Unknown>,
    /// Whether one of those is a kind that the guest observes, so that it cannot be asked.
    pub(crate) is_blind: bool,
}

impl Children {
    /// Lists the children of a Reconciler's roots: of all of them, or of one root.
    pub(crate) async fn list(
        reader: &Reader,
        target: &Target,
        namespace: Option<&str>,
        root: Option<&str>,
    ) -> Self {
        // Children that the Reconciler has not applied yet carry the name of the one before.
        let labels = match root {
            Some(uid) => format!("{}={uid}", names::LABEL_ROOT),
            None => names::LABEL_RECONCILER.into(),
        };
        let labels = labels.as_str();
        let listed: Vec<_> = stream::iter(target.child_kinds())
            .map(|kind| async move {
                let places = places(target, &kind, namespace);
                // Of the children of many roots only what is compared is kept.
                let lighter = |child: &mut Value| {
                    if root.is_none() {
                        lighten(child, target);
                    }
                    root.is_some() || is_of(child, target)
                };
                let found = list_kind(reader, &kind, &places, labels, &lighter).await;
                (kind, found)
            })
            .buffer_unordered(KINDS_AT_ONCE)
            .collect()
            .await;
        let watches_no_secrets = target.reconciler.spec.watch_secrets_in.is_empty();
        let mut children = Self::default();
        for (kind, found) in listed {
            match found {
                Ok(found) => found.into_iter().for_each(|child| children.add(child)),
                // Secrets and their like are read by name: the statuses of the roots name them, unless the host watches them.
                Err(_) if !reconciler::is_watchable(&kind) && watches_no_secrets => {}
                Err(error) => {
                    children.is_blind |= target.observes(&kind);
                    let what = format!("the children of kind {kind}");
                    children.unread.push(Unknown { what, why: error.to_string() });
                }
            }
        }
        children.unread.sort();
        children
    }

    fn add(&mut self, child: Value) {
        let Some(root) = object::text(&child, &["metadata", "labels", names::LABEL_ROOT]) else { return };
        let root = root.to_owned();
        self.by_root.entry(root).or_default().push(Arc::new(child));
    }

    /// What carries the label of a root.
    pub(crate) fn of(&self, uid: &str) -> &[Arc<Value>] {
        self.by_root.get(uid).map_or(&[], Vec::as_slice)
    }
}

/// An object as a pass sees it.
pub(crate) fn observed(live: &Value, target: &Target) -> Observed {
    let observe = target.observes(&object::kind(live));
    Observed::of(live, &target.binding.field_manager, observe)
}

/// Whether an object may be a child of the Reconciler's roots. The label alone is on the children of every Reconciler.
fn is_of(live: &Value, target: &Target) -> bool {
    object::text(live, &["metadata", "labels", names::LABEL_RECONCILER]) == Some(target.name.as_str())
        || is_controlled_by(live, &target.resource.kind)
}

/// Leaves out what nobody looks at: the fields that other managers apply, and the status of children that the guest is not shown but for
/// its numbers of Pods.
fn lighten(child: &mut Value, target: &Target) {
    let manager = &target.binding.field_manager;
    let entry = managed::entry(child, manager, None).is_some();
    if let Some(fields) = child.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut)
        && entry
    {
        fields.retain(|field| object::text(field, &["manager"]) == Some(manager));
    }
    if !target.observes(&object::kind(child))
        && let Some(status) = child.get_mut("status").and_then(Value::as_object_mut)
    {
        status.retain(|field, _| POD_COUNTS.contains(&field.as_str()));
    }
}

/// The namespaces to list a kind in; one without a name stands for all of them.
fn places(target: &Target, kind: &Kind, namespace: Option<&str>) -> BTreeSet<Option<String>> {
    let is_namespaced = target.binding.kinds.get(kind).is_none_or(|info| info.namespaced);
    match (&target.reconciler.spec.namespaces, namespace) {
        (_, Some(namespace)) if is_namespaced => BTreeSet::from([Some(namespace.to_owned())]),
        (Namespaces::Listed(listed), None) if is_namespaced => listed.iter().cloned().map(Some).collect(),
        _ => BTreeSet::from([None]),
    }
}

async fn list_kind(
    reader: &Reader,
    kind: &Kind,
    places: &BTreeSet<Option<String>>,
    labels: &str,
    lighten: &(dyn Fn(&mut Value) -> bool + Sync),
) -> Result<Vec<Value>, ApiError> {
    // Of a kind that is not served there are no children.
    let Some(resource) = reader.resource(kind).await? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for place in places {
        let place = place.as_deref().filter(|_| resource.namespaced);
        found.extend(reader.list_lightened(&resource, place, Some(labels), lighten).await?);
    }
    Ok(found)
}

/// The objects of one root that were read, by name.
pub(crate) struct Known(BTreeMap<ObjectRef, Arc<Value>>);

impl Known {
    pub(crate) fn of(children: &[Arc<Value>]) -> Self {
        let mut known = Self(BTreeMap::new());
        children.iter().for_each(|child| known.add(Arc::clone(child)));
        known
    }

    pub(crate) fn add(&mut self, live: Arc<Value>) {
        self.0.insert(key(&object::reference(&live)), live);
    }

    pub(crate) fn get(&self, reference: &ObjectRef) -> Option<&Arc<Value>> {
        self.0.get(&key(reference))
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Value> {
        self.0.values().map(Arc::as_ref)
    }
}

/// Whatever the version of its kind.
fn key(reference: &ObjectRef) -> ObjectRef {
    ObjectRef { api_version: reference.kind().group().to_owned(), ..reference.clone() }
}
