//! Watches: which changes they send, and when they end.

use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::Frame;
use pintle_wit::LabelSelector;
use serde_json::{Value, json};
use tokio::time::Sleep;

use crate::{
    ApiServer, Failure,
    faults::{Change, EventFate, EventSeen, StreamSeen},
    kinds::{self, Served},
    request::Request,
    selector,
    server::State,
    store::{Entry, Key, Store},
    verbs::{of_list, too_new},
};

/// How often a watch sends a bookmark. The API server does so about once a minute.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);

/// How long a watch stays open if its client does not say. The API server takes 30 to 60 minutes.
const SECONDS_DEFAULT: u64 = 1_800;

/// The objects of a list or a watch.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    pub(crate) served: Arc<Served>,
    namespace: Option<String>,
    labels: LabelSelector,
    name: Option<String>,
    pub(crate) metadata_only: bool,
}

impl Selection {
    /// # Errors
    /// 404 for a kind that is not served; 501 for a field selector other than by name.
    pub(crate) fn of(store: &Store, request: &Request) -> Result<Self, Failure> {
        let path = &request.path;
        let served = kinds::find(store, path)?;
        let mut name = path.name.clone();
        let mut namespace = path.namespace.clone();
        for part in request.parameter("fieldSelector").into_iter().flat_map(|text| text.split(',')) {
            match part.split_once('=') {
                Some(("metadata.name", value)) => name = Some(value.trim_start_matches('=').into()),
                Some(("metadata.namespace", value)) => namespace = Some(value.trim_start_matches('=').into()),
                _ => return Err(Failure::not_modelled(&format!("the field selector {part:?}"))),
            }
        }
        of_list(request)?;
        let labels = selector::read(request.parameter("labelSelector").unwrap_or_default());
        Ok(Self { served, namespace, labels, name, metadata_only: request.metadata_only })
    }

    pub(crate) fn has(&self, key: &Key, object: &Value) -> bool {
        self.served.has(key)
            && self.namespace.as_ref().is_none_or(|namespace| *namespace == key.namespace)
            && self.name.as_ref().is_none_or(|name| *name == key.name)
            && selector::has(&self.labels, &object["metadata"]["labels"])
    }

    /// The event that this selection gets from a change.
    fn change(&self, entry: &Entry) -> Option<(Change, Arc<Value>)> {
        let was = entry.before.as_ref().is_some_and(|before| self.has(&entry.key, before));
        let is = !entry.gone && self.has(&entry.key, &entry.after);
        match (was, is) {
            (false, false) => None,
            (false, true) => Some((Change::Added, Arc::clone(&entry.after))),
            (true, true) => Some((Change::Modified, Arc::clone(&entry.after))),
            (true, false) if entry.gone => Some((Change::Deleted, Arc::clone(&entry.after))),
            // The object is no longer selected: the event shows its last selected state, with the version of the change.
            (true, false) => {
                let mut last = entry.before.as_deref().cloned().unwrap_or_default();
                last["metadata"]["resourceVersion"] = entry.version.to_string().into();
                Some((Change::Deleted, Arc::new(last)))
            }
        }
    }

    /// An object as a reply shows it.
    pub(crate) fn shown(&self, object: &Value) -> Value {
        shown(&self.served, object, self.metadata_only)
    }
}

/// An object in the requested version, or only its metadata.
pub(crate) fn shown(served: &Served, object: &Value, metadata_only: bool) -> Value {
    if metadata_only {
        let (api_version, kind) = ("meta.k8s.io/v1", "PartialObjectMetadata");
        return json!({"apiVersion": api_version, "kind": kind, "metadata": object["metadata"]});
    }
    let mut shown = object.clone();
    shown["apiVersion"] = served.api_version().into();
    shown
}

/// The body of a reply: whole, or the events of a watch as they come.
pub struct Body(Content);

enum Content {
    Full(Option<Bytes>),
    Watch(Box<Stream>),
}

impl Body {
    pub(crate) fn full(bytes: Bytes) -> Self {
        Self(Content::Full(Some(bytes)))
    }

    pub(crate) fn watch(stream: Box<Stream>) -> Self {
        Self(Content::Watch(stream))
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Content::Full(bytes) => f.debug_tuple("Full").field(bytes).finish(),
            Content::Watch(stream) => f.debug_tuple("Watch").field(&stream.seen).finish(),
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = match &mut self.get_mut().0 {
            Content::Full(bytes) => Poll::Ready(bytes.take()),
            Content::Watch(stream) => stream.poll(context),
        };
        bytes.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// An open watch.
pub(crate) struct Stream {
    server: ApiServer,
    seen: StreamSeen,
    selection: Selection,
    /// The position in the history.
    cursor: usize,
    /// The version up to which everything was sent, for bookmarks.
    version: u64,
    events: u64,
    bookmarks: bool,
    ready: VecDeque<Bytes>,
    /// A late event and its version. Until it is sent, no bookmark may have this version.
    late: Option<(Pin<Box<Sleep>>, Bytes, u64)>,
    bookmark: Pin<Box<Sleep>>,
    end: Pin<Box<Sleep>>,
    ended: bool,
}

impl Stream {
    pub(crate) fn open(
        server: ApiServer,
        store: &Store,
        seen: StreamSeen,
        selection: Selection,
        request: &Request,
    ) -> Result<Self, Failure> {
        let from = request.version()?;
        let sends_initial =
            request.parameter("sendInitialEvents").map(|_| request.is_set("sendInitialEvents"));
        let seconds = request.parameter("timeoutSeconds").and_then(|text| text.parse().ok());
        let mut stream = Self {
            server,
            seen,
            cursor: store.history().len(),
            version: store.version(),
            events: 0,
            bookmarks: request.is_set("allowWatchBookmarks"),
            ready: VecDeque::new(),
            late: None,
            bookmark: Box::pin(tokio::time::sleep(BOOKMARK_INTERVAL)),
            end: Box::pin(tokio::time::sleep(Duration::from_secs(seconds.unwrap_or(SECONDS_DEFAULT)))),
            ended: false,
            selection,
        };
        if from > store.version() {
            stream.fail(&too_new(from, store.version()));
        } else if sends_initial == Some(true) || sends_initial.is_none() && from == 0 {
            // Begins with the existing objects.
            for (key, object) in store.objects() {
                if stream.selection.has(key, object) {
                    let line = stream.line(Change::Added, object);
                    stream.ready.push_back(line);
                }
            }
            if sends_initial.is_some() {
                let annotations = json!({"k8s.io/initial-events-end": "true"});
                stream.ready.extend(stream.bookmark_line(Some(annotations)));
            }
        } else if from > 0 && from < store.compacted() {
            stream.fail(&too_old(from, store.compacted()));
        } else if from > 0 {
            stream.cursor = store.history().partition_point(|entry| entry.version <= from);
            stream.version = from;
        }
        Ok(stream)
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                return Poll::Ready(Some(bytes));
            }
            if self.ended {
                return Poll::Ready(None);
            }
            if self.end.as_mut().poll(context).is_ready() {
                self.ended = true;
                self.ready.extend(self.bookmark_line(None));
                continue;
            }
            let server = self.server.clone();
            let mut state = server.lock();
            let Some(open) = state.open.get_mut(&self.seen.number) else {
                self.ended = true;
                continue;
            };
            open.waker = Some(context.waker().clone());
            if let Some((sleep, ..)) = &mut self.late {
                if sleep.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                if let Some((_, line, version)) = self.late.take() {
                    self.ready.push_back(line);
                    self.version = version;
                }
                continue;
            }
            if self.advance(&mut state) {
                continue;
            }
            drop(state);
            if self.bookmark.as_mut().poll(context).is_ready() {
                self.bookmark = Box::pin(tokio::time::sleep(BOOKMARK_INTERVAL));
                self.ready.extend(self.bookmark_line(None));
                continue;
            }
            return Poll::Pending;
        }
    }

    /// Takes the next change of the history. Returns whether there was one.
    fn advance(&mut self, state: &mut State) -> bool {
        let Some(entry) = state.store.history().get(self.cursor) else { return false };
        self.cursor += 1;
        let version = entry.version;
        let Some((change, object)) = self.selection.change(entry) else {
            self.version = version;
            return true;
        };
        self.events += 1;
        let event = EventSeen { number: self.events, change, version, object };
        match state.faults.event(&self.seen, &event) {
            EventFate::Deliver => self.ready.push_back(self.line(change, &event.object)),
            EventFate::Hide => {}
            EventFate::Delay(delay) => {
                let line = self.line(change, &event.object);
                self.late = Some((Box::pin(tokio::time::sleep(delay)), line, version));
                return true;
            }
            EventFate::Duplicate => {
                let line = self.line(change, &event.object);
                self.ready.extend([line.clone(), line]);
            }
            EventFate::Close => {
                self.ended = true;
                return true;
            }
            EventFate::Gone => {
                self.fail(&too_old(version, version));
                return true;
            }
        }
        self.version = version;
        true
    }

    fn fail(&mut self, failure: &Failure) {
        self.ready.push_back(framed("ERROR", &failure.to_status()));
        self.ended = true;
    }

    fn line(&self, change: Change, object: &Value) -> Bytes {
        let Selection { served, metadata_only, .. } = &self.selection;
        // Nearly always the object is sent as it is stored, so there is nothing to copy.
        if !metadata_only && object["apiVersion"] == served.api_version() {
            return framed(change.name(), object);
        }
        framed(change.name(), &self.selection.shown(object))
    }

    /// A bookmark, if the client takes them.
    fn bookmark_line(&self, annotations: Option<Value>) -> Option<Bytes> {
        let served = &self.selection.served;
        let (api_version, kind) = match self.selection.metadata_only {
            true => ("meta.k8s.io/v1".into(), "PartialObjectMetadata"),
            false => (served.api_version(), served.kind.as_str()),
        };
        let mut object = json!({
            "apiVersion": api_version, "kind": kind,
            "metadata": {"resourceVersion": self.version.to_string()},
        });
        if let Some(annotations) = annotations {
            object["metadata"]["annotations"] = annotations;
        }
        self.bookmarks.then(|| framed("BOOKMARK", &object))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.server.lock().open.remove(&self.seen.number);
    }
}

fn too_old(asked: u64, known: u64) -> Failure {
    Failure::new(410, "Expired", format!("too old resource version: {asked} ({known})"))
}

/// The type comes first, as from the API server: clients can parse the object while reading only if they know its type.
fn framed(change: &str, object: &Value) -> Bytes {
    format!("{{\"type\":\"{change}\",\"object\":{object}}}\n").into()
}
