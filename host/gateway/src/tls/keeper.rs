//! [`Keeper`]: signs the certificate of a gateway with a CA that all replicas share in a Secret.
//!
//! The Secret is read each minute, so that all replicas have one CA soon after somebody has replaced it. It is never written over.

use std::time::Duration;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use jiff::{SignedDuration, Timestamp};
use pintle_core::{ApiError, object};
use pintle_kubernetes::{Cluster, Resource, builtin};
use pintle_runtime::clock;
use pintle_wit::ObjectRef;
use serde_json::{Value, json};
use tokio::sync::watch;
use tracing::{info, warn};

use super::{Pair, PairError, Served, made};

/// The name of the Secret, in the gateway's namespace.
pub const SECRET: &str = "pintle-gateway-tls";

/// When a certificate is replaced: when two thirds of its life are over.
const RENEW_AFTER: SignedDuration = SignedDuration::from_hours(60 * 24);

/// How often the Secret is read.
const READ_EVERY: Duration = Duration::from_secs(60);

/// The delay after an error.
const RETRY: Duration = Duration::from_secs(5);

/// Keeps the certificate of a gateway: makes the CA if there is none, signs the certificate, replaces it in time, and serves it.
pub struct Keeper {
    cluster: Cluster,
    namespace: String,
    names: Vec<String>,
    served: Served,
    bundle: watch::Sender<String>,
    /// Of which CA the certificate in use is, and when it was signed.
    signed: Option<(String, Timestamp)>,
}

/// The certificate cannot be signed.
#[derive(Debug, thiserror::Error)]
enum KeepError {
    #[error("{0}")]
    Api(ApiError),
    #[error("a certificate cannot be made: {0}")]
    Make(#[from] rcgen::Error),
    #[error("the CA cannot be used: {0}; delete the Secret, and the gateways make another one")]
    Unusable(PairError),
    #[error(transparent)]
    Serve(#[from] PairError),
}

impl Keeper {
    /// Keeps the certificate of a Service. `bundle` is told the CA, in PEM, that every APIService of ours must trust.
    pub fn new(
        cluster: Cluster,
        namespace: &str,
        service: &str,
        served: Served,
        bundle: watch::Sender<String>,
    ) -> Self {
        let name = format!("{service}.{namespace}.svc");
        let names = vec![format!("{name}.cluster.local"), name];
        Self { cluster, namespace: namespace.into(), names, served, bundle, signed: None }
    }

    /// Keeps it. Does not end.
    pub async fn keep(mut self) {
        loop {
            let delay = match self.round().await {
                Ok(()) => READ_EVERY,
                Err(error) => {
                    let namespace = &self.namespace;
                    warn!(
                        namespace,
                        %error, "No certificate can be signed with Secret {SECRET}; is deploy/gateway.yaml applied?"
                    );
                    RETRY
                }
            };
            tokio::time::sleep(delay).await;
        }
    }

    /// Reads the CA, and signs a certificate if the one in use is old, or of another CA.
    async fn round(&mut self) -> Result<(), KeepError> {
        let authority = match self.read().await? {
            Some(authority) => authority,
            None => self.make().await?,
        };
        let now = clock::now();
        let is_fresh = |(of, at): &(String, Timestamp)| {
            *of == authority.certificates && now.duration_since(*at) < RENEW_AFTER
        };
        if self.signed.as_ref().is_some_and(is_fresh) {
            return Ok(());
        }
        self.served.set(&made::issue(&authority, &self.names, now)?)?;
        self.bundle.send_if_modified(|known| {
            let is_new = *known != authority.certificates;
            known.clone_from(&authority.certificates);
            is_new
        });
        info!(namespace = self.namespace, "A certificate was signed with Secret {SECRET}");
        self.signed = Some((authority.certificates, now));
        Ok(())
    }

    /// The CA, if there is one.
    async fn read(&self) -> Result<Option<Pair>, KeepError> {
        let reference = ObjectRef {
            api_version: "v1".into(),
            kind: "Secret".into(),
            namespace: Some(self.namespace.clone()),
            name: SECRET.into(),
        };
        let secret = self.cluster.get(&secrets(), &reference).await.map_err(KeepError::Api)?;
        let Some(secret) = secret else { return Ok(None) };
        let authority = Pair { certificates: text(&secret, "tls.crt"), key: text(&secret, "tls.key") };
        authority.certified().map_err(KeepError::Unusable)?;
        Ok(Some(authority))
    }

    /// Makes a CA. If another replica was faster, its CA is the one.
    async fn make(&self) -> Result<Pair, KeepError> {
        let authority = made::authority(clock::now())?;
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
            "metadata": {"name": SECRET, "namespace": self.namespace},
            "data": {
                "tls.crt": BASE64_STANDARD.encode(&authority.certificates),
                "tls.key": BASE64_STANDARD.encode(&authority.key),
            },
        });
        match self.cluster.create(&secrets(), &secret).await {
            Ok(_) => {
                info!(namespace = self.namespace, "A CA was made, in Secret {SECRET}");
                Ok(authority)
            }
            Err(error) if error.code == 409 => self.read().await?.ok_or(KeepError::Api(error)),
            Err(error) => Err(KeepError::Api(error)),
        }
    }
}

fn secrets() -> Resource {
    builtin("v1", "Secret", "secrets", true)
}

/// A text in a Secret; empty if there is none.
fn text(secret: &Value, key: &str) -> String {
    let encoded = object::text(secret, &["data", key]).unwrap_or_default();
    let decoded = BASE64_STANDARD.decode(encoded).ok();
    decoded.and_then(|text| String::from_utf8(text).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
