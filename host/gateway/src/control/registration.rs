//! [`Registration`]: keeps the APIServices that lead to the gateway. They trust its certificate, and are touched when discovery changes, since
//! the API server looks at it only once a minute.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use pintle_core::view::{discovery, etag::Etag};
use pintle_kubernetes::REQUEST_TIMEOUT;
use pintle_runtime::clock;
use serde_json::{Value, json};
use tokio::sync::watch;
use tracing::{info, warn};

use super::bind::{ApiService, World};
use crate::directory::Directory;

/// The annotation by which an APIService is touched: the hash of what its group serves.
pub(super) const DISCOVERY: &str = "pintle.dev/discovery";

/// How long after a touch an APIService is not touched again. Gateways that do not know the same yet, since one of them has just lost its
/// watch or has not read another CA, would each undo what another has done, as fast as they can.
const TOUCHED_AGAIN_AFTER: Duration = Duration::from_secs(2);

/// Keeps the APIServices that lead to the gateway.
pub(crate) struct Registration {
    api: Api<APIService>,
    own: (String, String),
    /// What they must trust, in PEM; empty until there is something.
    bundle: watch::Receiver<String>,
    /// When this gateway touched them last, by name.
    touched: BTreeMap<String, Duration>,
    /// After how long one of them is to be looked at again.
    again: Duration,
}

impl Registration {
    pub(crate) fn new(client: Client, own: (String, String), bundle: watch::Receiver<String>) -> Self {
        Self { api: Api::all(client), own, bundle, touched: BTreeMap::new(), again: Duration::MAX }
    }

    /// Ends when there is something else to trust.
    pub(crate) async fn bundle_changed(&mut self) {
        if self.bundle.changed().await.is_err() {
            // Certificates are from files, and nobody tells.
            std::future::pending::<()>().await;
        }
    }

    /// After how long to look again.
    pub(crate) fn due_in(&self) -> Duration {
        self.again
    }

    /// Brings each APIService of ours to where it should be.
    pub(crate) async fn keep(&mut self, world: &World, directory: &Arc<Directory>) {
        self.again = Duration::MAX;
        self.touched.retain(|name, _| world.services.contains_key(name));
        let own = self.own.clone();
        for (name, facts) in
            world.services.iter().filter(|(_, service)| service.service.as_ref() == Some(&own))
        {
            match self.keep_one(name, facts, directory).await {
                Ok(after) => self.again = self.again.min(after),
                // The others are kept all the same. After a conflict, the watch brings what another gateway wrote.
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                Err(error) => {
                    warn!(api_service = name, %error, "An APIService cannot be kept; is what pintle rbac prints for its Views applied?");
                }
            }
        }
    }

    /// Brings an APIService to where it should be. Returns after how long it is to be looked at again.
    async fn keep_one(
        &mut self,
        name: &str,
        service: &ApiService,
        directory: &Directory,
    ) -> Result<Duration, kube::Error> {
        let bundle = self.bundle.borrow().clone();
        // Before there is one, and with a certificate from files, it stays as it is.
        let is_trusted = bundle.is_empty() || service.trusts == bundle;
        let served = directory.served(Some(&service.group));
        let tag = Etag::of(&discovery::aggregated(&served));
        let hash = tag.hash().chars().take(16).collect::<String>();
        if is_trusted && service.discovery.as_ref() == Some(&hash) {
            return Ok(Duration::MAX);
        }
        let now = clock::monotonic();
        let since = self.touched.get(name).map(|touched| now.saturating_sub(*touched));
        let wait = since.and_then(|since| TOUCHED_AGAIN_AFTER.checked_sub(since));
        if let Some(wait) = wait.filter(|wait| !wait.is_zero()) {
            return Ok(wait);
        }
        self.touched.insert(name.to_owned(), now);
        let mut patch = json!({
            "metadata": {"resourceVersion": service.resource_version, "annotations": {DISCOVERY: hash}},
        });
        if !is_trusted {
            // Verified from now on: whoever has set it did not know the certificate yet.
            patch["spec"] =
                json!({"caBundle": BASE64_STANDARD.encode(&bundle), "insecureSkipTLSVerify": Value::Null});
        }
        let (parameters, patch) = (PatchParams::default(), Patch::Merge(patch));
        let patched = self.api.patch(name, &parameters, &patch);
        // The client waits for ever, and with it would everything that the control loop does.
        tokio::time::timeout(REQUEST_TIMEOUT, patched)
            .await
            .map_err(|elapsed| kube::Error::Service(elapsed.into()))??;
        info!(api_service = name, trusts = !is_trusted, "Brought an APIService up to date");
        Ok(Duration::MAX)
    }
}

#[cfg(test)]
mod tests;
