//! [`Event`]: what a page shows of an Event of the cluster.

use pintle_core::object;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// How many characters of a note are passed on.
pub(crate) const NOTE_CHARS_MAX: usize = 1 << 10;

/// Something that happened to an object.
// Browsers have an Event of their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "ClusterEvent")]
pub(crate) struct Event {
    /// Its uid.
    pub(crate) uid: String,
    /// Its namespace.
    namespace: Option<String>,
    /// `Normal` or `Warning`.
    r#type: String,
    /// What happened, in one word.
    reason: String,
    /// What happened, for a person.
    note: String,
    /// How often.
    count: i64,
    /// When first (RFC 3339).
    first: String,
    /// When last (RFC 3339).
    pub(crate) last: String,
    /// What it happened to.
    regarding: Regarding,
    /// Who says so.
    reporter: String,
}

/// What an Event is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Regarding {
    /// Group and version.
    api_version: String,
    /// The kind.
    kind: String,
    /// Its namespace, if it is in one.
    namespace: Option<String>,
    /// Its name.
    name: String,
}

/// An Event as pages show it.
pub(crate) fn reduced(event: &Value) -> Event {
    let text = |path: &[&str]| object::text(event, path).unwrap_or_default().to_owned();
    let first_of = |paths: &[&[&str]]| {
        let found = paths.iter().find_map(|path| object::text(event, path).filter(|text| !text.is_empty()));
        found.unwrap_or_default().to_owned()
    };
    let created: &[&str] = &["metadata", "creationTimestamp"];
    let count =
        event.pointer("/series/count").or_else(|| event.get("deprecatedCount")).and_then(Value::as_i64);
    let regarding = Regarding {
        api_version: text(&["regarding", "apiVersion"]),
        kind: text(&["regarding", "kind"]),
        namespace: object::text(event, &["regarding", "namespace"]).map(str::to_owned),
        name: text(&["regarding", "name"]),
    };
    Event {
        uid: object::uid(event).to_owned(),
        namespace: object::namespace(event).map(str::to_owned),
        r#type: text(&["type"]),
        reason: text(&["reason"]),
        note: text(&["note"]).chars().take(NOTE_CHARS_MAX).collect(),
        count: count.unwrap_or(1).max(1),
        first: first_of(&[&["deprecatedFirstTimestamp"], &["eventTime"], created]),
        last: first_of(&[
            &["series", "lastObservedTime"],
            &["deprecatedLastTimestamp"],
            &["eventTime"],
            created,
        ]),
        regarding,
        reporter: first_of(&[&["reportingController"], &["deprecatedSource", "component"]]),
    }
}
