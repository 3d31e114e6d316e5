//! One stream for all that a browser shows: up to 32 watches as server-sent events, each the caller's own at the API server.
//!
//! Streams of one caller that want the same share a watch ([`crate::feed`]). It begins with the first and ends with the last, so that a
//! console that is closed costs nothing. [`listener`]: one stream: what it still has to be told, and why it ends.

mod listener;

use std::borrow::Cow;

use axum::response::Response;
use http::Method;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::{
    endpoint::{Call, Endpoint, Shape, any_object, shape},
    feed::wanted::Wanted,
    happening::Event,
    problem::{Problem, Written},
    query::Form,
    rows::Row,
    sse::{self, StreamEnd},
};
use listener::Listener;

/// How many watches one stream has at most.
const WATCHES_MAX: usize = 32;

/// What a stream tells.
const EVENTS: &[(&str, Shape)] = &[
    ("added", shape::<ObjectChange>),
    ("modified", shape::<ObjectChange>),
    ("deleted", shape::<ObjectChange>),
    ("bookmark", shape::<Bookmark<'static>>),
    ("reset", shape::<Reset>),
    ("problem", shape::<WatchProblem>),
    ("bye", shape::<Bye>),
];

/// A change of an object. It is written piece by piece, because streams share most of it.
struct ObjectChange;

impl JsonSchema for ObjectChange {
    fn schema_name() -> Cow<'static, str> {
        "ObjectChange".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (row, event) = (generator.subschema_for::<Row>(), generator.subschema_for::<Event>());
        let object = any_object(generator);
        json_schema!({
            "type": "object",
            "description": "A change of an object: as a row, or whole where the watch asks for that.",
            "required": ["watch", "resourceVersion"],
            "properties": {
                "watch": {"type": "integer", "description": "Which watch of the stream it is of, from 0."},
                "resourceVersion": {"type": "string", "description": "The version of the object."},
                "row": {"anyOf": [row, event]},
                "object": object,
            },
        })
    }
}

/// All changes up to a version were told.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Bookmark<'a> {
    /// Which watch of the stream it is of, from 0.
    watch: usize,
    /// The version.
    resource_version: &'a str,
}

/// A watch ended, and its list must be read anew.
#[derive(Debug, Serialize, JsonSchema)]
struct Reset {
    /// Which watch of the stream it is, from 0.
    watch: usize,
}

/// A watch ended, and a retry does not help.
#[derive(Debug, Serialize, JsonSchema)]
struct WatchProblem {
    /// Which watch of the stream it is, from 0.
    watch: usize,
    /// Why.
    #[schemars(with = "Written<'static>")]
    problem: Value,
}

/// The stream ends.
#[derive(Debug, Serialize, JsonSchema)]
struct Bye {
    /// Why.
    reason: StreamEnd,
}

/// The endpoints of this file.
pub(crate) fn endpoints() -> Vec<Endpoint> {
    let summary = "Changes of objects as they happen: events added, modified, deleted, bookmark, reset, problem and bye";
    vec![
        Endpoint::new(Method::GET, "/api/v1/stream", "stream", summary, |call| Box::pin(open(call)))
            .query(&[(
                "watch",
                Form::Many(WATCHES_MAX),
                "GROUP/VERSION/PLURAL, and then as wanted ;namespace=N ;name=N ;root=UID ;resourceVersion=V ;fields=a.b,c ;whole=true",
            )])
            .streams(EVENTS),
    ]
}

async fn open(call: Call) -> Result<Response, Problem> {
    let watches: Vec<Wanted> =
        call.query.many("watch").iter().map(|text| Wanted::read(text)).collect::<Result<_, _>>()?;
    if watches.is_empty() {
        return Err(Problem::bad_request("a stream needs at least one watch"));
    }
    let caller = call.caller()?.clone();
    // Whoever is nobody is told so at once, and not in the middle of a stream.
    call.app.users.user(&caller).await?;
    let place = call.app.hub.place(&caller)?;
    // What waits beyond them is the newest state of each object.
    let (events, told) = mpsc::channel(sse::WAITING);
    let listener = Listener::new(call.app, caller, watches, events, place);
    // It ends when the client goes away, because nobody receives any more.
    tokio::spawn(listener.run());
    Ok(sse::events_of(told))
}

#[cfg(test)]
mod tests;
