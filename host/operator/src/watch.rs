//! Watches: one for each kind, scope, selector and projection that is needed, shared by all who claim it, each with its own back-off.

use std::{borrow::Cow, collections::BTreeSet, sync::Arc, time::Duration};

use futures::{Stream, StreamExt, stream};
use kube::{
    Api, Client,
    core::{ApiResource, DynamicResourceScope, ObjectMeta},
    runtime::{WatchStreamExt, watcher},
};
use pintle_core::object;
use pintle_kubernetes::{Backoff, Projection, Reduced, Resource};
use pintle_runtime::{Spawner, clock};
use pintle_wit::{Kind, names};
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::{Value, value::RawValue};
use tokio::task::JoinHandle;
use tracing::{debug, warn};

use crate::{needs::Wanted, store::Head};

/// How long the API server keeps a watch open, in seconds. Load balancers drop silent connections from 240 s on, and kube takes a
/// connection that is silent for longer than this as dead.
const WATCH_SECONDS: u32 = 200;

/// How many objects of a list are asked for at once. A page is held as text and as values while it is read: a hundred objects of some
/// 5 KB are about 2 MiB for that moment, and a page costs the API server about 3 ms. Of larger objects the client asks for fewer.
const PAGE_OBJECTS: u32 = 100;

/// What a watch brings. Whoever needs the same shares one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WatchKey {
    pub(crate) kind: Kind,
    /// One namespace, or all of them.
    pub(crate) namespace: Option<String>,
    pub(crate) purpose: Purpose,
    pub(crate) projection: Projection,
}

/// What a watch is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Purpose {
    /// Every object of a kind that guests reconcile.
    Roots,
    /// The objects of a kind that carry our label.
    Children,
    /// Every object of a kind that guests ask to see. Another round brings more of each object.
    Needs {
        /// Which round it is.
        round: u32,
    },
}

impl Purpose {
    /// Whether what a watch with this purpose keeps can stay when one with another takes its place: they differ by their round at most.
    pub(crate) fn is_like(self, other: Self) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

impl WatchKey {
    /// The roots of a kind.
    pub(crate) fn roots(kind: &Kind) -> Self {
        let (purpose, projection) = (Purpose::Roots, Projection::Whole);
        Self { kind: kind.clone(), namespace: None, purpose, projection }
    }

    /// The children of a kind.
    pub(crate) fn children(kind: &Kind, namespace: Option<&str>, projection: Projection) -> Self {
        let namespace = namespace.map(Into::into);
        Self { kind: kind.clone(), namespace, purpose: Purpose::Children, projection }
    }

    /// The objects of a kind that guests ask to see.
    pub(crate) fn needs(kind: &Kind, namespace: Option<&str>, wanted: Wanted) -> Self {
        let projection = if wanted.whole { Projection::Whole } else { Projection::Metadata };
        let namespace = namespace.map(Into::into);
        Self { kind: kind.clone(), namespace, purpose: Purpose::Needs { round: wanted.round }, projection }
    }

    pub(crate) fn brings_children(&self) -> bool {
        self.purpose == Purpose::Children
    }

    pub(crate) fn brings_needs(&self) -> bool {
        matches!(self.purpose, Purpose::Needs { .. })
    }
}

impl std::fmt::Display for WatchKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} in namespace {namespace}", self.kind),
            None => self.kind.fmt(f),
        }
    }
}

/// How a watch is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum WatchState {
    /// Its first list is under way.
    #[default]
    Starting,
    /// It has listed everything, and brings changes.
    Synced,
    /// The last attempt failed.
    Failing(String),
}

/// A running watch, and who needs it. Dropping it ends the watch.
#[derive(Debug)]
pub(crate) struct Watch {
    task: JoinHandle<()>,
    pub(crate) state: WatchState,
    /// When it was started.
    pub(crate) started: Duration,
    /// It has listed everything at least once: what it shows is known, if perhaps no longer up to date.
    pub(crate) listed: bool,
    /// The names of those who need it.
    pub(crate) claims: BTreeSet<String>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Takes in what watches bring.
pub(crate) trait Sink: Send + Sync + 'static {
    /// What is remembered from the beginning of a list to its end.
    type Marks: Copy + Send;

    /// A list begins.
    fn list_begins(&self) -> Self::Marks;
    /// A list shows an object.
    fn listed(&self, key: &WatchKey, live: Value, marks: Option<Self::Marks>);
    /// A list has shown everything.
    fn list_ended(&self, key: &WatchKey, marks: Self::Marks);
    /// An object was changed.
    fn news(&self, news: News);
    /// The watch is doing otherwise.
    fn is(&self, key: &WatchKey, now: WatchState);
}

/// Starts a watch that brings what it sees into a sink.
pub(crate) fn start(
    sink: Arc<impl Sink>,
    spawner: &Spawner,
    client: Client,
    key: WatchKey,
    resource: &Resource,
    claims: BTreeSet<String>,
) -> Watch {
    let task = match key.projection {
        Projection::Whole => spawn::<false>(sink, spawner, client, key, resource),
        Projection::Metadata => spawn::<true>(sink, spawner, client, key, resource),
    };
    Watch { task, state: WatchState::Starting, started: clock::monotonic(), listed: false, claims }
}

fn spawn<const METADATA: bool>(
    sink: Arc<impl Sink>,
    spawner: &Spawner,
    client: Client,
    key: WatchKey,
    resource: &Resource,
) -> JoinHandle<()> {
    let resource = resource.api_resource();
    let api: Api<Seen<METADATA>> = match &key.namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &resource),
        None => Api::all_with(client, &resource),
    };
    let config = watcher::Config::default().timeout(WATCH_SECONDS).page_size(PAGE_OBJECTS);
    let config = match key.purpose {
        Purpose::Children => config.labels(names::LABEL_RECONCILER),
        Purpose::Roots | Purpose::Needs { .. } => config,
    };
    spawner.spawn(follow(sink, key, move || watcher(api.clone(), config.clone())))
}

/// An object as a watch brings it: still as text, since most of what a watch brings is what the operator's own writes already showed
/// it, and that is told from the head alone.
#[derive(Clone, Debug)]
struct Seen<const METADATA: bool> {
    /// Nothing but what the watch itself needs.
    meta: ObjectMeta,
    head: Head,
    text: Box<RawValue>,
}

impl<'de, const METADATA: bool> Deserialize<'de> for Seen<METADATA> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let (head, version) = Head::read(&text).map_err(D::Error::custom)?;
        Ok(Self { meta: ObjectMeta { resource_version: version, ..ObjectMeta::default() }, head, text })
    }
}

impl<const METADATA: bool> kube::Resource for Seen<METADATA> {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }
    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }
    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }
    fn api_version(resource: &ApiResource) -> Cow<'_, str> {
        resource.api_version.as_str().into()
    }
    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }
    fn metadata_api() -> bool {
        METADATA
    }
    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}

impl<const METADATA: bool> Seen<METADATA> {
    fn news(self, key: &Arc<WatchKey>, change: Change) -> News {
        News { key: Arc::clone(key), change, head: self.head, text: self.text }
    }
}

/// What a watch says of one object.
#[derive(Debug)]
pub(crate) struct News {
    pub(crate) key: Arc<WatchKey>,
    pub(crate) change: Change,
    pub(crate) head: Head,
    text: Box<RawValue>,
}

/// What became of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// It is there.
    Seen,
    /// It is gone; this is how it was last.
    Gone,
}

impl News {
    /// The object with the kind that it was watched as: items of a list do not carry theirs, and metadata carries another.
    /// Nothing where it cannot be read as an object, for instance because it is too deep.
    pub(crate) fn read(&self) -> Option<Value> {
        let kind = &self.key.kind;
        match serde_json::from_str(self.text.get()) {
            Ok(Reduced(mut live)) => {
                object::set_kind(&mut live, kind.clone());
                Some(live)
            }
            Err(error) => {
                warn!(%kind, object = %self.head, %error, "An object cannot be read; it is passed over");
                None
            }
        }
    }
}

async fn follow<K: Sink, const METADATA: bool, S>(sink: Arc<K>, key: WatchKey, begin: impl Fn() -> S + Send)
where
    S: Stream<Item = Result<watcher::Event<Seen<METADATA>>, watcher::Error>> + Send,
{
    let key = Arc::new(key);
    let mut list: Option<K::Marks> = None;
    let mut stream = std::pin::pin!(persistent(begin));
    while let Some(event) = stream.next().await {
        match event {
            Ok(event) => take(&*sink, &key, event, &mut list),
            Err(error) => sink.is(&key, WatchState::Failing(describe(&error))),
        }
    }
}

/// How often in a row a watch may fail to go on before it begins anew with a list.
const FAILURES_MAX: u32 = 3;

/// A watch with its back-off, whose errors are those of its lists alone. A dropped connection is made up for silently; a kind that
/// is gone, or that may no longer be watched, is told by the list that the watch begins anew with. So is what an event said that
/// cannot be read, for instance because its object stands before its type: the stream would go on behind it.
pub(crate) fn persistent<K, S>(
    begin: impl Fn() -> S,
) -> impl Stream<Item = Result<watcher::Event<K>, watcher::Error>>
where
    S: Stream<Item = Result<watcher::Event<K>, watcher::Error>>,
{
    let begin = move || Box::pin(begin().backoff(Backoff::of_watch()));
    let first = begin();
    stream::unfold((first, 0, begin), |(mut stream, mut failures, begin)| async move {
        loop {
            match stream.next().await? {
                Ok(event) => return Some((Ok(event), (stream, 0, begin))),
                Err(error @ (watcher::Error::InitialListFailed(_) | watcher::Error::NoResourceVersion)) => {
                    return Some((Err(error), (stream, 0, begin)));
                }
                Err(watcher::Error::WatchFailed(
                    error @ (kube::Error::SerdeError(_) | kube::Error::Api(_)),
                )) => {
                    warn!(%error, "An event of a watch cannot be read; everything is listed anew");
                    Backoff::of_watch().pause().await;
                    stream = begin();
                    failures = 0;
                }
                Err(error) => {
                    failures += 1;
                    debug!(failures, %error, "A watch was interrupted");
                    if failures >= FAILURES_MAX {
                        stream = begin();
                        failures = 0;
                    }
                }
            }
        }
    })
}

fn take<K: Sink, const METADATA: bool>(
    sink: &K,
    key: &Arc<WatchKey>,
    event: watcher::Event<Seen<METADATA>>,
    list: &mut Option<K::Marks>,
) {
    match event {
        watcher::Event::Init => *list = Some(sink.list_begins()),
        watcher::Event::InitApply(object) => {
            if let Some(live) = object.news(key, Change::Seen).read() {
                sink.listed(key, live, *list);
            }
        }
        watcher::Event::InitDone => {
            if let Some(marks) = list.take() {
                sink.list_ended(key, marks);
            }
            sink.is(key, WatchState::Synced);
        }
        watcher::Event::Apply(object) => sink.news(object.news(key, Change::Seen)),
        watcher::Event::Delete(object) => sink.news(object.news(key, Change::Gone)),
    }
}

/// What is wrong with a watch, for a condition.
fn describe(error: &watcher::Error) -> String {
    let causes = std::iter::successors(std::error::Error::source(error), |error| error.source());
    causes.last().map_or_else(|| error.to_string(), ToString::to_string)
}

#[cfg(test)]
mod tests;
