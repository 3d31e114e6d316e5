//! What the benchmark sees: its own watches on roots and, if a phase asks for them, on ConfigMaps or on all children. They are the same for
//! all contestants, and decide when something has happened.

use std::{
    collections::BTreeMap,
    fmt::Display,
    time::{Duration, Instant},
};

use anyhow::Result;
use futures::StreamExt;
use kube::{
    api::DynamicObject,
    runtime::{WatchStreamExt, watcher},
};
use pintle_testbed::{Look, asynchronous::eventually};
use tokio::{sync::watch, task::JoinSet};

use crate::api::{Api, Kind, ROOTS};

/// What a watch has shown of an object.
#[derive(Debug)]
pub(crate) struct Sight {
    pub(crate) uid: String,
    /// Of a root: the message in its status, once that is right for the newest spec, and nothing before. Of a ConfigMap: logic and message.
    pub(crate) text: String,
    pub(crate) at: Instant,
}

/// What the watches have shown, by collection and name, in order. A sight like the one before it is left out.
pub(crate) type Sights = BTreeMap<(&'static str, String), Vec<Sight>>;

/// The watches, and what they have shown. The watches end with this value.
pub(crate) struct Observer {
    sights: watch::Sender<Sights>,
    watches: JoinSet<()>,
}

impl Observer {
    /// Watches these kinds. It has seen everything that exists when this returns.
    pub(crate) async fn start(api: &Api, kinds: &'static [Kind]) -> Result<Self> {
        let mut observer = Self { sights: watch::Sender::default(), watches: JoinSet::new() };
        let mut there = 0;
        for kind in kinds {
            let sights = observer.sights.clone();
            let objects = watcher(kind.objects(api.client()), watcher::Config::default());
            let mut objects = objects.default_backoff().applied_objects().boxed();
            observer.watches.spawn(async move {
                while let Some(shown) = objects.next().await {
                    match shown {
                        Ok(object) => sights.send_modify(|sights| record(sights, kind, object)),
                        Err(error) => eprintln!("the benchmark's own watch begins anew: {error}"),
                    }
                }
            });
            there += api.list(kind.collection).await?.len();
        }
        observer.wait("everything is seen", |sights| (sights.len() >= there).then_some(())).await?;
        // An empty list shows nothing. Its watch follows at once.
        tokio::time::sleep(Duration::from_millis(300)).await;
        Ok(observer)
    }

    pub(crate) fn sights(&self) -> watch::Ref<'_, Sights> {
        self.sights.borrow()
    }

    /// Waits until `look` returns something for what was seen. When it was seen is in the sights, so a late look changes no figure.
    pub(crate) async fn wait<T>(&self, what: impl Display, look: impl Fn(&Sights) -> Option<T>) -> Result<T> {
        eventually(what, async || {
            let sights = self.sights();
            Ok(look(&sights)
                .map_or_else(|| Look::NotYet(format!("{} objects were seen", sights.len())), Look::Reached))
        })
        .await
    }

    /// Waits until so many objects of a collection have such a text, and returns when the last of them got it.
    pub(crate) async fn wait_all(
        &self,
        collection: &'static str,
        count: u32,
        has_text: impl Fn(&str) -> bool,
    ) -> Result<Instant> {
        self.wait(format!("{count} of {collection} are as they should be"), |sights| {
            let of_collection = sights.iter().filter(|((of, _), _)| *of == collection);
            let last = of_collection.filter_map(|(_, sights)| sights.last());
            let right: Vec<Instant> =
                last.filter(|sight| has_text(&sight.text)).map(|sight| sight.at).collect();
            if right.len() >= count as usize { right.into_iter().max() } else { None }
        })
        .await
    }
}

fn record(sights: &mut Sights, kind: &Kind, object: DynamicObject) {
    let text = if kind.collection == ROOTS { message(&object) } else { logic_and_message(&object) };
    let sight = Sight { uid: object.metadata.uid.unwrap_or_default(), text, at: Instant::now() };
    let name = object.metadata.name.unwrap_or_default();
    let before = sights.entry((kind.collection, name)).or_default();
    if before.last().is_none_or(|last| last.uid != sight.uid || last.text != sight.text) {
        before.push(sight);
    }
}

fn message(root: &DynamicObject) -> String {
    let (spec, status) = (&root.data["spec"], &root.data["status"]);
    let host = guest_bench::host_name(root.metadata.name.as_deref().unwrap_or_default());
    let is_right = status["observedGeneration"].as_i64() == root.metadata.generation
        && status["message"] == spec["message"]
        && status["readyReplicas"] == 0
        && status["url"] == format!("http://{host}/");
    let message = if is_right { status["message"].as_str() } else { None };
    message.unwrap_or_default().to_owned()
}

fn logic_and_message(config_map: &DynamicObject) -> String {
    let value = |key: &str| config_map.data["data"][key].as_str().unwrap_or_default();
    format!("{}: {}", value("LOGIC"), value("MESSAGE"))
}
