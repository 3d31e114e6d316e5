//! Previews on an API server in memory where no host works: what they hide, what may not be read, and many roots. Scenarios compare what a
//! plan says with what a swap then does.

mod rights;
mod secrets;
mod thousand;

use std::sync::Arc;

use jiff::Timestamp;
use kube::Client;
use pintle_core::plan::{PlannedRoot, Summary};
use pintle_engine::{Digest, Engine, EngineConfig, Meter};
use pintle_modules::Budget;
use pintle_preview::{Caller, InspectRequest, PlanRequest, Preview, PreviewError, Told};
use pintle_runtime::{Spawner, clock};
use pintle_simulator::{Act, ApiServer, Options};
use pintle_wit::Kind;
use serde_json::{Value, json};

const FOLDERS: [&str; 3] = ["guest-darkroom", "guest-webserver", "guest-configmonitor"];

const NAMESPACE: &str = "blog";

/// A cluster in memory that has Pintle's CRDs, those of this repository's guests, and the namespace `blog`; and who looks at it.
struct Place {
    server: ApiServer,
    preview: Preview,
    caller: Caller,
}

impl Place {
    fn new() -> Self {
        let options = Options { clock: Arc::new(|| -> Timestamp { clock::now() }), ..Options::default() };
        let server = ApiServer::new(options);
        let client = Client::new(server.service("user"), "default");
        let engine = Engine::new(EngineConfig::new(Meter::Fuel, clock::monotonic)).unwrap();
        let place = Self {
            server,
            preview: Preview::new(engine, None, Budget::fixed(1 << 30), Spawner::default()),
            caller: Caller { user: client.clone(), modules: client },
        };
        pintle_api::crds().into_iter().for_each(|crd| place.create(crd));
        for folder in FOLDERS {
            place.create_all(&format!("{folder}/crd.yaml"));
        }
        for name in [pintle_api::NAMESPACE, NAMESPACE] {
            place.create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
        }
        place
    }

    fn create(&self, object: Value) {
        self.server.act("test", &Act::Create(object)).unwrap();
    }

    /// Creates the objects of a file of the repository.
    fn create_all(&self, path: &str) {
        let text = std::fs::read_to_string(format!("{}/../{path}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        for document in pintle_offline::documents::parse(path, &text).unwrap() {
            self.create(document.value);
        }
    }

    fn push(&self, module: &str, bytes: &[u8]) {
        let digest = Digest::of(bytes).to_string();
        pintle_api::module_objects(module, bytes, &digest).into_iter().for_each(|object| self.create(object));
    }

    async fn plan(&self, request: &PlanRequest) -> Result<(Vec<PlannedRoot>, Summary), PreviewError> {
        let mut roots = Vec::new();
        let mut tell = |told: Told| {
            if let Told::Root(root) = told {
                roots.push(*root);
            }
        };
        let summary = self.preview.plan(&self.caller, request, &mut tell).await?;
        Ok((roots, summary))
    }
}

/// What is asked about an object.
fn inspect(kind: (&str, &str), name: &str) -> InspectRequest {
    InspectRequest {
        kind: Kind::new(kind.0, kind.1),
        namespace: Some(NAMESPACE.into()),
        name: name.into(),
        module: None,
        proposed: None,
    }
}

fn guest(name: &str) -> Vec<u8> {
    std::fs::read(kit::modules::guests().join(format!("{name}.wasm")))
        .unwrap_or_else(|error| panic!("run: cargo xtask guests: {error}"))
}
