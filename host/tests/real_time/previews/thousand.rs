//! A plan of many roots. How long it takes, it prints.

use pintle_preview::PlanRequest;
use serde_json::json;

use super::{NAMESPACE, Place, guest};

const ROOTS: usize = 1000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_darkrooms_are_planned_and_each_is_told_of() {
    let place = Place::new();
    place.create_all("deploy/samples/reconciler-darkroom.yaml");
    place.push("darkroom-0.1.0", &guest("darkroom"));
    for index in 0..ROOTS {
        place.create(json!({"apiVersion": "deployments.example.com/v1alpha1", "kind": "Darkroom",
            "metadata": {"name": format!("d{index}"), "namespace": NAMESPACE},
            "spec": {"source": {"type": "WebFolder", "baseUrl": "https://example.com"}, "subDomains": [format!("d{index}")]}}));
    }
    let request = PlanRequest { reconciler: "darkroom".into(), ..PlanRequest::default() };
    // The first plan compiles the module, without optimisation of the compiler.
    let first = PlanRequest { root: Some(format!("{NAMESPACE}/d0")), ..request.clone() };
    place.plan(&first).await.unwrap();
    let mut told = 0;
    let summary = place.preview.plan(&place.caller, &request, &mut |_| told += 1).await.unwrap();
    println!("{ROOTS} roots in {:.1} s", summary.seconds);
    assert_eq!((summary.roots.total, summary.roots.changed), (ROOTS, ROOTS));
    assert!(told > ROOTS, "every root was told of, and how far it is");
}
