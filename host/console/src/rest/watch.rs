//! Changes of documents as server-sent events: a watch of the backing kind, mapped event by event.
//!
//! `added`, `modified` and `deleted` have the document, `bookmark` the version that the client knows from then on. `reset` says that it must
//! list anew, `problem` why nothing more comes, and `bye` that the stream ends and may be opened again.

use std::{sync::Arc, time::Duration};

use axum::response::Response;
use bytes::{Bytes, BytesMut};
use http::{Method, StatusCode};
use http_body_util::BodyExt;
use pintle_core::view::{
    Source,
    document::problem::{Doing, Refusal},
    item::INITIAL_EVENTS_END,
    query::{ListOptions, Query},
};
use pintle_runtime::clock;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};

use super::{
    read::is_found,
    request::{Asked, ask, cannot_be_shown, refused},
};
use crate::{
    caller::Whole,
    documents::{DocumentView, Shown},
    problem::Problem,
    sse::{ALIVE, KEEP_ALIVE, StreamEnd, WAITING, end_of_life, event, events_of, only},
};

/// How long events wait for a client that does not read them.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest event, in bytes: one object, and its managed fields.
const EVENT_BYTES_MAX: usize = 8 << 20;

/// Follows documents, as one of the user's streams.
pub(super) async fn watch(asked: &Asked<'_>) -> Result<Response, Problem> {
    let place = asked.app.hub.place(asked.caller)?;
    let lens = &asked.view.lens;
    let options =
        ListOptions::read(&options(asked)).map_err(|status| Refusal::of_status(Doing::Watch, &status))?;
    let pairs = match options.backing(lens) {
        Ok(pairs) => pairs,
        // Whoever follows changes lists anew when the stream says so.
        Err(expired) if expired.code == 410 => {
            return Ok(only(event("reset", None, "{}")));
        }
        Err(status) => return Err(Refusal::of_status(Doing::Watch, &status).into()),
    };
    let namespace = asked.target.namespace.as_deref().filter(|_| lens.served.backing.namespaced);
    let path = lens.served.backing.path(namespace, None);
    let response = asked.caller.begin(ask(Method::GET, path, pairs)).await?;
    if !response.status().is_success() {
        let Whole { code, headers, body, .. } = asked.caller.whole(response).await?;
        if code == StatusCode::GONE {
            return Ok(only(event("reset", None, "{}")));
        }
        return Err(refused(Doing::Watch, code.as_u16(), &headers, &body).into());
    }
    let (events, waiting) = mpsc::channel(WAITING);
    let life = end_of_life(asked.caller.expires(), clock::now(), Instant::now());
    let following = Following {
        view: Arc::clone(asked.view),
        search: asked.query.first("search").unwrap_or_default().to_lowercase(),
        events,
    };
    let stopping = asked.app.stopping.clone();
    tokio::spawn(async move {
        following.follow(response.into_body(), life, stopping).await;
        drop(place);
    });
    Ok(events_of(waiting))
}

/// The options of a watch: with bookmarks, and from the beginning unless a version is named.
fn options(asked: &Asked<'_>) -> Query {
    let resumed = asked.headers.get("last-event-id").and_then(|value| value.to_str().ok());
    let version =
        resumed.or_else(|| asked.query.first("resourceVersion")).filter(|version| !version.is_empty());
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut pairs = vec![pair("watch", "true"), pair("allowWatchBookmarks", "true")];
    match version {
        Some(version) => pairs.push(pair("resourceVersion", version)),
        None => {
            pairs.push(pair("sendInitialEvents", "true"));
            pairs.push(pair("resourceVersionMatch", "NotOlderThan"));
        }
    }
    pairs.extend(asked.query.first("labelSelector").map(|selector| pair("labelSelector", selector)));
    Query::new(pairs)
}

/// An event as the API server sends it.
#[derive(Deserialize)]
struct Event<'a> {
    r#type: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// Why a stream ends.
enum End {
    /// The client has gone, or does not read.
    Unread,
    /// The client is told.
    Told(Bytes),
}

impl From<Refusal> for End {
    fn from(refusal: Refusal) -> Self {
        Self::Told(event("problem", None, &Problem::from(refusal).document().to_string()))
    }
}

/// A watch that is being followed.
struct Following {
    view: Arc<DocumentView>,
    search: String,
    events: mpsc::Sender<Bytes>,
}

impl Following {
    async fn follow(
        self,
        body: kube::client::Body,
        (ends, reason): (Instant, StreamEnd),
        mut stopping: watch::Receiver<bool>,
    ) {
        let bye = |reason: StreamEnd| End::Told(event("bye", None, &json!({"reason": reason}).to_string()));
        let end = tokio::select! {
            biased;
            // Documents are shown otherwise from now on, so that what the client knows is void.
            () = self.view.guest.over() => End::Told(event("reset", None, "{}")),
            Ok(_) = stopping.wait_for(|stops| *stops) => bye(StreamEnd::Stopping),
            () = tokio::time::sleep_until(ends) => bye(reason),
            end = self.relay(body) => match end {
                Ok(()) => bye(StreamEnd::Renew),
                Err(end) => end,
            },
        };
        if let End::Told(last) = end {
            // Who does not read it has gone.
            let _ = tokio::time::timeout(READ_TIMEOUT, self.events.send(last)).await;
        }
    }

    async fn relay(&self, mut body: kube::client::Body) -> Result<(), End> {
        let mut arrived = BytesMut::new();
        loop {
            let frame = match tokio::time::timeout(KEEP_ALIVE, body.frame()).await {
                Err(_) => {
                    self.send(ALIVE).await?;
                    continue;
                }
                // The API server ends a watch now and then.
                Ok(None | Some(Err(_))) => return Ok(()),
                Ok(Some(Ok(frame))) => frame,
            };
            let Ok(data) = frame.into_data() else { continue };
            arrived.extend_from_slice(&data);
            while let Some(end) = arrived.iter().position(|byte| *byte == b'\n') {
                let line = arrived.split_to(end + 1);
                if !line.trim_ascii().is_empty() {
                    self.mapped(&line).await?;
                }
            }
            if arrived.len() > EVENT_BYTES_MAX {
                return Err(
                    Refusal::bad_gateway(Doing::Watch, "an event of the API server is too large").into()
                );
            }
        }
    }

    async fn mapped(&self, line: &[u8]) -> Result<(), End> {
        let lens = &self.view.lens;
        let unreadable = || Refusal::bad_gateway(Doing::Watch, "an event of the API server cannot be read");
        let Event { r#type, object } = serde_json::from_slice(line).map_err(|_| unreadable())?;
        let name = match r#type {
            "ADDED" => "added",
            "MODIFIED" => "modified",
            "DELETED" => "deleted",
            "BOOKMARK" => {
                let object: Value = serde_json::from_str(object.get()).map_err(|_| unreadable())?;
                let version =
                    object.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default();
                let shown = lens.epoch.shown(version);
                let is_end = object
                    .pointer("/metadata/annotations")
                    .and_then(|all| all.get(INITIAL_EVENTS_END))
                    .is_some();
                let data = json!({"resourceVersion": shown, "initialEventsEnd": is_end});
                return self.send(event("bookmark", Some(&shown), &data.to_string())).await;
            }
            _ => {
                let status: Value = serde_json::from_str(object.get()).unwrap_or_default();
                let code =
                    status.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
                return Err(match code {
                    Some(410) => End::Told(event("reset", None, "{}")),
                    code => Refusal::of_answer(Doing::Watch, code.unwrap_or(502), None, &status).into(),
                });
            }
        };
        // What has left a selection is told as it was before, under the version at which it left.
        let source = if name == "deleted" { Source::Elsewhere } else { Source::Stored };
        let object = self.view.cut.read(object.get().as_bytes(), source).map_err(|_| unreadable())?;
        let shown_name = lens.names.shown(object.name());
        if !is_found(&shown_name, &self.search) {
            return Ok(());
        }
        let shown = self.view.guest.show(lens, std::slice::from_ref(&object)).await;
        let fields = match shown.map(|shown| shown.into_iter().next()) {
            Ok(Some(Shown::Fields(fields))) => fields,
            // Of what is gone, its name is enough, whether or not a guest can still show the rest.
            _ if name == "deleted" => "{}".into(),
            Ok(Some(Shown::Failed(failure))) => {
                return Err(cannot_be_shown(&[(shown_name, failure.message.clone())]).into());
            }
            Ok(None) => return Err(Refusal::guest_failed("it showed nothing").into()),
            Err(refusal) => return Err(refusal.into()),
        };
        let version = lens.epoch.shown(object.version());
        self.send(event(name, Some(&version), &lens.document_json(&object, &fields))).await
    }

    async fn send(&self, event: Bytes) -> Result<(), End> {
        match tokio::time::timeout(READ_TIMEOUT, self.events.send(event)).await {
            Ok(Ok(())) => Ok(()),
            _ => Err(End::Unread),
        }
    }
}
