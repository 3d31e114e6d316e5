//! What `/metrics` shows of the state at the moment when somebody asks.

use crate::{
    lease,
    metrics::{Controller, Depth, Election, PRIORITIES, Reserved, Size},
    state::Shared,
};

impl Shared {
    /// What /metrics shows.
    pub(crate) fn metrics_text(&self) -> String {
        // It looks at what the process takes: outside the lock.
        let standing = self.budget.standing();
        let metrics = &self.metrics;
        let state = self.state();
        let leads = self.cluster.hold().term().is_some();
        for (lane, kind) in state.bindings.lanes() {
            for (priority, label) in PRIORITIES {
                // Of a standby nothing waits: whoever leads works on it.
                let waiting = if leads { state.queue.waiting(lane, priority) } else { 0 };
                metrics.queue_depth.get_or_create(&Depth::of(lane, label)).set(waiting as f64);
            }
            let of = Controller::of(lane);
            metrics.backing_off.get_or_create(&of).set(state.queue.backing_off(lane) as f64);
            metrics.max_concurrent.get_or_create(&of).set(self.workers as f64);
            let slowed = state.roots.of_kind(kind).filter(|root| root.memory.is_throttled());
            metrics.throttled.get_or_create(&of).set(slowed.count() as f64);
        }
        // The sizes of the caches are looked at when somebody asks, not with each event.
        let sizes = [
            ("roots", state.roots.size()),
            ("children", state.children.size()),
            ("needs", state.needed.size()),
        ];
        for (of, (objects, bytes)) in sizes {
            metrics.cache_objects.get_or_create(&Size { of }).set(objects as f64);
            metrics.cache_bytes.get_or_create(&Size { of }).set(bytes as f64);
        }
        let budget = [("process", standing.process), ("kept", standing.kept), ("budget", standing.capacity)];
        for (of, bytes) in budget {
            metrics.memory_budget.get_or_create(&Size { of }).set(bytes as f64);
        }
        for (purpose, bytes) in standing.reserved {
            metrics.memory_reserved.get_or_create(&Reserved { purpose: purpose.name() }).set(bytes as f64);
        }
        metrics.memory_waiting.set(standing.waiting as f64);
        metrics.leader.get_or_create(&Election { name: lease::NAME }).set(u8::from(leads).into());
        let controllers: Vec<String> = state.bindings.lanes().map(|(lane, _)| lane.clone()).collect();
        drop(state);
        metrics.text(controllers.iter())
    }
}
