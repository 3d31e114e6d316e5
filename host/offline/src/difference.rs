//! Where two values differ, in few words.

use pintle_core::plan::join;
use serde_json::Value;

/// The places where `after` differs from `before`: `spec.replicas: 3 -> 4`. At most `most` of them.
pub fn differences(before: &Value, after: &Value, most: usize) -> Vec<String> {
    let mut found = Vec::new();
    walk(before, after, "", &mut found);
    let more = found.len().saturating_sub(most);
    found.truncate(most);
    if more > 0 {
        found.push(format!("and {more} more"));
    }
    found
}

fn walk(before: &Value, after: &Value, path: &str, found: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, value) in old {
                walk(value, new.get(key).unwrap_or(&Value::Null), &join(path, key), found);
            }
            for (key, value) in new.iter().filter(|(key, _)| !old.contains_key(*key)) {
                walk(&Value::Null, value, &join(path, key), found);
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            for index in 0..old.len().max(new.len()) {
                let at = |list: &[Value]| list.get(index).cloned().unwrap_or_default();
                walk(&at(old), &at(new), &format!("{path}[{index}]"), found);
            }
        }
        (old, new) if old == new => {}
        (old, new) => found.push(format!("{path}: {} -> {}", short(old), short(new))),
    }
}

/// How much of a value a message shows, in characters.
const SHOWN: usize = 60;

fn short(value: &Value) -> String {
    if value.is_null() {
        return "nothing".into();
    }
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_difference_is_named_by_its_path() {
        let before = json!({"spec": {"replicas": 3, "ports": [{"port": 80}]}, "same": 1});
        let after =
            json!({"spec": {"replicas": 4, "ports": [{"port": 80}, {"port": 81}], "a.b/c": true}, "same": 1});
        assert_eq!(
            differences(&before, &after, 10),
            [
                "spec.ports[1]: nothing -> {\"port\":81}",
                "spec.replicas: 3 -> 4",
                "spec[a.b/c]: nothing -> true"
            ]
        );
        assert_eq!(differences(&before, &after, 1).last().map(String::as_str), Some("and 2 more"));
        assert!(differences(&before, &before, 10).is_empty());
    }
}
