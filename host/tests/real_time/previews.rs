//! Previews on an API server in memory where no host works: what they hide, what may not be read, and many roots. Scenarios compare what a
//! plan says with what a swap then does.

mod rights;
mod secrets;
mod thousand;

use std::sync::Arc;

use jiff::Timestamp;
use pintle_runtime::clock;
use pintle_simulator::{Act, ApiServer, Options};
use serde_json::{Value, json};

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
