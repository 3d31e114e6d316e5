//! Where two values differ, in few words.

use pintle_core::{object, plan::join};
use serde_json::{Value, json};

use crate::shown::Shown;

/// The places where an answer differs from what a case expects of it, at most `most` of them. A child is known by kind and name, wherever it
/// stands among the others.
pub fn of_answers(expected: &Shown, found: &Shown, most: usize) -> Vec<String> {
    let by_name = |shown: &Shown| {
        let mut value = json!(shown);
        if let Some(children) = value.get_mut("children") {
            let named = children.as_array().into_iter().flatten();
            *children = named.map(|child| (object::reference(child).to_string(), child.clone())).collect();
        }
        value
    };
    let places = differences(&by_name(expected), &by_name(found), most);
    if places.is_empty() { vec!["children: in another order".into()] } else { places }
}

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
        (old, new) => {
            let (old, new) = short(&text(old), &text(new));
            found.push(format!("{path}: {old} -> {new}"));
        }
    }
}

/// How much of a value a message shows, in characters.
const SHOWN: usize = 60;

/// How much of what is alike stands before the difference of two long values, in characters.
const ALIKE_SHOWN: usize = 20;

fn text(value: &Value) -> String {
    if value.is_null() { "nothing".into() } else { value.to_string() }
}

fn short(old: &str, new: &str) -> (String, String) {
    let alike = old.chars().zip(new.chars()).take_while(|(old, new)| old == new).count();
    let is_long = [old, new].iter().any(|text| text.chars().count() > SHOWN);
    let start = if is_long { alike.saturating_sub(ALIKE_SHOWN) } else { 0 };
    let cut = |text: &str| {
        let shown: String = text.chars().skip(start).take(SHOWN).collect();
        let before = if start > 0 { "…" } else { "" };
        let after = if text.chars().count() > start + SHOWN { "…" } else { "" };
        format!("{before}{shown}{after}")
    };
    (cut(old), cut(new))
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

    #[test]
    fn of_long_values_the_part_that_differs_is_shown() {
        let page = |end: &str| json!({"page": format!("{}{end}", "a".repeat(99))});
        let alike = "a".repeat(20);
        assert_eq!(differences(&page("b"), &page("c"), 10), [format!("page: …{alike}b\" -> …{alike}c\"")]);
    }

    #[test]
    fn a_child_of_an_answer_is_known_by_its_name() {
        let answer =
            |children: Value| serde_json::from_value::<Shown>(json!({"children": children})).unwrap();
        let child = |name: &str, value: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "n"}, "data": {"k": value}});
        let expected = answer(json!([child("a", "1"), child("b", "1")]));
        assert_eq!(
            of_answers(&expected, &answer(json!([child("b", "2"), child("a", "1")])), 10),
            ["children[ConfigMap n/b].data.k: \"1\" -> \"2\""]
        );
        assert_eq!(
            of_answers(&expected, &answer(json!([child("b", "1"), child("a", "1")])), 10),
            ["children: in another order"]
        );
    }
}
