//! [`Host`]: the gateway without what ties it to a process. The simulator starts it as `run` does.

use std::sync::Arc;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    runtime::{WatchStreamExt, watcher},
};
use pintle_kubernetes::{Backoff, prompt};
use pintle_modules::{Budget, Loader};
use pintle_runtime::Spawner;
use tokio::sync::watch;
use tracing::warn;

use crate::{
    answer::Gateway,
    control::Control,
    identity::{Authentication, CONFIG_MAP, CONFIG_MAP_NAMESPACE},
    metrics::Metrics,
    show::{CallViews, Guests},
    upstream::Upstream,
};

/// What a gateway works with.
pub struct Host {
    /// The way to the API server. Its own retry must be off.
    pub client: Client,
    /// What gets modules ready to be called.
    pub loader: Loader,
    /// Where its tasks run.
    pub spawner: Spawner,
    /// The memory that calls of guests reserve.
    pub budget: Budget,
    /// What it counts.
    pub metrics: Arc<Metrics>,
    /// Its name in Events.
    pub identity: String,
    /// Its own Service: namespace and name.
    pub own: (String, String),
    /// What APIServices must trust, in PEM; empty until there is something.
    pub bundle: watch::Receiver<String>,
    /// How guests are called.
    pub guests: Arc<dyn CallViews>,
}

impl Host {
    /// Starts the control loop, and returns what answers requests.
    pub fn start(self) -> Arc<Gateway<Client>> {
        let Self { client, loader, spawner, budget, metrics, identity, own, bundle, guests } = self;
        let (directory, directory_of) = watch::channel(None);
        let (authentication, authentication_of) = watch::channel(None);
        spawner.spawn_lasting(follow_authentication(client.clone(), authentication));
        let guests = Guests::new(spawner.clone(), guests, budget, Arc::clone(&metrics));
        let gateway = Gateway::new(
            client.clone(),
            Upstream::new(client.clone()),
            guests,
            spawner.clone(),
            metrics,
            directory_of,
            authentication_of,
        );
        let control = Control::new(client, spawner.clone(), loader, identity, own, directory, bundle);
        spawner.spawn_lasting(control.run());
        Arc::new(gateway)
    }
}

/// Follows how the cluster authenticates. Does not end.
async fn follow_authentication(client: Client, authentication: watch::Sender<Option<Arc<Authentication>>>) {
    let api: Api<ConfigMap> = Api::namespaced(prompt(&client), CONFIG_MAP_NAMESPACE);
    let config = watcher::Config::default().fields(&format!("metadata.name={CONFIG_MAP}"));
    let mut stream = std::pin::pin!(watcher(api, config).backoff(Backoff::of_watch()).applied_objects());
    while let Some(found) = stream.next().await {
        match found.map(|found| Authentication::of_config_map(&found.data.unwrap_or_default())) {
            Ok(Ok(read)) => {
                authentication.send_replace(Some(Arc::new(read)));
            }
            Ok(Err(error)) => {
                warn!(%error, "ConfigMap {CONFIG_MAP_NAMESPACE}/{CONFIG_MAP} cannot be read; what it said before holds")
            }
            Err(error) => {
                warn!(%error, "ConfigMap {CONFIG_MAP_NAMESPACE}/{CONFIG_MAP} cannot be watched; is deploy/gateway.yaml applied?")
            }
        }
    }
}
