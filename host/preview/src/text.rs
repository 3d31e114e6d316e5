//! Objects as text: YAML, and the difference between two.

use pintle_wit::{Kind, ObjectRef};
use serde_json::Value;
use similar::TextDiff;

/// How much text is compared line by line. A ConfigMap has at most 1 MiB.
const COMPARED_BYTES_MAX: usize = 512 << 10;

/// How many lines around a change are shown, as kubectl shows them.
const CONTEXT: usize = 3;

/// An object as YAML.
pub(crate) fn yaml(object: &Value) -> String {
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    // What was read as JSON can be written as YAML.
    serde_saphyr::to_string_with_options(object, options).unwrap_or_else(|_| format!("{object:#}"))
}

/// The difference between an object as it is and as it would be, as `kubectl diff` prints it. Empty where there is none.
pub fn diff(reference: &ObjectRef, live: Option<&Value>, wanted: Option<&Value>) -> String {
    let (before, after) = (live.map(yaml).unwrap_or_default(), wanted.map(yaml).unwrap_or_default());
    if before == after {
        return String::new();
    }
    let name = file_name(reference);
    let (old, new) = (format!("LIVE/{name}"), format!("ANSWER/{name}"));
    if before.len().max(after.len()) > COMPARED_BYTES_MAX {
        return format!(
            "--- {old}\n+++ {new}\n@@ {} and {} bytes are too much to be compared @@\n",
            before.len(),
            after.len()
        );
    }
    let diff = TextDiff::from_lines(&before, &after);
    diff.unified_diff().context_radius(CONTEXT).header(&old, &new).to_string()
}

/// As kubectl names the files that it compares: `apps.v1.Deployment.blog.web`.
fn file_name(reference: &ObjectRef) -> String {
    let kind = Kind::new(&reference.api_version, &reference.kind);
    let parts = [
        kind.group(),
        kind.version(),
        &reference.kind,
        reference.namespace.as_deref().unwrap_or_default(),
        &reference.name,
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn reference() -> ObjectRef {
        ObjectRef {
            api_version: "apps/v1".into(),
            kind: "Deployment".into(),
            namespace: Some("blog".into()),
            name: "web".into(),
        }
    }

    #[test]
    fn a_difference_is_printed_as_kubectl_prints_it() {
        let text = diff(&reference(), Some(&json!({"a": 1, "b": 2})), Some(&json!({"a": 1, "b": 3})));
        assert_eq!(
            text,
            "--- LIVE/apps.v1.Deployment.blog.web\n+++ ANSWER/apps.v1.Deployment.blog.web\n@@ -1,2 +1,2 @@\n a: 1\n-b: 2\n+b: 3\n"
        );
        let made = diff(&reference(), None, Some(&json!({"a": 1})));
        assert!(made.ends_with("@@ -0,0 +1 @@\n+a: 1\n"), "{made}");
        assert_eq!(diff(&reference(), Some(&json!({"a": 1})), Some(&json!({"a": 1}))), "");
    }

    #[test]
    fn what_is_too_long_is_not_compared_line_by_line() {
        let long = json!({"data": {"a": "x".repeat(COMPARED_BYTES_MAX)}});
        assert!(diff(&reference(), Some(&long), Some(&json!({"a": 1}))).contains("too much"));
    }
}
