//! What `/metrics` shows of the state at the moment when somebody asks.

use pintle_core::Priority;

use crate::{lease, metrics::Metric, state::Shared};

impl Shared {
    /// What /metrics shows.
    pub(crate) fn metrics_text(&self) -> String {
        // It looks at what the process takes: outside the lock.
        let standing = self.budget.standing();
        let state = self.state();
        let leads = self.cluster.hold().term().is_some();
        for (lane, kind) in state.bindings.lanes() {
            let set =
                |metric, labels: &[&str], number: usize| self.metrics.set(metric, labels, number as f64);
            // Of a standby nothing waits: whoever leads works on it.
            let waiting = |priority| if leads { state.queue.waiting(lane, priority) } else { 0 };
            // controller-runtime's priorities: 0 for what somebody changed, -100 for lists and resyncs.
            set(Metric::QueueDepth, &[lane, lane, "0"], waiting(Priority::Edit));
            set(Metric::QueueDepth, &[lane, lane, "-100"], waiting(Priority::Background));
            set(Metric::BackingOff, &[lane], state.queue.backing_off(lane));
            set(Metric::MaxConcurrent, &[lane], self.workers);
            let slowed = state.roots.of_kind(kind).filter(|root| root.memory.is_throttled());
            set(Metric::Throttled, &[lane], slowed.count());
        }
        // The sizes of the caches are looked at when somebody asks, not with each event.
        let sizes = [
            ("roots", state.roots.size()),
            ("children", state.children.size()),
            ("needs", state.needed.size()),
        ];
        for (of, (objects, bytes)) in sizes {
            self.metrics.set(Metric::CacheObjects, &[of], objects as f64);
            self.metrics.set(Metric::CacheBytes, &[of], bytes as f64);
        }
        let budget = [("process", standing.process), ("kept", standing.kept), ("budget", standing.capacity)];
        for (of, bytes) in budget {
            self.metrics.set(Metric::MemoryBudget, &[of], bytes as f64);
        }
        for (purpose, bytes) in standing.reserved {
            self.metrics.set(Metric::MemoryReserved, &[purpose.name()], bytes as f64);
        }
        self.metrics.set(Metric::MemoryWaiting, &[], standing.waiting as f64);
        self.metrics.set(Metric::Leader, &[lease::NAME], u8::from(leads).into());
        let controllers: Vec<String> = state.bindings.lanes().map(|(lane, _)| lane.clone()).collect();
        drop(state);
        self.metrics.text(controllers.iter())
    }
}
