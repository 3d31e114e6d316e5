//! A cluster in memory with hosts.

use std::{sync::PoisonError, time::Duration};

use pintle_core::object;
use pintle_simulator::{Act, Failure, Record};
use serde_json::Value;

use super::{
    Hosts,
    script::{Asked, is_about_hosts, is_host},
};

/// A cluster with hosts in it.
pub(super) type World = crate::world::World<Hosts>;

impl World {
    /// Calls `look` with all requests so far.
    pub(super) fn with_records<T>(&self, look: impl FnOnce(&[Record]) -> T) -> T {
        let mut records = self.own.records.lock().unwrap_or_else(PoisonError::into_inner);
        records.extend(self.server.take_requests());
        look(&records)
    }

    /// When a request was made.
    pub(super) fn time_of(&self, number: u64) -> Option<Duration> {
        self.script().times.get(&number).copied()
    }

    /// Waits until no host has changed anything for as long as the longest back-off. Returns false if that never happens.
    pub(super) async fn rest(&self) -> bool {
        const QUIET: Duration = Duration::from_secs(70);
        const AT_MOST: Duration = Duration::from_secs(900);
        let begun = self.origin.elapsed();
        loop {
            let last = self.last_change().max(begun);
            let now = self.origin.elapsed();
            if now >= last + QUIET {
                return true;
            }
            if now >= begun + AT_MOST {
                return false;
            }
            tokio::time::sleep(last + QUIET - now).await;
        }
    }

    /// The time of the last write of a host, or of its last attempt.
    fn last_change(&self) -> Duration {
        let number = self.with_records(|records| {
            let is_write = |record: &&Record| {
                is_host(&record.seen.client)
                    && record.seen.verb.is_mutating()
                    && !is_about_hosts(&record.seen)
            };
            records.iter().rev().find(is_write).map(|record| record.seen.number)
        });
        number.and_then(|number| self.time_of(number)).unwrap_or_default()
    }

    /// Acts as a user. A cluster-scoped object may be named with a namespace.
    pub(super) fn act(&self, who: &str, act: &Act) -> Result<Value, Failure> {
        let done = self.server.act(who, act).or_else(|failure| {
            let mut act = act.clone();
            match &mut act {
                _ if failure.code != 404 => return Err(failure),
                Act::Apply { object, .. } => {
                    if let Some(metadata) = object["metadata"].as_object_mut() {
                        metadata.remove("namespace");
                    }
                }
                Act::Merge { target, .. } | Act::Delete { target, .. } => target.namespace = None,
                _ => return Err(failure),
            }
            // The second error says more than that the object is in no namespace.
            self.server.act(who, &act).map_err(|second| if second.code == 404 { failure } else { second })
        });
        if let (Ok(changed), Act::Apply { .. } | Act::Merge { subresource: None, .. }) = (&done, act) {
            let (at, object, uid) =
                (self.origin.elapsed(), object::reference(changed), object::uid(changed).to_owned());
            let asked = object::generation(changed).map(|generation| Asked { at, object, uid, generation });
            self.script().memory.asked.extend(asked);
        }
        done
    }
}
