//! What stands for a cluster in a run on files: it accepts every apply, unless the case refuses it.

use std::collections::{BTreeMap, BTreeSet};

use pintle_core::{
    ApiError, Applied, Apply, Claim, Deletion, EvictionWrite, Observed, StatusWrite, needs::LookUp, object,
    reasons, reconciler, violations::Violations,
};
use pintle_wit::{Cause, ChildKind, Failure, ObjectRef};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::setting::{Setting, uid};

/// A child that the API server does not accept.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CaseRefusal {
    /// The child; without a namespace the root's.
    pub child: ObjectRef,
    /// The HTTP status code.
    #[serde(default = "unprocessable")]
    pub code: u16,
    /// The reason in the API server's words; by default the usual one of the code.
    #[serde(default)]
    pub reason: String,
    /// The message in the API server's words.
    #[serde(default)]
    pub message: String,
    /// What is wrong, field by field.
    #[serde(default)]
    pub causes: Vec<Cause>,
}

fn unprocessable() -> u16 {
    422
}

impl CaseRefusal {
    fn is_about(&self, child: &ObjectRef) -> bool {
        let namespace = self.child.namespace.as_ref();
        self.child.kind() == child.kind()
            && self.child.name == child.name
            && namespace.is_none_or(|namespace| Some(namespace) == child.namespace.as_ref())
    }

    fn error(&self) -> ApiError {
        let usual = match self.code {
            400 => reasons::BAD_REQUEST,
            403 => reasons::FORBIDDEN,
            404 => reasons::NOT_FOUND,
            409 => reasons::CONFLICT,
            422 => reasons::INVALID,
            _ => "",
        };
        let reason = if self.reason.is_empty() { usual } else { &self.reason };
        ApiError {
            code: self.code,
            reason: reason.into(),
            message: self.message.clone(),
            causes: self.causes.clone(),
            retry_after: None,
        }
    }
}

/// An object's name, whatever the version of its kind.
fn key(reference: &ObjectRef) -> ObjectRef {
    ObjectRef { api_version: reference.kind().group().to_owned(), ..reference.clone() }
}

/// The objects of a run.
#[derive(Clone, Debug)]
pub(crate) struct Cluster<'a> {
    setting: &'a Setting,
    root: Value,
    objects: BTreeMap<ObjectRef, Value>,
    /// The refusals that stood in the way of something.
    used: BTreeSet<usize>,
    /// Objects of kinds that are not watched that the host has read or written.
    seen: BTreeSet<ObjectRef>,
    version: u64,
}

impl<'a> Cluster<'a> {
    /// The cluster at the begin of a run.
    pub(crate) fn new(setting: &'a Setting) -> Self {
        let manager = &setting.binding.field_manager;
        let mut root = setting.root.clone();
        if let Some(status) = root.get("status").cloned() {
            // The status in a case is what the host wrote last.
            record(&mut root, manager, Some("status"), json!({"f:status": owned(&status)}));
        }
        let objects = setting.observed.iter().map(|live| (key(&object::reference(live)), live.clone()));
        let objects = objects.collect();
        Self { setting, root, objects, used: BTreeSet::new(), seen: BTreeSet::new(), version: 1 }
    }

    /// The root as it is now.
    pub(crate) fn root(&self) -> &Value {
        &self.root
    }

    /// The children as a host knows them at the start of a pass.
    pub(crate) fn children(&self) -> Vec<Observed> {
        let known = |(key, live): &(&ObjectRef, &Value)| {
            reconciler::is_watchable(&object::kind(live)) || self.seen.contains(*key)
        };
        let children = self.objects.iter().filter(|(_, live)| self.child_kind(live).is_some());
        children.filter(known).map(|(_, live)| self.observe(live)).collect()
    }

    /// An object as it is now.
    pub(crate) fn live(&self, reference: &ObjectRef) -> Option<&Value> {
        let root = (object::reference(&self.root) == *reference).then_some(&self.root);
        root.or_else(|| self.objects.get(&key(reference)))
    }

    /// Refusals of children that were never applied.
    pub(crate) fn unused_refusals(&self) -> Vec<String> {
        let unused = self.setting.refusals.iter().enumerate().filter(|(index, _)| !self.used.contains(index));
        unused
            .map(|(index, refusal)| {
                format!(
                    "refusals[{index}] refuses {}, which is not applied: the guest does not answer with it, a stage before its own is not \
                     ready, or it is there already",
                    refusal.child
                )
            })
            .collect()
    }

    /// Reads objects.
    pub(crate) fn get(&mut self, asked: &[ObjectRef]) -> Vec<Result<Option<Observed>, ApiError>> {
        asked
            .iter()
            .map(|reference| {
                self.seen.insert(key(reference));
                Ok(self.live(reference).map(|live| self.observe(live)))
            })
            .collect()
    }

    /// Applies a child, or refuses it.
    ///
    /// # Errors
    /// As the case says, and 409 for a first apply of what exists.
    pub(crate) fn apply(&mut self, apply: &Apply) -> Result<Applied, ApiError> {
        let fits = self.setting.kinds.fit(apply.object(), "");
        let sent = self.admit(apply, fits, &["resourceVersion", "uid"])?;
        let reference = apply.reference();
        let existing = self.objects.get(&key(reference)).cloned();
        let created = existing.is_none();
        let live = match existing {
            Some(_) if !apply.force() => return Err(conflict("the object already exists")),
            Some(live) if object::uid(&live) != object::uid(apply.object()) => {
                return Err(conflict("uid mismatch"));
            }
            None if apply.force() => return Err(conflict("uid mismatch: the object does not exist")),
            Some(live) => live,
            None => json!({"metadata": {
                "uid": uid(&sent), "generation": 1, "creationTimestamp": pintle_core::conditions::time(self.setting.now),
            }}),
        };
        let live = self.write(apply, live, &sent);
        self.seen.insert(key(reference));
        Ok(Applied { created, observed: self.observe(&live) })
    }

    /// Looks up what a guest asks to see: in the files, the root among them.
    pub(crate) fn look(&self, lookups: &[LookUp]) -> Vec<Vec<Value>> {
        let all = || self.objects.values().chain([&self.root]);
        let means = |look: &LookUp, live: &Value| {
            let kind = object::kind(live);
            kind.group() == look.kind().group() && kind.kind == look.kind().kind && look.means(live)
        };
        lookups.iter().map(|look| all().filter(|live| means(look, live)).cloned().collect()).collect()
    }

    /// Patches an object that is not the root's.
    ///
    /// # Errors
    /// As the case says, and 409 where the object is not there.
    pub(crate) fn patch(&mut self, patch: &Apply) -> Result<Value, ApiError> {
        // What names the object is nobody's.
        let fits = self.setting.kinds.fit_patch(patch.object(), "");
        let sent = self.admit(patch, fits, &["uid", "name", "namespace"])?;
        let Some(live) = self.live(patch.reference()).cloned() else {
            return Err(conflict("uid mismatch: the object does not exist"));
        };
        Ok(self.write(patch, live, &sent))
    }

    /// Sets the managed fields of a child.
    ///
    /// # Errors
    /// 409 where it is not there.
    pub(crate) fn claim(&mut self, claim: &Claim) -> Result<Observed, ApiError> {
        let Some(live) = self.objects.get_mut(&key(claim.reference())) else {
            return Err(conflict("the object does not exist"));
        };
        let mut operations = claim.patch().as_array().into_iter().flatten();
        if let Some(fields) = operations.find(|operation| operation["path"] == "/metadata/managedFields") {
            live["metadata"]["managedFields"] = fields["value"].clone();
        }
        let live = live.clone();
        Ok(self.observe(&live))
    }

    /// What is sent, without these parts of its metadata, unless it is refused.
    fn admit(
        &mut self,
        apply: &Apply,
        fits: Result<(), Violations>,
        left_out: &[&str],
    ) -> Result<Value, ApiError> {
        self.let_in(apply.reference())?;
        fits.map_err(|found| unfit(&found.failure()))?;
        let mut sent = apply.object().clone();
        if let Some(metadata) = sent.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|key, _| !left_out.contains(&key.as_str()));
        }
        Ok(sent)
    }

    /// Lays what is sent over an object, without what its manager has sent before and does not send any more.
    fn write(&mut self, apply: &Apply, mut live: Value, sent: &Value) -> Value {
        let before = live.clone();
        if let Some(entry) = pintle_core::managed::entry(&before, apply.manager(), None) {
            drop_unsent(&mut live, entry, sent);
        }
        merge(&mut live, sent);
        record(&mut live, apply.manager(), None, owned(sent));
        if live != before {
            self.version += 1;
            live["metadata"]["resourceVersion"] = self.version.to_string().into();
        }
        self.objects.insert(key(apply.reference()), live.clone());
        live
    }

    /// Has a Pod go: it is gone at once.
    ///
    /// # Errors
    /// As the case says, and 404 where it is not there.
    pub(crate) fn evict(&mut self, eviction: &EvictionWrite) -> Result<(), ApiError> {
        let reference = eviction.reference();
        self.let_in(reference)?;
        let is_it = self.live(reference).is_some_and(|live| object::uid(live) == eviction.uid());
        if !is_it {
            return Err(ApiError { code: 404, reason: reasons::NOT_FOUND.into(), ..ApiError::default() });
        }
        self.objects.remove(&key(reference));
        Ok(())
    }

    /// Whether nothing refuses a write of an object.
    fn let_in(&mut self, reference: &ObjectRef) -> Result<(), ApiError> {
        let mut refusals = self.setting.refusals.iter().enumerate();
        let Some((index, refusal)) = refusals.find(|(_, refusal)| refusal.is_about(reference)) else {
            return Ok(());
        };
        self.used.insert(index);
        Err(refusal.error())
    }

    fn child_kind(&self, live: &Value) -> Option<bool> {
        let kind = object::kind(live);
        let is_it = |child: &&ChildKind| child.kind().group() == kind.group() && child.kind == kind.kind;
        self.setting.binding.manifest.children.iter().find(is_it).map(|child| child.observe)
    }

    /// Deletes children.
    pub(crate) fn delete(&mut self, deletions: &[Deletion]) -> Vec<Result<(), ApiError>> {
        for deletion in deletions {
            self.objects.remove(&key(deletion.reference()));
        }
        deletions.iter().map(|_| Ok(())).collect()
    }

    /// Writes the root's status.
    pub(crate) fn write_status(&mut self, write: &StatusWrite) {
        let status = write.object().get("status").cloned().unwrap_or_default();
        record(&mut self.root, write.manager(), Some("status"), json!({"f:status": owned(&status)}));
        self.root["status"] = status;
    }

    fn observe(&self, live: &Value) -> Observed {
        Observed::of(live, &self.setting.binding.field_manager, self.child_kind(live).unwrap_or(false))
    }
}

fn conflict(message: &str) -> ApiError {
    ApiError { code: 409, reason: reasons::CONFLICT.into(), message: message.into(), ..ApiError::default() }
}

/// What the API server answers to an apply that does not fit its kind: a 500, with these words in it.
fn unfit(failure: &Failure) -> ApiError {
    let Failure { reason, message, path, .. } = failure;
    let what = match reason.as_str() {
        reasons::FIELD_UNDECLARED => "field not declared in schema",
        _ => "failed to create typed patch object",
    };
    let path = path.as_deref().unwrap_or_default();
    ApiError { code: 500, message: format!("{path}: {what}: {message}"), ..ApiError::default() }
}

/// Notes in `metadata.managedFields` that `manager` applied these fields.
fn record(object: &mut Value, manager: &str, subresource: Option<&str>, fields: Value) {
    let mut entry =
        json!({"manager": manager, "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": fields});
    if let Some(subresource) = subresource {
        entry["subresource"] = subresource.into();
    }
    let list = &mut object["metadata"]["managedFields"];
    let mut entries = list.take().as_array().cloned().unwrap_or_default();
    entries.retain(|other| {
        other["manager"] != entry["manager"] || other.get("subresource") != entry.get("subresource")
    });
    entries.push(entry);
    *list = entries.into();
}

/// The fields of an apply as managed fields have them. Lists count as one field, except for conditions, which are kept by type.
fn owned(sent: &Value) -> Value {
    let Value::Object(fields) = sent else { return json!({}) };
    let mut entry = Map::new();
    for (name, value) in fields {
        let below = match (name.as_str(), value) {
            ("apiVersion" | "kind", _) => continue,
            ("conditions", Value::Array(conditions)) => {
                let types = conditions.iter().filter_map(|condition| object::text(condition, &["type"]));
                let items = types.map(|name| (format!("k:{}", json!({"type": name})), json!({})));
                Value::Object(items.collect())
            }
            (_, value) => owned(value),
        };
        entry.insert(format!("f:{name}"), below);
    }
    Value::Object(entry)
}

/// What identifies an item of a list of objects, in the kinds of Kubernetes.
const ITEM_KEYS: [&str; 8] = ["name", "containerPort", "port", "mountPath", "uid", "type", "key", "ip"];

/// Lays what was applied over what is there. Fields that the apply leaves out stay, since most of them are the API server's
/// defaults or a controller's; of a list the items are those of the apply.
fn merge(live: &mut Value, sent: &Value) {
    match (live, sent) {
        (Value::Object(live), Value::Object(sent)) => {
            for (key, value) in sent {
                merge(live.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (Value::Array(live), Value::Array(sent)) => {
            let old = std::mem::take(live);
            for item in sent {
                let mut merged = old.iter().find(|other| same_item(other, item)).cloned().unwrap_or_default();
                merge(&mut merged, item);
                live.push(merged);
            }
        }
        (live, sent) => *live = sent.clone(),
    }
}

/// Takes away what an entry of managed fields owns and an apply no longer sends.
fn drop_unsent(live: &mut Value, entry: &Value, sent: &Value) {
    let (Some(fields), Some(owned)) = (live.as_object_mut(), entry.as_object()) else { return };
    for (key, below) in owned {
        let Some(name) = key.strip_prefix("f:") else { continue };
        match (fields.get_mut(name), sent.get(name)) {
            (Some(live), sent) if below.as_object().is_some_and(|below| !below.is_empty()) => {
                drop_unsent(live, below, sent.unwrap_or(&Value::Null));
                if sent.is_none() && live.as_object().is_some_and(Map::is_empty) {
                    fields.remove(name);
                }
            }
            (Some(_), None) => drop(fields.remove(name)),
            _ => {}
        }
    }
}

fn same_item(live: &Value, sent: &Value) -> bool {
    let (Value::Object(live), Value::Object(sent)) = (live, sent) else { return false };
    let key = ITEM_KEYS.iter().find(|key| live.contains_key(**key) && sent.contains_key(**key));
    key.is_some_and(|key| live.get(*key) == sent.get(*key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_api_server_filled_in_survives_an_apply() {
        let mut live = json!({"spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 80, "nodePort": 30123}, {"port": 81}]}});
        merge(&mut live, &json!({"spec": {"ports": [{"port": 80, "targetPort": "http"}]}}));
        let ports = json!([{"port": 80, "nodePort": 30123, "targetPort": "http"}]);
        assert_eq!(live, json!({"spec": {"clusterIP": "10.0.0.1", "ports": ports}}));
    }

    #[test]
    fn managed_fields_cover_what_was_sent() {
        let sent = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "labels": {"x": "y"}}, "spec": {"ports": [{"port": 80}]}});
        assert!(pintle_core::managed::covers(&owned(&sent), &sent));
        let status = json!({"a": {"b": 1}, "conditions": [{"type": "Ready"}]});
        assert!(pintle_core::managed::owns_nothing_beyond(&owned(&status), &status));
        assert!(!pintle_core::managed::owns_nothing_beyond(
            &owned(&status),
            &json!({"a": {}, "conditions": []})
        ));
    }

    #[test]
    fn a_refusal_without_a_namespace_is_about_the_roots() {
        let refusal: CaseRefusal =
            serde_json::from_value(json!({"child": {"apiVersion": "v1", "kind": "Service", "name": "a"}}))
                .unwrap();
        let child = ObjectRef {
            api_version: "v1".into(),
            kind: "Service".into(),
            namespace: Some("n".into()),
            name: "a".into(),
        };
        assert!(refusal.is_about(&child));
        assert_eq!((refusal.error().code, refusal.error().reason.as_str()), (422, "Invalid"));
    }
}
