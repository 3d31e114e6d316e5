//! A module as the objects that `pintle push` makes of it.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use crate::api;

/// How many bytes one ConfigMap takes: in base64 they stay below the 1.5 MiB of a request.
const PART_BYTES: usize = 900 << 10;

/// The ConfigMaps with the bytes of a module, and then its Module.
pub fn objects(name: &str, bytes: &[u8], digest: &str) -> Vec<Value> {
    let mut parts: Vec<&[u8]> = bytes.chunks(PART_BYTES).collect();
    if parts.is_empty() {
        parts.push(&[]);
    }
    let source = api::ConfigMapSource {
        namespace: api::NAMESPACE.into(),
        name: name.into(),
        key: "module.wasm".into(),
        parts: u32::try_from(parts.len()).unwrap_or(u32::MAX),
    };
    let config_map = |(name, part): (String, &&[u8])| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": api::NAMESPACE},
            "binaryData": {"module.wasm": BASE64_STANDARD.encode(part)},
        })
    };
    let mut objects: Vec<Value> = source.names().into_iter().zip(&parts).map(config_map).collect();
    objects.push(json!({
        "apiVersion": "pintle.dev/v1alpha1", "kind": "Module", "metadata": {"name": name},
        "spec": {"digest": digest, "source": {"configMap": source}},
    }));
    objects
}
