//! Reading Kubernetes objects that are plain JSON.

use pintle_wit::{Kind, ObjectRef, syntax};
use serde::Serialize;
use serde_json::{Map, Value};

/// A string inside a value, by its keys.
pub fn text<'a>(value: &'a Value, path: &[&str]) -> Option<&'a str> {
    at(value, path)?.as_str()
}

/// A value inside a value, by its keys.
pub fn at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, key| value.get(key))
}

/// How much memory a value takes besides its own place, in bytes, about. A test compares it with what an allocator is asked for.
pub fn heap_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(|item| size_of::<Value>() + heap_bytes(item)).sum(),
        Value::Object(fields) => fields_bytes(fields),
        _ => 0,
    }
}

/// The same of the fields of an object.
pub fn fields_bytes(fields: &Map<String, Value>) -> usize {
    /// A node of a B-tree with room for eleven entries, and how many of them are there on average.
    const NODE_BYTES: usize = 640;
    const NODE_ENTRIES: usize = 7;
    let inside = fields.iter().map(|(key, field)| key.len() + heap_bytes(field));
    fields.len().div_ceil(NODE_ENTRIES) * NODE_BYTES + inside.sum::<usize>()
}

/// The object's kind, as far as it says one.
pub fn kind(object: &Value) -> Kind {
    Kind::new(text(object, &["apiVersion"]).unwrap_or_default(), text(object, &["kind"]).unwrap_or_default())
}

/// Writes its kind into an object. The items of a list do not carry theirs, and metadata alone carries another.
pub fn set_kind(object: &mut Value, kind: Kind) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".into(), kind.api_version.into());
        fields.insert("kind".into(), kind.kind.into());
    }
}

/// The object's name, or nothing.
pub fn name(object: &Value) -> &str {
    text(object, &["metadata", "name"]).unwrap_or_default()
}

/// The object's namespace.
pub fn namespace(object: &Value) -> Option<&str> {
    text(object, &["metadata", "namespace"]).filter(|namespace| !namespace.is_empty())
}

/// The object's uid, or nothing.
pub fn uid(object: &Value) -> &str {
    text(object, &["metadata", "uid"]).unwrap_or_default()
}

/// The object's generation, where its kind has one.
pub fn generation(object: &Value) -> Option<i64> {
    at(object, &["metadata", "generation"])?.as_i64()
}

/// Whether the object is being deleted.
pub fn is_deleting(object: &Value) -> bool {
    text(object, &["metadata", "deletionTimestamp"]).is_some()
}

/// The object's finalizers.
pub fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    let all = at(object, &["metadata", "finalizers"]).and_then(Value::as_array);
    all.into_iter().flatten().filter_map(Value::as_str)
}

/// Whether the object has one of these finalizers.
pub fn has_finalizer(object: &Value, wanted: &[&str]) -> bool {
    finalizers(object).any(|name| wanted.contains(&name))
}

/// The names of the object.
pub fn reference(object: &Value) -> ObjectRef {
    let Kind { api_version, kind } = kind(object);
    ObjectRef { api_version, kind, namespace: namespace(object).map(Into::into), name: name(object).into() }
}

/// A DNS subdomain (RFC 1123), as every object name must be at least. Anything else could reach another path of the API.
pub fn is_name(name: &str) -> bool {
    syntax::is_subdomain(name)
}

/// A DNS label (RFC 1123), as namespaces are named.
pub fn is_namespace(name: &str) -> bool {
    syntax::is_label(name)
}

/// Whether this can be the kind of an object: `v1` or `GROUP/VERSION`, and a kind, as in [`pintle_wit::syntax`]. Anything else could reach
/// another path of the API.
pub fn is_kind(kind: &Kind) -> bool {
    syntax::is_api_version(&kind.api_version) && syntax::is_kind(&kind.kind)
}

/// Whether an object can have these names.
pub fn is_reference(reference: &ObjectRef) -> bool {
    is_kind(&reference.kind())
        && is_name(&reference.name)
        && reference.namespace.as_deref().is_none_or(is_namespace)
}

/// Every string that a dotted path leads to, `[]` standing for each element of a list: `spec.rules[].host`.
pub fn strings_at<'a>(object: &'a Value, path: &str) -> Vec<&'a str> {
    let mut found = vec![object];
    for step in path.split('.') {
        let (key, each) = step.strip_suffix("[]").map_or((step, false), |key| (key, true));
        found = found.into_iter().filter_map(|value| value.get(key)).collect();
        if each {
            found = found.into_iter().filter_map(Value::as_array).flatten().collect();
        }
    }
    found.into_iter().filter_map(Value::as_str).collect()
}

/// The size of a value as JSON, in bytes. This allocates nothing.
pub(crate) fn json_bytes(value: &(impl Serialize + ?Sized)) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Plain data with string keys, and a writer that takes everything: it cannot fail.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

/// The texts and numbers of a value.
pub(crate) fn texts(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::String(text) => found.push(text.clone()),
        Value::Number(number) => found.push(number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(fields) => fields.values().for_each(|value| texts(value, found)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// What somebody could write into a status, or a guest into an answer, to reach another path of the API.
    const HOSTILE: [&str; 13] = [
        "",
        ".",
        "..",
        "../../api/v1/secrets",
        "a/b",
        "a?watch=true",
        "a#b",
        "a%2f..%2fb",
        "a\r\nImpersonate-Group: system:masters",
        "a b",
        "a\0",
        "-a",
        "ä",
    ];

    #[test]
    fn no_name_and_no_kind_leaves_its_place_in_a_path() {
        let good = ObjectRef {
            api_version: "example.com/v1alpha1".into(),
            kind: "ConfigMap".into(),
            namespace: Some("team-1".into()),
            name: "a.b-c".into(),
        };
        assert!(is_reference(&good));
        assert!(is_reference(&ObjectRef { api_version: "v1".into(), namespace: None, ..good.clone() }));
        let long = "a".repeat(10 << 10);
        for hostile in HOSTILE.into_iter().chain([long.as_str()]) {
            let bad = |change: fn(&mut ObjectRef, String)| {
                let mut reference = good.clone();
                change(&mut reference, hostile.to_owned());
                !is_reference(&reference)
            };
            assert!(bad(|reference, text| reference.name = text), "name {hostile:?}");
            assert!(bad(|reference, text| reference.kind = text), "kind {hostile:?}");
            assert!(bad(|reference, text| reference.namespace = Some(text)), "namespace {hostile:?}");
            if hostile != "a/b" {
                assert!(bad(|reference, text| reference.api_version = text), "apiVersion {hostile:?}");
            }
            assert!(bad(|reference, text| reference.api_version = format!("{text}/v1")), "group {hostile:?}");
            assert!(
                bad(|reference, text| reference.api_version = format!("a.io/{text}")),
                "version {hostile:?}"
            );
        }
        for bad in ["v1/v1/v1", "V1", "1v", "/v1", "v1/"] {
            assert!(!is_kind(&Kind::new(bad, "Pod")), "{bad}");
        }
    }

    #[test]
    fn a_path_reaches_through_lists() {
        let object = json!({"spec": {"rules": [{"host": "a"}, {"host": "b"}, {}], "name": "c"}});
        assert_eq!(strings_at(&object, "spec.rules[].host"), ["a", "b"]);
        assert_eq!(strings_at(&object, "spec.name"), ["c"]);
        assert!(strings_at(&object, "spec.missing.deep").is_empty());
    }
}
