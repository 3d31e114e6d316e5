//! Fetches the bytes of a module, by their source.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use pintle_api::{ConfigMapSource, ModuleSource};
use pintle_core::{ApiError, reasons};
use pintle_engine::MODULE_BYTES_MAX;
use pintle_kubernetes::{Cluster, builtin};
use pintle_wit::{Failure, ObjectRef};

/// The ConfigMaps of the cluster that a Module names.
pub(crate) fn source_of(source: &ModuleSource) -> Result<&ConfigMapSource, Failure> {
    source.config_map.as_ref().ok_or_else(|| {
        Failure::terminal(reasons::SOURCE_MISSING, "the source names no ConfigMap").at("spec.source")
    })
}

/// Fetches the bytes of a Module as the host does: the command line reads a module in a cluster by the same code. They are not verified
/// yet.
///
/// # Errors
/// The reasons that begin with `Source`.
pub async fn module_bytes(cluster: &Cluster, source: &ModuleSource) -> Result<Vec<u8>, Failure> {
    bytes(cluster, source_of(source)?).await
}

/// Fetches the bytes. They are not verified yet.
///
/// # Errors
/// The reasons that begin with `Source`.
pub(crate) async fn bytes(cluster: &Cluster, source: &ConfigMapSource) -> Result<Vec<u8>, Failure> {
    let config_maps = builtin("v1", "ConfigMap", "configmaps", true);
    let mut bytes = Vec::new();
    for name in source.names() {
        if bytes.len() > MODULE_BYTES_MAX {
            // The bytes so far are reason enough to refuse it.
            break;
        }
        let reference = ObjectRef {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            namespace: Some(source.namespace.clone()),
            name: name.clone(),
        };
        let at = "spec.source.configMap";
        let found =
            cluster.get(&config_maps, &reference).await.map_err(|error| not_fetched(&error).at(at))?;
        let Some(found) = found else {
            let message = format!("there is no {reference}; push the module again, or create it");
            return Err(Failure::transient(reasons::SOURCE_NOT_FOUND, message).at(at));
        };
        let encoded = found
            .get("binaryData")
            .and_then(|data| data.get(&source.key))
            .and_then(serde_json::Value::as_str);
        let Some(encoded) = encoded else {
            let message = format!("{reference} has no key {:?} in binaryData", source.key);
            return Err(
                Failure::transient(reasons::SOURCE_NOT_FOUND, message).at("spec.source.configMap.key")
            );
        };
        let part = BASE64_STANDARD.decode(encoded);
        bytes.extend(part.map_err(|error| {
            Failure::transient(reasons::SOURCE_INVALID, format!("{reference}: {error}")).at(at)
        })?);
    }
    Ok(bytes)
}

fn not_fetched(error: &ApiError) -> Failure {
    let reason = if error.code == 403 { reasons::SOURCE_FORBIDDEN } else { reasons::SOURCE_UNAVAILABLE };
    Failure::transient(reason, error.to_string())
}
