//! What is shown, as JSON: objects, lists and events, made of the host's metadata and the guest's fields.

use serde::Serialize;
use serde_json::{Map, Value};

use super::{BackingObject, Lens, accept::META};

/// The mark on the bookmark that ends the initial events of a watch.
pub const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

impl Lens {
    /// A shown object, as JSON. `fields` is what the guest shows: the JSON of an object.
    pub fn object_json(&self, backing: &BackingObject, fields: &str) -> String {
        let head = Head {
            api_version: &self.served.api_version,
            kind: &self.served.kind,
            metadata: &self.shown_metadata(&backing.metadata),
        };
        let mut json = to_json(&head);
        // `{"a":1}` behind `{"kind":..}` is `{"kind":..,"a":1}`.
        if let Some(inner) = fields.trim().strip_prefix('{').filter(|inner| inner.trim() != "}") {
            json.pop();
            json.push(',');
            json.push_str(inner);
        }
        json
    }

    /// A shown object of which only the metadata are known.
    pub fn head(&self, backing: &BackingObject) -> Value {
        serde_json::json!({
            "apiVersion": self.served.api_version,
            "kind": self.served.kind,
            "metadata": self.shown_metadata(&backing.metadata),
        })
    }

    /// The metadata of a shown object, for a client that asks for no more.
    pub fn metadata_json(&self, backing: &BackingObject) -> String {
        let metadata = &self.shown_metadata(&backing.metadata);
        to_json(&Head { api_version: META, kind: "PartialObjectMetadata", metadata })
    }

    /// The metadata of a list, from those of a list of the backing kind. `next` is the continue token as this view has it.
    pub fn list_metadata(&self, backing: &Value, next: Option<String>) -> Map<String, Value> {
        let mut metadata = Map::new();
        if let Some(version) =
            backing.get("resourceVersion").and_then(Value::as_str).filter(|version| !version.is_empty())
        {
            metadata.insert("resourceVersion".into(), self.epoch.shown(version).into());
        }
        if let Some(next) = next {
            metadata.insert("continue".into(), next.into());
        }
        if let Some(remaining) = backing.get("remainingItemCount") {
            metadata.insert("remainingItemCount".into(), remaining.clone());
        }
        metadata
    }

    /// A bookmark: an object of nothing but a version. `is_initial_end` marks the end of the initial events.
    pub fn bookmark(&self, backing_version: &str, is_initial_end: bool) -> Map<String, Value> {
        let mut metadata = Map::new();
        metadata.insert("resourceVersion".into(), self.epoch.shown(backing_version).into());
        if is_initial_end {
            metadata.insert("annotations".into(), serde_json::json!({INITIAL_EVENTS_END: "true"}));
        }
        metadata
    }
}

/// What stands before the items of a list, as JSON. The metadata stand behind them ([`list_end`]), since they may arrive when the items have
/// been sent.
pub fn list_begin(api_version: &str, kind: &str) -> String {
    format!("{{\"kind\":{},\"apiVersion\":{},\"items\":[", Value::from(kind), Value::from(api_version))
}

/// What stands behind the items of a list, or the rows of a table.
pub fn list_end(metadata: &Map<String, Value>) -> String {
    format!("],\"metadata\":{}}}", to_json(metadata))
}

/// An event of a watch, as a line of JSON.
pub fn event_json(r#type: &str, object: &str) -> String {
    format!("{{\"type\":{},\"object\":{object}}}\n", Value::from(r#type))
}

/// The first fields of each object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
    api_version: &'a str,
    kind: &'a str,
    metadata: &'a Map<String, Value>,
}

/// A map with text keys cannot fail to be written.
pub(super) fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Access, Cut, Epoch, Served};
    use super::*;

    fn lens() -> Lens {
        let served = Served {
            api_version: "farm.example.com/v1alpha".into(),
            kind: "FarmPod".into(),
            list_kind: "FarmPodList".into(),
            plural: "farmpods".into(),
            prefix: "farm-".into(),
            ..Served::default()
        };
        Lens::new("farmpods", served, Access::ViewAndBacking, Vec::new(), Epoch::default())
    }

    fn read(json: &str) -> Value {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn an_object_is_the_hosts_metadata_and_the_guests_fields() {
        let backing = Cut::metadata_alone().of(&json!({"metadata": {"name": "web", "resourceVersion": "7"}}));
        let metadata = json!({"name": "farm-web", "resourceVersion": "7000000"});
        let head = json!({"apiVersion": "farm.example.com/v1alpha", "kind": "FarmPod", "metadata": metadata});
        for fields in ["{}", "{ }", " {}"] {
            assert_eq!(read(&lens().object_json(&backing, fields)), head);
        }
        let mut whole = head;
        whole["spec"] = json!({"containers": 1});
        assert_eq!(read(&lens().object_json(&backing, r#"{"spec":{"containers":1}}"#)), whole);
        let partial =
            json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": metadata});
        assert_eq!(read(&lens().metadata_json(&backing)), partial);
    }

    #[test]
    fn a_list_has_the_version_of_the_backing_kinds_and_never_null_for_its_items() {
        let metadata = lens().list_metadata(
            &json!({"resourceVersion": "9", "continue": "x", "remainingItemCount": 3}),
            Some("next".into()),
        );
        let list = |items: &[&str]| {
            read(&format!("{}{}{}", list_begin("a/v1", "XList"), items.join(","), list_end(&metadata)))
        };
        let empty = json!({"apiVersion": "a/v1", "kind": "XList", "items": [],
            "metadata": {"resourceVersion": "9000000", "continue": "next", "remainingItemCount": 3}});
        assert_eq!(list(&[]), empty);
        assert_eq!(list(&["1", "2"])["items"], json!([1, 2]));
    }

    #[test]
    fn an_event_is_one_line_and_a_bookmark_has_a_version_and_no_more() {
        assert_eq!(event_json("ADDED", "{}"), "{\"type\":\"ADDED\",\"object\":{}}\n");
        assert_eq!(Value::Object(lens().bookmark("9", false)), json!({"resourceVersion": "9000000"}));
        assert_eq!(lens().bookmark("9", true)["annotations"], json!({"k8s.io/initial-events-end": "true"}));
    }
}
