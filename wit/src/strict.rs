//! Parses the documents of guests. A document has one reading or none: a duplicate key, a number that no double is, an unknown field or too
//! deep a nesting is an error that names the place.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};

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

/// For `deserialize_with`: any JSON value or none, strictly.
pub(crate) fn some<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    let value: Option<StrictValue> = Option::deserialize(deserializer)?;
    Ok(value.map(|StrictValue(value)| value))
}

/// For `deserialize_with`: a map of strings, strictly.
pub(crate) fn texts<'de, D>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error>
where
    D: Deserializer<'de>,
{
    struct Texts;
    impl<'de> Visitor<'de> for Texts {
        type Value = BTreeMap<String, String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a map of strings")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
            let mut map: Self::Value = BTreeMap::new();
            while let Some((key, value)) = access.next_entry()? {
                if map.contains_key(&key) {
                    return Err(de::Error::custom(format_args!("duplicate key `{key}`")));
                }
                map.insert(key, value);
            }
            Ok(map)
        }
    }
    deserializer.deserialize_map(Texts)
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

/// A value inside a strict value. It is a type of its own so that error paths go through it.
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
        // What is no 64-bit integer is a double, to the API server too.
        i64::try_from(value).map_or_else(|_| self.visit_f64(value as f64), |value| Ok(value.into()))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
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
pub use parse::{
    Limits, VALUES_PER_KIBIBYTE, parse_failure, parse_manifest, parse_response, parse_views_manifest,
    weigh_and_parse_response, weigh_and_parse_show_response, weigh_and_parse_store_response,
};

#[cfg(feature = "host")]
mod parse {
    use serde::de::DeserializeOwned;

    use crate::{
        Failure, Manifest, Response, Weight, bounded, manifest_limits, reasons,
        views::{ShowItem, ShowResponse, StoreResponse, ViewsManifest},
        weight::{self, Beyond},
    };

    /// The limits of a document of a guest.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Limits {
        /// The largest document, in bytes.
        pub bytes: usize,
        /// The deepest nesting of arrays and objects. Kubernetes' own types stay below 32.
        pub depth: usize,
        /// The most values that it may have: objects, lists and everything in them.
        pub values: usize,
        /// The most memory that the parsed document may take, in bytes, as [`Weight::parsed_bytes`] counts it.
        pub parsed_bytes: usize,
    }

    /// How many values a document may have for each KiB of its maximum size. Objects of Kubernetes have about one value in twenty bytes. A
    /// value takes up to 832 bytes in memory, so values take at most 52 times as much memory as the text.
    pub const VALUES_PER_KIBIBYTE: usize = 64;

    impl Limits {
        /// The limits of a document of at most this many bytes.
        pub fn of_bytes(bytes: usize) -> Self {
            // 64 levels: twice what the deepest built-in kind needs, and half of what the JSON parser's recursion guard allows.
            Self {
                bytes,
                depth: 64,
                values: bytes.div_ceil(1024) * VALUES_PER_KIBIBYTE,
                parsed_bytes: usize::MAX,
            }
        }
    }

    impl Default for Limits {
        /// 1 MiB: an object in etcd is at most 1.5 MiB.
        fn default() -> Self {
            Self::of_bytes(1 << 20)
        }
    }

    /// Reads a response.
    ///
    /// # Errors
    /// A terminal failure with one of the reasons `ResponseTooLarge`, `ResponseTooDeep`, `ResponseTooComplex`, `InvalidJson`,
    /// `UnknownField` and `InvalidDocument`, which names the place. `AnswerBeyondGrant` if [`Limits::parsed_bytes`] is not enough.
    pub fn parse_response(text: &str, limits: Limits) -> Result<Response, Failure> {
        parse(text, limits, "response")
    }

    /// Reads a response, and returns its weight, which is zero if the text exceeds the limits on bytes, depth or values.
    pub fn weigh_and_parse_response(text: &str, limits: Limits) -> (Weight, Result<Response, Failure>) {
        weigh_and_parse(text, limits, "response")
    }

    /// Reads a manifest.
    ///
    /// # Errors
    /// As [`parse_response`], and `ManifestTooLarge` if the manifest declares more than a host accepts.
    pub fn parse_manifest(text: &str, limits: Limits) -> Result<Manifest, Failure> {
        let manifest: Manifest = parse_bounded(text, limits)?;
        manifest.check()?;
        Ok(manifest)
    }

    /// Reads a manifest of views.
    ///
    /// # Errors
    /// As [`parse_manifest`].
    pub fn parse_views_manifest(text: &str, limits: Limits) -> Result<ViewsManifest, Failure> {
        let manifest: ViewsManifest = parse_bounded(text, limits)?;
        manifest.check()?;
        Ok(manifest)
    }

    fn parse_bounded<T: DeserializeOwned>(text: &str, limits: Limits) -> Result<T, Failure> {
        if text.len() > manifest_limits::BYTES {
            let message =
                format!("the manifest has {} bytes, the limit is {}", text.len(), manifest_limits::BYTES);
            return Err(Failure::terminal(reasons::MANIFEST_TOO_LARGE, message));
        }
        parse(text, limits, "manifest")
    }

    /// Reads what `show` answers about `objects` objects, and returns its weight as [`weigh_and_parse_response`] does. If there is not one
    /// item for each object, or an object has a field that is the host's, the failure is `InvalidDocument`.
    pub fn weigh_and_parse_show_response(
        text: &str,
        objects: usize,
        of_the_host: &[&str],
        limits: Limits,
    ) -> (Weight, Result<ShowResponse, Failure>) {
        let (weight, parsed) = weigh_and_parse::<ShowResponse>(text, limits, "response");
        let checked = parsed.and_then(|response| {
            check_items(&response.items, objects, of_the_host)?;
            Ok(response)
        });
        (weight, checked)
    }

    fn check_items(items: &[ShowItem], objects: usize, of_the_host: &[&str]) -> Result<(), Failure> {
        if items.len() != objects {
            let message =
                format!("there must be one item for each object: {} items, {objects} objects", items.len());
            return Err(Failure::terminal(reasons::INVALID_DOCUMENT, message).at("items"));
        }
        for (index, item) in items.iter().enumerate() {
            let ShowItem::Object(fields) = item else { continue };
            if let Some(field) = of_the_host.iter().find(|field| fields.contains_key(**field)) {
                let message = format!("{field} is the host's");
                let at = format!("items[{index}].object.{field}");
                return Err(Failure::terminal(reasons::INVALID_DOCUMENT, message).at(at));
            }
        }
        Ok(())
    }

    /// Reads what `store` answers, and returns its weight as [`weigh_and_parse_response`] does.
    pub fn weigh_and_parse_store_response(
        text: &str,
        limits: Limits,
    ) -> (Weight, Result<StoreResponse, Failure>) {
        weigh_and_parse(text, limits, "response")
    }

    /// Reads a failure that a guest returned.
    ///
    /// # Errors
    /// As [`parse_response`].
    pub fn parse_failure(text: &str, limits: Limits) -> Result<Failure, Failure> {
        parse(text, limits, "failure")
    }

    fn parse<T: DeserializeOwned>(text: &str, limits: Limits, document: &str) -> Result<T, Failure> {
        weigh_and_parse(text, limits, document).1
    }

    fn weigh_and_parse<T: DeserializeOwned>(
        text: &str,
        limits: Limits,
        document: &str,
    ) -> (Weight, Result<T, Failure>) {
        let weight = match weigh(text, limits, document) {
            Ok(weight) => weight,
            Err(failure) => return (Weight::default(), Err(failure)),
        };
        if weight.parsed_bytes() > limits.parsed_bytes {
            let message = format!(
                "the {document} takes up to {} bytes of memory, and may take {}",
                weight.parsed_bytes(),
                limits.parsed_bytes
            );
            return (weight, Err(Failure::transient(reasons::BEYOND_GRANT, message)));
        }
        // The path costs bookkeeping at every step, so it is only determined after an error.
        (weight, serde_json::from_str(text).map_err(|_| explain::<T>(text, document)))
    }

    /// Counts the parts of a document without parsing it.
    fn weigh(text: &str, limits: Limits, document: &str) -> Result<Weight, Failure> {
        if text.len() > limits.bytes {
            return Err(Failure::terminal(
                reasons::TOO_LARGE,
                format!("the {document} has {} bytes, the limit is {}", text.len(), limits.bytes),
            ));
        }
        let too_much = |reason: &str, message: String, at: usize| {
            let failure = Failure::terminal(reason, message);
            Err(match weight::path_at(text, at) {
                Some(path) => failure.at(path),
                None => failure,
            })
        };
        Weight::of(text, limits).or_else(|beyond| match beyond {
            Beyond::Depth(at) => {
                let message = format!("the {document} is nested deeper than {} levels", limits.depth);
                too_much(reasons::TOO_DEEP, message, at)
            }
            Beyond::Values(at) => {
                let message = format!("the {document} has more than {} values", limits.values);
                too_much(reasons::TOO_COMPLEX, message, at)
            }
        })
    }

    /// The longest message and the longest path in an error, in bytes. A guest writes parts of both.
    const MESSAGE_BYTES_MAX: usize = 1024;
    const PATH_BYTES_MAX: usize = 256;

    fn explain<T: DeserializeOwned>(text: &str, document: &str) -> Failure {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let (path, error) = match serde_path_to_error::deserialize::<_, T>(&mut deserializer) {
            Err(error) => (bounded(error.path(), PATH_BYTES_MAX), error.into_inner()),
            // Everything was parsed, so the error is after the end of the document.
            Ok(_) => {
                let message = format!("the {document} is followed by something else");
                return Failure::terminal(reasons::INVALID_JSON, message);
            }
        };
        let message = bounded(&error, MESSAGE_BYTES_MAX);
        let reason = if !error.is_data() || message.starts_with("duplicate") {
            reasons::INVALID_JSON
        } else if message.starts_with("unknown field") || message.starts_with("unknown variant") {
            reasons::UNKNOWN_FIELD
        } else {
            reasons::INVALID_DOCUMENT
        };
        let failure = Failure::terminal(reason, format!("the {document}: {message}"));
        if path == "." { failure } else { failure.at(path) }
    }

    #[cfg(test)]
    mod tests {
        use std::collections::BTreeMap;

        use serde_json::json;

        use super::*;
        use crate::{
            Kind,
            views::{Document, Shown, ViewManifest},
        };

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
            let labels = r#"{"labels":{"matchLabels":{"a":"1","a":"2"}}}"#;
            for text in [
                r#""events":[],"events":[]"#.to_owned(),
                r#""stamps":{"a":"b","a":"c"}"#.to_owned(),
                format!(
                    r#""needs":[{{"objects":{{"apiVersion":"v1","kind":"Pod","select":{labels},"fields":["a"]}}}}]"#
                ),
            ] {
                assert_eq!(refused(&with(&text)).0, reasons::INVALID_JSON, "{text}");
            }
        }

        #[test]
        fn a_key_that_stands_twice_in_a_manifest_is_refused_also_in_a_schema() {
            fn twice(document: &impl serde::Serialize) -> String {
                let text = serde_json::to_string(document).expect("it is JSON");
                text.replace(r#""a":"1""#, r#""a":"1","a":"2""#)
            }
            let (schema, map) = (json!({"a": "1"}), BTreeMap::from([("a".to_owned(), "1".to_owned())]));
            let manifest = Manifest {
                config_schema: Some(schema.clone()),
                ..Manifest::new("a", "1", Kind::new("x.io/v1", "X"))
            };
            let refused = parse_manifest(&twice(&manifest), Limits::default());
            assert_eq!(refused.map_err(|failure| failure.reason), Err(reasons::INVALID_JSON.to_owned()));
            let shown = Some(Shown { schema: schema.clone(), ..Shown::default() });
            let document = |schema, paths| Some(Document { schema, paths });
            let views = [
                ViewManifest { shown, ..ViewManifest::default() },
                ViewManifest {
                    document: document(schema.clone(), BTreeMap::new()),
                    ..ViewManifest::default()
                },
                ViewManifest { document: document(json!({}), map.clone()), ..ViewManifest::default() },
                ViewManifest { selector: map, ..ViewManifest::default() },
            ];
            let views = views.map(|view| ViewsManifest { views: vec![view], ..ViewsManifest::default() });
            let config = ViewsManifest { config_schema: Some(schema), ..ViewsManifest::default() };
            for manifest in views.iter().chain([&config]) {
                let refused = parse_views_manifest(&twice(manifest), Limits::default());
                let reason = refused.map_err(|failure| failure.reason);
                assert_eq!(reason, Err(reasons::INVALID_JSON.to_owned()), "{manifest:?}");
            }
        }

        #[test]
        fn a_number_is_a_64_bit_integer_or_a_double_or_refused_with_its_place() {
            let read = |number: &str| {
                let text = with(&format!(r#""status":{{"n":{number}}}"#));
                parse_response(&text, Limits::default()).map(|response| response.status["n"].to_string())
            };
            for number in
                ["9007199254740993", "9223372036854775807", "-9223372036854775808", "254.62859566035834"]
            {
                assert_eq!(read(number), Ok(number.to_owned()));
            }
            assert_eq!(read("18446744073709551615"), Ok("1.8446744073709552e+19".to_owned()));
            let text = with(r#""status":{"n":1e400}"#);
            assert_eq!(refused(&text), (reasons::INVALID_JSON.into(), Some("status.n".into())));
        }

        #[test]
        fn what_a_view_shows_is_one_item_for_each_object_and_nothing_else() {
            let show = |items: &str, objects| {
                let text = with(&format!(r#""items":[{items}]"#));
                weigh_and_parse_show_response(&text, objects, &[], Limits::default()).1
            };
            let refusal = r#"{"failure":{"apiVersion":"guest.pintle.dev/v1","reason":"Odd","message":"m"}}"#;
            assert!(show(&format!(r#"{{"object":{{"spec":{{"a":1}}}}}},{refusal}"#), 2).is_ok());
            let at = |items: &str, objects| {
                let failure = show(items, objects).expect_err("refused");
                (failure.reason, failure.path.unwrap_or_default())
            };
            assert_eq!(at(refusal, 2), (reasons::INVALID_DOCUMENT.into(), "items".into()));
            assert_eq!(at(r#"{"shown":{}}"#, 1).0, reasons::UNKNOWN_FIELD);
            assert_eq!(at(r#"{"object":{"a":1,"a":2}}"#, 1).0, reasons::INVALID_JSON);
        }

        #[test]
        fn what_is_the_hosts_is_not_shown_by_a_guest() {
            let kind = Kind::new("v1", "ConfigMap");
            let objects = ViewManifest::new(kind.clone(), &[], Shown::default()).of_the_host();
            let documents = ViewManifest::of_documents(kind, &[], &[]).of_the_host();
            let at = |of_the_host: &[&str], field: &str| {
                let text = with(&format!(r#""items":[{{"object":{{}}}},{{"object":{{"{field}":"x"}}}}]"#));
                let read = weigh_and_parse_show_response(&text, 2, of_the_host, Limits::default()).1;
                read.err().map(|failure| (failure.reason, failure.path.unwrap_or_default()))
            };
            let refused = |field: &str| {
                Some((reasons::INVALID_DOCUMENT.to_owned(), format!("items[1].object.{field}")))
            };
            for field in ["apiVersion", "kind", "metadata"] {
                assert_eq!((at(objects, field), at(documents, field)), (refused(field), None));
            }
            for field in ["name", "namespace", "resourceVersion", "creationTimestamp", "deletionTimestamp"] {
                assert_eq!((at(objects, field), at(documents, field)), (None, refused(field)));
            }
        }

        #[test]
        fn a_manifest_is_judged_while_it_is_read() {
            let with = |rest: &str| {
                let text = format!(
                    r#"{{"apiVersion":"guest.pintle.dev/v1","name":"a","version":"1","reconciles":{{"apiVersion":"x.io/v1","kind":"X"}}{rest}}}"#
                );
                parse_manifest(&text, Limits::default())
                    .map(drop)
                    .map_err(|failure| (failure.reason, failure.path))
            };
            let too_large = |at: Option<&str>| Err((reasons::MANIFEST_TOO_LARGE.into(), at.map(Into::into)));
            assert_eq!(with(""), Ok(()));
            let child = r#"{"apiVersion":"v1","kind":"ConfigMap"}"#;
            let children = [child; 65].join(",");
            assert_eq!(with(&format!(r#","children":[{children}]"#)), too_large(Some("children")));
            let schema = format!(r#","configSchema":{{"description":"{}"}}"#, "a".repeat(256 << 10));
            assert_eq!(with(&schema), too_large(None));
        }

        #[test]
        fn depth_and_size_are_checked_before_parsing() {
            let deep = with(&format!(r#""status":{{"a":{}1{}}}"#, "[".repeat(70), "]".repeat(70)));
            assert_eq!(refused(&deep).0, reasons::TOO_DEEP);
            let endless = "[".repeat(100_000);
            assert_eq!(refused(&endless).0, reasons::TOO_DEEP);
            let small = Limits::of_bytes(10);
            assert_eq!(
                parse_response(&with(r#""status":{}"#), small).map_err(|f| f.reason),
                Err("ResponseTooLarge".into())
            );
        }

        #[test]
        fn a_document_of_too_many_values_is_refused_at_the_first_too_many_before_any_is_made() {
            let begin = r#"{"apiVersion":"guest.pintle.dev/v1","status":{"a":["#;
            let most = Limits::default().values;
            // The document, its version, its status and the list are four values.
            for (text, values) in [(r#"{"":0}"#, 2), ("0", 1), ("[0]", 2), (r#"{"":{}}"#, 2), (r#""""#, 1)] {
                let count = (most - 4) / values;
                let whole = |count: usize| format!("{begin}{}]}}}}", vec![text; count].join(","));
                assert!(parse_response(&whole(count), Limits::default()).is_ok(), "{text} {count} times");
                let more = if (most - 4) % values == 0 { count } else { count + 1 };
                assert_eq!(
                    refused(&whole(more + 1)),
                    (reasons::TOO_COMPLEX.into(), Some(format!("status.a[{more}]"))),
                    "{text}"
                );
            }
            let of_bytes = |bytes: usize| format!("{begin}{}", r#"{"":0},"#.repeat(bytes / 7 - 20));
            assert_eq!(refused(&of_bytes(1 << 20)).0, reasons::TOO_COMPLEX);
            let manifest = of_bytes(manifest_limits::BYTES);
            for parsed in [
                parse_manifest(&manifest, Limits::default()).map(drop),
                parse_failure(&manifest, Limits::default()).map(drop),
            ] {
                assert_eq!(parsed.map_err(|failure| failure.reason), Err(reasons::TOO_COMPLEX.to_owned()));
            }
        }

        #[test]
        fn a_document_that_is_to_take_more_memory_than_it_may_is_left_as_it_is() {
            let text = with(r#""status":{"a":{"b":[1,2,3]}}"#);
            let weight = Weight::of(&text, Limits::default()).expect("small");
            let limits = |parsed_bytes| Limits { parsed_bytes, ..Limits::default() };
            assert!(parse_response(&text, limits(weight.parsed_bytes())).is_ok());
            let failure = parse_response(&text, limits(weight.parsed_bytes() - 1)).expect_err("too much");
            assert!(failure.retry && failure.reason == reasons::BEYOND_GRANT, "{failure}");
        }

        #[test]
        fn what_is_wrong_is_said_in_few_words_however_long_it_is() {
            let long = "k".repeat(1 << 19);
            for text in [
                with(&format!(r#""{long}":0"#)),
                with(&format!(r#""events":[{{"type":"{long}","reason":"A","message":"b"}}]"#)),
                with(&format!(r#""finalized":"{long}""#)),
                with(&format!(r#""status":{{"{long}":{{"a":1,"a":2}}}}"#)),
            ] {
                let failure = parse_response(&text, Limits::default()).expect_err("refused");
                assert!(failure.message.len() < 1100, "{} bytes", failure.message.len());
                assert!(failure.path.as_ref().is_none_or(|path| path.len() <= 256));
            }
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
