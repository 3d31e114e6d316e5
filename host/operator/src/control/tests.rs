//! Tests of the control loop, with an API server that never answers.

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
    let unheld = within_one_request(hold_reconcilers(&shared, &verdicts)).await;
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
