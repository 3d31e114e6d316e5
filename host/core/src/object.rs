//! Reading Kubernetes objects that are plain JSON.

use pintle_wit::{Kind, ObjectRef};
use serde_json::Value;

/// A string inside a value, by its keys.
pub fn text<'a>(value: &'a Value, path: &[&str]) -> Option<&'a str> {
    at(value, path)?.as_str()
}

/// A value inside a value, by its keys.
pub fn at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, key| value.get(key))
}

/// The object's kind, as far as it says one.
pub fn kind(object: &Value) -> Kind {
    Kind::new(text(object, &["apiVersion"]).unwrap_or_default(), text(object, &["kind"]).unwrap_or_default())
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

/// How the object is named.
pub fn reference(object: &Value) -> ObjectRef {
    let Kind { api_version, kind } = kind(object);
    ObjectRef { api_version, kind, namespace: namespace(object).map(Into::into), name: name(object).into() }
}

/// A DNS subdomain (RFC 1123), as every object name must be at least. Anything else could reach another path of the API.
pub fn is_name(name: &str) -> bool {
    let is_edge = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.len() <= 253
        && name.split('.').all(|part| {
            let bytes = part.as_bytes();
            bytes.first().copied().is_some_and(is_edge)
                && bytes.last().copied().is_some_and(is_edge)
                && bytes.iter().all(|byte| is_edge(*byte) || *byte == b'-')
        })
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

/// How many bytes a value takes as JSON.
pub(crate) fn json_bytes(value: &Value) -> usize {
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_path_reaches_through_lists() {
        let object = json!({"spec": {"rules": [{"host": "a"}, {"host": "b"}, {}], "name": "c"}});
        assert_eq!(strings_at(&object, "spec.rules[].host"), ["a", "b"]);
        assert_eq!(strings_at(&object, "spec.name"), ["c"]);
        assert!(strings_at(&object, "spec.missing.deep").is_empty());
    }
}
