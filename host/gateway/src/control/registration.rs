//! [`Registration`]: keeps the APIServices that lead to the gateway. They trust its certificate, and are touched when discovery changes, since
//! the API server looks at it only once a minute.

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use pintle_core::view::{accept::DiscoveryVersion, discovery, etag::Etag};
use pintle_kubernetes::REQUEST_TIMEOUT;
use pintle_runtime::clock;
use serde_json::{Value, json};
use tokio::sync::watch;
use tracing::{info, warn};

use super::bind::{ApiService, World};
use crate::{directory::Directory, tls::rotation};

/// The annotation by which an APIService is touched: the hash of what its group serves.
pub(super) const DISCOVERY: &str = "pintle.dev/discovery";

/// Keeps the APIServices that lead to the gateway.
pub(crate) struct Registration {
    api: Api<APIService>,
    own: (String, String),
    /// What they must trust, in PEM; empty until there is something.
    bundle: watch::Receiver<String>,
    /// What they trust now.
    carried: watch::Sender<Option<Vec<String>>>,
}

impl Registration {
    pub(crate) fn new(
        client: Client,
        own: (String, String),
        bundle: watch::Receiver<String>,
        carried: watch::Sender<Option<Vec<String>>>,
    ) -> Self {
        Self { api: Api::all(client), own, bundle, carried }
    }

    /// Ends when there is something else to trust.
    pub(crate) async fn bundle_changed(&mut self) {
        if self.bundle.changed().await.is_err() {
            // Certificates are from files, and nobody tells.
            std::future::pending::<()>().await;
        }
    }

    /// Brings each APIService of ours to where it should be.
    pub(crate) async fn keep(&mut self, world: &World, directory: &Arc<Directory>) {
        let mut carried = Vec::new();
        let ours = world.services.iter().filter(|(_, service)| service.service.as_ref() == Some(&self.own));
        for (name, facts) in ours {
            match self.keep_one(name, facts, directory).await {
                Ok(bundle) => carried.push(bundle),
                // Another gateway was first. The watch brings what it wrote.
                Err(kube::Error::Api(status)) if status.code == 409 => return,
                Err(error) => {
                    warn!(api_service = name, %error, "An APIService cannot be kept; is what pintle rbac prints for its Views applied?");
                    return;
                }
            }
        }
        self.carried.send_if_modified(|known| {
            let is_new = known.as_ref() != Some(&carried);
            *known = Some(carried);
            is_new
        });
    }

    /// Returns the certificates that it trusts afterwards, in PEM.
    async fn keep_one(
        &self,
        name: &str,
        service: &ApiService,
        directory: &Directory,
    ) -> Result<String, kube::Error> {
        let present = service.trusts.clone();
        let wanted = self.bundle.borrow().clone();
        let changed =
            (!wanted.is_empty()).then(|| rotation::ca_bundle(&wanted, &present, clock::now())).flatten();
        let served = directory.served(Some(&service.group));
        let tag = Etag::of(&discovery::aggregated(DiscoveryVersion::V2, &served));
        let hash = tag.hash().chars().take(16).collect::<String>();
        if changed.is_none() && service.discovery.as_ref() == Some(&hash) {
            return Ok(present);
        }
        let mut patch = json!({
            "metadata": {"resourceVersion": service.resource_version, "annotations": {DISCOVERY: hash}},
        });
        if let Some(bundle) = &changed {
            // Verified from now on: whoever has set it did not know the certificate yet.
            patch["spec"] =
                json!({"caBundle": BASE64_STANDARD.encode(bundle), "insecureSkipTLSVerify": Value::Null});
        }
        let (parameters, patch) = (PatchParams::default(), Patch::Merge(patch));
        let patched = self.api.patch(name, &parameters, &patch);
        // The client waits for ever, and with it would everything that the control loop does.
        tokio::time::timeout(REQUEST_TIMEOUT, patched)
            .await
            .map_err(|elapsed| kube::Error::Service(elapsed.into()))??;
        info!(api_service = name, trusts = changed.is_some(), "Brought an APIService up to date");
        Ok(changed.unwrap_or(present))
    }
}
