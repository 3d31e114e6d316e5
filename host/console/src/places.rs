//! [`Places`]: which connections may be open.
//!
//! Strangers are connections over which nobody has shown yet who they are. They have few places, and none of anybody else's: when all are
//! taken, the oldest of them is cut for the newest, so that whoever holds many open cannot keep others out. As soon as the API server, or
//! the cookie, says of a request who sends it, its connection takes a place of that user.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use http::Extensions;
use tokio::sync::Notify;

/// How many connections may be open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Connections of strangers. A browser opens six.
    pub(crate) strangers: usize,
    /// Connections of users, in all.
    pub(crate) known: usize,
    /// Connections of one user. What more it has are treated as those of strangers.
    pub(crate) of_one: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { strangers: 256, known: 768, of_one: 128 }
    }
}

/// The connections of a server.
pub(crate) struct Places {
    limits: Limits,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    next: u64,
    /// The oldest first; each with what tells it that it is cut.
    strangers: BTreeMap<u64, Arc<Notify>>,
    known: BTreeMap<u64, Arc<str>>,
}

/// The place of a connection, until this is dropped. Its requests carry it.
pub(crate) struct Place {
    places: Arc<Places>,
    number: u64,
    cut: Arc<Notify>,
}

impl Open {
    /// A place for a new connection. Returns its number, and the stranger that is cut for it.
    fn begin(&mut self, limits: Limits, cut: &Arc<Notify>) -> (u64, Option<Arc<Notify>>) {
        let oldest = (self.strangers.len() >= limits.strangers).then(|| self.strangers.pop_first()).flatten();
        let number = self.next;
        self.next += 1;
        self.strangers.insert(number, Arc::clone(cut));
        (number, oldest.map(|(_, cut)| cut))
    }

    /// Gives a stranger a place of this user, if there is one.
    fn known(&mut self, limits: Limits, number: u64, user: &str) {
        let of_user = self.known.values().filter(|known| ***known == *user).count();
        let has_room = self.known.len() < limits.known && of_user < limits.of_one;
        // One that was cut already is no stranger any more, and ends.
        if has_room && self.strangers.remove(&number).is_some() {
            self.known.insert(number, user.into());
        }
    }
}

impl Places {
    pub(crate) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self { limits, open: Mutex::default() })
    }

    /// A place for a connection that begins.
    pub(crate) fn begin(self: &Arc<Self>) -> Arc<Place> {
        let cut = Arc::new(Notify::new());
        let (number, oldest) = self.open().begin(self.limits, &cut);
        if let Some(oldest) = oldest {
            oldest.notify_one();
        }
        Arc::new(Place { places: Arc::clone(self), number, cut })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        // Every change under this lock is whole before anything can panic.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Ends when the connection is to be cut.
    pub(crate) async fn cut(&self) {
        self.cut.notified().await;
    }

    /// The connection of the request with these extensions is one of this user.
    pub(crate) fn is_of(extensions: &Extensions, user: &str) {
        if let Some(place) = extensions.get::<Arc<Self>>() {
            let mut open = place.places.open();
            if open.strangers.contains_key(&place.number) {
                open.known(place.places.limits, place.number, user);
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.places.open();
        open.strangers.remove(&self.number);
        open.known.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn carrying(place: &Arc<Place>) -> Extensions {
        let mut extensions = Extensions::new();
        extensions.insert(Arc::clone(place));
        extensions
    }

    fn is_cut(place: &Place) -> bool {
        place.cut().now_or_never().is_some()
    }

    #[test]
    fn strangers_hold_no_place_that_somebody_else_needs() {
        let places = Places::new(Limits::default());
        let owner = places.begin();
        Place::is_of(&carrying(&owner), "ann");
        let strangers: Vec<_> = (0..1_030).map(|_| places.begin()).collect();
        let late = places.begin();
        assert!(!is_cut(&owner), "who is known is not cut for strangers");
        assert!(!is_cut(&late), "who comes last has a place");
        let cut = strangers.iter().filter(|stranger| is_cut(stranger)).count();
        assert_eq!(cut, 1_030 + 1 - Limits::default().strangers);
        assert!(!is_cut(&strangers[1_029]), "the oldest go first");
    }

    #[test]
    fn a_user_takes_the_places_of_no_other_user() {
        let places = Places::new(Limits { strangers: 2, known: 4, of_one: 2 });
        let of = |user: &str| {
            let place = places.begin();
            Place::is_of(&carrying(&place), user);
            place
        };
        let anns: Vec<_> = (0..5).map(|_| of("ann")).collect();
        let known = |user: &str| places.open().known.values().filter(|known| &***known == user).count();
        assert_eq!(known("ann"), 2);
        assert_eq!(
            anns.iter().map(|place| is_cut(place)).collect::<Vec<_>>(),
            [false, false, true, false, false]
        );
        let bobs = [of("bob"), of("bob")];
        assert_eq!(known("bob"), 2);
        assert!(bobs.iter().all(|place| !is_cut(place)));
    }

    #[test]
    fn a_place_is_given_back() {
        let places = Places::new(Limits { strangers: 1, known: 1, of_one: 1 });
        let first = places.begin();
        Place::is_of(&carrying(&first), "ann");
        drop(first);
        let second = places.begin();
        Place::is_of(&carrying(&second), "ann");
        let third = places.begin();
        assert!(!is_cut(&second) && !is_cut(&third));
        drop(third);
        assert!(!is_cut(&places.begin()));
    }
}
