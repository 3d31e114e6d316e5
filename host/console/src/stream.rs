//! One stream for all that a browser shows: up to 32 watches as server-sent events.
//!
//! Each is the caller's own watch at the API server. It ends with the stream, so that a console that is closed costs nothing. [`wanted`]: what
//! a client asks to see. [`listener`]: one stream: what it still has to be told, and why it ends.

mod listener;
mod wanted;

use std::borrow::Cow;

use axum::response::Response;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::Value;

use crate::{
    endpoint::{Call, Endpoint, Shape, any_object, shape},
    happening::Event,
    problem::{Problem, Written},
    query::Form,
    rows::Row,
    sse::{self, Bye},
};
use listener::Listener;
use wanted::Wanted;

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

/// A change of an object. What it has depends on the watch, so that it is written by hand.
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

/// A watch does not go on. Where a retry can help it is tried again, and its next event says that it goes on.
#[derive(Debug, Serialize, JsonSchema)]
struct WatchProblem {
    /// Which watch of the stream it is, from 0.
    watch: usize,
    /// Why.
    #[schemars(with = "Written<'static>")]
    problem: Value,
}

/// The endpoints of this file.
pub(crate) fn endpoints() -> Vec<Endpoint> {
    let summary = "Changes of objects as they happen: events added, modified, deleted, bookmark, reset, problem and bye";
    let watch = "GROUP/VERSION/PLURAL, and then as wanted ;namespace=N ;name=N ;root=UID ;resourceVersion=V ;fields=a.b,c ;whole=true";
    vec![
        Endpoint::get("/api/v1/stream", "stream", summary, open)
            .query(&[("watch", Form::Many(WATCHES_MAX), watch)])
            .streams(EVENTS),
    ]
}

async fn open(call: Call) -> Result<Response, Problem> {
    let wanted: Vec<Wanted> =
        call.query.many("watch").iter().map(|text| Wanted::read(text)).collect::<Result<_, _>>()?;
    if wanted.is_empty() {
        return Err(Problem::bad_request("a stream needs at least one watch"));
    }
    let caller = call.caller()?.clone();
    // Whoever is nobody is told so at once, and not in the middle of a stream.
    call.app.user(&caller).await?;
    let permit = call.app.watches.acquire(&caller, wanted.len())?;
    let end = sse::end_of_life(caller.expires(), call.app.stopping.clone());
    Ok(sse::follow(|events| async move {
        let _permit = permit;
        tokio::select! {
            last = Listener::new(caller, events).run(wanted) => last,
            reason = end => Ok(reason.event()),
        }
    }))
}

#[cfg(test)]
mod tests;
