//! The key that seals the hashes of Secrets, in a Secret of the host's namespace.

use std::{io, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use pintle_core::{ApiError, SealingKey};
use pintle_kubernetes::{Backoff, Cluster, builtin};
use pintle_runtime::clock;
use pintle_wit::ObjectRef;
use serde_json::json;
use tracing::{debug, warn};

/// The first delay while the key cannot be read.
const RETRY_FIRST: Duration = Duration::from_millis(500);
/// The longest back-off while the key cannot be read. Without the key the host does nothing at all, so it must not lose half a minute
/// once the API server answers again.
const RETRY_MAX: Duration = Duration::from_secs(5);

/// The name of the Secret with the key, in the host's namespace.
const KEY_NAME: &str = "pintle-key";

/// Reads the key that seals the hashes of Secrets. The first host that starts creates it. Retries until it succeeds: without the key, the
/// hashes on existing Secrets would mean nothing, and every Secret would be written again.
pub(crate) async fn read(cluster: &Cluster, namespace: &str) -> SealingKey {
    let mut backoff = Backoff::between(RETRY_FIRST, RETRY_MAX);
    loop {
        match try_read(cluster, namespace).await {
            Ok(Some(key)) => return key,
            Ok(None) => {
                debug!(namespace, "Waiting for the host that leads to make Secret {KEY_NAME}");
                tokio::time::sleep(RETRY_FIRST).await;
            }
            Err(error) => {
                warn!(
                    namespace,
                    %error, "Secret {KEY_NAME} can be neither read nor made; is deploy/install.yaml applied?"
                );
                backoff.pause().await;
            }
        }
    }
}

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
enum KeyError {
    #[error("{0}")]
    Api(ApiError),
    /// The operating system has no random bytes to give.
    #[error(transparent)]
    Random(#[from] io::Error),
    #[error(transparent)]
    Base64(#[from] base64::DecodeError),
    #[error("key `key` in Secret {namespace}/{KEY_NAME} has not 32 bytes")]
    Length { namespace: String },
}

/// The key; none if it does not exist and this host may not create it.
async fn try_read(cluster: &Cluster, namespace: &str) -> Result<Option<SealingKey>, KeyError> {
    let secrets = builtin("v1", "Secret", "secrets", true);
    let reference = ObjectRef {
        api_version: "v1".into(),
        kind: "Secret".into(),
        namespace: Some(namespace.into()),
        name: KEY_NAME.into(),
    };
    let secret = match cluster.get(&secrets, &reference).await.map_err(KeyError::Api)? {
        Some(secret) => secret,
        None if cluster.hold().term().is_none() => return Ok(None),
        None => {
            let bytes: [u8; 32] = clock::random()?;
            let made = json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": KEY_NAME, "namespace": namespace},
                "immutable": true, "data": {"key": BASE64_STANDARD.encode(bytes)},
            });
            // Created, never applied. If two hosts start at once, the second one reads the first one's key at its next attempt.
            cluster.create(&secrets, &made).await.map_err(KeyError::Api)?
        }
    };
    let encoded = secret.pointer("/data/key").and_then(serde_json::Value::as_str).unwrap_or_default();
    let bytes = BASE64_STANDARD.decode(encoded)?;
    let bytes: [u8; 32] = bytes.try_into().map_err(|_| KeyError::Length { namespace: namespace.into() })?;
    Ok(Some(SealingKey::new(bytes)))
}
