//! Events, as pages show them.

use axum::response::Response;
use http::{Method, StatusCode};
use pintle_core::object;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    caller::{Ask, Caller, PAGE},
    endpoint::{self, Call, Endpoint},
    happening::{Event, is_ours, reduced},
    objects,
    place::{self, Place},
    problem::Problem,
    query::Form,
    reading, session,
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
    let of = "Events about an object, newest first";
    let (in_namespace, in_cluster) = (
        "/api/v1/objects/{group}/{version}/{plural}/namespaces/{namespace}/{name}/events",
        "/api/v1/objects/{group}/{version}/{plural}/cluster/{name}/events",
    );
    let all = "Events about the host's own objects and about roots, newest first";
    vec![
        Endpoint::new(Method::GET, in_namespace, "listEventsOf", of, |call| Box::pin(of_object(call)))
            .gives::<Events>(),
        Endpoint::new(Method::GET, in_cluster, "listEventsOfClusterObject", of, |call| {
            Box::pin(of_object(call))
        })
        .gives::<Events>(),
        Endpoint::new(Method::GET, "/api/v1/events", "listEvents", all, |call| Box::pin(list(call)))
            .query(&[
                ("namespace", Form::Text, "Those in this namespace"),
                ("limit", Form::Number(1, EVENTS_MAX as u64), "How many at most; 200 unless it is said"),
            ])
            .gives::<Events>(),
    ]
}

async fn read(
    caller: &Caller,
    place: &Place,
    selector: Option<String>,
    wanted: impl Fn(&Event) -> bool,
    most: usize,
) -> Result<Vec<Event>, Problem> {
    let mut found: Vec<Event> = Vec::new();
    let mut next = None;
    for _ in 0..PAGES_MAX {
        let ask = Ask::get(place.path())
            .with_some("fieldSelector", selector.as_deref())
            .with_some("continue", next.take());
        let event = |event| Some((Some(reduced(&event)).filter(&wanted)?, 0));
        let listed = reading::page(caller, &ask, PAGE, event).await?;
        found.extend(listed.items);
        found.sort_by(|one, other| (&other.last, &other.uid).cmp(&(&one.last, &one.uid)));
        found.truncate(most);
        next = listed.next;
        if next.is_none() {
            break;
        }
    }
    Ok(found)
}

async fn of_object(call: Call) -> Result<Response, Problem> {
    let of = objects::place(&call)?;
    let caller = call.caller()?;
    // By uid: an object of the same name that was deleted has Events too.
    let object = caller.ask(Ask::get(of.path()).accepting(crate::caller::METADATA)).await?.json()?;
    let namespace = of.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE);
    let place = Place::within(&place::events(), Some(namespace))?;
    let selector = format!("regarding.uid={}", object::uid(&object));
    let items = read(caller, &place, Some(selector), |_| true, EVENTS_MAX).await?;
    endpoint::json(StatusCode::OK, &Events { items })
}

async fn list(call: Call) -> Result<Response, Problem> {
    let place = Place::within(&place::events(), call.query.text("namespace"))?;
    let most = call.query.number("limit").and_then(|limit| usize::try_from(limit).ok()).unwrap_or(EVENTS_MAX);
    let items =
        read(call.caller()?, &place, None, is_ours, most).await.map_err(|problem| match place.namespace {
            None => session::hint(problem),
            Some(_) => problem,
        })?;
    endpoint::json(StatusCode::OK, &Events { items })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::{
        fake::{self, ask, request, upstream},
        happening::NOTE_CHARS_MAX,
    };

    fn event(name: &str, last: &str, kind: &str, reporter: &str) -> Value {
        json!({"metadata": {"name": name, "namespace": "n", "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
            "type": "Normal", "reason": "R", "note": "x".repeat(2000), "eventTime": "2026-01-01T00:00:00.000000Z",
            "series": {"count": 3, "lastObservedTime": last}, "reportingController": reporter,
            "regarding": {"apiVersion": kind, "kind": "K", "name": "k", "namespace": "n", "uid": "u"}})
    }

    #[tokio::test]
    async fn events_are_those_that_matter_here_newest_first() {
        let (client, log) = upstream(|asked| match asked.path.contains("continue=2") {
            false => (
                200,
                json!({"metadata": {"continue": "2"}, "items": [
                event("old", "2026-01-02", "a.example/v1", "x"), event("other", "2026-01-09", "v1", "kubelet")]}),
            ),
            true => (
                200,
                json!({"metadata": {}, "items": [
                event("new", "2026-01-04", "v1", "pintle-operator"), event("newer", "2026-01-05", "a.example/v1", "x")]}),
            ),
        });
        let app = fake::app(fake::cluster(), client);
        let (code, events) = ask(&app, request("GET", "/api/v1/events?namespace=n&limit=2", None)).await;
        let names: Vec<&Value> =
            events["items"].as_array().unwrap().iter().map(|event| &event["uid"]).collect();
        assert_eq!((code, names), (200, vec![&json!("newer"), &json!("new")]));
        let newest = &events["items"][0];
        assert_eq!((&newest["count"], &newest["last"]), (&json!(3), &json!("2026-01-05")));
        assert_eq!(newest["note"].as_str().unwrap().len(), NOTE_CHARS_MAX);
        assert!(
            log.lock().unwrap()[0].path.starts_with("/apis/events.k8s.io/v1/namespaces/n/events?limit=500")
        );
    }

    #[tokio::test]
    async fn events_of_an_object_are_those_of_this_very_one() {
        let (client, log) = upstream(|asked| match asked.path.contains("/events") {
            true => (200, json!({"metadata": {}, "items": []})),
            false => (200, json!({"metadata": {"name": "a", "uid": "u-1"}})),
        });
        let app = fake::app(fake::cluster(), client);
        let base = "/api/v1/objects/a.example/v1/rooms";
        assert_eq!(
            ask(&app, request("GET", &format!("{base}/namespaces/n/a/events"), None)).await,
            (200, json!({"items": []}))
        );
        assert_eq!(ask(&app, request("GET", &format!("{base}/cluster/a/events"), None)).await.0, 200);
        let log = log.lock().unwrap();
        assert!(
            log[1].path.starts_with("/apis/events.k8s.io/v1/namespaces/n/events?")
                && log[1].path.contains("regarding.uid%3Du-1")
        );
        assert!(log[3].path.starts_with("/apis/events.k8s.io/v1/namespaces/default/events?"));
    }
}
