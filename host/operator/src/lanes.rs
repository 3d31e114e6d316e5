//! The queue of the operator: a lane for each Reconciler, and how long the roots in them have waited.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use pintle_core::{Finished, Priority, Queue};
use pintle_runtime::clock;

use crate::{metrics::Metrics, store::RootKey};

/// The roots that wait for a worker or are in work, in a lane for each Reconciler.
pub(crate) struct Lanes {
    queue: Queue<String, RootKey>,
    /// Since when a root waits for a worker.
    waiting: BTreeMap<(String, RootKey), Duration>,
    metrics: Arc<Metrics>,
}

impl Lanes {
    pub(crate) fn new(workers: usize, metrics: Arc<Metrics>) -> Self {
        Self { queue: Queue::new(workers), waiting: BTreeMap::new(), metrics }
    }

    /// Queues a root.
    pub(crate) fn add(&mut self, lane: &String, key: &RootKey, priority: Priority) {
        self.queue.add(lane, key.clone(), priority);
        self.metrics.queued(lane);
        if self.queue.waits(lane, key) {
            self.waiting.entry((lane.clone(), key.clone())).or_insert_with(clock::monotonic);
        }
    }

    /// The root whose turn it is, and how long it has waited.
    pub(crate) fn pop(&mut self, now: Duration) -> Option<(String, RootKey, Option<Duration>)> {
        let (lane, key) = self.queue.pop(now)?;
        let since = self.waiting.remove(&(lane.clone(), key.clone()));
        Some((lane, key, since.map(|since| now.saturating_sub(since))))
    }

    /// When the next root is due that has to wait until then.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.queue.next_due()
    }

    /// A worker is done with a root.
    pub(crate) fn finish(&mut self, lane: &String, key: &RootKey, finished: Finished, now: Duration) {
        self.queue.finish(lane, key, finished, now);
    }

    /// Ends the back-off of the roots in a lane.
    pub(crate) fn hurry(&mut self, lane: &String) {
        self.queue.hurry(lane);
    }

    pub(crate) fn remove(&mut self, lane: &String) {
        self.queue.remove_lane(lane);
        self.waiting.retain(|(other, _), _| other != lane);
    }

    /// How many roots of this priority wait.
    pub(crate) fn waiting(&self, lane: &String, priority: Priority) -> usize {
        self.queue.waiting(lane, priority)
    }

    /// How many roots back off.
    pub(crate) fn backing_off(&self, lane: &String) -> usize {
        self.queue.backing_off(lane)
    }
}
