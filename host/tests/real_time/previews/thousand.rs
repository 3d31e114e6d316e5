//! A plan of many roots. How long it takes, it prints.

use kube::Client;
use pintle_core::object;
use pintle_engine::{Digest, Engine, EngineConfig, Meter};
use pintle_modules::Budget;
use pintle_preview::{Caller, PlanRequest, Preview};
use pintle_runtime::{Spawner, clock};
use pintle_simulator::Act;
use serde_json::{Value, json};

use super::cluster;

const ROOTS: usize = 1000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_darkrooms_are_planned_and_each_is_told_of() {
    let server = cluster();
    let create = |object: Value| drop(server.act("test", &Act::Create(object)).unwrap());
    let sample = format!("{}/../deploy/samples/reconciler-darkroom.yaml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(sample).unwrap();
    let reconciler = pintle_offline::documents::parse("the sample", &text).unwrap().remove(0).value;
    let module = object::text(&reconciler, &["spec", "module"]).unwrap().to_owned();
    create(reconciler);
    let bytes = std::fs::read(kit::modules::guests().join("darkroom.wasm")).expect("run: cargo xtask guests");
    pintle_api::module_objects(&module, &bytes, &Digest::of(&bytes).to_string()).into_iter().for_each(create);
    create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "many"}}));
    for index in 0..ROOTS {
        create(json!({"apiVersion": "deployments.example.com/v1alpha1", "kind": "Darkroom",
            "metadata": {"name": format!("d{index}"), "namespace": "many"},
            "spec": {"source": {"type": "WebFolder", "baseUrl": "https://example.com"}, "subDomains": [format!("d{index}")]}}));
    }
    let client = Client::new(server.service("user"), "default");
    let engine = Engine::new(EngineConfig::new(Meter::Fuel, clock::monotonic)).unwrap();
    let preview = Preview::new(engine, None, Budget::fixed(1 << 30), Spawner::default());
    let caller = Caller { user: client.clone(), modules: client };
    let request = PlanRequest { reconciler: "darkroom".into(), ..PlanRequest::default() };
    // The first plan compiles the module, without optimisation of the compiler.
    let first = PlanRequest { root: Some("many/d0".into()), ..request.clone() };
    preview.plan(&caller, &first, &mut |_| {}).await.unwrap();
    let mut told = 0;
    let summary = preview.plan(&caller, &request, &mut |_| told += 1).await.unwrap();
    println!("{ROOTS} roots in {:.1} s", summary.seconds);
    assert_eq!((summary.roots.total, summary.roots.changed), (ROOTS, ROOTS));
    assert!(told > ROOTS, "every root was told of, and how far it is");
}
