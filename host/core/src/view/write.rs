//! Writes: what becomes of a backing object when somebody writes an object of a view.
//!
//! Of what a guest stores, only the fields that its manifest declares are taken, so that a field that a guest does not know is never wiped.
//! The metadata are the host's: names and uids are mapped, and what is not shown stays as it is.

use pintle_wit::Cause;
use serde_json::{Map, Value, json};

use super::{
    BackingObject, Lens,
    metadata::{self, Ignored},
    status::fault,
};

/// A write of a backing object.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// The object to create, or the merge patch (RFC 7386) of the one there is. A patch names the uid and the version that it is about.
    pub body: Value,
    /// What was written of the metadata and the view does not let through.
    pub ignored: Vec<Ignored>,
}

/// Why an object is not written.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// Some fields cannot be as they were written.
    Invalid(Vec<Cause>),
    /// The object is another one than whoever wrote thought, or in another state.
    Conflict(String),
}

impl Lens {
    /// The backing object to create for `written`, of which a guest stores these fields.
    ///
    /// # Errors
    /// `Invalid` for a name or a label that an object of this view cannot have.
    pub fn create(&self, written: &Value, stored: &Map<String, Value>) -> Result<Write, Refusal> {
        let none = Map::new();
        let given = written.get("metadata").and_then(Value::as_object).unwrap_or(&none);
        let mut causes = Vec::new();
        let mut metadata = Map::new();
        for key in ["name", "generateName"] {
            let Some(name) = given.get(key).and_then(Value::as_str).filter(|name| !name.is_empty()) else {
                continue;
            };
            // That it is a name is judged with the other metadata.
            match self.names.backing_beginning(name) {
                Some(name) => {
                    metadata.insert(key.into(), name.into());
                }
                None => {
                    let why = format!("must begin with {:?}, and go on", self.names.prefix.as_str());
                    causes.push(fault::invalid(&format!("metadata.{key}"), name, &why));
                }
            }
        }
        if let Some(namespace) = given.get("namespace") {
            metadata.insert("namespace".into(), namespace.clone());
        }
        let mut ignored = Vec::new();
        let annotations = self.stored_annotations(&none, given, &mut ignored);
        let mut labels = self.stored_labels(&none, given, &mut causes, &mut ignored);
        for (key, value) in &self.served.selector {
            labels.insert(key.clone(), value.clone().into());
        }
        insert_unless_empty(&mut metadata, "labels", labels.into());
        insert_unless_empty(&mut metadata, "annotations", annotations.into());
        insert_unless_empty(
            &mut metadata,
            "finalizers",
            metadata::stored_finalizers(&none, given, &mut ignored).into(),
        );
        insert_unless_empty(&mut metadata, "ownerReferences", owners(given));
        if !causes.is_empty() {
            return Err(Refusal::Invalid(causes));
        }
        let mut object = Map::new();
        for path in &self.served.writes {
            put(&mut object, path, at(stored, path).cloned());
        }
        let backing = self.served.backing.kind();
        object.insert("apiVersion".into(), backing.api_version.into());
        object.insert("kind".into(), backing.kind.into());
        object.insert("metadata".into(), metadata.into());
        Ok(Write { body: Value::Object(object), ignored })
    }

    /// The merge patch of the backing object `current` for `written`, of which a guest stores these fields; none if only the metadata are
    /// written.
    ///
    /// # Errors
    /// `Invalid` for a label that an object of this view must have. `Conflict` if `written` names another uid.
    pub fn update(
        &self,
        current: &BackingObject,
        written: &Map<String, Value>,
        stored: Option<&Map<String, Value>>,
    ) -> Result<Write, Refusal> {
        self.is_same_object(current, written)?;
        let mut causes = Vec::new();
        let mut ignored = Vec::new();
        let labels = self.stored_labels(&current.metadata, written, &mut causes, &mut ignored);
        for (key, value) in &self.served.selector {
            if labels.get(key).and_then(Value::as_str) != Some(value) {
                causes.push(required_label(key, value));
            }
        }
        if !causes.is_empty() {
            return Err(Refusal::Invalid(causes));
        }
        let annotations = self.stored_annotations(&current.metadata, written, &mut ignored);
        let mut metadata = current.metadata.clone();
        set(&mut metadata, "labels", labels.into());
        set(&mut metadata, "annotations", annotations.into());
        if self.served.is_writable() {
            let finalizers = metadata::stored_finalizers(&current.metadata, written, &mut ignored);
            set(&mut metadata, "finalizers", finalizers.into());
            set(&mut metadata, "ownerReferences", owners(written));
        }
        let mut changed = difference(&current.metadata, &metadata);
        changed.insert("uid".into(), current.uid().into());
        changed.insert("resourceVersion".into(), current.version().into());
        let mut patch = match stored {
            Some(stored) => {
                let mut fields = current.fields.clone();
                for path in &self.served.writes {
                    put(&mut fields, path, at(stored, path).cloned());
                }
                difference(&current.fields, &fields)
            }
            None => Map::new(),
        };
        patch.insert("metadata".into(), changed.into());
        Ok(Write { body: Value::Object(patch), ignored })
    }

    /// Checks that an object was written for this one, if it names one.
    ///
    /// # Errors
    /// It names another uid.
    pub fn is_same_object(
        &self,
        current: &BackingObject,
        written: &Map<String, Value>,
    ) -> Result<(), Refusal> {
        let shown = self.mask.map(current.uid());
        match written.get("uid").and_then(Value::as_str).filter(|uid| !uid.is_empty() && *uid != shown) {
            None => Ok(()),
            // In the words of the API server.
            Some(uid) => {
                let message =
                    format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {shown}");
                Err(Refusal::Conflict(message))
            }
        }
    }

    /// The labels as they are to be stored. One that the selector gives another value cannot be.
    fn stored_labels(
        &self,
        current: &Map<String, Value>,
        written: &Map<String, Value>,
        causes: &mut Vec<Cause>,
        ignored: &mut Vec<Ignored>,
    ) -> Map<String, Value> {
        let given = written.get("labels").and_then(Value::as_object);
        for (key, value) in &self.served.selector {
            let other =
                given.and_then(|labels| labels.get(key)).filter(|given| !given.is_null() && *given != value);
            causes.extend(other.map(|_| required_label(key, value)));
        }
        let mut refused = Vec::new();
        let labels = metadata::stored_labels(current, written, &mut refused);
        // A label of the selector that is given its value is stored.
        let is_stored = |key: &str| {
            let value = self.served.selector.get(key);
            value.is_some_and(|value| {
                given.and_then(|labels| labels.get(key)).is_some_and(|given| given == value)
            })
        };
        ignored.extend(refused.into_iter().filter(|label| !is_stored(&label.key)));
        labels
    }
}

fn required_label(key: &str, value: &str) -> Cause {
    let message = format!("objects of this view have the label {key}={value}");
    Cause { reason: "FieldValueInvalid".into(), field: format!("metadata.labels[{key}]"), message }
}

fn owners(metadata: &Map<String, Value>) -> Value {
    metadata.get("ownerReferences").filter(|owners| owners.is_array()).cloned().unwrap_or_else(|| json!([]))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        value => value.is_null(),
    }
}

fn insert_unless_empty(fields: &mut Map<String, Value>, key: &str, value: Value) {
    if !is_empty(&value) {
        fields.insert(key.into(), value);
    }
}

/// Sets a field. An empty list or map is none.
fn set(fields: &mut Map<String, Value>, key: &str, value: Value) {
    match is_empty(&value) {
        true => fields.remove(key),
        false => fields.insert(key.into(), value),
    };
}

/// The value at a dotted path.
fn at<'a>(fields: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let mut steps = path.split('.');
    let first = fields.get(steps.next()?)?;
    steps.try_fold(first, |value, step| value.get(step)).filter(|value| !value.is_null())
}

/// Sets the value at a dotted path, or takes it away. What is on the way there is made where it is needed.
fn put(fields: &mut Map<String, Value>, path: &str, value: Option<Value>) {
    match (path.split_once('.'), value) {
        (None, Some(value)) => {
            fields.insert(path.into(), value);
        }
        (None, None) => {
            fields.remove(path);
        }
        (Some((first, rest)), value) => {
            let is_there = fields.get(first).is_some_and(Value::is_object);
            if !is_there && value.is_none() {
                return;
            }
            let inner = fields.entry(first).or_insert_with(|| json!({}));
            if !inner.is_object() {
                *inner = json!({});
            }
            if let Some(inner) = inner.as_object_mut() {
                put(inner, rest, value);
            }
        }
    }
}

/// The merge patch (RFC 7386) that makes `to` of `from`. A null within a map cannot be said by a merge patch and is left out, as the API
/// server drops it.
fn difference(from: &Map<String, Value>, to: &Map<String, Value>) -> Map<String, Value> {
    let mut patch = Map::new();
    for (key, value) in to.iter().filter(|(_, value)| !value.is_null()) {
        match (from.get(key), value) {
            (Some(before), after) if before == after => {}
            (Some(Value::Object(before)), Value::Object(after)) => {
                let changed = difference(before, after);
                if !changed.is_empty() {
                    patch.insert(key.clone(), changed.into());
                }
            }
            // What is nested in something new is said as a difference from nothing, which drops its nulls.
            (_, Value::Object(after)) => {
                patch.insert(key.clone(), difference(&Map::new(), after).into());
            }
            (_, after) => {
                patch.insert(key.clone(), after.clone());
            }
        }
    }
    for key in from.keys().filter(|key| to.get(*key).is_none_or(Value::is_null)) {
        patch.insert(key.clone(), Value::Null);
    }
    patch
}

#[cfg(test)]
mod tests {
    use super::super::{Access, Backing, Cut, Epoch, Served};
    use super::*;

    const UID: &str = "6f9619ff-8b86-4011-b42d-00c04fc964ff";

    fn lens() -> Lens {
        let served = Served {
            api_version: "farm.example.com/v2".into(),
            plural: "llamas".into(),
            prefix: "farm-".into(),
            selector: [("farm".to_owned(), "yes".to_owned())].into(),
            backing: Backing {
                api_version: "store.example.com/v1".into(),
                kind: "Record".into(),
                ..Backing::default()
            },
            reads: vec!["spec".into()],
            writes: vec!["spec.weight".into(), "spec.home.pen".into()],
            ..Served::default()
        };
        Lens::new("llamas", served, Access::ViewAndBacking, Vec::new(), Epoch::default())
    }

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    fn current(lens: &Lens) -> BackingObject {
        Cut::new(lens.served.reads.iter().chain(&lens.served.writes)).of(&json!({
            "metadata": {"name": "dolly", "uid": UID, "resourceVersion": "7", "labels": {"farm": "yes", "old": "1"},
                "annotations": {"a": "1"}, "finalizers": ["orphan", "x/y"]},
            "spec": {"weight": 1, "home": {"pen": "north", "door": "red"}, "unknown": [null, 1]},
        }))
    }

    #[test]
    fn of_what_is_stored_only_the_declared_fields_are_created() {
        let written = json!({"metadata": {"name": "farm-dolly", "namespace": "a", "labels": {"b": "c"}, "uid": "x", "resourceVersion": "1",
            "managedFields": [{}], "creationTimestamp": "t", "finalizers": ["x/y"]}});
        let stored = map(
            json!({"spec": {"weight": 2, "home": {"pen": "south", "door": "blue"}, "other": 1}, "status": {}}),
        );
        let write = lens().create(&written, &stored).unwrap();
        let body = json!({
            "apiVersion": "store.example.com/v1", "kind": "Record",
            "metadata": {"name": "dolly", "namespace": "a", "labels": {"b": "c", "farm": "yes"}, "finalizers": ["x/y"]},
            "spec": {"weight": 2, "home": {"pen": "south"}},
        });
        assert_eq!(write, Write { body, ignored: vec![] });
    }

    #[test]
    fn a_name_without_the_prefix_and_a_label_against_the_selector_are_refused_with_their_fields() {
        let fields = |metadata: Value| match lens().create(&json!({"metadata": metadata}), &Map::new()) {
            Err(Refusal::Invalid(causes)) => causes.into_iter().map(|cause| cause.field).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
        assert_eq!(fields(json!({"name": "dolly"})), ["metadata.name"]);
        assert_eq!(fields(json!({"generateName": "farm-"})), ["metadata.generateName"]);
        assert_eq!(fields(json!({"name": "farm-a", "labels": {"farm": "no"}})), ["metadata.labels[farm]"]);
    }

    #[test]
    fn an_update_changes_the_declared_fields_and_what_is_shown_of_the_metadata_alone() {
        let lens = lens();
        let written = map(
            json!({"name": "farm-dolly", "labels": {"farm": "yes", "new": "2"}, "annotations": {"b": "2"}, "finalizers": []}),
        );
        let stored = map(json!({"spec": {"weight": 3, "unknown": []}}));
        let write = lens.update(&current(&lens), &written, Some(&stored)).unwrap();
        let body = json!({
            "metadata": {"uid": UID, "resourceVersion": "7", "labels": {"new": "2", "old": null}, "annotations": {"a": null, "b": "2"},
                "finalizers": ["orphan"]},
            "spec": {"weight": 3, "home": {"pen": null}},
        });
        assert_eq!(write.body, body);
    }

    #[test]
    fn what_is_shown_and_written_back_changes_nothing() {
        let lens = lens();
        let current = current(&lens);
        let written = lens.shown_metadata(&current.metadata);
        let write = lens.update(&current, &written, Some(&current.fields)).unwrap();
        assert_eq!(write.body, json!({"metadata": {"uid": UID, "resourceVersion": "7"}}));
        assert_eq!(lens.update(&current, &written, None).unwrap().body, write.body);
    }

    #[test]
    fn the_label_of_the_selector_cannot_be_taken_away_and_another_uid_is_a_conflict() {
        let lens = lens();
        let refused = lens.update(&current(&lens), &map(json!({"labels": {}})), None).unwrap_err();
        assert!(
            matches!(&refused, Refusal::Invalid(causes) if causes[0].field == "metadata.labels[farm]"),
            "{refused:?}"
        );
        let refused = lens.update(&current(&lens), &map(json!({"uid": UID})), None).unwrap_err();
        let shown = lens.mask.map(UID);
        let message = format!("Precondition failed: UID in precondition: {UID}, UID in object meta: {shown}");
        assert_eq!(
            refused,
            Refusal::Conflict(message),
            "the backing object's uid is not the one that is shown"
        );
    }

    #[test]
    fn a_difference_applied_makes_the_one_of_the_other() {
        let cases = [
            (json!({}), json!({"a": {"b": {"c": 1}}})),
            (json!({"a": {"b": 1, "c": [1]}}), json!({"a": {"c": [2]}, "d": 1})),
            (json!({"a": {"b": 1}}), json!({"a": 1})),
            (json!({"a": 1}), json!({"a": {"b": 1}})),
        ];
        for (from, to) in cases {
            let mut made = from.clone();
            json_patch::merge(
                &mut made,
                &difference(from.as_object().unwrap(), to.as_object().unwrap()).into(),
            );
            assert_eq!(made, to);
        }
        assert_eq!(
            difference(&map(json!({"a": 1})), &map(json!({"a": null, "b": null}))),
            map(json!({"a": null}))
        );
    }
}
