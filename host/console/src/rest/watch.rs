//! Changes of documents as server-sent events: a watch of the backing kind, mapped event by event.
//!
//! `added`, `modified` and `deleted` have the document, `bookmark` the version that the client knows from then on. `reset` says that it must
//! list anew, `problem` why nothing more comes, and `bye` that the stream ends and may be opened again.

use std::sync::Arc;

use axum::response::{Response, sse::Event};
use http::{Method, StatusCode};
use pintle_core::view::{
    Source,
    document::problem::{Doing, Refusal},
    item::INITIAL_EVENTS_END,
    query::{ListOptions, Query},
};
use serde_json::{Value, json};

use super::{
    read::is_found,
    request::{Asked, ask, cannot_be_shown},
};
use crate::{
    documents::{DocumentView, Shown},
    problem::Problem,
    sse::{self, Events, Gone, StreamEnd, event},
    watches::{WatchEvent, WatchReader},
};

/// Follows documents, as one of the user's watches.
pub(super) async fn watch(asked: &Asked<'_>) -> Result<Response, Problem> {
    let permit = asked.app.watches.acquire(asked.caller, 1)?;
    let response = match begun(asked).await {
        // Whoever follows changes lists anew when the stream says so.
        Err(expired) if expired.status == StatusCode::GONE => {
            return Ok(sse::follow(|_| async { Ok(reset()) }));
        }
        response => response?,
    };
    let end = sse::end_of_life(asked.caller.expires(), asked.app.stopping.clone());
    let view = Arc::clone(asked.view);
    let search = asked.query.first("search").unwrap_or_default().to_lowercase();
    Ok(sse::follow(|events| async move {
        let _permit = permit;
        let over = view.guest.over();
        let following = Following { view, search, events };
        tokio::select! {
            biased;
            // Documents are shown otherwise from now on, so that what the client knows is void.
            () = over => Ok(reset()),
            reason = end => Ok(reason.event()),
            last = following.relay(WatchReader::of(response)) => last,
        }
    }))
}

async fn begun(asked: &Asked<'_>) -> Result<http::Response<kube::client::Body>, Problem> {
    let lens = &asked.view.lens;
    let refused = |status| Refusal::of_status(Doing::Watch, &status);
    let pairs = ListOptions::read(&options(asked)).map_err(refused)?.backing(lens).map_err(refused)?;
    let path = lens.served.backing.path(asked.namespace_of_all(), None);
    asked.begin(Doing::Watch, ask(Method::GET, path, pairs)).await
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

fn reset() -> Event {
    event("reset", "{}")
}

/// A client that comes back names the version of the last.
fn change(name: &str, version: &str, data: &str) -> Event {
    Event::default().event(name).id(version).data(data)
}

/// A watch that is being followed.
struct Following {
    view: Arc<DocumentView>,
    search: String,
    events: Events,
}

impl Following {
    /// Relays events until the watch ends. The last event says why.
    async fn relay(&self, mut reader: WatchReader) -> Result<Event, Gone> {
        loop {
            let told = match reader.next().await {
                // The API server ends a watch now and then.
                Ok(None) => return Ok(StreamEnd::Renew.event()),
                Ok(Some(happened)) => self.told(&happened).await,
                Err(problem) => Err(Refusal::bad_gateway(Doing::Watch, &problem.detail).into()),
            };
            match told {
                Ok(Some(told)) => self.events.send(told).await?,
                Ok(None) => {}
                Err(expired) if expired.status == StatusCode::GONE => return Ok(reset()),
                Err(problem) => return Ok(event("problem", problem.document())),
            }
        }
    }

    /// What the client is told of an event, if it wants to know of the object.
    async fn told(&self, happened: &WatchEvent) -> Result<Option<Event>, Problem> {
        let lens = &self.view.lens;
        let text = happened.object.get();
        let Some(name) = happened.name() else {
            let status: Value = serde_json::from_str(text).unwrap_or_default();
            let code = status.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
            return Err(Refusal::of_answer(Doing::Watch, code.unwrap_or(502), None, &status).into());
        };
        if name == "bookmark" {
            let object: Value = serde_json::from_str(text).unwrap_or_default();
            let version = object.pointer("/metadata/resourceVersion").and_then(Value::as_str);
            let shown = lens.epoch.shown(version.unwrap_or_default());
            let marks = object.pointer("/metadata/annotations");
            let is_end = marks.is_some_and(|marks| marks.get(INITIAL_EVENTS_END).is_some());
            let data = json!({"resourceVersion": shown, "initialEventsEnd": is_end});
            return Ok(Some(change(name, &shown, &data.to_string())));
        }
        // What has left a selection is told as it was before, under the version at which it left.
        let source = if name == "deleted" { Source::Elsewhere } else { Source::Stored };
        let unreadable = "an event of the API server cannot be read";
        let object = self
            .view
            .cut
            .read(text.as_bytes(), source)
            .map_err(|_| Refusal::bad_gateway(Doing::Watch, unreadable))?;
        let shown_name = lens.names.shown(object.name());
        if !is_found(&shown_name, &self.search) {
            return Ok(None);
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
        Ok(Some(change(name, &version, &lens.document_json(&object, &fields))))
    }
}
