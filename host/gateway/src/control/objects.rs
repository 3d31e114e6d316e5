//! [`Objects`]: the Views, Modules and APIServices, as their watches bring them.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    hash::Hash,
    sync::{Arc, Mutex, PoisonError},
};

use futures::StreamExt;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::{
    Api, Client, Resource, ResourceExt,
    runtime::{WatchStreamExt, reflector, watcher},
};
use pintle_api::{Module, View};
use pintle_kubernetes::{Backoff, prompt};
use pintle_runtime::Spawner;
use serde::de::DeserializeOwned;
use tokio::sync::Notify;
use tracing::warn;

use super::{bind::ApiService, registration::DISCOVERY};

/// What the control loop decides from.
pub(crate) struct Objects {
    views: reflector::Store<View>,
    modules: reflector::Store<Module>,
    services: reflector::Store<APIService>,
    /// Views as this gateway wrote them last, until their watch is as far.
    written: Mutex<BTreeMap<String, View>>,
}

impl Objects {
    /// Follows them, and wakes the control loop whenever one changes.
    pub(crate) fn follow(client: &Client, spawner: &Spawner, woken: &Arc<Notify>) -> Self {
        let client = prompt(client);
        Self {
            views: follow(&client, spawner, woken),
            modules: follow(&client, spawner, woken),
            services: follow(&client, spawner, woken),
            written: Mutex::default(),
        }
    }

    /// Waits until all of them are listed.
    pub(crate) async fn listed(&self) {
        // An error means that the watch has ended, which it does not before its process.
        let _ = tokio::join!(
            self.views.wait_until_ready(),
            self.modules.wait_until_ready(),
            self.services.wait_until_ready()
        );
    }

    pub(crate) fn views(&self) -> BTreeMap<String, View> {
        let mut views: BTreeMap<String, View> =
            self.views.state().iter().map(|view| (view.name_any(), View::clone(view))).collect();
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        written.retain(|name, own| {
            views.get(name).is_some_and(|seen| seen.uid() == own.uid() && version(seen) < version(own))
        });
        for (name, own) in &*written {
            views.insert(name.clone(), own.clone());
        }
        views
    }

    /// Takes in what this gateway wrote itself.
    pub(crate) fn wrote(&self, view: View) {
        self.written.lock().unwrap_or_else(PoisonError::into_inner).insert(view.name_any(), view);
    }

    pub(crate) fn modules(&self) -> BTreeMap<String, Arc<Module>> {
        self.modules.state().into_iter().map(|module| (module.name_any(), module)).collect()
    }

    pub(crate) fn services(&self) -> BTreeMap<String, ApiService> {
        self.services.state().into_iter().map(|service| (service.name_any(), facts(&service))).collect()
    }
}

/// The version of an object. Those of one kind can be compared since Kubernetes 1.35 (KEP-5504).
fn version(view: &View) -> u64 {
    view.metadata.resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or_default()
}

fn facts(service: &APIService) -> ApiService {
    let Some(spec) = &service.spec else { return ApiService::default() };
    let conditions = service.status.as_ref().and_then(|status| status.conditions.as_ref());
    let available = conditions.into_iter().flatten().find(|condition| condition.type_ == "Available");
    let unavailable = match available {
        Some(condition) if condition.status == "True" => None,
        Some(condition) => Some(format!(
            "{}: {}",
            condition.reason.as_deref().unwrap_or("unknown"),
            condition.message.as_deref().unwrap_or_default()
        )),
        None => Some("the API server has not looked at it yet".to_owned()),
    };
    ApiService {
        group: spec.group.clone().unwrap_or_default(),
        version: spec.version.clone().unwrap_or_default(),
        service: spec.service.as_ref().map(|service| {
            (service.namespace.clone().unwrap_or_default(), service.name.clone().unwrap_or_default())
        }),
        unavailable,
        trusts: spec
            .ca_bundle
            .as_ref()
            .map(|pem| String::from_utf8_lossy(&pem.0).into_owned())
            .unwrap_or_default(),
        discovery: service.annotations().get(DISCOVERY).cloned(),
        resource_version: service.resource_version(),
    }
}

fn follow<K>(client: &Client, spawner: &Spawner, woken: &Arc<Notify>) -> reflector::Store<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: Hash + Eq,
{
    let (store, writer) = reflector::store();
    let stream = watcher(Api::<K>::all(client.clone()), watcher::Config::default());
    let woken = Arc::clone(woken);
    spawner.spawn_lasting(async move {
        // The task has the clock that the delays come from.
        let mut stream = std::pin::pin!(stream.backoff(Backoff::of_watch()).reflect(writer));
        while let Some(event) = stream.next().await {
            match event {
                Ok(_) => woken.notify_one(),
                Err(error) => {
                    warn!(kind = %K::kind(&()), %error, "A watch fails; is deploy/gateway.yaml applied?")
                }
            }
        }
    });
    store
}
