//! A small API server: objects, versions, uids, field ownership, and errors on demand.

use std::collections::{BTreeMap, VecDeque};

use pintle_core::{ApiError, Apply, Claim, Deletion, EvictionWrite, object};
use pintle_wit::{Cause, ObjectRef};
use serde_json::{Map, Value, json};

use crate::pass::fields;

/// What is to go wrong with the next request about an object.
#[derive(Clone)]
pub(crate) enum Fault {
    /// It is refused.
    Refuse(ApiError),
    /// It is carried out, and the reply is lost.
    LoseReply,
}

#[derive(Default)]
pub(crate) struct Api {
    pub(crate) objects: BTreeMap<ObjectRef, Value>,
    pub(crate) faults: BTreeMap<String, VecDeque<Fault>>,
    /// Every request, as `verb Kind name`.
    pub(crate) requests: Vec<String>,
    pub(crate) atomic_conditions: bool,
    /// An admission policy takes every label from ConfigMaps. What is owned stays as it was recorded before admission.
    pub(crate) strips_labels: bool,
    /// The status fields that the root's CRD declares; all when there is none.
    pub(crate) status_fields: Option<Vec<&'static str>>,
    /// Whether the last patch was to override conflicts.
    pub(crate) last_patch_forced: Option<bool>,
    /// The uids of the Pods that went, each time that one did.
    pub(crate) evicted: Vec<String>,
    /// How many more writes the host makes before it is killed, and whether the next one after those is still carried out.
    pub(crate) killed_after: Option<(usize, bool)>,
    version: u64,
}

pub(crate) fn error(code: u16, reason: &str, message: &str) -> ApiError {
    ApiError { code, reason: reason.into(), message: message.into(), ..ApiError::default() }
}

pub(crate) fn no_reply() -> ApiError {
    error(0, "", "connection reset")
}

/// What the API server says to a node port that is taken.
pub(crate) fn port_taken() -> ApiError {
    let message = "provided port is already allocated";
    ApiError { causes: vec![cause("spec.ports[0].nodePort", message)], ..error(422, "Invalid", message) }
}

pub(crate) fn cause(field: &str, message: &str) -> Cause {
    Cause { field: field.into(), reason: "FieldValueInvalid".into(), message: message.into() }
}

impl Api {
    /// The next request of this verb about the object of this kind and name goes wrong.
    pub(crate) fn fail(&mut self, request: &str, fault: Fault) {
        self.faults.entry(request.into()).or_default().push_back(fault);
    }

    fn fault(&mut self, verb: &str, reference: &ObjectRef) -> Option<Fault> {
        let request = format!("{verb} {} {}", reference.kind, reference.name);
        let fault = self.faults.get_mut(&request).and_then(VecDeque::pop_front);
        self.requests.push(request);
        fault
    }

    /// Carries a request out unless it is to go wrong.
    fn guarded<T>(
        &mut self,
        verb: &str,
        reference: &ObjectRef,
        work: impl FnOnce(&mut Self) -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        let fault = self.fault(verb, reference);
        if verb != "get"
            && let Some((left, is_last_carried_out)) = &mut self.killed_after
        {
            let is_last = *left == 0 && std::mem::take(is_last_carried_out);
            if *left == 0 && !is_last {
                return Err(no_reply());
            }
            *left = left.saturating_sub(1);
            if is_last {
                return work(self).and(Err(no_reply()));
            }
        }
        match fault {
            Some(Fault::Refuse(error)) => Err(error),
            Some(Fault::LoseReply) => work(self).and(Err(no_reply())),
            None => work(self),
        }
    }

    fn next_version(&mut self) -> String {
        self.version += 1;
        self.version.to_string()
    }

    /// Puts an object as somebody else would create it.
    pub(crate) fn create(&mut self, mut object: Value) -> ObjectRef {
        let version = self.next_version();
        let reference = object::reference(&object);
        if object::uid(&object).is_empty() {
            object["metadata"]["uid"] = format!("uid-{version}").into();
        }
        object["metadata"]["resourceVersion"] = version.into();
        self.objects.insert(reference.clone(), object);
        reference
    }

    pub(crate) fn get(&mut self, reference: &ObjectRef) -> Result<Option<Value>, ApiError> {
        self.guarded("get", reference, |api| Ok(api.objects.get(reference).cloned()))
    }

    /// A server-side apply. Whether the object was created, and what it is now.
    pub(crate) fn apply(
        &mut self,
        sent: &Value,
        manager: &str,
        force: bool,
    ) -> Result<(bool, Value), ApiError> {
        let reference = object::reference(sent);
        let work = |api: &mut Self| api.applied(&reference, sent, manager, force);
        self.guarded("apply", &reference, work)
    }

    fn applied(
        &mut self,
        reference: &ObjectRef,
        sent: &Value,
        manager: &str,
        force: bool,
    ) -> Result<(bool, Value), ApiError> {
        let live = self.objects.get(reference).cloned();
        let create_only = object::text(sent, &["metadata", "resourceVersion"]) == Some("1");
        assert_ne!(create_only, force, "the first apply is never forced, and every later one is");
        let uid = object::uid(sent);
        match &live {
            Some(_) if create_only => return Err(error(409, "Conflict", "the object has been modified")),
            None if !uid.is_empty() => {
                return Err(error(409, "Conflict", "uid mismatch: the object is absent"));
            }
            Some(live) if !uid.is_empty() && object::uid(live) != uid => {
                let causes = vec![cause("metadata.uid", "field is immutable")];
                return Err(ApiError { causes, ..error(422, "Invalid", "metadata.uid: field is immutable") });
            }
            Some(live) => {
                let ours = object::text(&sent["metadata"]["ownerReferences"][0], &["uid"]);
                if pintle_core::observed::controller(live).is_some_and(|theirs| Some(theirs) != ours) {
                    return Err(error(422, "Invalid", "only one reference can have controller set to true"));
                }
            }
            None => {}
        }
        let mut body = sent.clone();
        for key in ["uid", "resourceVersion"] {
            body["metadata"].as_object_mut().unwrap().remove(key);
        }
        let mut next = live.clone().unwrap_or_else(|| json!({"metadata": {}}));
        self.set_fields(&mut next, &body, manager, None);
        if self.strips_labels && reference.kind == "ConfigMap" {
            next["metadata"].as_object_mut().unwrap().remove("labels");
        }
        if live.as_ref() != Some(&next) {
            let version = self.next_version();
            if live.is_none() {
                next["metadata"]["uid"] = format!("uid-{version}").into();
            }
            next["metadata"]["resourceVersion"] = version.into();
        }
        self.objects.insert(reference.clone(), next.clone());
        Ok((live.is_none(), next))
    }

    /// A server-side apply onto an object that must be there.
    pub(crate) fn patch(&mut self, patch: &Apply) -> Result<Value, ApiError> {
        let reference = patch.reference().clone();
        self.last_patch_forced = Some(patch.force());
        self.guarded("patch", &reference.clone(), |api| {
            let Some(live) = api.objects.get(&reference).cloned() else {
                return Err(error(409, "Conflict", "uid mismatch: the object is absent"));
            };
            if object::uid(&live) != object::uid(patch.object()) {
                return Err(error(409, "Conflict", "uid mismatch"));
            }
            let mut body = patch.object().clone();
            body["metadata"].as_object_mut().unwrap().remove("uid");
            let mut next = live.clone();
            api.set_fields(&mut next, &body, patch.manager(), None);
            if next != live {
                next["metadata"]["resourceVersion"] = api.next_version().into();
            }
            api.objects.insert(reference, next.clone());
            Ok(next)
        })
    }

    /// An eviction, or the deletion of a Pod: it is gone at once.
    pub(crate) fn evict(&mut self, eviction: &EvictionWrite) -> Result<(), ApiError> {
        let reference = eviction.reference().clone();
        self.guarded("evict", &reference.clone(), |api| {
            match api.objects.get(&reference) {
                None => return Err(error(404, "NotFound", "not found")),
                Some(live) if object::uid(live) != eviction.uid() => {
                    return Err(error(409, "Conflict", "Precondition failed: UID in precondition"));
                }
                Some(_) => {}
            }
            api.objects.remove(&reference);
            api.evicted.push(eviction.uid().into());
            Ok(())
        })
    }

    /// An apply of the status subresource.
    pub(crate) fn apply_status(&mut self, sent: &Value, manager: &str) -> Result<(), ApiError> {
        let reference = object::reference(sent);
        self.guarded("status", &reference, |api| api.applied_status(&reference, sent, manager))
    }

    fn applied_status(&mut self, reference: &ObjectRef, sent: &Value, manager: &str) -> Result<(), ApiError> {
        let Some(live) = self.objects.get(reference).cloned() else {
            return Err(error(404, "NotFound", "not found"));
        };
        if object::uid(&live) != object::uid(sent) {
            let causes = vec![cause("metadata.uid", "field is immutable")];
            return Err(ApiError { causes, ..error(422, "Invalid", "metadata.uid: field is immutable") });
        }
        let version = |object: &Value| object.pointer("/metadata/resourceVersion").cloned();
        if version(sent).is_some_and(|sent| version(&live) != Some(sent)) {
            return Err(error(409, "Conflict", "the object has been modified"));
        }
        for field in sent["status"].as_object().unwrap().keys() {
            if self.status_fields.as_ref().is_some_and(|declared| !declared.contains(&field.as_str())) {
                return Err(error(
                    500,
                    "InternalError",
                    &format!(".status.{field}: field not declared in schema"),
                ));
            }
        }
        let mut next = live.clone();
        self.set_fields(&mut next, &json!({"status": sent["status"]}), manager, Some("status"));
        if next != live {
            next["metadata"]["resourceVersion"] = self.next_version().into();
        }
        self.objects.insert(reference.clone(), next);
        Ok(())
    }

    fn set_fields(&self, live: &mut Value, sent: &Value, manager: &str, subresource: Option<&str>) {
        let mut named = sent.clone();
        for key in ["apiVersion", "kind"] {
            named.as_object_mut().unwrap().remove(key);
        }
        if let Some(metadata) = named.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|key, _| key != "name" && key != "namespace");
        }
        let now = fields::owned(&named, self.atomic_conditions);
        let before = pintle_core::managed::entry(live, manager, subresource).cloned();
        if let Some(before) = before {
            fields::drop_unsent(live, &before, &now);
        }
        fields::merge(live, sent, self.atomic_conditions);
        let mut entry = json!({"manager": manager, "operation": "Apply", "fieldsV1": now});
        if let Some(subresource) = subresource {
            entry["subresource"] = subresource.into();
        }
        let metadata = live["metadata"].as_object_mut().unwrap();
        let entries = metadata.entry("managedFields").or_insert_with(|| json!([])).as_array_mut().unwrap();
        entries.retain(|other| {
            other["manager"] != manager || other.get("subresource").and_then(Value::as_str) != subresource
        });
        entries.push(entry);
    }

    /// A JSON patch of an object's finalizers. An object that is being deleted goes with its last one.
    pub(crate) fn patch_finalizers(&mut self, reference: &ObjectRef, patch: &Value) -> Result<(), ApiError> {
        self.guarded("finalizers", reference, |api| {
            let Some(live) = api.objects.get(reference) else {
                return Err(error(404, "NotFound", "not found"));
            };
            let mut next = live.clone();
            for step in patch.as_array().unwrap() {
                let path = step["path"].as_str().unwrap();
                match step["op"].as_str().unwrap() {
                    "test" if next.pointer(path).unwrap_or(&Value::Null) != &step["value"] => {
                        return Err(error(422, "Invalid", "the server rejected our request"));
                    }
                    "test" => {}
                    "remove" => drop(next["metadata"].as_object_mut().unwrap().remove("finalizers")),
                    _ => next["metadata"]["finalizers"] = step["value"].clone(),
                }
            }
            next["metadata"]["resourceVersion"] = api.next_version().into();
            if object::is_deleting(&next) && next["metadata"].get("finalizers").is_none() {
                api.objects.remove(reference);
            } else {
                api.objects.insert(reference.clone(), next);
            }
            Ok(())
        })
    }

    pub(crate) fn delete(&mut self, deletion: &Deletion) -> Result<(), ApiError> {
        let reference = deletion.reference().clone();
        let (uid, version) = (deletion.uid().to_owned(), deletion.resource_version().to_owned());
        self.guarded("delete", &reference.clone(), |api| {
            let Some(live) = api.objects.get(&reference) else { return Ok(()) };
            if object::uid(live) != uid || live["metadata"]["resourceVersion"] != version.as_str() {
                return Err(error(409, "Conflict", "the precondition does not hold"));
            }
            api.objects.remove(&reference);
            Ok(())
        })
    }

    /// A patch of managed fields alone, as a claim has it.
    pub(crate) fn claim(&mut self, claim: &Claim) -> Result<Value, ApiError> {
        let reference = claim.reference().clone();
        let value = |path: &str| {
            let operations = claim.patch().as_array().unwrap();
            operations.iter().find(|operation| operation["path"] == path).unwrap()["value"].clone()
        };
        self.guarded("claim", &reference.clone(), |api| {
            let version = api.next_version();
            let Some(live) = api.objects.get_mut(&reference) else {
                return Err(error(404, "NotFound", "gone"));
            };
            if live["metadata"]["resourceVersion"] != value("/metadata/resourceVersion") {
                return Err(error(409, "Conflict", "the object has been modified"));
            }
            assert_eq!(live["metadata"]["uid"], value("/metadata/uid"));
            live["metadata"]["managedFields"] = value("/metadata/managedFields");
            live["metadata"]["resourceVersion"] = version.into();
            Ok(live.clone())
        })
    }

    /// Somebody else sets a field (dotted path) and so takes it over from us.
    pub(crate) fn edit(&mut self, reference: &ObjectRef, path: &str, value: Value) {
        let version = self.next_version();
        let live = self.objects.get_mut(reference).expect("the object is there");
        let steps: Vec<&str> = path.split('.').collect();
        let mut at = &mut *live;
        for step in &steps {
            if !at.is_object() {
                *at = Value::Object(Map::new());
            }
            at = &mut at[*step];
        }
        *at = value;
        let entries = live.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut);
        for entry in entries.into_iter().flatten() {
            fields::disown(&mut entry["fieldsV1"], &steps);
        }
        live["metadata"]["resourceVersion"] = version.into();
    }
}
