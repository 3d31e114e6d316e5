//! [`Keeper`]: carries out what [`rotation`](super::rotation) decides, on the Secret that all replicas share.

use std::{collections::BTreeMap, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use jiff::Timestamp;
use pintle_core::{ApiError, object};
use pintle_kubernetes::{Cluster, builtin};
use pintle_runtime::clock;
use pintle_wit::ObjectRef;
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tracing::{info, warn};

use super::{
    PairError, Served,
    made::make,
    rotation::{Change, Held, Step, begun, decide},
};

/// The name of the Secret, in the gateway's namespace.
pub const SECRET: &str = "pintle-gateway-tls";

/// How often the Secret is read, so that a replica soon uses what another has made.
const READ_EVERY: Duration = Duration::from_secs(60);
/// How often it is read while APIServices are to be changed.
const READ_EVERY_WHILE_PUBLISHING: Duration = Duration::from_secs(5);
/// The delay after an error.
const RETRY: Duration = Duration::from_secs(5);

/// Keeps a certificate that the gateways make themselves: makes it, replaces it in time, and serves it.
pub struct Keeper {
    cluster: Cluster,
    namespace: String,
    names: Vec<String>,
    served: Served,
    bundle: watch::Sender<String>,
    carried: watch::Receiver<Option<Vec<String>>>,
    /// Which bundle every APIService has carried, and since when.
    carried_since: Option<(String, Duration)>,
}

/// The certificate cannot be made or kept.
#[derive(Debug, thiserror::Error)]
enum KeepError {
    #[error("{0}")]
    Api(ApiError),
    #[error("a certificate cannot be made: {0}")]
    Make(#[from] rcgen::Error),
    #[error(transparent)]
    Serve(#[from] PairError),
}

/// The Secret as it was read.
struct Found {
    version: String,
    /// None: nothing that can be used.
    held: Option<Held>,
}

impl Keeper {
    /// Keeps the certificate of a Service. `bundle` is told what every APIService of ours must trust, in PEM, which
    /// [`ca_bundle`](super::rotation::ca_bundle) makes a `caBundle` of. `carried` tells which `caBundle` they have, in PEM: an entry for
    /// each, and nothing while that is not known.
    pub fn new(
        cluster: Cluster,
        namespace: &str,
        service: &str,
        served: Served,
        bundle: watch::Sender<String>,
        carried: watch::Receiver<Option<Vec<String>>>,
    ) -> Self {
        let name = format!("{service}.{namespace}.svc");
        let names = vec![format!("{name}.cluster.local"), name];
        Self { cluster, namespace: namespace.into(), names, served, bundle, carried, carried_since: None }
    }

    /// Keeps it. Does not end.
    pub async fn keep(mut self) {
        loop {
            let delay = match self.round().await {
                Ok(delay) => delay,
                Err(error) => {
                    let namespace = &self.namespace;
                    warn!(
                        namespace,
                        %error, "The certificate in Secret {SECRET} cannot be kept; is deploy/gateway.yaml applied?"
                    );
                    RETRY
                }
            };
            tokio::select! {
                () = tokio::time::sleep(delay) => {}
                // Not when nobody tells any more, or this would not rest.
                Ok(()) = self.carried.changed() => {}
            }
        }
    }

    /// Reads the Secret, uses what is in it, and takes at most one step. Returns the time until the next round.
    async fn round(&mut self) -> Result<Duration, KeepError> {
        let found = self.read().await?;
        let held = found.as_ref().and_then(|found| found.held.as_ref());
        let now = clock::now();
        let carried_for = held.and_then(|held| self.carried_for(held));
        if let Some(held) = held {
            self.served.set(held.current())?;
            let bundle = held.bundle();
            self.bundle.send_if_modified(|known| {
                let is_new = *known != bundle;
                *known = bundle;
                is_new
            });
        }
        let change = match (decide(held, &self.names, carried_for, now), held) {
            (Step::Rest(until), _) => return Ok(until_then(until, now).min(READ_EVERY)),
            (Step::Publish, _) => return Ok(READ_EVERY_WHILE_PUBLISHING),
            (Step::Prepare, Some(held)) => held.prepared(&make(&self.names, now)?),
            (Step::TakeUp, Some(held)) => held.taken_up(),
            (Step::Forget, Some(held)) => held.forgotten(now),
            (Step::Begin | Step::Prepare | Step::TakeUp | Step::Forget, _) => begun(&make(&self.names, now)?),
        };
        self.write(found.as_ref(), &change).await?;
        Ok(Duration::ZERO)
    }

    /// For how long every APIService has carried the bundle.
    fn carried_for(&mut self, held: &Held) -> Option<Duration> {
        let is_carried = {
            let carried = self.carried.borrow_and_update();
            carried.as_ref().is_some_and(|all| all.iter().all(|bundle| held.is_carried_by(bundle)))
        };
        if !is_carried {
            self.carried_since = None;
            return None;
        }
        let (bundle, now) = (held.bundle(), clock::monotonic());
        match &self.carried_since {
            Some((known, since)) if *known == bundle => Some(now.saturating_sub(*since)),
            _ => {
                self.carried_since = Some((bundle, now));
                Some(Duration::ZERO)
            }
        }
    }

    async fn read(&self) -> Result<Option<Found>, KeepError> {
        let reference = ObjectRef {
            api_version: "v1".into(),
            kind: "Secret".into(),
            namespace: Some(self.namespace.clone()),
            name: SECRET.into(),
        };
        let secrets = builtin("v1", "Secret", "secrets", true);
        let Some(secret) = self.cluster.get(&secrets, &reference).await.map_err(KeepError::Api)? else {
            return Ok(None);
        };
        let version = object::text(&secret, &["metadata", "resourceVersion"]).unwrap_or_default().to_owned();
        let held = match Held::read(&decoded(&secret)) {
            Ok(held) => Some(held),
            Err(error) => {
                warn!(namespace = self.namespace, %error, "Secret {SECRET} has no certificate of ours; it is replaced");
                None
            }
        };
        Ok(Some(Found { version, held }))
    }

    /// Changes the Secret, if it is still as it was read. If it is not, another replica was faster, and the next round reads what it did.
    async fn write(&self, found: Option<&Found>, change: &Change) -> Result<(), KeepError> {
        let encoded = change.iter().map(|(key, value)| {
            let value = value.as_ref().map(|value| BASE64_STANDARD.encode(value));
            ((*key).to_owned(), value.map_or(Value::Null, Value::String))
        });
        let mut data: Map<String, Value> = encoded.collect();
        let written = match found {
            Some(Found { version, .. }) => {
                let path = format!("/api/v1/namespaces/{}/secrets/{SECRET}", self.namespace);
                let patch = json!({"metadata": {"resourceVersion": version}, "data": data});
                self.cluster.merge(path, &patch).await
            }
            None => {
                data.retain(|_, value| !value.is_null());
                let secret = json!({
                    "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
                    "metadata": {"name": SECRET, "namespace": self.namespace}, "data": data,
                });
                self.cluster.create(&builtin("v1", "Secret", "secrets", true), &secret).await
            }
        };
        match written {
            Ok(_) => {
                info!(namespace = self.namespace, keys = ?change.keys().collect::<Vec<_>>(), "Changed Secret {SECRET}");
                Ok(())
            }
            Err(error) if error.code == 409 => Ok(()),
            Err(error) => Err(KeepError::Api(error)),
        }
    }
}

/// The values of a Secret that are text.
fn decoded(secret: &Value) -> BTreeMap<String, String> {
    let data = secret.get("data").and_then(Value::as_object).into_iter().flatten();
    let text = |value: &Value| String::from_utf8(BASE64_STANDARD.decode(value.as_str()?).ok()?).ok();
    data.filter_map(|(key, value)| Some((key.clone(), text(value)?))).collect()
}

fn until_then(then: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(then.duration_since(now)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
