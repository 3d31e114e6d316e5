//! Informers: clients that list, follow what changes, and believe what they were told. They ignore what has the version that they know.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::Value;

use super::{
    gateways::{Content, Events, Request},
    world::World,
};

/// How long a client waits before it tries again, and where it knows better than before what to ask for.
const RETRY: Duration = Duration::from_secs(1);
const SOON: Duration = Duration::from_millis(100);

/// How long a watch is asked to last, in seconds.
const WATCH_SECONDS: u32 = 120;

/// The form of metadata alone.
pub(super) const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_OF_ALL: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// How an informer begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begin {
    /// With a list, as client-go did until 1.34. The first may be old.
    List,
    /// With a list in pages of two.
    Pages,
    /// With the initial events of a watch.
    Watch,
}

/// An informer.
#[derive(Debug)]
pub(super) struct Informer {
    pub(super) name: &'static str,
    /// The plural of what it reads.
    pub(super) plural: &'static str,
    pub(super) begin: Begin,
    /// A label that it selects by, with its value.
    pub(super) selects: Option<(&'static str, &'static str)>,
    /// Whether it reads metadata alone.
    pub(super) metadata_only: bool,
    believed: Mutex<BTreeMap<String, Value>>,
}

/// What it should do next, after a pause.
enum Next {
    /// Watch again, from this version.
    Watch(String),
    /// Begin anew: from a state that is not older than this version, or the newest if it is empty.
    Begin(String),
}

impl Informer {
    pub(super) fn new(name: &'static str, plural: &'static str, begin: Begin) -> Self {
        Self { name, plural, begin, selects: None, metadata_only: false, believed: Mutex::default() }
    }

    /// The same of the objects with this label alone.
    pub(super) fn selecting(self, label: (&'static str, &'static str)) -> Self {
        Self { selects: Some(label), ..self }
    }

    /// The same of metadata alone.
    pub(super) fn of_metadata(self) -> Self {
        Self { metadata_only: true, ..self }
    }

    /// What it believes, by name.
    pub(super) fn believed(&self) -> MutexGuard<'_, BTreeMap<String, Value>> {
        self.believed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&self, parameters: &str) -> String {
        let selector = self.selects.map(|(label, value)| format!("&labelSelector={label}%3D{value}"));
        let path = super::collection(self.plural);
        format!("{path}?{parameters}{}", selector.unwrap_or_default())
    }

    /// Works. Does not end.
    pub(super) async fn run(self: Arc<Self>, world: Arc<World>) {
        let any = if self.begin == Begin::List { "0" } else { "" };
        let mut next = Next::Begin(any.to_owned());
        loop {
            let (then, pause) = match next {
                Next::Begin(version) if self.begin == Begin::Watch => {
                    self.begin_with_watch(&world, version).await
                }
                Next::Begin(version) => self.list(&world, version).await,
                Next::Watch(version) => self.watch(&world, version).await,
            };
            next = then;
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
        }
    }

    /// Lists.
    async fn list(&self, world: &World, version: String) -> (Next, Duration) {
        let mut found = BTreeMap::new();
        let mut page = String::new();
        loop {
            let mut parameters = String::new();
            if self.begin == Begin::Pages {
                parameters.push_str("limit=2");
            } else if !version.is_empty() {
                parameters = format!("resourceVersion={version}");
            }
            if !page.is_empty() {
                parameters.push_str(&format!("&continue={page}"));
            }
            let accept = self.metadata_only.then_some(METADATA_OF_ALL);
            let request = Request { accept, agent: self.name.into(), ..Request::get(self.path(&parameters)) };
            let list = match world.ask(request).await {
                Some((200, list)) => list,
                // The version, or the page, is too old; or the version is not there yet. Two gateways may be in different epochs for a
                // while, so that the pages of one are void for the other.
                Some((410, _)) => return (Next::Begin(String::new()), SOON),
                Some((504, _)) if !version.is_empty() => return (Next::Begin(String::new()), SOON),
                _ => return (Next::Begin(version), RETRY),
            };
            for item in list["items"].as_array().into_iter().flatten() {
                found.insert(name(item), item.clone());
            }
            page = text(&list["metadata"]["continue"]);
            if page.is_empty() {
                self.replace(found);
                return (Next::Watch(text(&list["metadata"]["resourceVersion"])), Duration::ZERO);
            }
        }
    }

    async fn open(&self, world: &World, parameters: &str) -> Option<Result<Events, u16>> {
        let parameters =
            format!("watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}{parameters}");
        let accept = self.metadata_only.then_some(METADATA);
        let request = Request { accept, agent: self.name.into(), ..Request::get(self.path(&parameters)) };
        let answer = world.send(request).await.ok()?;
        Some(match answer.content {
            Content::Events(events) => Ok(events),
            Content::Whole(_) => Err(answer.code),
        })
    }

    async fn watch(&self, world: &World, version: String) -> (Next, Duration) {
        match self.open(world, &format!("&resourceVersion={version}")).await {
            Some(Ok(events)) => self.follow(world, events, version).await,
            Some(Err(410)) => (Next::Begin(String::new()), SOON),
            // As client-go: it goes on where it is if nobody listens or too many ask, and else begins anew.
            None | Some(Err(429 | 503)) => (Next::Watch(version), RETRY),
            Some(Err(_)) => (Next::Begin(version), RETRY),
        }
    }

    async fn begin_with_watch(&self, world: &World, version: String) -> (Next, Duration) {
        let mut parameters = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan".to_owned();
        if !version.is_empty() {
            parameters.push_str(&format!("&resourceVersion={version}"));
        }
        let mut events = match self.open(world, &parameters).await {
            Some(Ok(events)) => events,
            Some(Err(410)) => return (Next::Begin(String::new()), SOON),
            _ => return (Next::Begin(version), RETRY),
        };
        let mut found = BTreeMap::new();
        while let Some(event) = events.next().await {
            world.saw_event(self.name, self.plural, &event);
            let object = &event["object"];
            match event["type"].as_str() {
                Some("ADDED" | "MODIFIED") => drop(found.insert(name(object), object.clone())),
                Some("DELETED") => drop(found.remove(&name(object))),
                Some("BOOKMARK")
                    if object.pointer("/metadata/annotations/k8s.io~1initial-events-end").is_some() =>
                {
                    self.replace(found);
                    return self.follow(world, events, text(&object["metadata"]["resourceVersion"])).await;
                }
                Some("ERROR") if object["code"] == 410 => return (Next::Begin(String::new()), RETRY),
                _ => {}
            }
        }
        (Next::Begin(version), RETRY)
    }

    async fn follow(&self, world: &World, mut events: Events, mut version: String) -> (Next, Duration) {
        while let Some(event) = events.next().await {
            world.saw_event(self.name, self.plural, &event);
            let object = &event["object"];
            match event["type"].as_str() {
                Some("ADDED" | "MODIFIED") => {
                    let mut believed = self.believed();
                    if believed.get(&name(object)).is_none_or(|known| is_newer(known, object)) {
                        believed.insert(name(object), object.clone());
                    }
                }
                Some("DELETED") => drop(self.believed().remove(&name(object))),
                Some("ERROR") if object["code"] == 410 => return (Next::Begin(String::new()), SOON),
                Some("ERROR") => return (Next::Begin(version), RETRY),
                _ => {}
            }
            version = text(&object["metadata"]["resourceVersion"]);
        }
        (Next::Watch(version), SOON)
    }

    /// Takes in a whole state. What has the version that is known already is taken to be as it is.
    fn replace(&self, mut found: BTreeMap<String, Value>) {
        let mut believed = self.believed();
        for (name, object) in &mut found {
            if let Some(known) = believed.get(name).filter(|known| !is_newer(known, object)) {
                object.clone_from(known);
            }
        }
        *believed = found;
    }
}

fn is_newer(known: &Value, object: &Value) -> bool {
    known["metadata"]["resourceVersion"] != object["metadata"]["resourceVersion"]
}

fn name(object: &Value) -> String {
    text(&object["metadata"]["name"])
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
