//! Parsing of what a guest says. It takes one reading of a document or none: a key that stands twice, a number that a double
//! cannot hold exactly, an unknown field or a nesting without end is an error that names the place.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};

/// Integers beyond this are not exact in a double, so tools would read different numbers out of the same text (RFC 8259, 6).
const MAX_EXACT_INTEGER: u64 = 1 << 53;

/// For `deserialize_with`: any JSON value, strictly.
pub(crate) fn value<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    Strict.deserialize(deserializer)
}

/// For `deserialize_with`: a JSON object, strictly.
pub(crate) fn map<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Map<String, Value>, D::Error> {
    match value(deserializer)? {
        Value::Object(map) => Ok(map),
        other => Err(de::Error::invalid_type(unexpected(&other), &"an object")),
    }
}

fn unexpected(value: &Value) -> de::Unexpected<'_> {
    match value {
        Value::Null => de::Unexpected::Unit,
        Value::Bool(value) => de::Unexpected::Bool(*value),
        Value::Number(_) => de::Unexpected::Other("a number"),
        Value::String(text) => de::Unexpected::Str(text),
        Value::Array(_) => de::Unexpected::Seq,
        Value::Object(_) => de::Unexpected::Map,
    }
}

struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Deserialize<'de> for StrictValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        value(deserializer).map(StrictValue)
    }
}

/// A value inside a strict value; a type of its own so that error paths run through it.
struct StrictValue(Value);

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }
    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        if value > MAX_EXACT_INTEGER {
            return Err(E::custom(format_args!("the integer {value} is beyond 2^53")));
        }
        Ok(value.into())
    }
    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        if value.unsigned_abs() > MAX_EXACT_INTEGER {
            return Err(E::custom(format_args!("the integer {value} is beyond 2^53")));
        }
        Ok(value.into())
    }
    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number that is not finite"))
    }
    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.to_owned()))
    }
    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(Value::String(text))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(StrictValue(item)) = access.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let StrictValue(value) = access.next_value()?;
            if map.contains_key(&key) {
                return Err(de::Error::custom(format_args!("duplicate key `{key}`")));
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(feature = "host")]
pub use parse::{Limits, parse_failure, parse_manifest, parse_response};

#[cfg(feature = "host")]
mod parse {
    use serde::de::DeserializeOwned;

    use crate::{Failure, Manifest, Response, reasons};

    /// How much a host reads of what a guest says.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Limits {
        /// The largest document, in bytes.
        pub bytes: usize,
        /// The deepest nesting of arrays and objects. Kubernetes' own types stay below 32.
        pub depth: usize,
    }

    impl Default for Limits {
        /// 1 MiB: an object in etcd is at most 1.5 MiB. 64 levels: twice what the deepest built-in kind needs, half of what the
        /// JSON parser's recursion guard allows.
        fn default() -> Self {
            Self { bytes: 1 << 20, depth: 64 }
        }
    }

    /// Reads a response.
    ///
    /// # Errors
    /// A terminal failure with one of the reasons `ResponseTooLarge`, `ResponseTooDeep`, `InvalidJson`, `UnknownField` and
    /// `InvalidDocument`, naming the place.
    pub fn parse_response(text: &str, limits: Limits) -> Result<Response, Failure> {
        parse(text, limits, "response")
    }

    /// Reads a manifest.
    ///
    /// # Errors
    /// As [`parse_response`].
    pub fn parse_manifest(text: &str, limits: Limits) -> Result<Manifest, Failure> {
        parse(text, limits, "manifest")
    }

    /// Reads a failure, which is a guest's own.
    ///
    /// # Errors
    /// As [`parse_response`].
    pub fn parse_failure(text: &str, limits: Limits) -> Result<Failure, Failure> {
        parse(text, limits, "failure")
    }

    fn parse<T: DeserializeOwned>(text: &str, limits: Limits, document: &str) -> Result<T, Failure> {
        if text.len() > limits.bytes {
            return Err(Failure::terminal(
                reasons::TOO_LARGE,
                format!("the {document} has {} bytes, the limit is {}", text.len(), limits.bytes),
            ));
        }
        if depth(text) > limits.depth {
            return Err(Failure::terminal(
                reasons::TOO_DEEP,
                format!("the {document} is nested deeper than {} levels", limits.depth),
            ));
        }
        // The path costs bookkeeping at every step, so it is only looked for once something is wrong.
        serde_json::from_str(text).map_err(|_| explain::<T>(text, document))
    }

    fn explain<T: DeserializeOwned>(text: &str, document: &str) -> Failure {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let (path, error) = match serde_path_to_error::deserialize::<_, T>(&mut deserializer) {
            Err(error) => (error.path().to_string(), error.into_inner()),
            // Everything parsed, so what is wrong stands behind the document.
            Ok(_) => {
                let message = format!("the {document} is followed by something else");
                return Failure::terminal(reasons::INVALID_JSON, message);
            }
        };
        let message = error.to_string();
        let reason =
            if !error.is_data() || message.starts_with("duplicate") || message.contains("is beyond 2^53") {
                reasons::INVALID_JSON
            } else if message.starts_with("unknown field") || message.starts_with("unknown variant") {
                reasons::UNKNOWN_FIELD
            } else {
                reasons::INVALID_DOCUMENT
            };
        let failure = Failure::terminal(reason, format!("the {document}: {message}"));
        if path == "." { failure } else { failure.at(path) }
    }

    /// The deepest nesting of brackets outside of strings. Counted before parsing, so that no parser has to recurse to find out.
    fn depth(text: &str) -> usize {
        let (mut depth, mut deepest, mut in_string, mut escaped) = (0usize, 0usize, false, false);
        for byte in text.bytes() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if in_string => escaped = true,
                b'"' => in_string = !in_string,
                _ if in_string => {}
                b'[' | b'{' => {
                    depth += 1;
                    deepest = deepest.max(depth);
                }
                b']' | b'}' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        deepest
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        fn refused(text: &str) -> (String, Option<String>) {
            let failure = parse_response(text, Limits::default()).expect_err("the text is refused");
            assert!(!failure.retry, "{failure}");
            (failure.reason, failure.path)
        }

        fn with(rest: &str) -> String {
            format!(r#"{{"apiVersion":"guest.pintle.dev/v1",{rest}}}"#)
        }

        #[test]
        fn an_unknown_field_is_refused_by_name_and_place() {
            let text = with(r#""children":[{"id":"a","object":{},"reddiness":"accepted"}]"#);
            let failure = parse_response(&text, Limits::default()).expect_err("refused");
            assert_eq!(failure.reason, reasons::UNKNOWN_FIELD);
            assert_eq!(failure.path.as_deref(), Some("children[0].reddiness"));
            assert!(failure.message.contains("reddiness"), "{failure}");
        }

        #[test]
        fn a_key_that_stands_twice_is_refused_at_any_depth() {
            let text = with(r#""children":[{"id":"a","object":{"spec":{"a":1,"a":2}}}]"#);
            assert_eq!(
                refused(&text),
                (reasons::INVALID_JSON.into(), Some("children[0].object.spec".into()))
            );
            assert_eq!(refused(&with(r#""events":[],"events":[]"#)).0, reasons::INVALID_JSON);
        }

        #[test]
        fn an_integer_that_a_double_cannot_hold_is_refused() {
            let text = with(r#""status":{"n":9007199254740993}"#);
            assert_eq!(refused(&text), (reasons::INVALID_JSON.into(), Some("status.n".into())));
            assert!(parse_response(&with(r#""status":{"n":9007199254740992}"#), Limits::default()).is_ok());
        }

        #[test]
        fn depth_and_size_are_checked_before_parsing() {
            let deep = with(&format!(r#""status":{{"a":{}1{}}}"#, "[".repeat(70), "]".repeat(70)));
            assert_eq!(refused(&deep).0, reasons::TOO_DEEP);
            let endless = "[".repeat(100_000);
            assert_eq!(refused(&endless).0, reasons::TOO_DEEP);
            let small = Limits { bytes: 10, depth: 64 };
            assert_eq!(
                parse_response(&with(r#""status":{}"#), small).map_err(|f| f.reason),
                Err("ResponseTooLarge".into())
            );
        }

        #[test]
        fn brackets_inside_strings_do_not_count_as_depth() {
            let text = with(&format!(r#""status":{{"a":"{}\"{}"}}"#, "[".repeat(100), "{".repeat(100)));
            assert!(parse_response(&text, Limits::default()).is_ok());
        }

        #[test]
        fn broken_json_a_wrong_version_and_trailing_text_have_their_reasons() {
            assert_eq!(refused("{").0, reasons::INVALID_JSON);
            assert_eq!(refused("").0, reasons::INVALID_JSON);
            assert_eq!(refused(r#"{"apiVersion":"guest.pintle.dev/v2"}"#).0, reasons::INVALID_DOCUMENT);
            assert_eq!(refused("{}").0, reasons::INVALID_DOCUMENT);
            assert_eq!(refused(r#"{"apiVersion":"guest.pintle.dev/v1"} x"#).0, reasons::INVALID_JSON);
        }
    }
}
