//! Paths of columns: as much of kubectl's JSONPath as leads to one value.

use std::{iter::Peekable, str::Chars};

use serde_json::Value;

/// A path that was read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Path(Vec<Step>);

#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// `.name`. A dot in the name is written `\.`.
    Field(String),
    /// `[0]`.
    Index(usize),
}

impl Path {
    /// Reads a path.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        if !text.starts_with('.') {
            return Err("a path begins with '.'".to_owned());
        }
        let mut letters = text.chars().peekable();
        let mut steps = Vec::new();
        while let Some(letter) = letters.next() {
            match letter {
                '.' => steps.push(Step::Field(name(&mut letters)?)),
                '[' => steps.push(Step::Index(index(&mut letters)?)),
                other => return Err(format!("'{other}' stands where '.' or '[' is expected")),
            }
        }
        Ok(Self(steps))
    }

    /// The value that the path leads to.
    pub(super) fn find<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(value, |value, step| match step {
            Step::Field(name) => value.get(name),
            Step::Index(index) => value.get(index),
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

/// An index: up to the bracket that closes.
fn index(letters: &mut Peekable<Chars<'_>>) -> Result<usize, String> {
    let mut text = String::new();
    while let Some(letter) = letters.next_if(|letter| *letter != ']') {
        text.push(letter);
    }
    letters.next().ok_or("a bracket is not closed")?;
    text.parse().map_err(|_| format!("[{text}] is no index: columns of a view have no filters"))
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
            (".spec[*]", "[*] is no index: columns of a view have no filters"),
            (".spec[?(@.x==1)]", "[?(@.x==1)] is no index: columns of a view have no filters"),
            (".spec\\", "it ends with '\\'"),
        ] {
            assert_eq!(Path::read(path), Err(why.to_owned()), "{path}");
        }
    }
}
