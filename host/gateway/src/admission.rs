//! [`Admission`]: how many requests are in flight, of one caller and of all.
//!
//! The gateway holds a request while the API server works on the one that it sends on. So it must admit fewer than the API server has seats
//! for: otherwise requests that came through the API server would fill its seats, and wait for requests of the gateway that find none.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

/// How many requests may be in flight, besides watches. A fourth of what the API server serves at once by default.
pub const TOGETHER: usize = 150;

/// How many of them may be of one caller.
pub const OF_ONE: usize = 50;

/// How many watches may be followed. Each keeps two connections and some 100 KiB.
pub const WATCHES: usize = 2_000;

/// How many of them may be of one caller.
pub const WATCHES_OF_ONE: usize = 500;

/// How many are in flight.
#[derive(Clone, Debug)]
pub struct Admission(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    together: usize,
    of_one: usize,
    in_flight: Mutex<InFlight>,
}

#[derive(Debug, Default)]
struct InFlight {
    all: usize,
    by_caller: HashMap<String, usize>,
}

/// One that is in flight, until this is dropped.
#[derive(Debug)]
pub struct Admitted {
    admission: Admission,
    caller: String,
}

impl Admission {
    /// At most so many together, and of one caller.
    pub fn new(together: usize, of_one: usize) -> Self {
        Self(Arc::new(Inner { together, of_one, in_flight: Mutex::default() }))
    }

    /// Admits one, unless there are too many.
    pub fn admit(&self, caller: &str) -> Option<Admitted> {
        let mut in_flight = self.0.in_flight.lock().unwrap_or_else(PoisonError::into_inner);
        let of_caller = in_flight.by_caller.get(caller).copied().unwrap_or_default();
        if in_flight.all >= self.0.together || of_caller >= self.0.of_one {
            return None;
        }
        in_flight.all += 1;
        in_flight.by_caller.insert(caller.to_owned(), of_caller + 1);
        Some(Admitted { admission: self.clone(), caller: caller.to_owned() })
    }

    /// How many are in flight.
    pub fn in_flight(&self) -> usize {
        self.0.in_flight.lock().unwrap_or_else(PoisonError::into_inner).all
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut in_flight = self.admission.0.in_flight.lock().unwrap_or_else(PoisonError::into_inner);
        in_flight.all = in_flight.all.saturating_sub(1);
        match in_flight.by_caller.get_mut(&self.caller) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                in_flight.by_caller.remove(&self.caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_caller_cannot_take_the_place_of_all_and_a_place_is_free_again_afterwards() {
        let admission = Admission::new(3, 2);
        let first = admission.admit("ann").unwrap();
        let _second = admission.admit("ann").unwrap();
        assert!(admission.admit("ann").is_none(), "she has two");
        let _third = admission.admit("bob").unwrap();
        assert!(admission.admit("eve").is_none(), "there are three");
        drop(first);
        assert_eq!(admission.in_flight(), 2);
        assert!(admission.admit("ann").is_some());
    }
}
