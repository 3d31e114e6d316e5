//! What the benchmark sees: its own watches on roots and, if a phase asks for them, on ConfigMaps or on all children. They are the same for
//! all contestants, and decide when something has happened.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Client,
    api::{ApiResource, DynamicObject, GroupVersionKind, PartialObjectMeta},
    runtime::{WatchStreamExt, watcher},
};
use serde_json::Value;
use tokio::sync::Notify;

use crate::api::{Api, CHILDREN, NAMESPACE};

/// A root, as far as the benchmark needs it.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    /// The message in the status, if the status is for the newest spec.
    pub(crate) message: String,
    /// Whether the status is correct for the newest spec.
    pub(crate) right: bool,
    /// When it was right for the first time.
    pub(crate) first_right: Option<Instant>,
    /// When this was seen.
    pub(crate) at: Instant,
}

/// A ConfigMap, as far as the benchmark needs it.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) message: String,
    pub(crate) logic: String,
    /// When this message was first seen.
    pub(crate) message_at: Instant,
    /// When this was seen.
    pub(crate) at: Instant,
}

/// Everything that was seen.
#[derive(Debug, Default)]
pub(crate) struct Observations {
    pub(crate) roots: BTreeMap<String, Root>,
    pub(crate) configs: BTreeMap<String, Config>,
    /// The uids of children, by their collection and name, and when each was first seen.
    pub(crate) uids: BTreeMap<(&'static str, String), (String, Instant)>,
    /// How many roots are right.
    pub(crate) right: usize,
    /// How many ConfigMaps have each logic.
    pub(crate) logics: BTreeMap<String, usize>,
}

/// The watches, and what they have shown. The watches end with this value.
pub(crate) struct Observer {
    client: Client,
    seen: Arc<Mutex<Observations>>,
    changed: Arc<Notify>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Drop for Observer {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Observer {
    /// Watches only the roots.
    pub(crate) fn of_roots(client: Client) -> Self {
        let mut observer =
            Self { client: client.clone(), seen: Arc::default(), changed: Arc::default(), tasks: Vec::new() };
        let kind = GroupVersionKind::gvk("bench.pintle.dev", "v1", "Bench");
        let roots: kube::Api<DynamicObject> = kube::Api::namespaced_with(
            client,
            NAMESPACE,
            &ApiResource::from_gvk_with_plural(&kind, "benches"),
        );
        observer.follow(roots, |seen, root| {
            let name = root.metadata.name.clone().unwrap_or_default();
            let mut found = read_root(&root);
            let old = seen.roots.get(&name);
            found.first_right = old.and_then(|root| root.first_right).or(found.first_right);
            let was = old.is_some_and(|root| root.right);
            seen.right = seen.right + usize::from(found.right) - usize::from(was);
            seen.roots.insert(name, found);
        });
        observer
    }

    /// Also watches the ConfigMaps.
    pub(crate) fn and_configs(mut self, client: Client) -> Self {
        let configs: kube::Api<ConfigMap> = kube::Api::namespaced(client, NAMESPACE);
        self.follow(configs, |seen, config| {
            let name = config.metadata.name.clone().unwrap_or_default();
            let data = config.data.unwrap_or_default();
            let text = |key: &str| data.get(key).cloned().unwrap_or_default();
            let mut found = Config {
                message: text("MESSAGE"),
                logic: text("LOGIC"),
                message_at: Instant::now(),
                at: Instant::now(),
            };
            if let Some(old) = seen.configs.get(&name).filter(|old| old.message == found.message) {
                found.message_at = old.message_at;
            }
            *seen.logics.entry(found.logic.clone()).or_default() += 1;
            if let Some(old) = seen.configs.insert(name, found) {
                *seen.logics.entry(old.logic).or_default() -= 1;
            }
        });
        self
    }

    /// Also watches the metadata of every kind of child.
    pub(crate) fn and_children(mut self, client: &Client) -> Self {
        let kinds = [
            ("", "v1", "ConfigMap"),
            ("apps", "v1", "Deployment"),
            ("", "v1", "Service"),
            ("networking.k8s.io", "v1", "Ingress"),
        ];
        for ((group, version, kind), collection) in kinds.into_iter().zip(CHILDREN) {
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
            let children: kube::Api<PartialObjectMeta<DynamicObject>> =
                kube::Api::namespaced_with(client.clone(), NAMESPACE, &resource);
            self.follow(children, move |seen, child| {
                let name = child.metadata.name.unwrap_or_default();
                let uid = child.metadata.uid.unwrap_or_default();
                let known =
                    seen.uids.entry((collection, name)).or_insert_with(|| (uid.clone(), Instant::now()));
                if known.0 != uid {
                    *known = (uid, Instant::now());
                }
            });
        }
        self
    }

    fn follow<K>(&mut self, api: kube::Api<K>, take: impl Fn(&mut Observations, K) + Send + 'static)
    where
        K: kube::Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned + Send + 'static,
    {
        let (seen, changed) = (Arc::clone(&self.seen), Arc::clone(&self.changed));
        self.tasks.push(tokio::spawn(async move {
            // Deletions do not matter: a ConfigMap that comes back has another uid.
            let mut objects =
                watcher(api, watcher::Config::default()).default_backoff().applied_objects().boxed();
            loop {
                match objects.try_next().await {
                    Ok(Some(object)) => {
                        take(&mut seen.lock().unwrap_or_else(PoisonError::into_inner), object);
                        changed.notify_waiters();
                    }
                    Ok(None) => break,
                    Err(error) => eprintln!("the benchmark's own watch: {error}"),
                }
            }
        }));
    }

    /// A client of the API server that does not borrow the stage.
    pub(crate) fn api(&self) -> Api {
        Api::new(self.client.clone())
    }

    pub(crate) fn seen(&self) -> MutexGuard<'_, Observations> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `look` returns something for what was seen.
    pub(crate) async fn wait<T>(
        &self,
        what: &str,
        within: Duration,
        look: impl Fn(&Observations) -> Option<T>,
    ) -> Result<T> {
        let until = tokio::time::Instant::now() + within;
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // From here on no change is missed, even if it comes before the await.
            changed.as_mut().enable();
            if let Some(found) = look(&self.seen()) {
                return Ok(found);
            }
            if tokio::time::timeout_at(until, changed).await.is_err() {
                let seen = self.seen();
                bail!(
                    "waited {} s for {what}; of {} roots {} are right, ConfigMaps by logic: {:?}",
                    within.as_secs(),
                    seen.roots.len(),
                    seen.right,
                    seen.logics
                );
            }
        }
    }

    /// Waits until this many roots are right, and returns when the last one became right.
    pub(crate) async fn wait_right(&self, roots: u32, within: Duration) -> Result<Instant> {
        self.wait(&format!("{roots} roots to be right"), within, |seen| {
            (seen.right >= roots as usize).then(|| seen.roots.values().map(|root| root.at).max()).flatten()
        })
        .await
    }
}

fn read_root(root: &DynamicObject) -> Root {
    let (spec, status) = (&root.data["spec"], &root.data["status"]);
    let current = status["observedGeneration"].as_i64() == root.metadata.generation;
    let replicas = spec["replicas"].as_i64().unwrap_or(0);
    // Without controllers no Deployment makes progress, so no root with replicas ever becomes ready.
    let ready = replicas == 0 || is_ready(status);
    let says = status["message"] == spec["message"]
        && status["readyReplicas"].as_i64() == Some(replicas)
        && status["url"].as_str() == Some(&format!("http://{}/", guest_bench::host_name(name(root))));
    let message = if current { status["message"].as_str().unwrap_or_default() } else { "" };
    let (right, at) = (current && ready && says, Instant::now());
    Root { message: message.to_owned(), right, first_right: right.then_some(at), at }
}

fn name(root: &DynamicObject) -> &str {
    root.metadata.name.as_deref().unwrap_or_default()
}

fn is_ready(status: &Value) -> bool {
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}
