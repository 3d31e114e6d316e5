//! Get, list and discovery.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Done, target, too_new};
use crate::{
    Failure,
    kinds::{self, Served},
    request::{Path, Request},
    store::{Key, Store},
    watch::{Selection, shown},
};

pub(super) fn get(store: &Store, request: &Request, as_of: Option<u64>) -> Result<Done, Failure> {
    let (served, key) = target(store, request)?;
    let found = match as_of {
        Some(version) => store.at(version).get(&key).cloned(),
        None => store.get(&key).cloned(),
    };
    let found = found.ok_or_else(|| Failure::not_found(&served.qualified(), &key.name))?;
    Ok(Done::read(shown(&served, &found, request.metadata_only)))
}

pub(super) fn list(store: &Store, request: &Request, as_of: Option<u64>) -> Result<Done, Failure> {
    let selection = Selection::of(store, request)?;
    let token = request.parameter("continue").map(Token::read).transpose()?;
    let asked = request.version()?;
    if asked > store.version() {
        return Err(too_new(asked, store.version()));
    }
    let exact = (request.parameter("resourceVersionMatch") == Some("Exact")).then_some(asked);
    let version = token.as_ref().map(|token| token.version).or(exact).or(as_of).unwrap_or(store.version());
    if version < store.compacted() && as_of.is_none() {
        let message = match token {
            Some(_) => "The provided continue parameter is too old to display a consistent list result.",
            None => "The resourceVersion for the provided list is too old.",
        };
        return Err(Failure::new(410, "Expired", message));
    }
    let objects = store.at(version);
    let mut found: Vec<(String, &Key, &Arc<Value>)> = objects
        .iter()
        .filter(|(key, object)| selection.has(key, object))
        .map(|(key, object)| (order(key), key, object))
        .filter(|(order, ..)| token.as_ref().is_none_or(|token| *order > token.last))
        .collect();
    found.sort_by(|one, other| one.0.cmp(&other.0));
    let limit: usize = request.parameter("limit").and_then(|limit| limit.parse().ok()).unwrap_or(0);
    let mut metadata = json!({"resourceVersion": version.to_string()});
    if limit > 0 && found.len() > limit {
        let left = found.len() - limit;
        found.truncate(limit);
        let last = found.last().map(|(order, ..)| order.clone()).unwrap_or_default();
        metadata["continue"] = Token { version, last }.write().into();
        if request.parameter("labelSelector").is_none() && request.parameter("fieldSelector").is_none() {
            metadata["remainingItemCount"] = left.into();
        }
    }
    let items: Vec<Value> = found.iter().map(|(.., object)| item(&selection, object)).collect();
    let served = &selection.served;
    let (api_version, kind) = match request.metadata_only {
        true => ("meta.k8s.io/v1".into(), "PartialObjectMetadataList".into()),
        false => (served.api_version(), format!("{}List", served.kind)),
    };
    Ok(Done::read(json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "items": items})))
}

/// Items of built-in kinds have no apiVersion and kind; items of custom kinds do.
fn item(selection: &Selection, object: &Value) -> Value {
    let mut shown = selection.shown(object);
    if !selection.served.custom
        && !selection.metadata_only
        && let Some(fields) = shown.as_object_mut()
    {
        fields.remove("apiVersion");
        fields.remove("kind");
    }
    shown
}

/// The order of lists: by namespace and name, as etcd's keys are sorted.
fn order(key: &Key) -> String {
    format!("{}/{}", key.namespace, key.name)
}

/// The position at which a list continues.
struct Token {
    version: u64,
    last: String,
}

impl Token {
    fn write(&self) -> String {
        format!("{}_{}", self.version, self.last)
    }

    fn read(text: &str) -> Result<Self, Failure> {
        let parts = text.split_once('_').and_then(|(version, last)| Some((version.parse().ok()?, last)));
        let (version, last) =
            parts.ok_or_else(|| Failure::bad_request("invalid continue token: continue key is not valid"))?;
        Ok(Self { version, last: last.into() })
    }
}

/// The kinds of a version of a group.
pub(super) fn discover(store: &Store, request: &Request) -> Result<Done, Failure> {
    let Path { group, version, .. } = &request.path;
    if group.is_empty() && version == "version" {
        return Ok(Done::read(json!({"major": "1", "minor": "36"})));
    }
    let here = kinds::all(store).filter(|served| served.group == *group && served.version == *version);
    let resources: Vec<Value> = here.flat_map(|served| resources(served)).collect();
    if resources.is_empty() {
        return Err(Failure::unknown_path());
    }
    let name = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let body =
        json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": resources});
    Ok(Done::read(body))
}

fn resources(served: &Served) -> Vec<Value> {
    let mut verbs = vec!["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
    if served.is("Namespace") {
        verbs.retain(|verb| *verb != "deletecollection");
    }
    let entry = |name: String, verbs: &[&str]| {
        json!({"name": name, "singularName": served.kind.to_lowercase(), "namespaced": served.namespaced,
               "kind": served.kind, "verbs": verbs})
    };
    let mut entries = vec![entry(served.plural.clone(), &verbs)];
    if served.status {
        entries.push(entry(format!("{}/status", served.plural), &["get", "patch", "update"]));
    }
    entries
}
