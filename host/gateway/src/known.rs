//! [`Known`]: backing objects as they were last read or written, so that a write need not read them first.
//!
//! Each write is about one version of the backing object, and the API server refuses it if the object has another one. So what is known
//! here may be old, and never does harm: an object at one version is the same whenever it was read. Whoever is refused because of it is
//! refused only after the object was read.

use std::sync::Arc;

use pintle_core::view::{Access, BackingObject, Epoch, Lens};
use quick_cache::{Weighter, sync::Cache};
use serde_json::Value;

/// How much memory the objects may take, in bytes.
const KNOWN_BYTES: u64 = 4 << 20;

/// The largest object that is kept, in bytes. A read of a larger one takes memory that is reserved for it.
const OBJECT_BYTES_MAX: usize = 64 << 10;

/// What one object takes beside its fields, in bytes.
const ENTRY_BYTES: u64 = 300;

/// Where an object is. What is kept of one depends on the epoch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Place {
    view: Box<str>,
    epoch: Epoch,
    namespace: Box<str>,
    name: Box<str>,
}

impl Place {
    fn of(lens: &Lens, namespace: Option<&str>, name: &str) -> Self {
        let namespace = namespace.unwrap_or_default().into();
        Self { view: lens.view.as_str().into(), epoch: lens.epoch, namespace, name: name.into() }
    }
}

/// How much of an object was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Extent {
    /// Its metadata, as they are stored at its version.
    Metadata,
    /// Also all of its other fields that the view reads or writes.
    Whole,
}

#[derive(Clone, Debug)]
struct Entry {
    object: Arc<BackingObject>,
    extent: Extent,
}

#[derive(Clone)]
struct Weight;

impl Weighter<Place, Entry> for Weight {
    fn weight(&self, place: &Place, entry: &Entry) -> u64 {
        ENTRY_BYTES + (place.namespace.len() + place.name.len() + entry.object.bytes()) as u64
    }
}

/// Backing objects of views with `access: View`. Under any other access, the API server is to say each time whether the caller may read
/// the object.
pub(crate) struct Known(Cache<Place, Entry, Weight>);

impl Default for Known {
    fn default() -> Self {
        // An estimate that the cache sizes its tables by.
        let objects = usize::try_from(KNOWN_BYTES / (4 * ENTRY_BYTES)).unwrap_or(usize::MAX);
        Self(Cache::with_weighter(objects, KNOWN_BYTES, Weight))
    }
}

impl Known {
    /// The object at this place as it was last seen, with at least so much of it.
    pub(crate) fn last(
        &self,
        lens: &Lens,
        namespace: Option<&str>,
        name: &str,
        extent: Extent,
    ) -> Option<Arc<BackingObject>> {
        let entry = self.0.get(&Place::of(lens, namespace, name))?;
        let is_enough = extent == Extent::Metadata || entry.extent == Extent::Whole;
        (is_enough && lens.selects(&entry.object)).then_some(entry.object)
    }

    /// An object was read that is stored so at its version.
    pub(crate) fn saw(&self, lens: &Lens, object: &BackingObject, extent: Extent) {
        if lens.access != Access::View || object.bytes() > OBJECT_BYTES_MAX {
            return;
        }
        let place = Place::of(lens, namespace_of(object), object.name());
        // A watch may be late.
        let is_known =
            |entry: &Entry| (age(entry.object.version()), entry.extent) >= (age(object.version()), extent);
        if !self.0.get(&place).is_some_and(|entry| is_known(&entry)) {
            self.0.insert(place, Entry { object: Arc::new(object.clone()), extent });
        }
    }

    /// There is no object at this place, or not as it is known.
    pub(crate) fn forget(&self, lens: &Lens, namespace: Option<&str>, name: &str) {
        self.0.remove(&Place::of(lens, namespace, name));
    }
}

/// What orders versions: numbers without leading zeros (KEP-5504).
fn age(version: &str) -> (usize, &str) {
    (version.len(), version)
}

fn namespace_of(object: &BackingObject) -> Option<&str> {
    object.metadata.get("namespace").and_then(Value::as_str)
}

/// Whether the answer to a write shows the object as it is stored at its version: if anything was to be written, and the object has not gone
/// with that, as one does that is being deleted and loses its last finalizer.
pub(crate) fn is_stored(object: &BackingObject, is_dry_run: bool) -> bool {
    let is_held = object
        .metadata
        .get("finalizers")
        .and_then(Value::as_array)
        .is_some_and(|finalizers| !finalizers.is_empty());
    !is_dry_run && (is_held || !object.metadata.contains_key("deletionTimestamp"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lens(access: Access) -> Lens {
        Lens::new("llamas", Default::default(), access, Vec::new(), Epoch::default())
    }

    fn of(metadata: Value) -> BackingObject {
        BackingObject { metadata: metadata.as_object().unwrap().clone(), ..BackingObject::default() }
    }

    fn object(version: &str) -> BackingObject {
        of(json!({"namespace": "n", "name": "a", "uid": "u", "resourceVersion": version}))
    }

    fn version(known: &Known, lens: &Lens, extent: Extent) -> Option<String> {
        known.last(lens, Some("n"), "a", extent).map(|object| object.version().to_owned())
    }

    #[test]
    fn the_last_version_that_was_seen_is_known_and_metadata_are_not_taken_for_an_object() {
        let (known, lens) = (Known::default(), lens(Access::View));
        assert_eq!(version(&known, &lens, Extent::Metadata), None);
        known.saw(&lens, &object("1"), Extent::Whole);
        known.saw(&lens, &object("1"), Extent::Metadata);
        assert_eq!(version(&known, &lens, Extent::Whole).as_deref(), Some("1"), "it is still whole");
        known.saw(&lens, &object("10"), Extent::Metadata);
        known.saw(&lens, &object("9"), Extent::Whole);
        assert_eq!(version(&known, &lens, Extent::Whole), None);
        assert_eq!(version(&known, &lens, Extent::Metadata).as_deref(), Some("10"));
        known.saw(&lens, &object("10"), Extent::Whole);
        assert_eq!(version(&known, &lens, Extent::Whole).as_deref(), Some("10"));
        assert!(known.last(&lens, Some("m"), "a", Extent::Metadata).is_none(), "it is in another namespace");
        known.forget(&lens, Some("n"), "a");
        assert_eq!(version(&known, &lens, Extent::Metadata), None);
    }

    #[test]
    fn what_a_caller_must_be_allowed_to_read_is_not_kept() {
        let (known, lens) = (Known::default(), lens(Access::ViewAndBacking));
        known.saw(&lens, &object("1"), Extent::Whole);
        assert_eq!(version(&known, &lens, Extent::Metadata), None);
    }

    #[test]
    fn a_dry_run_and_what_went_with_its_last_finalizer_are_not_stored_so() {
        let deleted = "2026-01-01T00:00:00Z";
        for (metadata, is_dry_run, expected) in [
            (json!({}), false, true),
            (json!({}), true, false),
            (json!({"deletionTimestamp": deleted, "finalizers": ["a/b"]}), false, true),
            (json!({"deletionTimestamp": deleted, "finalizers": []}), false, false),
            (json!({"deletionTimestamp": deleted}), false, false),
        ] {
            assert_eq!(is_stored(&of(metadata.clone()), is_dry_run), expected, "{metadata} {is_dry_run}");
        }
    }

    #[test]
    fn another_epoch_knows_nothing_of_it() {
        let (known, lens) = (Known::default(), lens(Access::View));
        known.saw(&lens, &object("1"), Extent::Whole);
        let other = Lens { epoch: lens.epoch.next(), ..lens };
        assert_eq!(version(&known, &other, Extent::Metadata), None);
    }
}
