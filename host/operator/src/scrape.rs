//! What `/metrics` shows of the state at the moment when somebody asks.

use pintle_core::conditions;
use pintle_wit::ConditionStatus;

use crate::{
    lease,
    metrics::{Controller, Depth, Election, PRIORITIES, Readiness, Reserved, Size},
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
        // Of all Reconcilers, also those that have nothing in force. What was said before of one, or of one that is gone, does not stay.
        metrics.reconciler_ready.clear();
        for (name, object) in &state.own.reconcilers {
            let status = object.status.as_ref();
            let ready = status.and_then(|status| conditions::find(&status.conditions, conditions::READY));
            let reason = ready.map(|ready| ready.reason.clone()).unwrap_or_default();
            let is_ready = ready.is_some_and(|ready| ready.status == ConditionStatus::True);
            let of = Readiness { controller: name.clone(), reason };
            metrics.reconciler_ready.get_or_create(&of).set(u8::from(is_ready).into());
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::server::tests::{host, shared};

    #[tokio::test]
    async fn whether_a_reconciler_is_ready_is_told_with_the_reason_that_it_has_now() {
        let shared = shared(host().0);
        let becomes = |name: &str, conditions: serde_json::Value| {
            let reconciler = json!({
                "apiVersion": "pintle.dev/v1alpha1", "kind": "Reconciler", "metadata": {"name": name},
                "spec": {"for": {"apiVersion": "a.example/v1", "kind": "Thing"}, "module": "thing"},
                "status": {"conditions": conditions},
            });
            let reconciler = serde_json::from_value(reconciler).unwrap();
            shared.state().own.reconcilers.insert(name.into(), reconciler);
        };
        let told = || {
            let text = shared.metrics_text();
            let lines =
                text.lines().filter_map(|line| line.strip_prefix("pintle_reconciler_ready{controller="));
            let mut lines: Vec<String> = lines.map(str::to_owned).collect();
            lines.sort();
            lines
        };
        let ready = |status: &str, reason: &str| {
            let time = "2026-01-01T00:00:00Z";
            json!([
                {"type": "RootsReady", "status": "False", "reason": "Invalid", "lastTransitionTime": time},
                {"type": "Ready", "status": status, "reason": reason, "lastTransitionTime": time},
            ])
        };
        becomes("new", json!([]));
        becomes("web", ready("False", "WatchFailing"));
        assert_eq!(told(), [r#""new",reason=""} 0.0"#, r#""web",reason="WatchFailing"} 0.0"#]);
        becomes("web", ready("True", "Succeeded"));
        shared.state().own.reconcilers.remove("new");
        assert_eq!(told(), [r#""web",reason="Succeeded"} 1.0"#]);
    }
}
