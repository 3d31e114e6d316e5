//! [`Row`]: what a list shows of an object. Lists are reduced here, so that ten thousand objects are no megabytes for a browser.

use std::collections::BTreeMap;

use pintle_core::{
    conditions::{READY, STALLED},
    object,
    observed::condition_status,
    view::table::path::Path,
};
use pintle_wit::{ConditionStatus, names};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::problem::Problem;

/// How many fields a row may have besides its own.
pub const FIELDS_MAX: usize = 24;

/// How long the path of a field may be, in bytes, and how many steps it may have.
const PATH_BYTES_MAX: usize = 256;
const STEPS_MAX: usize = 16;

/// The largest value of a field, in bytes of JSON.
const VALUE_BYTES_MAX: usize = 4 << 10;

/// How many characters of a condition's message a row has.
const MESSAGE_CHARS_MAX: usize = 1 << 10;

/// What kubectl keeps in an object for itself.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// An object, as a list shows it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Its namespace, if it is in one.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// The generation of its spec.
    pub generation: Option<i64>,
    /// When it was created (RFC 3339).
    pub created: String,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Its version.
    pub resource_version: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its condition Ready.
    pub ready: Ready,
    /// Whether it does not become ready by itself.
    pub stalled: bool,
    /// Whether it is worked on.
    pub reconciling: bool,
    /// Whether it is suspended.
    pub suspended: bool,
    /// The fields that were asked for, by their paths.
    pub fields: BTreeMap<String, Value>,
    /// Those of them that are too large to be here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub cut: Vec<String>,
}

/// The condition Ready of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Ready {
    /// Nothing where there is no such condition.
    pub status: Option<ConditionStatus>,
    /// Why, in one word.
    pub reason: String,
    /// Why, for a person.
    pub message: String,
    /// Whether it is about the present generation.
    pub current: bool,
    /// Since when (RFC 3339).
    pub since: Option<String>,
}

/// The paths of the fields that rows are to have besides their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(Vec<(String, Option<Path>)>);

impl Fields {
    /// Reads paths as a client writes them: with commas between them, and dots between the names in them. What begins with a dot is the path of
    /// a printer column.
    ///
    /// # Errors
    /// 400 for more or longer ones than a row has.
    pub fn read(text: Option<&str>) -> Result<Self, Problem> {
        let field = |path: &str| {
            let of_column = path.starts_with('.').then(|| Path::read(path)).transpose().ok()?;
            let is_sound = path.len() <= PATH_BYTES_MAX
                && path.split('.').count() <= STEPS_MAX
                && (of_column.is_some() || path.split('.').all(|step| !step.is_empty()));
            is_sound.then(|| (path.to_owned(), of_column))
        };
        let paths = text.unwrap_or_default().split(',').filter(|path| !path.is_empty());
        let fields: Option<Vec<_>> = paths.map(field).collect();
        let fields = fields.filter(|fields| fields.len() <= FIELDS_MAX).ok_or_else(|| {
            Problem::bad_request(format!(
                "fields has at most {FIELDS_MAX} paths such as spec.type, each of at most {STEPS_MAX} names and {PATH_BYTES_MAX} bytes"
            ))
        })?;
        Ok(Self(fields))
    }
}

/// What a list shows of an object.
pub fn row(object: &Value, fields: &Fields) -> Row {
    let text = |path: &[&str]| object::text(object, path).unwrap_or_default().to_owned();
    let (mut found, mut cut) = (BTreeMap::new(), Vec::new());
    for (path, of_column) in &fields.0 {
        let value = of_column.as_ref().map_or_else(|| at(object, path), |path| path.find(object));
        let Some(value) = value else { continue };
        if value.to_string().len() <= VALUE_BYTES_MAX {
            found.insert(path.clone(), value.clone());
        } else {
            cut.push(path.clone());
        }
    }
    Row {
        namespace: object::namespace(object).map(str::to_owned),
        name: object::name(object).to_owned(),
        uid: object::uid(object).to_owned(),
        generation: object::generation(object),
        created: text(&["metadata", "creationTimestamp"]),
        deleting: object::is_deleting(object),
        resource_version: text(&["metadata", "resourceVersion"]),
        labels: labels(object),
        ready: ready(object),
        stalled: is_true(object, STALLED),
        reconciling: is_true(object, "Reconciling"),
        suspended: is_suspended(object),
        fields: found,
        cut,
    }
}

/// The condition Ready of an object.
pub fn ready(object: &Value) -> Ready {
    let Some(condition) = condition(object, READY) else { return Ready::default() };
    let text = |key: &str| condition.get(key).and_then(Value::as_str).unwrap_or_default();
    let observed = condition
        .get("observedGeneration")
        .or_else(|| object.pointer("/status/observedGeneration"))
        .and_then(Value::as_i64);
    Ready {
        status: Some(condition_status(text("status"))),
        reason: text("reason").to_owned(),
        message: text("message").chars().take(MESSAGE_CHARS_MAX).collect(),
        current: observed.is_none() || observed == object::generation(object),
        since: Some(text("lastTransitionTime").to_owned()).filter(|since| !since.is_empty()),
    }
}

/// An object as a page shows it whole: without what only programs read.
pub fn whole(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
        let annotations = metadata.get_mut("annotations").and_then(Value::as_object_mut);
        let is_empty = annotations.is_some_and(|annotations| {
            annotations.remove(LAST_APPLIED);
            annotations.is_empty()
        });
        if is_empty {
            metadata.remove("annotations");
        }
    }
    object
}

fn condition<'a>(object: &'a Value, name: &str) -> Option<&'a Map<String, Value>> {
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    let named = |condition: &&Value| condition.get("type").and_then(Value::as_str) == Some(name);
    conditions.iter().find(named)?.as_object()
}

fn is_true(object: &Value, name: &str) -> bool {
    condition(object, name).and_then(|condition| condition.get("status")?.as_str()) == Some("True")
}

/// A root is suspended by an annotation, and the host's own objects by a field.
fn is_suspended(object: &Value) -> bool {
    if object::kind(object).group() == names::DOMAIN {
        return object.pointer("/spec/suspend").and_then(Value::as_bool).unwrap_or_default();
    }
    // As the pass reads it.
    object::text(object, &["metadata", "annotations", names::ANNOTATION_SUSPEND])
        .is_some_and(|value| !matches!(value, "" | "false"))
}

fn labels(object: &Value) -> BTreeMap<String, String> {
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
    let pairs = labels.into_iter().flatten();
    pairs.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(object, |value, step| match value {
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        value => value.get(step),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn room() -> Value {
        json!({
            "apiVersion": "deployments.example.com/v1", "kind": "Darkroom",
            "metadata": {"name": "a", "namespace": "n", "uid": "u", "generation": 2, "resourceVersion": "7",
                "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"team": "x"},
                "annotations": {"a.b/c": "d", LAST_APPLIED: "{}"}, "managedFields": [{}]},
            "spec": {"type": "WebFolder", "domains": ["a.example", "b.example"], "large": "x".repeat(5000)},
            "status": {"conditions": [
                {"type": "Ready", "status": "False", "reason": "Waiting", "message": "m", "observedGeneration": 1,
                    "lastTransitionTime": "2026-01-02T00:00:00Z"},
                {"type": "Stalled", "status": "True"}]},
        })
    }

    fn fields(text: &str) -> Fields {
        Fields::read(Some(text)).unwrap()
    }

    #[test]
    fn a_row_has_what_a_list_shows_and_the_fields_that_were_asked_for() {
        let ready = r#".status.conditions[?(@.type=="Ready")].reason"#;
        let paths = format!("spec.type,spec.domains.1,metadata.labels.team,spec.large,spec.gone,{ready}");
        let row = row(&room(), &fields(&paths));
        assert_eq!(
            serde_json::to_value(&row).unwrap(),
            json!({"namespace": "n", "name": "a", "uid": "u", "generation": 2, "created": "2026-01-01T00:00:00Z", "deleting": false,
                "resourceVersion": "7", "labels": {"team": "x"}, "stalled": true, "reconciling": false, "suspended": false,
                "ready": {"status": "False", "reason": "Waiting", "message": "m", "current": false, "since": "2026-01-02T00:00:00Z"},
                "fields": {"spec.type": "WebFolder", "spec.domains.1": "b.example", "metadata.labels.team": "x", ready: "Waiting"},
                "cut": ["spec.large"]})
        );
    }

    #[test]
    fn an_object_without_conditions_is_neither_ready_nor_not() {
        let row = row(&json!({"metadata": {"name": "a"}}), &Fields::default());
        assert_eq!((row.ready, row.namespace, row.generation), (Ready::default(), None, None));
        assert_eq!(super::row(&json!(null), &Fields::default()).name, "");
    }

    #[test]
    fn a_condition_counts_for_the_generation_that_it_or_the_status_names() {
        let current = |condition: Option<i64>, status: Option<i64>| {
            ready(&json!({"metadata": {"generation": 2}, "status": {"observedGeneration": status,
                "conditions": [{"type": "Ready", "status": "True", "observedGeneration": condition}]}}))
            .current
        };
        assert!(current(Some(2), Some(1)) && !current(Some(1), Some(2)));
        let of_status = json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 1,
            "conditions": [{"type": "Ready", "status": "True"}]}});
        assert!(!ready(&of_status).current);
    }

    #[test]
    fn roots_are_suspended_by_annotation_and_the_hosts_own_objects_by_field() {
        let root = json!({"apiVersion": "a.b/v1", "kind": "A", "metadata": {"annotations": {names::ANNOTATION_SUSPEND: "true"}}});
        let own =
            json!({"apiVersion": "pintle.dev/v1alpha1", "kind": "Reconciler", "spec": {"suspend": true}});
        let field = json!({"apiVersion": "a.b/v1", "kind": "A", "spec": {"suspend": true}});
        assert_eq!([&root, &own, &field].map(is_suspended), [true, true, false]);
    }

    #[test]
    fn a_whole_object_is_shown_without_what_only_programs_read() {
        let mut expected = room();
        let metadata = expected["metadata"].as_object_mut().unwrap();
        metadata.remove("managedFields");
        metadata["annotations"].as_object_mut().unwrap().remove(LAST_APPLIED);
        assert_eq!(whole(room()), expected);
        let alone = json!({"metadata": {"annotations": {LAST_APPLIED: "{}"}}});
        assert_eq!(whole(alone), json!({"metadata": {}}));
    }

    #[test]
    fn more_or_longer_paths_than_a_row_has_are_refused() {
        assert_eq!(Fields::read(None).unwrap(), Fields::default());
        assert_eq!(fields("a,,b").0.len(), 2);
        let many = vec!["a"; FIELDS_MAX + 1].join(",");
        let deep = vec!["a"; STEPS_MAX + 1].join(".");
        for wrong in [
            many,
            deep,
            "a".repeat(PATH_BYTES_MAX + 1),
            ".".into(),
            "a.".into(),
            "a..b".into(),
            ".a[*]".into(),
        ] {
            assert_eq!(Fields::read(Some(&wrong)).unwrap_err().status, 400, "{wrong}");
        }
    }
}
