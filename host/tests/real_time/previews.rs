//! Plans against what a host then does, on an API server in memory. The same scenarios run on a real control plane in the acceptance
//! tests.

mod rights;
mod secrets;
mod thousand;

use std::sync::Arc;

use jiff::Timestamp;
use kit::{modules, previews::Bench};
use kube::Client;
use pintle_engine::{Engine, EngineConfig, Meter};
use pintle_modules::Budget;
use pintle_operator::{Host, Metrics, Readiness};
use pintle_runtime::{Spawner, clock};
use pintle_simulator::{Act, ApiServer, Options};
use serde_json::{Value, json};
use tokio::sync::Notify;

const FOLDERS: [&str; 3] = ["guest-darkroom", "guest-webserver", "guest-configmonitor"];

/// A cluster in memory that has Pintle's CRDs and those of this repository's guests.
fn cluster() -> ApiServer {
    let options = Options { clock: Arc::new(|| -> Timestamp { clock::now() }), ..Options::default() };
    let server = ApiServer::new(options);
    let create = |object: Value| drop(server.act("test", &Act::Create(object)).unwrap());
    pintle_api::crds().into_iter().for_each(create);
    for folder in FOLDERS {
        let path = format!("{}/../{folder}/crd.yaml", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        for document in pintle_offline::documents::parse(folder, &text).unwrap() {
            create(document.value);
        }
    }
    create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": pintle_api::NAMESPACE}}));
    server
}

fn host(server: &ApiServer) -> Host {
    Host {
        client: Client::new(server.service("host"), "default"),
        engine: Engine::new(EngineConfig::new(Meter::Fuel, clock::monotonic)).unwrap(),
        budget: Budget::fixed(512 << 20),
        compilers: None,
        metrics: Arc::new(Metrics::default()),
        identity: "host".into(),
        namespace: pintle_api::NAMESPACE.into(),
        leader_elect: false,
        workers: 2,
        seed: 1,
        spawner: Spawner::default(),
        guests: None,
        readiness: Readiness::default(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_says_what_a_swap_does() {
    let server = cluster();
    let stop = Arc::new(Notify::new());
    let stopped = Arc::clone(&stop);
    let host = tokio::spawn(host(&server).work_until(async move { stopped.notified().await }));
    let controllers = tokio::spawn({
        let server = server.clone();
        async move {
            loop {
                while server.controllers_step() {}
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        }
    });
    let client = Client::new(server.service("user"), "default");
    let bench = Bench::new(client, modules::guests(), "sim").unwrap();
    let filters: Vec<String> = std::env::var("PINTLE_PREVIEWS").into_iter().collect();
    let (mut ran, mut failed) = (0, Vec::new());
    let say = |name: &str, outcome: Result<(), anyhow::Error>| {
        ran += 1;
        if let Err(error) = outcome {
            failed.push(format!("{name}: {error:#}"));
        }
    };
    bench.run(&filters, say).await.unwrap();
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
    assert!(ran >= 30 || !filters.is_empty(), "{ran} scenarios");
    controllers.abort();
    stop.notify_one();
    host.await.unwrap().unwrap();
}
