//! Objects by key, one version counter, and the history of every change.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use serde_json::Value;

use crate::kinds::{self, Served};

/// The place of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) group: String,
    pub(crate) resource: String,
    /// Empty for a cluster-scoped object.
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// One change: the object before it, and after it.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) version: u64,
    pub(crate) key: Key,
    pub(crate) before: Option<Arc<Value>>,
    /// The object after the change. If it is gone, this is its last state, with the version of its deletion.
    pub(crate) after: Arc<Value>,
    pub(crate) gone: bool,
}

/// What is stored.
#[derive(Clone, Debug, Default)]
pub(crate) struct Store {
    objects: BTreeMap<Key, Arc<Value>>,
    history: Vec<Entry>,
    version: u64,
    /// Versions below this one are forgotten.
    compacted: u64,
    /// The kinds that each CRD defines.
    custom: BTreeMap<String, Vec<Arc<Served>>>,
}

impl Store {
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn compacted(&self) -> u64 {
        self.compacted
    }

    pub(crate) fn compact(&mut self) {
        self.compacted = self.version;
    }

    pub(crate) fn history(&self) -> &[Entry] {
        &self.history
    }

    pub(crate) fn objects(&self) -> &BTreeMap<Key, Arc<Value>> {
        &self.objects
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Arc<Value>> {
        self.objects.get(key)
    }

    /// The objects as they were at a version.
    pub(crate) fn at(&self, version: u64) -> Cow<'_, BTreeMap<Key, Arc<Value>>> {
        if version >= self.version {
            return Cow::Borrowed(&self.objects);
        }
        let mut objects = self.objects.clone();
        for entry in self.history.iter().rev().take_while(|entry| entry.version > version) {
            match &entry.before {
                Some(before) => objects.insert(entry.key.clone(), Arc::clone(before)),
                None => objects.remove(&entry.key),
            };
        }
        Cow::Owned(objects)
    }

    /// Stores an object under a new version, and sets its resourceVersion.
    pub(crate) fn put(&mut self, key: Key, mut object: Value) -> Arc<Value> {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        let after = Arc::new(object);
        let before = self.objects.insert(key.clone(), Arc::clone(&after));
        let (version, after_it) = (self.version, Arc::clone(&after));
        self.record(Entry { version, key, before, after: after_it, gone: false });
        after
    }

    /// Removes an object. The result has the version of its deletion.
    pub(crate) fn remove(&mut self, key: &Key) -> Option<Arc<Value>> {
        let before = self.objects.remove(key)?;
        self.version += 1;
        let mut last = Value::clone(&before);
        last["metadata"]["resourceVersion"] = self.version.to_string().into();
        let after = Arc::new(last);
        let (version, key) = (self.version, key.clone());
        self.record(Entry { version, key, before: Some(before), after: Arc::clone(&after), gone: true });
        Some(after)
    }

    fn record(&mut self, entry: Entry) {
        if entry.key.resource == "customresourcedefinitions" {
            let name = entry.key.name.clone();
            if entry.gone {
                self.custom.remove(&name);
            } else if entry.before.as_ref().is_none_or(|before| before["spec"] != entry.after["spec"]) {
                self.custom.insert(name, kinds::custom(&entry.after).map(Arc::new).collect());
            }
        }
        self.history.push(entry);
    }

    pub(crate) fn custom_kinds(&self) -> impl Iterator<Item = &Arc<Served>> {
        self.custom.values().flatten()
    }
}
