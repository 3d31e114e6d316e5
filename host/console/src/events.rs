//! Events about an object, as pages show them.

use axum::response::Response;
use http::StatusCode;
use pintle_core::object;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    caller::{Ask, METADATA, PAGE},
    endpoint::{self, Call, Endpoint},
    happening::{Event, reduced},
    objects::{self, of_object},
    place::{self, Place},
    problem::Problem,
    reading,
};

/// How many Events an answer has at most.
const EVENTS_MAX: usize = 200;

/// How many pages are read for it. The API server gives Events by name, so that the newest are known only at the end.
const PAGES_MAX: usize = 20;

/// Where Events about objects in no namespace are.
const DEFAULT_NAMESPACE: &str = "default";

/// Events, newest first.
#[derive(Debug, Serialize, JsonSchema)]
struct Events {
    /// Newest first.
    items: Vec<Event>,
}

/// The endpoints of this file.
pub(crate) fn endpoints() -> Vec<Endpoint> {
    let summary = "Events about an object, newest first";
    of_object("/{name}/events", ["listEventsOf", "listEventsOfClusterObject"], |path, id| {
        Endpoint::get(path, id, summary, list).gives::<Events>()
    })
    .into()
}

async fn list(call: Call) -> Result<Response, Problem> {
    let of = objects::place(&call)?;
    let caller = call.caller()?;
    // By uid: an object of the same name that was deleted has Events too.
    let object = caller.ask(Ask::get(of.path()).accepting(METADATA)).await?.json()?;
    let namespace = of.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE);
    let place = Place::within(&place::events(), Some(namespace))?;
    let about = format!("regarding.uid={}", object::uid(&object));
    let ask = Ask::get(place.path()).with("fieldSelector", about);
    let (mut items, mut next) = (Vec::new(), None);
    for _ in 0..PAGES_MAX {
        let ask = ask.clone().with_some("continue", next);
        let listed = reading::page(caller, &ask, PAGE, |event| Some((reduced(&event), 0))).await?;
        items.extend(listed.items);
        items.sort_by(|one, other| (&other.last, &other.uid).cmp(&(&one.last, &one.uid)));
        items.truncate(EVENTS_MAX);
        next = listed.next;
        if next.is_none() {
            break;
        }
    }
    endpoint::json(StatusCode::OK, &Events { items })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::{
        fake::{self, ask, request, upstream},
        happening::NOTE_CHARS_MAX,
    };

    #[tokio::test]
    async fn events_of_an_object_are_those_of_this_very_one_newest_first() {
        let event = |name: &str, last: &str| {
            json!({"metadata": {"name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
                "type": "Normal", "reason": "R", "note": "x".repeat(2000), "reportingController": "x",
                "series": {"count": 3, "lastObservedTime": last}})
        };
        let (client, log) = upstream(move |asked| {
            if !asked.path.contains("/events") {
                return (200, json!({"metadata": {"uid": "u-1"}}));
            }
            let first = [event("old", "2026-01-02"), event("newest", "2026-01-09")];
            let second = [event("new", "2026-01-04"), event("newer", "2026-01-05")];
            let is_second = asked.path.contains("continue=2");
            let (next, items) = if is_second { ("", second) } else { ("2", first) };
            (200, json!({"metadata": {"continue": next}, "items": items}))
        });
        let app = fake::app(fake::cluster(), client);
        let base = "/api/v1/objects/a.example/v1/rooms";
        let (code, events) = ask(&app, request("GET", &format!("{base}/namespaces/n/a/events"), None)).await;
        let names: Vec<&Value> =
            events["items"].as_array().unwrap().iter().map(|event| &event["uid"]).collect();
        assert_eq!(code, 200);
        assert_eq!(names, ["newest", "newer", "new", "old"]);
        let newest = &events["items"][0];
        assert_eq!((&newest["count"], &newest["last"]), (&json!(3), &json!("2026-01-09")));
        assert_eq!(newest["note"].as_str().unwrap().len(), NOTE_CHARS_MAX);
        assert_eq!(ask(&app, request("GET", &format!("{base}/cluster/a/events"), None)).await.0, 200);
        let log = log.lock().unwrap();
        let of = |namespace: &str| {
            format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events?fieldSelector=regarding.uid%3Du-1&")
        };
        assert!(log[1].path.starts_with(&of("n")) && log[4].path.starts_with(&of("default")), "{log:?}");
    }
}
