//! Writes kubeconfig files.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

/// Writes a kubeconfig with one context.
pub(crate) fn write(path: &Path, cluster: &Value, namespace: Option<&str>, user: &Value) -> Result<()> {
    // JSON is valid YAML, and a serializer quotes correctly.
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "pintle-testbed", "cluster": cluster }],
        "users": [{ "name": "user", "user": user }],
        "contexts": [{
            "name": "pintle-testbed",
            "context": { "cluster": "pintle-testbed", "user": "user", "namespace": namespace },
        }],
        "current-context": "pintle-testbed",
    });
    fs::write(path, format!("{config:#}\n")).with_context(|| format!("writing {}", path.display()))
}
