//! The grammar of label selectors. A selector goes to the backing kind as it is, beside the view's own: only what is whole by itself can
//! stand there, and only a refusal from here names nothing of the backing kind.

use std::collections::BTreeSet;

use crate::names;

/// What may stand between a key and its value.
const OPERATORS: [&str; 7] = ["in", "notin", "=", "==", "!=", ">", "<"];

/// Checks that a text is a label selector.
///
/// # Errors
/// What is wrong with it, as the API server says it.
pub(super) fn check(selector: &str) -> Result<(), String> {
    let tokens = scan(selector)?;
    let mut parser = Parser { tokens, at: 0 };
    while parser.peek() != "" {
        if !is_word(parser.peek()) && parser.peek() != "!" {
            return Err(format!("found '{}', expected: !, identifier, or 'end of string'", parser.peek()));
        }
        parser.requirement().map_err(|why| format!("unable to parse requirement: {why}"))?;
        match parser.take().as_str() {
            "" => break,
            "," if is_word(parser.peek()) || parser.peek() == "!" => {}
            "," => return Err(format!("found '{}', expected: identifier after ','", parser.peek())),
            other => return Err(format!("found '{other}', expected: ',' or 'end of string'")),
        }
    }
    Ok(())
}

fn is_symbol(letter: char) -> bool {
    matches!(letter, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}

fn is_space(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\r' | '\n')
}

/// Whether a token is a key or a value. The words `in` and `notin` may be either.
fn is_word(token: &str) -> bool {
    token.chars().next().is_some_and(|first| !is_symbol(first))
}

/// The words and symbols of a selector.
fn scan(selector: &str) -> Result<Vec<String>, String> {
    let mut tokens = Vec::new();
    let mut rest = selector.trim_start_matches(is_space);
    while let Some(first) = rest.chars().next() {
        let end = match first {
            // The API server ends its text at a zero, and would read less than we let through.
            '\0' => return Err("found a zero byte".to_owned()),
            '=' | '!' if rest[1..].starts_with('=') => 2,
            letter if is_symbol(letter) => 1,
            _ => rest
                .find(|letter| is_symbol(letter) || is_space(letter) || letter == '\0')
                .unwrap_or(rest.len()),
        };
        let (token, behind) = rest.split_at(end);
        tokens.push(token.to_owned());
        rest = behind.trim_start_matches(is_space);
    }
    Ok(tokens)
}

struct Parser {
    tokens: Vec<String>,
    at: usize,
}

impl Parser {
    /// The next token; empty at the end.
    fn peek(&self) -> &str {
        self.tokens.get(self.at).map_or("", String::as_str)
    }

    fn take(&mut self) -> String {
        let token = self.peek().to_owned();
        self.at += 1;
        token
    }

    fn requirement(&mut self) -> Result<(), String> {
        let is_negated = self.peek() == "!";
        if is_negated {
            self.take();
        }
        let key = self.take();
        if !is_word(&key) {
            return Err(format!("found '{key}', expected: identifier"));
        }
        if let Some(why) = wrong_key(&key) {
            // The API server has no field here, and says so.
            return Err(format!("<nil>: Invalid value: {key:?}: {why}"));
        }
        if is_negated || self.peek().is_empty() || self.peek() == "," {
            return Ok(());
        }
        let operator = self.take();
        if !OPERATORS.contains(&operator.as_str()) {
            return Err(format!("found '{operator}', expected: in, notin, =, ==, !=, gt, lt"));
        }
        let values = if operator.ends_with("in") { self.values()? } else { self.value()? };
        let faults = values.iter().enumerate().filter_map(|(index, value)| {
            let why = match operator.as_str() {
                ">" | "<" if value.parse::<i64>().is_err() => {
                    let why = "for 'Gt', 'Lt' operators, the value must be an integer";
                    return Some(format!("values[{index}]: Invalid value: {value:?}: {why}"));
                }
                _ => wrong_value(value)?,
            };
            Some(format!("values[{index}][{key}]: Invalid value: {value:?}: {why}"))
        });
        let faults: Vec<String> = faults.collect();
        match faults.as_slice() {
            [] => Ok(()),
            [one] => Err(one.clone()),
            many => Err(format!("[{}]", many.join(", "))),
        }
    }

    /// The one value behind `=`, which may be missing.
    fn value(&mut self) -> Result<BTreeSet<String>, String> {
        if self.peek().is_empty() || self.peek() == "," {
            return Ok(BTreeSet::from([String::new()]));
        }
        let value = self.take();
        if is_word(&value) {
            return Ok(BTreeSet::from([value]));
        }
        Err(format!("found '{value}', expected: identifier"))
    }

    /// The values behind `in`: `(a, b)`. Each may be missing.
    fn values(&mut self) -> Result<BTreeSet<String>, String> {
        let open = self.take();
        if open != "(" {
            return Err(format!("found '{open}' expected: '('"));
        }
        let mut values = BTreeSet::new();
        loop {
            let is_value = is_word(self.peek());
            values.insert(if is_value { self.take() } else { String::new() });
            match self.take().as_str() {
                ")" => return Ok(values),
                "," => {}
                other if is_value => return Err(format!("found '{other}', expected: ',' or ')'")),
                other => return Err(format!("found '{other}', expected: ',', ')' or identifier")),
            }
        }
    }
}

/// What is wrong with a label's key, if anything is.
fn wrong_key(key: &str) -> Option<String> {
    joined(&names::wrong_qualified(key))
}

/// What is wrong with a label's value, if anything is.
fn wrong_value(value: &str) -> Option<String> {
    joined(&names::wrong_label_value(value))
}

fn joined(wrong: &[String]) -> Option<String> {
    (!wrong.is_empty()).then(|| wrong.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_api_server_reads_is_let_through() {
        for good in [
            "",
            "  ",
            "a",
            "!a",
            "a=b",
            "a == b , c!=d",
            "a=",
            "a=,b",
            "example.com/a in (b, c)",
            "a notin (,b)",
            "a in ()",
            "in in (in,notin)",
            "a>1,b<2",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
    }

    #[test]
    fn what_it_does_not_read_is_refused_in_its_words() {
        let requirement = "unable to parse requirement: ";
        for (bad, why) in [
            ("a b", format!("{requirement}found 'b', expected: in, notin, =, ==, !=, gt, lt")),
            ("a=b c", "found 'c', expected: ',' or 'end of string'".to_owned()),
            ("a,", "found '', expected: identifier after ','".to_owned()),
            (",a", "found ',', expected: !, identifier, or 'end of string'".to_owned()),
            ("!", format!("{requirement}found '', expected: identifier")),
            ("a in b", format!("{requirement}found 'b' expected: '('")),
            ("a in (b", format!("{requirement}found '', expected: ',' or ')'")),
            ("a==(b)", format!("{requirement}found '(', expected: identifier")),
            (
                "a&b",
                format!("{requirement}<nil>: Invalid value: \"a&b\": {}", names::wrong_qualified("a&b")[0]),
            ),
            (
                "a=b&c",
                format!(
                    "{requirement}values[0][a]: Invalid value: \"b&c\": {}",
                    names::wrong_label_value("b&c")[0]
                ),
            ),
            (
                "a>x",
                format!(
                    "{requirement}values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer"
                ),
            ),
            ("/a", format!("{requirement}<nil>: Invalid value: \"/a\": prefix part must be non-empty")),
        ] {
            assert_eq!(check(bad), Err(why), "{bad}");
        }
        for bad in ["a\0,b", "a/b/c", "A/b/", &"a".repeat(64), &format!("a={}", "b".repeat(64)), "a=ä"] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
