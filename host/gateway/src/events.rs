//! [`Events`]: events of a View that were made lately, for the other watches that the same events of the backing kind arrive on.
//!
//! The API server writes an event once and sends the same bytes on every watch. Each of a View's watches has them at about the same time, and
//! the first one's work serves the others.

use std::{
    hash::{Hash, Hasher},
    sync::{Arc, Weak},
};

use bytes::Bytes;
use quick_cache::{Weighter, sync::Cache};

use crate::directory::Resource;

/// How much memory they may take, in bytes, and the longest that is kept. Watches are some hundred events apart at most.
const BYTES_MAX: u64 = 4 << 20;
const EVENT_BYTES_MAX: usize = 64 << 10;

/// What one takes beside its text, in bytes.
const ENTRY_BYTES: u64 = 200;

/// How long most events are, in bytes: an estimate that the cache sizes its tables by.
const USUAL_BYTES: u64 = 2 << 10;

/// An event of the backing kind, and the resource that it is mapped for.
#[derive(Clone)]
struct Key {
    /// While it is here, no other resource can have its address.
    resource: Weak<Resource>,
    line: Bytes,
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.resource.ptr_eq(&other.resource) && self.line == other.line
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.line.hash(state);
    }
}

#[derive(Clone)]
struct Weight;

impl Weighter<Key, Bytes> for Weight {
    fn weight(&self, key: &Key, event: &Bytes) -> u64 {
        ENTRY_BYTES + (key.line.len() + event.len()) as u64
    }
}

/// The events that were made lately.
pub(crate) struct Events(Cache<Key, Bytes, Weight>);

impl Default for Events {
    fn default() -> Self {
        let entries = usize::try_from(BYTES_MAX / USUAL_BYTES).unwrap_or(usize::MAX);
        Self(Cache::with_weighter(entries, BYTES_MAX, Weight))
    }
}

impl Events {
    /// What this resource makes of an event of the backing kind, if that is known.
    pub(crate) fn find(&self, resource: &Arc<Resource>, line: &Bytes) -> Option<Bytes> {
        let key = Key { resource: Arc::downgrade(resource), line: line.clone() };
        self.0.get(&key)
    }

    /// Remembers what a resource makes of an event of the backing kind, whoever watches.
    pub(crate) fn put(&self, resource: &Arc<Resource>, line: &Bytes, event: &Bytes) {
        if line.len().max(event.len()) <= EVENT_BYTES_MAX {
            // A copy, since a line is a part of a buffer that is longer.
            let line = Bytes::copy_from_slice(line);
            self.0.insert(Key { resource: Arc::downgrade(resource), line }, event.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::tests::resource;

    #[test]
    fn an_event_serves_the_watches_of_its_resource_and_of_no_other() {
        let events = Events::default();
        let (old, new) = (Arc::new(resource()), Arc::new(resource()));
        let line = Bytes::from_static(b"{\"type\":\"ADDED\"}\n");
        let event = Bytes::from_static(b"shown");
        assert_eq!(events.find(&old, &line), None);
        events.put(&old, &line, &event);
        assert_eq!(events.find(&old, &line), Some(event.clone()));
        assert_eq!(events.find(&old, &Bytes::from_static(b"{\"type\":\"DELETED\"}\n")), None);
        assert_eq!(events.find(&new, &line), None, "it may be shown differently after a swap");
        drop(old);
        // Resources that are made now may get the memory of the one that is gone.
        assert!((0..100).map(|_| Arc::new(resource())).all(|another| events.find(&another, &line).is_none()));
    }

    #[test]
    fn long_events_are_not_remembered_and_all_together_take_little() {
        let events = Events::default();
        let resource = Arc::new(resource());
        let long = Bytes::from(vec![b'a'; EVENT_BYTES_MAX + 1]);
        events.put(&resource, &long, &Bytes::new());
        assert_eq!(events.find(&resource, &long), None);
        for at in 0..1_000_u32 {
            events.put(&resource, &Bytes::from(at.to_be_bytes().repeat(4 << 10)), &Bytes::new());
        }
        assert!(events.0.weight() <= BYTES_MAX && events.0.len() > 100, "{}", events.0.weight());
    }
}
