//! Managed fields: which manager set which field.

use std::collections::BTreeMap;

use pintle_schema::shape::Shape;
use pintle_wit::Cause;
use serde_json::{Value, json};

use super::{
    fields::{FieldSet, shown},
    walk::{self, Comparison},
};
use crate::{Failure, failure::cause};

/// Who wrote, and how.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Manager {
    /// `Apply` or `Update`.
    pub(crate) operation: &'static str,
    pub(crate) name: String,
    /// Only for an update: two versions of one kind are two managers.
    version: String,
    /// `status`, or empty.
    pub(crate) subresource: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Owned {
    fields: FieldSet,
    api_version: String,
    time: String,
}

/// All managers of an object, with their fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Managers(BTreeMap<Manager, Owned>);

/// The fields that no manager owns.
const NOBODYS: [&str; 11] = [
    "apiVersion",
    "kind",
    "metadata",
    "metadata.name",
    "metadata.namespace",
    "metadata.creationTimestamp",
    "metadata.selfLink",
    "metadata.uid",
    "metadata.generation",
    "metadata.managedFields",
    "metadata.resourceVersion",
];

impl Manager {
    pub(crate) fn apply(name: &str, subresource: Option<&str>) -> Self {
        Self {
            operation: "Apply",
            name: name.into(),
            version: String::new(),
            subresource: subresource.unwrap_or_default().into(),
        }
    }

    pub(crate) fn update(name: &str, api_version: &str, subresource: Option<&str>) -> Self {
        Self {
            operation: "Update",
            name: name.into(),
            version: api_version.into(),
            subresource: subresource.unwrap_or_default().into(),
        }
    }

    /// The name in messages about conflicts.
    fn shown(&self) -> String {
        let name = format!("{:?}", self.name);
        let subresource = match self.subresource.as_str() {
            "" => String::new(),
            subresource => format!(" with subresource {subresource:?}"),
        };
        match self.operation {
            "Apply" => format!("{name}{subresource}"),
            _ => format!("{name}{subresource} using {}", self.version),
        }
    }
}

impl Managers {
    /// The managers in an object's managed fields, without entries that cannot be read.
    pub(crate) fn of(object: &Value) -> Self {
        let entries = object["metadata"]["managedFields"].as_array().map(Vec::as_slice).unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let read = entries.iter().filter_map(|entry| {
            let (name, api_version) = (text(&entry["manager"]), text(&entry["apiVersion"]));
            let subresource = entry["subresource"].as_str();
            let manager = match entry["operation"].as_str()? {
                "Apply" => Manager::apply(&name, subresource),
                "Update" => Manager::update(&name, &api_version, subresource),
                _ => return None,
            };
            let fields = FieldSet::from_fields_v1(&entry["fieldsV1"]);
            Some((manager, Owned { fields, api_version, time: text(&entry["time"]) }))
        });
        Self(read.collect())
    }

    /// The managers after an object is replaced: those of the new object, or else those of the old one.
    pub(crate) fn of_replacement(live: &Value, next: &Value, subresource: bool) -> Self {
        let named = &next["metadata"]["managedFields"];
        if subresource {
            return Self::of(live);
        }
        // One empty entry means that all managers are removed.
        if named == &json!([{}]) {
            return Self::default();
        }
        let next = Self::of(next);
        if next.0.is_empty() { Self::of(live) } else { next }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many managers wrote in another way than by apply.
    pub(crate) fn updaters(&self) -> usize {
        self.0.keys().filter(|manager| manager.operation == "Update").count()
    }

    /// Writes the managed fields into an object.
    pub(crate) fn write(&self, object: &mut Value) {
        let mut entries: Vec<(&Manager, &Owned)> = self.0.iter().collect();
        entries.sort_by_key(|(manager, owned)| {
            (manager.operation, &owned.time, &manager.name, &owned.api_version, &manager.subresource)
        });
        let entries: Vec<Value> = entries
            .into_iter()
            .map(|(manager, owned)| {
                let mut entry = json!({
                    "manager": manager.name, "operation": manager.operation, "apiVersion": owned.api_version,
                    "time": owned.time, "fieldsType": "FieldsV1", "fieldsV1": owned.fields.to_fields_v1(),
                });
                if !manager.subresource.is_empty() {
                    entry["subresource"] = manager.subresource.as_str().into();
                }
                entry
            })
            .collect();
        match object["metadata"].as_object_mut() {
            Some(metadata) if entries.is_empty() => drop(metadata.remove("managedFields")),
            Some(metadata) => drop(metadata.insert("managedFields".into(), entries.into())),
            None => {}
        }
    }

    /// Keeps the earlier times of managers whose fields are the same, because a write that changes nothing is not a write.
    pub(crate) fn with_times_of(mut self, before: &Self) -> Self {
        for (manager, owned) in &mut self.0 {
            if let Some(was) = before.0.get(manager).filter(|was| was.fields == owned.fields) {
                owned.time.clone_from(&was.time);
            }
        }
        self
    }

    /// Removes changed fields from the managers that owned them.
    fn disown(&mut self, comparison: &Comparison) {
        if comparison.is_empty() {
            return;
        }
        let changed = comparison.modified.union(&comparison.added).union(&comparison.removed);
        for owned in self.0.values_mut() {
            owned.fields = owned.fields.difference(&changed);
        }
        self.0.retain(|_, owned| !owned.fields.is_empty());
    }

    /// The managers after somebody changed an object in another way than by apply.
    pub(crate) fn updated(mut self, write: &Write<'_>, live: &Value, next: &Value) -> Self {
        let comparison = write.comparison(live, next);
        let fields = self.0.get(&write.manager).map(|owned| owned.fields.clone()).unwrap_or_default();
        self.disown(&comparison);
        let changed = comparison.modified.union(&comparison.added);
        let changed = changed.difference(&FieldSet::named(&NOBODYS));
        let kept = fields.difference(&comparison.removed);
        if !changed.is_empty() {
            let fields = kept.union(&changed);
            let owned = Owned { fields, api_version: write.api_version.into(), time: write.time.into() };
            self.0.insert(write.manager.clone(), owned);
        } else if let Some(owned) = self.0.get_mut(&write.manager) {
            owned.fields = kept;
        }
        self.0.retain(|_, owned| !owned.fields.is_empty());
        self
    }

    /// The object after an apply, and its managers.
    ///
    /// # Errors
    /// 409 with every field that another manager owns and that would change, unless the apply is forced.
    pub(crate) fn applied(
        mut self,
        write: &Write<'_>,
        live: &Value,
        sent: &Value,
        force: bool,
    ) -> Result<(Value, Self), Failure> {
        let shape = write.shape;
        let merged = walk::merge(shape, Some(live), sent);
        let last = self.0.get(&write.manager).cloned();
        let before = self.clone();
        let fields = walk::field_set(shape, sent).without(write.resets);
        let api_version = write.api_version.to_owned();
        let owned = Owned { fields, api_version, time: write.time.into() };
        self.0.insert(write.manager.clone(), owned);
        let next = match &last {
            Some(last) => self.prune(shape, merged, &last.fields),
            None => merged,
        };
        // Not earlier, because fields that nobody can own, but that were sent, keep the fields around them from being pruned.
        if let Some(owned) = self.0.get_mut(&write.manager) {
            owned.fields = owned.fields.difference(&FieldSet::named(&NOBODYS));
        }
        let comparison = write.comparison(live, &next);
        let changed = comparison.modified.union(&comparison.added);
        let mut conflicts = Vec::new();
        for (manager, owned) in &mut self.0 {
            if *manager == write.manager {
                continue;
            }
            let theirs = owned.fields.intersection(&changed);
            if !theirs.is_empty() {
                conflicts.push((manager.clone(), theirs));
            }
            if !comparison.is_empty() {
                owned.fields = owned.fields.difference(&changed).difference(&comparison.removed);
            }
        }
        if !force && !conflicts.is_empty() {
            return Err(conflict(&conflicts));
        }
        self.0.retain(|_, owned| !owned.fields.is_empty());
        let managers = if next == *live { self.with_times_of(&before) } else { self };
        Ok((next, managers))
    }

    /// Removes the fields that this manager applied last time and does not apply now, if nobody else owns them.
    fn prune(&self, shape: Shape<'_>, merged: Value, last: &FieldSet) -> Value {
        let managed = self.0.values().fold(FieldSet::default(), |all, owned| all.union(&owned.fields));
        // All fields of the last apply still have an owner, as after most applies.
        if last.is_within(&managed) {
            return merged;
        }
        let last = last.with_declared_parents(shape);
        let managed = managed.with_declared_parents(shape);
        let set = |value: &Value| walk::field_set(shape, value).with_declared_parents(shape);
        let all = set(&merged);
        let without = set(&walk::remove(shape, &merged, &last));
        let pruned = walk::remove(shape, &merged, &all.difference(&without.union(&managed)));
        let gone = all.difference(&set(&pruned)).intersection(&last);
        walk::remove(shape, &merged, &gone)
    }
}

/// A write, as far as managed fields depend on it.
pub(crate) struct Write<'a> {
    pub(crate) shape: Shape<'a>,
    pub(crate) manager: Manager,
    pub(crate) api_version: &'a str,
    pub(crate) time: &'a str,
    /// The fields that this way of writing cannot set, for instance the status.
    pub(crate) resets: &'a FieldSet,
}

impl Write<'_> {
    /// Compares two objects that have no managed fields.
    fn comparison(&self, live: &Value, next: &Value) -> Comparison {
        let all = walk::compare(self.shape, live, next);
        Comparison {
            added: all.added.without(self.resets),
            modified: all.modified.without(self.resets),
            removed: all.removed.without(self.resets),
        }
    }
}

fn conflict(conflicts: &[(Manager, FieldSet)]) -> Failure {
    let causes: Vec<Cause> = conflicts
        .iter()
        .flat_map(|(manager, fields)| {
            let message = format!("conflict with {}", manager.shown());
            fields.paths().map(move |path| cause(&shown(path), "FieldManagerConflict", message.clone()))
        })
        .collect();
    let noun = if causes.len() == 1 { "conflict" } else { "conflicts" };
    let message = format!(
        "Apply failed with {} {noun}: {}",
        causes.len(),
        causes
            .iter()
            .map(|cause| format!("{}: {}", cause.message, cause.field))
            .collect::<Vec<_>>()
            .join(", ")
    );
    Failure { causes, ..Failure::new(409, "Conflict", message) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes an object by `apply`, `force` or `update`, as somebody.
    fn write(object: &mut Value, how: &str, name: &str, sent: Value) -> Result<(), Failure> {
        let text = json!({"type": "string"});
        let map = json!({"type": "object", "additionalProperties": text});
        let schema = json!({"type": "object", "properties": {
            "metadata": {"type": "object", "properties": {"name": text, "labels": map, "managedFields": {"type": "array"}}},
            "spec": {"type": "object", "properties": {"a": text, "b": text, "map": map}},
        }});
        let (shape, resets) = (Shape::new(&Value::Null, &schema), FieldSet::default());
        let manager = match how {
            "update" => Manager::update(name, "v1", None),
            _ => Manager::apply(name, None),
        };
        let write = Write { shape, manager, api_version: "v1", time: "now", resets: &resets };
        let managers = Managers::of(object);
        let (mut next, managers) = match how {
            "update" => {
                let managers = managers.updated(&write, object, &sent);
                (sent, managers)
            }
            _ => managers.applied(&write, object, &sent, how == "force")?,
        };
        managers.write(&mut next);
        *object = next;
        Ok(())
    }

    fn owned(object: &Value, name: &str) -> Value {
        let mut entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
        entries.find(|entry| entry["manager"] == name).map_or(Value::Null, |entry| entry["fieldsV1"].clone())
    }

    #[test]
    fn what_a_manager_stops_sending_goes_unless_somebody_else_owns_it() {
        let mut object = json!({"metadata": {}});
        write(&mut object, "apply", "one", json!({"spec": {"a": "1", "b": "2", "map": {"x": "y"}}})).unwrap();
        write(&mut object, "apply", "two", json!({"spec": {"b": "2"}})).unwrap();
        write(&mut object, "apply", "one", json!({"spec": {"a": "1"}})).unwrap();
        assert_eq!(object["spec"], json!({"a": "1", "b": "2"}));
        write(&mut object, "apply", "two", json!({"spec": {}})).unwrap();
        assert_eq!(object["spec"], json!({"a": "1"}));
    }

    #[test]
    fn an_object_keeps_its_name_when_nothing_else_of_its_metadata_is_sent_any_longer() {
        let mut object = json!({"metadata": {}});
        write(&mut object, "apply", "one", json!({"metadata": {"name": "a", "labels": {"x": "y"}}})).unwrap();
        write(&mut object, "apply", "one", json!({"metadata": {"name": "a"}})).unwrap();
        assert_eq!(object["metadata"]["name"], "a");
        assert_eq!(object["metadata"].get("labels"), None);
    }

    #[test]
    fn a_change_of_what_others_own_is_a_conflict_and_force_takes_it() {
        let mut object = json!({"metadata": {}});
        write(&mut object, "apply", "one", json!({"spec": {"a": "1", "b": "2"}})).unwrap();
        let failure = write(&mut object, "apply", "two", json!({"spec": {"a": "9"}})).unwrap_err();
        assert_eq!((failure.code, failure.causes[0].field.as_str()), (409, ".spec.a"));
        write(&mut object, "force", "two", json!({"spec": {"a": "9"}})).unwrap();
        assert_eq!(owned(&object, "one"), json!({"f:spec": {"f:b": {}}}));
        assert_eq!(owned(&object, "two"), json!({"f:spec": {"f:a": {}}}));
    }

    #[test]
    fn an_update_takes_what_it_changes_and_no_more() {
        let mut object = json!({"metadata": {}});
        write(&mut object, "apply", "one", json!({"spec": {"a": "1", "b": "2"}})).unwrap();
        let mut next = object.clone();
        next["spec"]["a"] = "9".into();
        write(&mut object, "update", "user", next).unwrap();
        assert_eq!(owned(&object, "one"), json!({"f:spec": {"f:b": {}}}));
        assert_eq!(owned(&object, "user"), json!({"f:spec": {"f:a": {}}}));
        write(&mut object, "force", "one", json!({"spec": {"a": "1", "b": "2"}})).unwrap();
        assert_eq!(owned(&object, "user"), Value::Null);
    }

    #[test]
    fn an_apply_that_changes_nothing_leaves_even_the_time() {
        let mut object = json!({"metadata": {}});
        write(&mut object, "apply", "one", json!({"spec": {"a": "1"}})).unwrap();
        object["metadata"]["managedFields"][0]["time"] = "before".into();
        let before = object.clone();
        write(&mut object, "force", "one", json!({"spec": {"a": "1"}})).unwrap();
        assert_eq!(object, before);
    }
}
