//! Tests of the control loop, with an API server that never answers.

use pintle_core::{Duty, StatusSchema};
use pintle_kubernetes::Resource;
use pintle_wit::{Failure, names};
use serde_json::json;
use tokio::time::Instant;

use super::*;
use crate::server::tests::{host, shared};

async fn within_one_request<T>(work: impl Future<Output = T>) -> T {
    let began = Instant::now();
    let done = work.await;
    let took = began.elapsed();
    assert!(took < 2 * REQUEST_TIMEOUT, "{took:?}");
    done
}

#[tokio::test(start_paused = true)]
async fn what_hangs_is_waited_for_once_however_much_of_it_there_is() {
    let shared = shared(host().0);
    let (mut memory, mut verdicts) = (Loop::default(), Verdicts::new());
    let all = ["a", "b", "c"];

    let kinds = BTreeSet::from(all.map(|name| Kind::new("hangs.example/v1", name.to_uppercase())));
    within_one_request(kinds::discover(&shared, kinds, clock::monotonic())).await;

    for name in all {
        let reconciler = json!({
            "apiVersion": "pintle.dev/v1alpha1", "kind": "Reconciler",
            "metadata": {"name": name, "uid": name, "finalizers": [names::FINALIZER_ROOTS],
                "deletionTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"for": {"apiVersion": "a.example/v1", "kind": "Thing"}, "module": "thing"},
        });
        let reconciler = serde_json::from_value(reconciler).unwrap();
        shared.state().own.reconcilers.insert(name.into(), reconciler);
        verdicts.insert(name.into(), Verdict::Rest(Failure::terminal("Missing", "m"), None));
    }
    let unheld = within_one_request(hold_reconcilers(&shared, &mut memory, &verdicts)).await;
    assert_eq!(unheld.len(), all.len());
    let again = within_one_request(write_statuses(&shared, &mut memory, &verdicts, &BTreeMap::new())).await;
    assert_eq!(again, Some(ROUND_RETRY));

    for name in all {
        let module = json!({
            "apiVersion": "pintle.dev/v1alpha1", "kind": "Module", "metadata": {"name": name, "uid": name},
            "spec": {"digest": "sha256:0", "source": {}},
        });
        shared.state().own.modules.insert(name.into(), serde_json::from_value(module).unwrap());
    }
    let again = within_one_request(statuses::write_modules(&shared, &mut memory)).await;
    assert_eq!(again, Some(ROUND_RETRY));
}

#[tokio::test(start_paused = true)]
async fn a_reconciler_that_goes_waits_for_its_roots_half_a_minute() {
    let shared = shared(host().0);
    let mut memory = Loop::default();
    let reconciler = json!({
        "apiVersion": "pintle.dev/v1alpha1", "kind": "Reconciler",
        "metadata": {"name": "a", "uid": "a", "finalizers": [names::FINALIZER_STATUSES],
            "deletionTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"for": {"apiVersion": "a.example/v1", "kind": "Thing"}, "module": "thing"},
    });
    shared.state().own.reconcilers.insert("a".into(), serde_json::from_value(reconciler).unwrap());
    let verdicts = |status: StatusSchema| {
        let kind = Kind::new("a.example/v1", "Thing");
        let resource = Resource { kind, plural: "things".into(), namespaced: true };
        let remainder = Remainder { uid: "a".into(), duty: Duty::Release, resource, status };
        let failure = Failure::transient("Deleting", "m");
        Verdicts::from([("a".into(), Verdict::Rest(failure, Some(Box::new(remainder))))])
    };
    let says = verdicts(StatusSchema::Anything);
    for seconds in [0, 29] {
        tokio::time::advance(Duration::from_secs(seconds)).await;
        // Nothing is sent: the API server would not answer.
        assert!(hold_reconcilers(&shared, &mut memory, &says).await.is_empty(), "after {seconds} s");
    }
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(hold_reconcilers(&shared, &mut memory, &says).await.len(), 1, "it goes anyway");
    // Whose status cannot say it is not waited for.
    let mut memory = Loop::default();
    assert_eq!(hold_reconcilers(&shared, &mut memory, &verdicts(StatusSchema::Nothing)).await.len(), 1);
}
