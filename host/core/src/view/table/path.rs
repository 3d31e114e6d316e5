//! Paths of columns: JSONPath as kubectl has it, as far as columns of CRDs use it.
//!
//! kubectl's differs from RFC 9535 in what a bare name may be (`.metadata.labels.my-app`) and how a dot is escaped
//! (`.metadata.annotations.example\.com/x`), so that no library for the standard reads it.

use std::{cmp::Ordering, iter::Peekable, str::Chars};

use serde_json::Value;

/// A path that was read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Path(Vec<Step>);

#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// `.name`, or `['name']`.
    Field(String),
    /// `[0]`; negative from the end.
    Index(i64),
    /// `[*]`, or `.*`.
    All,
    /// `[?(@.type=="Ready")]`, or without a comparison: those that have the field.
    Filter(Path, Option<(Operator, Value)>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// The operators. The longer stand first.
const OPERATORS: [(&str, Operator); 6] = [
    ("==", Operator::Equal),
    ("!=", Operator::NotEqual),
    ("<=", Operator::LessOrEqual),
    (">=", Operator::GreaterOrEqual),
    ("<", Operator::Less),
    (">", Operator::Greater),
];

impl Path {
    /// Reads a path.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        if !text.starts_with('.') {
            return Err("a path begins with '.'".to_owned());
        }
        if text == "." {
            return Ok(Self(Vec::new()));
        }
        let mut letters = text.chars().peekable();
        let mut steps = Vec::new();
        while let Some(letter) = letters.next() {
            match letter {
                // `.[0]` is the same as `[0]`.
                '.' if letters.peek() == Some(&'[') => {}
                '.' => steps.push(match name(&mut letters)?.as_str() {
                    "*" => Step::All,
                    name => Step::Field(name.to_owned()),
                }),
                '[' => steps.push(bracket(&inside(&mut letters)?)?),
                other => return Err(format!("'{other}' stands where '.' or '[' is expected")),
            }
        }
        Ok(Self(steps))
    }

    /// The first value that the path leads to.
    pub(super) fn first<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        first(value, &self.0)
    }
}

/// A bare name: up to the next step. A backslash takes a letter's meaning away.
fn name(letters: &mut Peekable<Chars<'_>>) -> Result<String, String> {
    let mut name = String::new();
    while let Some(letter) = letters.next_if(|letter| !".[]{}()@$, ".contains(*letter)) {
        match letter {
            '\\' => name.push(letters.next().ok_or("it ends with '\\'")?),
            letter => name.push(letter),
        }
    }
    if name.is_empty() { Err("a name is missing behind '.'".to_owned()) } else { Ok(name) }
}

/// What stands up to the bracket that closes.
fn inside(letters: &mut Peekable<Chars<'_>>) -> Result<String, String> {
    let (mut text, mut quote, mut depth) = (String::new(), None, 0);
    for letter in letters {
        match (letter, quote) {
            (letter, Some(open)) if letter == open => quote = None,
            ('\'' | '"', None) => quote = Some(letter),
            ('[', None) => depth += 1,
            (']', None) if depth == 0 => return Ok(text),
            (']', None) => depth -= 1,
            _ => {}
        }
        text.push(letter);
    }
    Err("a bracket is not closed".to_owned())
}

fn bracket(text: &str) -> Result<Step, String> {
    let text = text.trim();
    if text == "*" {
        return Ok(Step::All);
    }
    if let Some(Value::String(name)) = literal(text) {
        return Ok(Step::Field(name));
    }
    if let Ok(index) = text.parse() {
        return Ok(Step::Index(index));
    }
    let filter = text.strip_prefix("?(").and_then(|text| text.strip_suffix(')'));
    let unread = || format!("[{text}] is no name in quotes, no index, no [*] and no filter [?(@.a==\"b\")]");
    filtered(filter.ok_or_else(unread)?.trim())
}

fn filtered(text: &str) -> Result<Step, String> {
    let path = text.strip_prefix('@').ok_or("a filter begins with '@'")?;
    let found = path.char_indices().find_map(|(at, _)| {
        OPERATORS
            .iter()
            .find(|(sign, _)| path[at..].starts_with(sign))
            .map(|(sign, operator)| (at, sign, *operator))
    });
    let Some((at, sign, operator)) = found else {
        return Ok(Step::Filter(Path::read(path.trim())?, None));
    };
    let (path, right) = (path[..at].trim(), path[at + sign.len()..].trim());
    // `@` alone is the element itself.
    let path = Path::read(if path.is_empty() { "." } else { path })?;
    let right =
        literal(right).ok_or_else(|| format!("{right} is no text in quotes, no number and no boolean"))?;
    Ok(Step::Filter(path, Some((operator, right))))
}

/// A text in quotes, a number or a boolean.
fn literal(text: &str) -> Option<Value> {
    for quote in ['\'', '"'] {
        if let Some(text) = text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote)) {
            return Some(text.into());
        }
    }
    // An index is no literal within brackets, which `bracket` sees to.
    serde_json::from_str(text).ok().filter(|value: &Value| value.is_number() || value.is_boolean())
}

fn first<'a>(value: &'a Value, steps: &[Step]) -> Option<&'a Value> {
    let Some((step, rest)) = steps.split_first() else { return Some(value) };
    match step {
        Step::Field(name) => first(value.as_object()?.get(name)?, rest),
        Step::Index(index) => {
            let list = value.as_array()?;
            let length = i64::try_from(list.len()).ok()?;
            let index = if *index < 0 { index + length } else { *index };
            first(list.get(usize::try_from(index).ok()?)?, rest)
        }
        Step::All => elements(value).find_map(|value| first(value, rest)),
        Step::Filter(path, test) => elements(value)
            .filter(|element| {
                path.first(element).is_some_and(|left| {
                    test.as_ref().is_none_or(|(operator, right)| operator.holds(left, right))
                })
            })
            .find_map(|value| first(value, rest)),
    }
}

fn elements(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten().chain(value.as_object().into_iter().flat_map(|map| map.values()))
}

impl Operator {
    fn holds(self, left: &Value, right: &Value) -> bool {
        let order = match (left, right) {
            (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
            (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
            _ => left.as_f64().zip(right.as_f64()).and_then(|(left, right)| left.partial_cmp(&right)),
        };
        match self {
            Self::Equal => order == Some(Ordering::Equal),
            Self::NotEqual => order != Some(Ordering::Equal),
            Self::Less => order == Some(Ordering::Less),
            Self::LessOrEqual => order.is_some_and(Ordering::is_le),
            Self::Greater => order == Some(Ordering::Greater),
            Self::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_leads_to_the_first_value_that_there_is() {
        let object = json!({
            "metadata": {"labels": {"my-app": "a"}, "annotations": {"example.com/x": "b"}},
            "spec": {"list": [{"n": 1}, {"n": 2, "only": "c"}], "null": null},
            "status": {"conditions": [
                {"type": "Other", "status": "False", "at": 3}, {"type": "Ready", "status": "True", "at": 5},
            ]},
        });
        for (path, expected) in [
            (".metadata.labels.my-app", Some(json!("a"))),
            (r".metadata.annotations.example\.com/x", Some(json!("b"))),
            (".metadata.annotations['example.com/x']", Some(json!("b"))),
            (".spec.list[0].n", Some(json!(1))),
            (".spec.list[-1].n", Some(json!(2))),
            (".spec.list[2].n", None),
            (".spec.list[*].only", Some(json!("c"))),
            (".spec.list.*.n", Some(json!(1))),
            (".spec.null", Some(json!(null))),
            (".spec.null.x", None),
            (".spec.absent.x[0]", None),
            (".status.conditions[?(@.type==\"Ready\")].status", Some(json!("True"))),
            (".status.conditions[?(@.type=='Ready')].status", Some(json!("True"))),
            (".status.conditions[?( @.type != 'Ready' )].status", Some(json!("False"))),
            (".status.conditions[?(@.at>4)].type", Some(json!("Ready"))),
            (".status.conditions[?(@.at<=4)].type", Some(json!("Other"))),
            (".status.conditions[?(@.absent)].type", None),
            (".status.conditions[?(@.type=='Gone')].status", None),
        ] {
            assert_eq!(Path::read(path).unwrap().first(&object), expected.as_ref(), "{path}");
        }
        assert_eq!(Path::read(".").unwrap().first(&object), Some(&object));
        assert_eq!(Path::read(".[?(@=='b')]").unwrap().first(&json!(["a", "b"])), Some(&json!("b")));
    }

    #[test]
    fn what_is_no_path_is_reported() {
        for (path, why) in [
            ("spec", "a path begins with '.'"),
            (".spec..x", "a name is missing behind '.'"),
            (".spec.", "a name is missing behind '.'"),
            (".spec[0", "a bracket is not closed"),
            (".spec]", "']' stands where '.' or '[' is expected"),
            (".spec[?(x==1)]", "a filter begins with '@'"),
            (".spec[?(@.x==y)]", "y is no text in quotes, no number and no boolean"),
            (".spec[0:2]", "[0:2] is no name in quotes, no index, no [*] and no filter [?(@.a==\"b\")]"),
            (".spec\\", "it ends with '\\'"),
        ] {
            assert_eq!(Path::read(path), Err(why.to_owned()), "{path}");
        }
    }
}
