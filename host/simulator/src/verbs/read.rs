//! Get, list and discovery.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Done, target, too_new};
use crate::{
    Failure,
    kinds::{self, Served},
    request::Request,
    store::{Key, Store},
    watch::{Selection, invalid_version, shown},
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
    let asked = match request.parameter("resourceVersion") {
        Some(text) => text.parse().map_err(|_| invalid_version(text))?,
        None => 0,
    };
    if token.is_some() && asked > 0 {
        return Err(Failure::bad_request("specifying resource version is not allowed when using continue"));
    }
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

pub(super) fn discover(store: &Store, request: &Request) -> Result<Done, Failure> {
    let all: Vec<&Served> = kinds::all(store).map(AsRef::as_ref).collect();
    let path = &request.path;
    let body = match (path.group.as_str(), path.version.as_str()) {
        ("", "") => json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}),
        ("*", _) => {
            let mut groups: Vec<&str> = Vec::new();
            for served in all.iter().filter(|served| !served.group.is_empty()) {
                if !groups.contains(&served.group.as_str()) {
                    groups.push(&served.group);
                }
            }
            let groups: Vec<Value> = groups.iter().filter_map(|name| group(&all, name)).collect();
            json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
        }
        (name, "") => {
            let mut found = group(&all, name).ok_or_else(Failure::unknown_path)?;
            found["kind"] = "APIGroup".into();
            found["apiVersion"] = "v1".into();
            found
        }
        (group, version) => {
            let here = |served: &&&Served| served.group == group && served.version == version;
            let resources: Vec<Value> =
                all.iter().filter(here).flat_map(|served| resources(served)).collect();
            if resources.is_empty() {
                return Err(Failure::unknown_path());
            }
            let name = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
            json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": resources})
        }
    };
    Ok(Done::read(body))
}

fn group(all: &[&Served], name: &str) -> Option<Value> {
    let mut versions: Vec<&str> = Vec::new();
    for served in all.iter().filter(|served| served.group == name) {
        if !versions.contains(&served.version.as_str()) {
            versions.push(&served.version);
        }
    }
    let named = |version: &&str| json!({"groupVersion": format!("{name}/{version}"), "version": version});
    let preferred = named(versions.first()?);
    let versions: Vec<Value> = versions.iter().map(named).collect();
    Some(json!({"name": name, "versions": versions, "preferredVersion": preferred}))
}

fn resources(served: &Served) -> Vec<Value> {
    let mut verbs = vec!["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
    if served.plural == "namespaces" && !served.custom {
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
