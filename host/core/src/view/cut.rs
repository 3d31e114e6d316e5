//! [`Cut`]: reads objects of a backing kind, and keeps only what a view needs of them.
//!
//! A Pod has some hundred fields, and a view reads a few. What it does not read is skipped while it is parsed and never takes memory.

use std::{collections::BTreeMap, fmt};

use pintle_wit::Kind;
use serde::{
    Deserializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};

use super::{Lens, metadata::LAST_APPLIED};
use crate::{object, request};

/// The fields of a backing kind that a view needs.
#[derive(Clone, Debug)]
pub struct Cut(Node);

/// What is kept of a value.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    /// All of it.
    Whole,
    /// These fields.
    Fields(BTreeMap<String, Node>),
}

/// Where an object was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// In what says that it is stored so at its version: a get or a list of whole objects, an event that it came or changed, or the answer to
    /// a write that was carried out and after which it is still there.
    Stored,
    /// Elsewhere, so that its version does not tell its content. A dry run answers other content at the version that there is, and so may the
    /// update that takes away the last finalizer of an object that is being deleted. An event that an object is gone from a selection has the
    /// content from before the change, and the version after it.
    #[default]
    Elsewhere,
}

/// An object of a backing kind, as far as a view needs it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BackingObject {
    /// Where it was read. What is shown of it may be remembered under its version, or be what is remembered, if it is stored so.
    pub source: Source,
    /// Its metadata, without managed fields and kubectl's copy.
    pub metadata: Map<String, Value>,
    /// Its other fields that the view reads or writes.
    pub fields: Map<String, Value>,
}

impl Cut {
    /// What a view needs that reads and writes the fields at these paths.
    pub fn new<'a>(paths: impl IntoIterator<Item = &'a String>) -> Self {
        let mut root = Node::Fields(BTreeMap::new());
        for path in paths {
            root.keep(path.split('.'));
        }
        Self(root)
    }

    /// Metadata alone.
    pub fn metadata_alone() -> Self {
        Self(Node::Fields(BTreeMap::new()))
    }

    /// Reads an object of this source.
    ///
    /// # Errors
    /// When it is no JSON object, or its metadata are none.
    pub fn read(&self, json: &[u8], source: Source) -> Result<BackingObject, serde_json::Error> {
        let mut deserializer = serde_json::Deserializer::from_slice(json);
        let object = Object(&self.0).deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(BackingObject { source, ..object })
    }

    /// The same of an object that was read already, wherever that was.
    pub fn of(&self, object: &Value) -> BackingObject {
        // What is no object has no fields.
        Object(&self.0).deserialize(object).unwrap_or_default()
    }
}

impl BackingObject {
    /// The object as its guest sees it. Labels and annotations, of which there may be more than of all else, cross only if the view reads
    /// them.
    pub fn for_guest(&self, lens: &Lens) -> Value {
        let mut object = self.fields.clone();
        object.extend(self.head_for_guest(lens));
        Value::Object(object)
    }

    /// The same, as JSON. Its fields, which may be large, are not copied for it.
    pub fn for_guest_json(&self, lens: &Lens) -> String {
        let head = self.head_for_guest(lens);
        let object: BTreeMap<&str, &Value> =
            self.fields.iter().chain(&head).map(|(key, value)| (key.as_str(), value)).collect();
        // A map with text keys cannot fail to be written.
        serde_json::to_string(&object).unwrap_or_default()
    }

    /// What is not of its fields, as its guest sees it.
    fn head_for_guest(&self, lens: &Lens) -> Map<String, Value> {
        let Kind { api_version, kind } = lens.served.backing.kind();
        let is_read = |entries: &&str| {
            let field = |path: &String| path.strip_prefix("metadata.").is_some_and(|field| field == *entries);
            lens.served.reads.iter().any(field)
        };
        let entries: Vec<&str> = request::ENTRIES.into_iter().filter(is_read).collect();
        let metadata = request::metadata(&self.metadata, &entries);
        let head = [("apiVersion", api_version.into()), ("kind", kind.into()), ("metadata", metadata)];
        head.map(|(key, value)| (key.to_owned(), value)).into_iter().collect()
    }

    /// The memory that it takes, in bytes, as far as can be estimated from its values.
    pub fn bytes(&self) -> usize {
        object::fields_bytes(&self.metadata) + object::fields_bytes(&self.fields)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.text("name")
    }

    /// Its uid.
    pub fn uid(&self) -> &str {
        self.text("uid")
    }

    /// Its version.
    pub fn version(&self) -> &str {
        self.text("resourceVersion")
    }

    fn text(&self, key: &str) -> &str {
        self.metadata.get(key).and_then(Value::as_str).unwrap_or_default()
    }
}

impl Node {
    fn keep<'a>(&mut self, mut path: impl Iterator<Item = &'a str>) {
        let Self::Fields(fields) = self else { return };
        match path.next() {
            Some(step) => {
                let nothing = || Self::Fields(BTreeMap::new());
                fields.entry(step.to_owned()).or_insert_with(nothing).keep(path);
            }
            None => *self = Self::Whole,
        }
    }

    fn field(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Whole => Some(self),
            Self::Fields(fields) => fields.get(key),
        }
    }
}

/// Reads an object.
struct Object<'a>(&'a Node);

impl<'de> DeserializeSeed<'de> for Object<'_> {
    type Value = BackingObject;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<BackingObject, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Object<'_> {
    type Value = BackingObject;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<BackingObject, A::Error> {
        let mut object = BackingObject::default();
        while let Some(key) = access.next_key::<String>()? {
            match (key.as_str(), self.0.field(&key)) {
                ("metadata", _) => object.metadata = access.next_value_seed(Metadata::Fields)?,
                ("apiVersion" | "kind", _) | (_, None) => {
                    access.next_value::<IgnoredAny>()?;
                }
                (_, Some(node)) => {
                    let value = access.next_value_seed(Kept(node))?;
                    object.fields.insert(key, value);
                }
            }
        }
        Ok(object)
    }
}

/// Reads metadata: its fields, or its annotations.
#[derive(Clone, Copy, PartialEq)]
enum Metadata {
    Fields,
    Annotations,
}

impl<'de> DeserializeSeed<'de> for Metadata {
    type Value = Map<String, Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Metadata {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("metadata")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut metadata = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let value = match (self, key.as_str()) {
                (Self::Fields, "managedFields") | (Self::Annotations, LAST_APPLIED) => {
                    access.next_value::<IgnoredAny>()?;
                    continue;
                }
                (Self::Fields, "annotations") => access.next_value_seed(Self::Annotations)?.into(),
                _ => access.next_value()?,
            };
            metadata.insert(key, value);
        }
        Ok(metadata)
    }
}

/// Reads what is kept of a value. Of a list it is the same in each item, and what has no fields cannot have the one that is read.
struct Kept<'a>(&'a Node);

impl<'de> DeserializeSeed<'de> for Kept<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        match self.0 {
            Node::Whole => serde::Deserialize::deserialize(deserializer),
            Node::Fields(_) => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Kept<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut kept = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            match self.0.field(&key) {
                Some(node) => {
                    let value = access.next_value_seed(Kept(node))?;
                    kept.insert(key, value);
                }
                None => {
                    access.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(kept.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut kept = Vec::new();
        while let Some(item) = access.next_element_seed(Kept(self.0))? {
            kept.push(item);
        }
        Ok(kept.into())
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cut(paths: &[&str]) -> Cut {
        let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        Cut::new(&paths)
    }

    fn pod() -> Value {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "web", "managedFields": [{}], "annotations": {LAST_APPLIED: "{}", "a": "b"}},
            "spec": {"containers": [{"name": "a", "image": "i", "ports": [{"name": "p", "port": 1}]}, 7], "nodeName": null, "hostNetwork": true},
            "status": {"phase": "Running"},
        })
    }

    #[test]
    fn only_the_fields_that_are_read_are_kept_also_within_lists() {
        let object = cut(&["spec.containers.ports.port", "spec.nodeName", "status.message"]);
        let kept = object.of(&pod());
        assert_eq!(Value::Object(kept.metadata), json!({"name": "web", "annotations": {"a": "b"}}));
        let fields =
            json!({"spec": {"containers": [{"ports": [{"port": 1}]}, 7], "nodeName": null}, "status": {}});
        assert_eq!(Value::Object(kept.fields), fields);
    }

    #[test]
    fn a_path_within_another_that_is_read_adds_nothing() {
        for paths in [["spec", "spec.containers"], ["spec.containers", "spec"]] {
            assert_eq!(cut(&paths).of(&pod()).fields["spec"], pod()["spec"], "{paths:?}");
        }
    }

    #[test]
    fn labels_and_annotations_cost_only_a_guest_that_reads_them() {
        let labels: Map<String, Value> = (0..14_364).map(|at| (format!("l{at}"), "x".into())).collect();
        let metadata = json!({"name": "big", "uid": "u", "labels": labels, "annotations": {"a": "b"}});
        let seen = |reads: &[&str]| {
            let reads: Vec<String> = reads.iter().map(|path| (*path).to_owned()).collect();
            let cut = Cut::new(&reads).of(&json!({"metadata": metadata, "spec": {"weight": 1}}));
            let served = super::super::Served { reads, ..Default::default() };
            let lens =
                Lens::new("llamas", served, Default::default(), Vec::new(), super::super::Epoch::default());
            cut.for_guest(&lens)
        };
        let all = Cut::new(&[]).of(&json!({"metadata": metadata}));
        assert!(all.bytes() > metadata.to_string().len() && all.bytes() < 3 << 20, "{}", all.bytes());
        let few = json!({"name": "big", "uid": "u"});
        assert_eq!(seen(&["spec"])["metadata"], few);
        assert_eq!(seen(&["spec", "metadata.labels"])["metadata"]["labels"], metadata["labels"]);
        assert_eq!(seen(&["metadata.labels"])["metadata"].get("annotations"), None);
        let annotated = seen(&["metadata.annotations"]);
        assert_eq!(annotated["metadata"], json!({"name": "big", "uid": "u", "annotations": {"a": "b"}}));
    }

    #[test]
    fn an_object_is_cut_alike_while_it_is_parsed_and_afterwards() {
        let text = pod().to_string();
        for paths in [
            &["spec.containers.ports.port", "status"][..],
            &["spec"],
            &[],
            &["metadata.name"],
            &["spec.hostNetwork.x"],
        ] {
            let read = cut(paths).read(text.as_bytes(), Source::Elsewhere);
            assert_eq!(read.unwrap(), cut(paths).of(&pod()), "{paths:?}");
        }
        assert!(cut(&[]).read(b"[]", Source::Stored).is_err());
        assert!(cut(&[]).read(b"{} x", Source::Stored).is_err());
    }
}
