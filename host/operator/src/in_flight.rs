//! Watch events of objects that the operator is writing.
//!
//! The API server often sends a write to the watches before it replies to it. Such events are set aside until the reply is in. Nearly
//! always they show only what the reply has shown already, so that they cost neither a second parse nor a pass over the root.

use std::collections::HashMap;

use super::store::NameHash;

/// Watch events, set aside while their objects are being written. `N` is the type of an event.
#[derive(Debug)]
pub(crate) struct InFlight<N> {
    objects: HashMap<NameHash, Object<N>>,
}

#[derive(Debug)]
struct Object<N> {
    /// How many writes of the object are under way.
    writes: u32,
    news: Vec<N>,
}

impl<N> Default for InFlight<N> {
    fn default() -> Self {
        Self { objects: HashMap::new() }
    }
}

impl<N> InFlight<N> {
    /// A write of an object begins.
    pub(crate) fn begin(&mut self, object: NameHash) {
        self.objects.entry(object).or_insert_with(|| Object { writes: 0, news: Vec::new() }).writes += 1;
    }

    /// Sets an event of an object aside, or returns it if the object is not being written.
    pub(crate) fn set_aside(&mut self, object: &NameHash, news: N) -> Option<N> {
        match self.objects.get_mut(object) {
            Some(object) => {
                object.news.push(news);
                None
            }
            None => Some(news),
        }
    }

    /// A write of an object has ended, with or without success. Returns the events that were set aside, in their order, once no other
    /// write of the object is under way.
    pub(crate) fn end(&mut self, object: &NameHash) -> Vec<N> {
        match self.objects.get_mut(object) {
            Some(found) if found.writes > 1 => {
                found.writes -= 1;
                Vec::new()
            }
            _ => self.objects.remove(object).map(|object| object.news).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: NameHash = [1; 16];
    const B: NameHash = [2; 16];

    #[test]
    fn news_of_an_object_waits_until_no_write_of_it_is_under_way() {
        let mut in_flight = InFlight::<i32>::default();
        assert_eq!(in_flight.set_aside(&A, 1), Some(1));
        in_flight.begin(A);
        in_flight.begin(A);
        assert_eq!([in_flight.set_aside(&A, 2), in_flight.set_aside(&B, 3)], [None, Some(3)]);
        assert!(in_flight.end(&A).is_empty());
        assert_eq!(in_flight.set_aside(&A, 4), None);
        assert_eq!(in_flight.end(&A), [2, 4]);
        assert_eq!((in_flight.end(&A), in_flight.set_aside(&A, 5)), (vec![], Some(5)));
    }
}
