//! Paths of columns: as much of kubectl's JSONPath as leads to one value.

use std::{iter::Peekable, str::Chars};

use serde_json::Value;

/// A path that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// `.name`. A dot in the name is written `\.`.
    Field(String),
    /// `[0]`.
    Index(usize),
    /// `[?(@.type=="Ready")]`: the first item of which this field is this text.
    Item { field: String, text: String },
}

impl Path {
    /// Reads a path.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(text: &str) -> Result<Self, String> {
        if !text.starts_with('.') {
            return Err("a path begins with '.'".to_owned());
        }
        let mut letters = text.chars().peekable();
        let mut steps = Vec::new();
        while let Some(letter) = letters.next() {
            match letter {
                '.' => steps.push(Step::Field(name(&mut letters)?)),
                '[' => steps.push(bracket(&mut letters)?),
                other => return Err(format!("'{other}' stands where '.' or '[' is expected")),
            }
        }
        Ok(Self(steps))
    }

    /// The value that the path leads to.
    pub fn find<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(value, |value, step| match step {
            Step::Field(name) => value.get(name),
            Step::Index(index) => value.get(index),
            Step::Item { field, text } => {
                let is_it = |item: &&Value| item.get(field).and_then(Value::as_str) == Some(text.as_str());
                value.as_array()?.iter().find(is_it)
            }
        })
    }
}

/// A bare name: up to the next step. A backslash takes a letter's meaning away.
fn name(letters: &mut Peekable<Chars<'_>>) -> Result<String, String> {
    let mut name = String::new();
    while let Some(letter) = letters.next_if(|letter| !".[]{}()@$*, ".contains(*letter)) {
        match letter {
            '\\' => name.push(letters.next().ok_or("it ends with '\\'")?),
            letter => name.push(letter),
        }
    }
    if name.is_empty() { Err("a name is missing behind '.'".to_owned()) } else { Ok(name) }
}

/// An index or a filter: up to the bracket that closes.
fn bracket(letters: &mut Peekable<Chars<'_>>) -> Result<Step, String> {
    let mut text = String::new();
    while let Some(letter) = letters.next_if(|letter| *letter != ']') {
        text.push(letter);
    }
    letters.next().ok_or("a bracket is not closed")?;
    let step = text.parse().ok().map(Step::Index).or_else(|| filter(&text));
    step.ok_or_else(|| format!("[{text}] is neither an index nor a filter such as [?(@.type==\"Ready\")]"))
}

/// A filter by one field that is a text: what leads to one condition of a list.
fn filter(text: &str) -> Option<Step> {
    let (field, value) = text.strip_prefix("?(@.")?.strip_suffix(')')?.split_once("==")?;
    let (field, value) = (field.trim(), value.trim());
    let quote = value.chars().next().filter(|letter| matches!(letter, '"' | '\''))?;
    let value = value.strip_prefix(quote)?.strip_suffix(quote)?;
    let is_plain = |part: &str| !part.contains(['"', '\'', '\\', '(', ')', '@']);
    let is_field = !field.is_empty() && !field.contains(['.', ' ']);
    (is_field && is_plain(field) && is_plain(value))
        .then(|| Step::Item { field: field.to_owned(), text: value.to_owned() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_leads_to_a_value() {
        let object = json!({
            "metadata": {"labels": {"my-app": "a"}, "annotations": {"example.com/x": "b"}},
            "spec": {"list": [{"n": 1}, {"n": [2]}], "null": null},
            "status": {"conditions": [{"type": "Stalled", "status": "False"}, {"type": "Ready", "status": "True"}]},
        });
        for (path, expected) in [
            (".metadata.labels.my-app", Some(json!("a"))),
            (r".metadata.annotations.example\.com/x", Some(json!("b"))),
            (".spec.list[0].n", Some(json!(1))),
            (".spec.list[1].n[0]", Some(json!(2))),
            (".spec.list[2].n", None),
            (".spec.list.n", None),
            (".spec[0]", None),
            (".spec.null", Some(json!(null))),
            (".spec.null.x", None),
            (".spec.absent.x[0]", None),
            (r#".status.conditions[?(@.type=="Ready")].status"#, Some(json!("True"))),
            (".status.conditions[?(@.type == 'Stalled')].status", Some(json!("False"))),
            (".status.conditions[?(@.type=='Gone')].status", None),
            (".status[?(@.type=='Ready')]", None),
        ] {
            assert_eq!(Path::read(path).unwrap().find(&object), expected.as_ref(), "{path}");
        }
    }

    #[test]
    fn what_is_no_path_is_reported() {
        for (path, why) in [
            ("spec", "a path begins with '.'"),
            (".", "a name is missing behind '.'"),
            (".spec..x", "a name is missing behind '.'"),
            (".spec.*", "a name is missing behind '.'"),
            (".spec[0", "a bracket is not closed"),
            (".spec]", "']' stands where '.' or '[' is expected"),
            (".spec[*]", r#"[*] is neither an index nor a filter such as [?(@.type=="Ready")]"#),
            (
                ".spec[?(@.x==1)]",
                r#"[?(@.x==1)] is neither an index nor a filter such as [?(@.type=="Ready")]"#,
            ),
            (".spec\\", "it ends with '\\'"),
        ] {
            assert_eq!(Path::read(path), Err(why.to_owned()), "{path}");
        }
    }
}
