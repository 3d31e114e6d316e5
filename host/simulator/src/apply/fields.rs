//! Sets of fields, as in `fieldsV1`.

use std::{
    collections::BTreeSet,
    ops::Bound::{Included, Unbounded},
    sync::Arc,
};

use serde_json::{Map, Value};

use pintle_schema::shape::Shape;

/// A field, as a list of steps in the notation of `fieldsV1`: `f:data`, `k:{"name":"a"}` or `v:"x"`.
pub(crate) type Path = Vec<String>;

/// A set of fields. A field in the set does not imply the fields inside it. Sets are derived from each other all the time, so they share
/// their paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSet(BTreeSet<Arc<[String]>>);

impl FieldSet {
    /// Fields by name, for instance `metadata.name`.
    pub(crate) fn named(paths: &[&str]) -> Self {
        Self(paths.iter().map(|path| path.split('.').map(|step| format!("f:{step}")).collect()).collect())
    }

    pub(crate) fn insert(&mut self, path: &[String]) {
        self.0.insert(path.into());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn has(&self, path: &[String]) -> bool {
        self.0.contains(path)
    }

    /// Whether a field inside this one is in the set.
    pub(crate) fn has_within(&self, path: &[String]) -> bool {
        // In the order of the set, a path is followed by the paths that begin with it.
        self.0
            .range::<[String], _>((Included(path), Unbounded))
            .find(|other| other.as_ref() != path)
            .is_some_and(|other| other.starts_with(path))
    }

    pub(crate) fn is_within(&self, other: &Self) -> bool {
        self.0.is_subset(&other.0)
    }

    pub(crate) fn union(&self, other: &Self) -> Self {
        Self(self.0.union(&other.0).cloned().collect())
    }

    pub(crate) fn difference(&self, other: &Self) -> Self {
        Self(self.0.difference(&other.0).cloned().collect())
    }

    pub(crate) fn intersection(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).cloned().collect())
    }

    /// The set without these fields and all fields inside them.
    pub(crate) fn without(&self, roots: &Self) -> Self {
        let keeps = |path: &&Arc<[String]>| !(1..=path.len()).any(|length| roots.has(&path[..length]));
        Self(self.0.iter().filter(keeps).cloned().collect())
    }

    /// The set, and every declared field that contains one of its fields.
    pub(crate) fn with_declared_parents(&self, shape: Shape<'_>) -> Self {
        let mut set = self.clone();
        for path in &self.0 {
            let mut at = Some(shape);
            for (index, step) in path.iter().enumerate() {
                let declared =
                    step.strip_prefix("f:").and_then(|name| at.and_then(|shape| shape.field(name)));
                if declared.is_some() && index + 1 < path.len() {
                    set.insert(&path[..=index]);
                }
                at = at.and_then(|shape| shape.step(step));
            }
        }
        set
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &[String]> {
        self.0.iter().map(AsRef::as_ref)
    }

    pub(crate) fn to_fields_v1(&self) -> Value {
        let mut root = Map::new();
        for path in &self.0 {
            mark(&mut root, path);
        }
        let mut root = Value::Object(root);
        drop_lone_dots(&mut root);
        root
    }

    pub(crate) fn from_fields_v1(fields: &Value) -> Self {
        let mut set = Self::default();
        collect(fields, &mut Vec::new(), &mut set);
        set
    }
}

/// `.` means the field itself.
fn mark(at: &mut Map<String, Value>, path: &[String]) {
    match path.split_first() {
        None => drop(at.insert(".".into(), Value::Object(Map::new()))),
        Some((step, rest)) => {
            let within = at.entry(step.clone()).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(within) = within {
                mark(within, rest);
            }
        }
    }
}

/// The dot is left out if nothing inside the field is in the set.
fn drop_lone_dots(node: &mut Value) {
    let Value::Object(fields) = node else { return };
    if fields.len() == 1 && fields.contains_key(".") {
        fields.clear();
    }
    fields.values_mut().for_each(drop_lone_dots);
}

fn collect(node: &Value, path: &mut Path, set: &mut FieldSet) {
    let Value::Object(fields) = node else { return };
    if fields.is_empty() && !path.is_empty() {
        set.insert(path);
    }
    for (step, within) in fields {
        if step == "." {
            set.insert(path);
            continue;
        }
        path.push(step.clone());
        collect(within, path, set);
        path.pop();
    }
}

/// A path as messages show it: `.spec.ports[containerPort=80,protocol="TCP"].name`.
pub(crate) fn shown(path: &[String]) -> String {
    path.iter()
        .map(|step| match step.split_at_checked(2) {
            Some(("f:", name)) => format!(".{name}"),
            Some(("k:", keys)) => {
                let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
                let keys: Vec<String> = keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
                format!("[{}]", keys.join(","))
            }
            Some(("v:", value)) => format!("[={value}]"),
            _ => step.clone(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_v1_goes_there_and_back() {
        let fields = json!({
            "f:data": {".": {}, "f:a": {}},
            "f:spec": {"f:ports": {"k:{\"port\":80}": {".": {}, "f:port": {}}}},
        });
        let set = FieldSet::from_fields_v1(&fields);
        assert_eq!(set.paths().count(), 4);
        assert_eq!(set.to_fields_v1(), fields);
        assert_eq!(shown(&["f:spec".into(), "k:{\"port\":80}".into()]), ".spec[port=80]");
    }

    #[test]
    fn what_is_within_a_field_is_found() {
        let set = FieldSet::named(&["a.b", "a-b"]);
        assert!(set.has_within(&["f:a".into()]));
        assert!(!set.has_within(&["f:a-b".into()]));
        assert_eq!(set.without(&FieldSet::named(&["a"])), FieldSet::named(&["a-b"]));
    }
}
