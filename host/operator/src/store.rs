//! The operator's cache of the cluster: roots and children, as the watches and its own writes showed them.
//!
//! The operator's own writes enter here at once, so that a pass never works on a view that is older than them. An older object that a
//! watch brings afterwards is ignored. The cache holds every root and child, so it keeps little of each: a root as the bytes of its
//! JSON, and a child as a struct. The tables that lead to them hold numbers instead of names.

mod children;
mod failing;
mod roots;
mod tally;

use std::{borrow::Cow, collections::HashMap, mem::size_of};

use pintle_core::{Uid, desired, object};
use pintle_wit::{Kind, ObjectRef};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use slab::Slab;

pub(crate) use children::Children;
pub(crate) use failing::{Cause, Failures};
pub use roots::RootLimits;
pub(crate) use roots::{PassEnd, Root, Roots, Unkept};
pub(crate) use tally::{Tally, since_swap};

/// A root within its kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RootKey {
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
}

impl RootKey {
    pub(crate) fn of(root: &Value) -> Self {
        Self { namespace: object::namespace(root).map(Into::into), name: object::name(root).into() }
    }
}

impl std::fmt::Display for RootKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// The names and the version of an object: enough to see whether the object has changed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Head {
    namespace: Option<String>,
    name: String,
    uid: Uid,
    version: u64,
}

impl Head {
    /// Reads the head of an object, and its resourceVersion as text.
    pub(crate) fn read(text: &RawValue) -> serde_json::Result<(Self, Option<String>)> {
        #[derive(Deserialize)]
        struct Object<'a> {
            #[serde(borrow, default)]
            metadata: Option<Metadata<'a>>,
        }
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase", default)]
        struct Metadata<'a> {
            namespace: Option<String>,
            name: String,
            #[serde(borrow)]
            uid: Cow<'a, str>,
            resource_version: Option<String>,
        }
        let Object { metadata } = serde_json::from_str(text.get())?;
        let Metadata { namespace, name, uid, resource_version } = metadata.unwrap_or_default();
        let version = comparable(resource_version.as_deref());
        Ok((Self { namespace, name, uid: Uid::new(&uid), version }, resource_version))
    }

    pub(crate) fn name_hash(&self, kind: &Kind) -> NameHash {
        name_hash(kind, self.namespace.as_deref(), &self.name)
    }
}

impl std::fmt::Display for Head {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// The number of an object in its table. It has 32 bits, because no API server holds more objects.
type Number = u32;

/// An object's name in a table: half of the SHA-256 of its names. So a table needs no copy of the names, and nobody can choose names that
/// collide.
pub(crate) type NameHash = [u8; 16];

fn name_hash(kind: &Kind, namespace: Option<&str>, name: &str) -> NameHash {
    let namespace = namespace.unwrap_or_default();
    let parts = [&kind.api_version, &kind.kind, namespace, name].map(str::as_bytes);
    let mut hash = NameHash::default();
    hash.iter_mut().zip(desired::hash_parts(&parts)).for_each(|(to, from)| *to = from);
    hash
}

/// Objects by number.
#[derive(Debug)]
struct Table<T> {
    rows: Slab<T>,
    by_name: HashMap<NameHash, Number>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { rows: Slab::new(), by_name: HashMap::new() }
    }
}

impl<T> Table<T> {
    fn find(&self, name: &NameHash) -> Option<(Number, &T)> {
        let number = *self.by_name.get(name)?;
        Some((number, self.get(number)?))
    }

    fn get(&self, number: Number) -> Option<&T> {
        self.rows.get(number as usize)
    }

    fn get_mut(&mut self, number: Number) -> Option<&mut T> {
        self.rows.get_mut(number as usize)
    }

    fn insert(&mut self, name: NameHash, row: T) -> Number {
        let number = self.rows.insert(row) as Number;
        self.by_name.insert(name, number);
        number
    }

    fn remove(&mut self, name: &NameHash) -> Option<(Number, T)> {
        let number = self.by_name.remove(name)?;
        Some((number, self.rows.try_remove(number as usize)?))
    }

    /// How much memory the table itself takes, in bytes: its rows, and the index of them.
    fn bytes(&self) -> usize {
        self.rows.capacity() * size_of::<T>()
            + self.by_name.capacity() * (size_of::<(NameHash, Number)>() + 1)
    }
}

/// Where a list began: what the operator writes after it is not missing because the list does not show it, and what it knew before
/// is not newer than what the list shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListMark {
    /// The operator's own writes until then.
    writes: u64,
    /// Which list it is, for what it has shown.
    list: u32,
}

/// A version as a number, or 0 if it is none.
pub(super) fn comparable(version: Option<&str>) -> u64 {
    version.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// The name of an object in a table.
pub(crate) fn name_of(child: &ObjectRef) -> NameHash {
    name_hash(&child.kind(), child.namespace.as_deref(), &child.name)
}
