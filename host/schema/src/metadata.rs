//! The metadata of an object, as the API server reads them and judges them
//! (k8s.io/apimachinery, pkg/api/validation/objectmeta.go).

use pintle_core::{
    names,
    view::status::fault::{forbidden, required, too_long},
};
use pintle_wit::Cause;
use serde_json::{Map, Value};

use crate::{
    builtin,
    cause::invalid,
    typed::{self, Read},
};

/// How much all annotations of an object may have together, in bytes, keys and values.
const ANNOTATIONS_BYTES_MAX: usize = 256 << 10;

/// The finalizers of the garbage collector. An object cannot have both.
const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// Reads metadata.
///
/// # Errors
/// A field is not of its type.
pub fn read(metadata: &Value) -> Result<Read, String> {
    for field in ["creationTimestamp", "deletionTimestamp"] {
        if let Some(text) = metadata[field].as_str()
            && text.parse::<jiff::Timestamp>().is_err()
        {
            return Err(format!("cannot unmarshal {text:?} into field metadata.{field} of type time"));
        }
    }
    typed::read(builtin::metadata(), metadata, "metadata")
}

/// Everything that is wrong with the metadata of an object that is to be made, as [`read`] has them. The namespace is that of the path.
pub fn misfits(metadata: &Value) -> Vec<Cause> {
    let mut found = Vec::new();
    let text = |field: &str| metadata[field].as_str().unwrap_or_default();
    let beginning = text("generateName");
    // A name goes on behind it, also behind a dash.
    let masked = beginning.strip_suffix('-').map(|rest| format!("{rest}a"));
    if !beginning.is_empty() {
        wrong(
            &mut found,
            "metadata.generateName",
            beginning,
            names::wrong_subdomain(masked.as_deref().unwrap_or(beginning)),
        );
    }
    match text("name") {
        "" if beginning.is_empty() => {
            found.push(required("metadata.name", "name or generateName is required"))
        }
        "" => {}
        name => wrong(&mut found, "metadata.name", name, names::wrong_subdomain(name)),
    }
    labels_and_annotations(metadata, &mut found);
    owners(metadata, &mut found);
    finalizers(metadata, &mut found);
    found
}

/// The same for an object that is to take the place of another one, whose metadata these are. The version is judged elsewhere.
pub fn misfits_after(metadata: &Value, old: &Value) -> Vec<Cause> {
    let mut found = Vec::new();
    let is_deleting = !old["deletionTimestamp"].is_null();
    if is_deleting {
        let had: Vec<&str> = texts(&old["finalizers"]).collect();
        let mut added: Vec<&str> = texts(&metadata["finalizers"]).filter(|one| !had.contains(one)).collect();
        added.sort_unstable();
        added.dedup();
        if !added.is_empty() {
            let why = "no new finalizers can be added if the object is being deleted, found new finalizers";
            let listed: Vec<String> = added.iter().map(|one| format!("{one:?}")).collect();
            found.push(forbidden("metadata.finalizers", &format!("{why} []string{{{}}}", listed.join(", "))));
        }
    }
    // Once an object is being deleted, these stay as they are, whatever is written.
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
        let given = &metadata[field];
        if !is_deleting && !given.is_null() {
            found.push(invalid(&format!("metadata.{field}"), given, "field is immutable"));
        }
    }
    labels_and_annotations(metadata, &mut found);
    owners(metadata, &mut found);
    finalizers(metadata, &mut found);
    found
}

/// Labels by key and value, annotations by key and by what they take together.
fn labels_and_annotations(metadata: &Value, found: &mut Vec<Cause>) {
    for (key, value) in fields(&metadata["labels"]) {
        wrong(found, "metadata.labels", key, names::wrong_qualified(key));
        let value = value.as_str().unwrap_or_default();
        wrong(found, "metadata.labels", value, names::wrong_label_value(value));
    }
    let mut bytes = 0;
    for (key, value) in fields(&metadata["annotations"]) {
        bytes += key.len() + value.as_str().map_or(0, str::len);
        // Capital letters are allowed here, in the prefix too.
        wrong(found, "metadata.annotations", key, names::wrong_qualified(&key.to_lowercase()));
    }
    if bytes > ANNOTATIONS_BYTES_MAX {
        found.push(too_long("metadata.annotations", ANNOTATIONS_BYTES_MAX as u64));
    }
}

fn owners(metadata: &Value, found: &mut Vec<Cause>) {
    const AT: &str = "metadata.ownerReferences";
    let mut controller: Option<String> = None;
    for owner in metadata["ownerReferences"].as_array().into_iter().flatten() {
        let text = |field: &str| owner[field].as_str().unwrap_or_default();
        for (field, why) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            if text(field).is_empty() {
                found.push(invalid(&format!("{AT}.{field}"), &"".into(), why));
            }
        }
        if (text("apiVersion"), text("kind")) == ("v1", "Event") {
            found.push(invalid(AT, owner, "/v1, Kind=Event is disallowed from being an owner"));
        }
        if owner["controller"] == true {
            let name = format!("{}/{}", text("kind"), text("name"));
            match &controller {
                Some(first) => {
                    let why = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {name}"
                    );
                    found.push(invalid(AT, &metadata["ownerReferences"], &why));
                }
                None => controller = Some(name),
            }
        }
    }
}

fn finalizers(metadata: &Value, found: &mut Vec<Cause>) {
    for finalizer in texts(&metadata["finalizers"]) {
        wrong(found, "metadata.finalizers", finalizer, names::wrong_qualified(finalizer));
    }
    let has = |wanted: &str| texts(&metadata["finalizers"]).any(|one| one == wanted);
    if has(ORPHAN) && has(FOREGROUND) {
        let why = format!("finalizer {ORPHAN} and {FOREGROUND} cannot be both set");
        found.push(invalid("metadata.finalizers", &metadata["finalizers"], &why));
    }
}

fn wrong(found: &mut Vec<Cause>, at: &str, value: &str, why: Vec<String>) {
    found.extend(why.iter().map(|why| invalid(at, &value.into(), why)));
}

fn fields(map: &Value) -> impl Iterator<Item = (&String, &Value)> {
    map.as_object().into_iter().flat_map(Map::iter)
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(causes: &[Cause]) -> Vec<(&str, &str)> {
        causes.iter().map(|cause| (cause.field.as_str(), cause.message.as_str())).collect()
    }

    #[test]
    fn a_field_that_nobody_knows_is_named_and_one_of_the_wrong_type_is_refused() {
        let known =
            read(&json!({"name": "a", "lables": {}, "labels": {"a": null}, "finalizers": []})).unwrap();
        assert_eq!(known.unknown, ["metadata.lables"]);
        assert_eq!(known.value, json!({"name": "a", "labels": {"a": ""}}));
        for wrong in [
            json!({"labels": 1}),
            json!({"labels": {"a": 1}}),
            json!({"finalizers": "x"}),
            json!({"creationTimestamp": "yesterday"}),
            json!("x"),
        ] {
            assert!(read(&wrong).is_err_and(|why| why.contains("metadata")), "{wrong}");
        }
    }

    #[test]
    fn what_cannot_be_made_is_refused_with_everything_that_is_wrong() {
        let metadata = json!({
            "generateName": "X-", "labels": {"a b": "c d"}, "annotations": {"A.b/c": "x", "d/e/f": ""}, "finalizers": ["orphan", "foregroundDeletion"],
            "ownerReferences": [{"kind": "Event", "apiVersion": "v1", "name": "", "uid": "u"}],
        });
        let found = misfits(&metadata);
        let fields: Vec<&str> = at(&found).into_iter().map(|(field, _)| field).collect();
        let expected = [
            "metadata.generateName",
            "metadata.labels",
            "metadata.labels",
            "metadata.annotations",
            "metadata.ownerReferences.name",
            "metadata.ownerReferences",
            "metadata.finalizers",
        ];
        assert_eq!(fields, expected);
        assert!(
            misfits(&json!({"generateName": "x-", "labels": {"a": "b"}, "finalizers": ["orphan"]}))
                .is_empty()
        );
        let none = misfits(&json!({}));
        assert_eq!(at(&none), [("metadata.name", "Required value: name or generateName is required")]);
        let annotations = json!({"name": "a", "annotations": {"a": "x".repeat(ANNOTATIONS_BYTES_MAX)}});
        assert_eq!(
            at(&misfits(&annotations)),
            [("metadata.annotations", "Too long: may not be more than 262144 bytes")]
        );
    }

    #[test]
    fn one_owner_may_be_the_controller() {
        let owner = |name: &str| json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": "u", "controller": true});
        let found = misfits(&json!({"name": "a", "ownerReferences": [owner("x"), owner("y")]}));
        assert!(found[0].message.ends_with("Found \"true\" in references for Pod/x and Pod/y"), "{found:?}");
    }

    #[test]
    fn what_is_being_deleted_gets_no_new_finalizer_and_nobody_else_says_that_it_is() {
        let old = json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a.b/c"]});
        let found = misfits_after(&json!({"finalizers": ["a.b/c", "x/z", "x/y"]}), &old);
        let why = "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"x/y\", \"x/z\"}";
        assert_eq!(at(&found), [("metadata.finalizers", why)]);
        assert!(misfits_after(&json!({"finalizers": []}), &old).is_empty());
        let found = misfits_after(&json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}), &json!({}));
        assert_eq!(at(&found)[0].0, "metadata.deletionTimestamp");
    }
}
