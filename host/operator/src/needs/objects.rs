//! How much of an object the cache of needs keeps.

use std::{collections::BTreeSet, mem::size_of, sync::Arc};

use pintle_core::{
    needs::{field, head, put},
    object, reconciler,
};
use pintle_wit::Kind;
use serde_json::Value;

use super::{Labels, PathValue};
use crate::store::comparable;

/// Which fields a watch brings of each object of a kind, sorted.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Brings {
    pub(super) fields: Box<[String]>,
    /// The paths of indexes.
    pub(super) paths: Box<[String]>,
}

impl Brings {
    pub(super) fn has_fields(&self, fields: &[String]) -> bool {
        fields.iter().all(|field| self.fields.binary_search(field).is_ok())
    }

    pub(super) fn has_path(&self, path: &String) -> bool {
        self.paths.binary_search(path).is_ok()
    }

    /// The fields that both have.
    pub(super) fn shared(&self, other: &Self) -> Self {
        Self {
            fields: self
                .fields
                .iter()
                .filter(|one| other.fields.binary_search(one).is_ok())
                .cloned()
                .collect(),
            paths: self.paths.iter().filter(|one| other.has_path(one)).cloned().collect(),
        }
    }

    /// Whether the watch must bring more than metadata. Owner references are part of the metadata.
    pub(super) fn is_whole(&self) -> bool {
        self.fields.iter().any(|field| !field.starts_with("metadata.")) || !self.paths.is_empty()
    }
}

/// The kept part of an object, as JSON: its head, and each field by itself, so that the fields of one guest do not make the answers to
/// other guests longer.
#[derive(Debug, PartialEq)]
pub(crate) struct Kept {
    pub(super) brings: Arc<Brings>,
    pub(super) head: Box<[u8]>,
    /// The fields that the object has, by their index in the fields of the round.
    pub(super) fields: Box<[(u32, Box<[u8]>)]>,
}

impl Kept {
    pub(super) fn of(live: &Value, brings: &Arc<Brings>) -> Self {
        // Plain data with string keys: writing it as JSON cannot fail.
        let text = |value: &Value| serde_json::to_vec(value).unwrap_or_default().into_boxed_slice();
        let fields = (0_u32..).zip(&brings.fields);
        let fields = fields.filter_map(|(index, path)| Some((index, text(field(live, path)?))));
        Self { brings: Arc::clone(brings), head: text(&head(live)), fields: fields.collect() }
    }

    pub(super) fn field(&self, path: &String) -> Option<&[u8]> {
        let index = u32::try_from(self.brings.fields.binary_search(path).ok()?).ok()?;
        let at = self.fields.binary_search_by_key(&index, |(index, _)| *index).ok()?;
        self.fields.get(at).map(|(_, text)| &**text)
    }

    /// An upper bound of its size as JSON with these fields, in bytes.
    pub(super) fn bytes(&self, fields: &[String]) -> usize {
        // Each step of a path has quotes, a colon, braces and perhaps a comma.
        let field = |path: &String| {
            self.field(path).map_or(0, |text| text.len() + path.len() + 6 * path.split('.').count())
        };
        self.head.len() + fields.iter().map(field).sum::<usize>()
    }

    /// The object with these fields.
    pub(crate) fn value(&self, fields: &[String]) -> Value {
        // They were written as JSON from values.
        let value = |text: &[u8]| serde_json::from_slice::<Value>(text).unwrap_or_default();
        let mut shown = value(&self.head);
        for path in fields {
            if let Some(text) = self.field(path) {
                put(&mut shown, path, value(text));
            }
        }
        shown
    }

    /// Whether a field differs that both have. A field that only one has was not known before, or is not needed any more.
    pub(super) fn differs(&self, other: &Self) -> bool {
        let fields_differ = || match Arc::ptr_eq(&self.brings, &other.brings) {
            true => self.fields != other.fields,
            false => self
                .brings
                .fields
                .iter()
                .filter(|path| other.brings.fields.binary_search(path).is_ok())
                .any(|path| self.field(path) != other.field(path)),
        };
        self.head != other.head || fields_differ()
    }

    pub(super) fn size(&self) -> usize {
        let fields = self.fields.iter().map(|(_, text)| size_of::<(u32, Box<[u8]>)>() + text.len());
        size_of::<Self>() + self.head.len() + fields.sum::<usize>()
    }
}

/// An object as one round brings it.
#[derive(Debug)]
pub(crate) struct Object {
    pub(super) kept: Arc<Kept>,
    /// Its labels, so that a selector need not read the JSON of each object.
    pub(super) labels: Labels,
    pub(super) values: BTreeSet<PathValue>,
    /// If the watch shows only metadata, any new version may be a change.
    pub(super) version: Option<Box<str>>,
    /// Its resourceVersion as a number, if it is one.
    pub(super) number: u64,
    pub(super) listed: u32,
    /// How many bytes it has for which there is no room, so that only its name is kept.
    pub(super) lacks: usize,
}

impl Object {
    pub(super) fn differs(&self, other: &Self) -> bool {
        let both = |path: &String| self.kept.brings.has_path(path) && other.kept.brings.has_path(path);
        let values = |of: &Self| -> Vec<PathValue> {
            of.values.iter().filter(|(path, _)| both(path)).cloned().collect()
        };
        let values_differ = || match Arc::ptr_eq(&self.kept.brings, &other.kept.brings) {
            true => self.values != other.values,
            false => values(self) != values(other),
        };
        // Of what is not kept, any new version may be a change.
        let is_unknown = self.lacks > 0 || other.lacks > 0;
        self.kept.differs(&other.kept)
            || self.version != other.version
            || is_unknown && self.number != other.number
            || values_differ()
    }

    /// How much memory its content takes, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let label =
            |(key, value): &(Box<str>, Box<str>)| size_of::<(Box<str>, Box<str>)>() + key.len() + value.len();
        // The index has them too.
        let value = |(path, value): &PathValue| 2 * (size_of::<PathValue>() + path.len() + value.len());
        let labels: usize = self.labels.iter().map(label).sum();
        self.kept.size() + labels + self.values.iter().map(value).sum::<usize>()
    }

    /// The same by its name alone.
    pub(super) fn without_content(self) -> Self {
        let brings = Arc::clone(&self.kept.brings);
        let kept = Arc::new(Kept { brings, head: Box::default(), fields: Box::default() });
        let (labels, values) = (Labels::default(), BTreeSet::new());
        Self { lacks: self.bytes(), kept, labels, values, ..self }
    }
}

/// How the objects that a watch of one round brings are reduced.
pub(crate) struct Shape {
    pub(super) kind: Kind,
    pub(super) round: u32,
    pub(super) brings: Arc<Brings>,
}

impl Shape {
    /// Reduces an object to the fields that are kept. This may take long for a large object, so it is done outside the lock.
    pub(crate) fn reduce(&self, live: &Value, list: Option<u32>) -> Object {
        let values = self.brings.paths.iter().flat_map(|path| {
            object::strings_at(live, path).into_iter().map(|value| (path.clone(), value.to_owned()))
        });
        let version = object::text(live, &["metadata", "resourceVersion"]);
        let labels = object::at(live, &["metadata", "labels"]).and_then(Value::as_object);
        let labels = labels.into_iter().flatten();
        let labels = labels.filter_map(|(key, value)| Some((key.as_str().into(), value.as_str()?.into())));
        Object {
            labels: labels.collect(),
            values: values.collect(),
            kept: Arc::new(Kept::of(live, &self.brings)),
            number: comparable(version),
            version: version.map(Into::into).filter(|_| !reconciler::is_watchable(&self.kind)),
            listed: list.unwrap_or(0),
            lacks: 0,
        }
    }
}
