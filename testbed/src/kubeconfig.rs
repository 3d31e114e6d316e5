//! Writes kubeconfig files for tests.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::certificates::Pair;

/// Writes a kubeconfig for `server` with a client certificate.
pub(crate) fn with_certificate(
    path: &Path,
    server: &str,
    authority: &Path,
    user: &str,
    pair: &Pair,
) -> Result<()> {
    let cluster = json!({ "server": server, "certificate-authority": authority });
    let credentials = json!({ "client-certificate": pair.certificate, "client-key": pair.key });
    write(path, &cluster, None, user, &credentials)
}

/// Writes a kubeconfig for the cluster of `existing` (a flattened kubeconfig with one context) with this `token`.
pub(crate) fn with_token(
    path: &Path,
    existing: &Value,
    namespace: &str,
    user: &str,
    token: &str,
) -> Result<()> {
    let cluster = existing.pointer("/clusters/0/cluster").context("the kubeconfig names no cluster")?;
    write(path, cluster, Some(namespace), user, &json!({ "token": token }))
}

fn write(
    path: &Path,
    cluster: &Value,
    namespace: Option<&str>,
    user: &str,
    credentials: &Value,
) -> Result<()> {
    let mut context = json!({ "cluster": "pintle-testbed", "user": user });
    if let Some(namespace) = namespace {
        context["namespace"] = namespace.into();
    }
    // JSON is valid YAML, and a serializer quotes correctly.
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "pintle-testbed", "cluster": cluster }],
        "users": [{ "name": user, "user": credentials }],
        "contexts": [{ "name": "pintle-testbed", "context": context }],
        "current-context": "pintle-testbed",
    });
    fs::write(path, format!("{config:#}\n")).with_context(|| format!("writing {}", path.display()))
}
