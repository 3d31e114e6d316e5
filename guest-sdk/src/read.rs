//! Reads JSON values into a guest's types, and names the field that does not fit.
//!
//! Deserialising straight from text into types is a little faster, but it repeats the parser's code for every type: an ordinary guest
//! becomes twice as large, and its errors have a position instead of a path. Here, text is parsed once into a value, by code that the guest
//! needs anyway for the children, and types are read from the value.

use std::fmt::{self, Display, Write};

use serde::{
    Deserializer,
    de::{
        self, DeserializeOwned, DeserializeSeed, Expected, IntoDeserializer, MapAccess, SeqAccess,
        Unexpected, Visitor,
    },
    forward_to_deserialize_any,
};
use serde_json::Value;

/// Reads a value.
///
/// # Errors
/// What does not fit the type.
pub(crate) fn read<T: DeserializeOwned>(value: Value) -> Result<T, Misfit> {
    T::deserialize(Reader(value))
}

/// A value that does not fit the type that it was read into. It is boxed, because every step of reading passes it on: a pointer makes a
/// guest a third smaller.
#[derive(Debug)]
pub(crate) struct Misfit(Box<Inner>);

#[derive(Debug)]
struct Inner {
    message: String,
    /// The path to the value, with the innermost step first.
    steps: Vec<Step>,
}

#[derive(Debug)]
enum Step {
    Field(String),
    Item(usize),
}

impl Misfit {
    /// What is wrong with the field.
    pub(crate) fn message(&self) -> &str {
        &self.0.message
    }

    /// The path of the field: `spec.ports[1].number`.
    pub(crate) fn path(&self) -> String {
        let mut path = String::new();
        for step in self.0.steps.iter().rev() {
            // Writing into a string cannot fail.
            let _ = match step {
                Step::Item(index) => write!(path, "[{index}]"),
                Step::Field(name)
                    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') =>
                {
                    write!(path, "[\"{name}\"]")
                }
                Step::Field(name) => write!(path, "{}{name}", if path.is_empty() { "" } else { "." }),
            };
        }
        path
    }

    fn within(mut self, step: Step) -> Self {
        self.0.steps.push(step);
        self
    }
}

impl Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Misfit {}

impl de::Error for Misfit {
    fn custom<T: Display>(message: T) -> Self {
        Self(Box::new(Inner { message: message.to_string(), steps: Vec::new() }))
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::custom(format_args!("must be {expected}, not {}", Found(found)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn unknown_variant(found: &str, expected: &'static [&'static str]) -> Self {
        Self::custom(format_args!("must be one of {}, not `{found}`", Names(expected)))
    }

    fn unknown_field(name: &str, expected: &'static [&'static str]) -> Self {
        Self::custom(format_args!("is no known field; there are {}", Names(expected)))
            .within(Step::Field(name.to_owned()))
    }

    fn missing_field(name: &'static str) -> Self {
        Self::custom("is required").within(Step::Field(name.to_owned()))
    }
}

/// Names in a row, for a message.
struct Names(&'static [&'static str]);

impl Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        for (index, name) in self.0.iter().enumerate() {
            f.write_str(if index == 0 { "" } else { ", " })?;
            f.write_str(name)?;
        }
        Ok(())
    }
}

/// What was found, for a message. Numbers with a fraction are not printed: that would cost every guest ten kilobytes.
struct Found<'a>(Unexpected<'a>);

impl Display for Found<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Unexpected::Bool(value) => write!(f, "{value}"),
            Unexpected::Unsigned(value) => write!(f, "{value}"),
            Unexpected::Signed(value) => write!(f, "{value}"),
            Unexpected::Str(text) => write!(f, "`{text}`"),
            Unexpected::Float(_) => f.write_str("a number with a fraction"),
            Unexpected::Unit | Unexpected::Option => f.write_str("null"),
            Unexpected::Seq => f.write_str("a list"),
            Unexpected::Map => f.write_str("an object"),
            Unexpected::Other(other) => f.write_str(other),
            _ => f.write_str("something else"),
        }
    }
}

struct Reader(Value);

impl<'de> Deserializer<'de> for Reader {
    type Error = Misfit;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(value),
            Value::String(text) => visitor.visit_string(text),
            Value::Array(items) => visitor.visit_seq(Items { rest: items.into_iter(), index: 0 }),
            Value::Object(fields) => visitor.visit_map(Fields { rest: fields.into_iter(), current: None }),
            Value::Number(number) => visit_number(&number, visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            value => visitor.visit_some(Reader(value)),
        }
    }

    /// A struct is read only from an object. (Formats without names also read it from a list; leaving that out halves the code.)
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        self.deserialize_map(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.0 {
            Value::Object(fields) => visitor.visit_map(Fields { rest: fields.into_iter(), current: None }),
            other => Err(de::Error::invalid_type(unexpected(&other), &"an object")),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        match self.0 {
            Value::Object(fields) => {
                let fields = Fields { rest: fields.into_iter(), current: None };
                de::value::MapAccessDeserializer::new(fields).deserialize_enum(name, variants, visitor)
            }
            Value::String(text) => {
                IntoDeserializer::<Misfit>::into_deserializer(text).deserialize_enum(name, variants, visitor)
            }
            other => Err(de::Error::invalid_type(unexpected(&other), &"a string")),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.0 {
            Value::Array(items) => visitor.visit_seq(Items { rest: items.into_iter(), index: 0 }),
            other => Err(de::Error::invalid_type(unexpected(&other), &"a list")),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.0 {
            Value::String(text) => visitor.visit_string(text),
            other => Err(de::Error::invalid_type(unexpected(&other), &visitor)),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        self.deserialize_string(visitor)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.0 {
            Value::Bool(value) => visitor.visit_bool(value),
            other => Err(de::Error::invalid_type(unexpected(&other), &"a boolean")),
        }
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match &self.0 {
            Value::Number(number) => visit_number(number, visitor),
            other => Err(de::Error::invalid_type(unexpected(other), &visitor)),
        }
    }

    /// A double takes an integer only if that is the number which it then is: 2^53 + 1 would become 2^53 without a word.
    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match &self.0 {
            Value::Number(number) if is_double(number) => visit_number(number, visitor),
            Value::Number(number) => {
                Err(de::Error::custom(format_args!("must be a number that a double can hold, not {number}")))
            }
            other => Err(de::Error::invalid_type(unexpected(other), &visitor)),
        }
    }

    fn deserialize_i32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        self.deserialize_i64(visitor)
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        self.deserialize_i64(visitor)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        self.deserialize_i64(visitor)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        self.deserialize_i64(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        i8 i16 i128 u8 u128 f32 char bytes byte_buf unit unit_struct tuple tuple_struct identifier
    }
}

fn visit_number<'de, V: Visitor<'de>>(number: &serde_json::Number, visitor: V) -> Result<V::Value, Misfit> {
    match (number.as_u64(), number.as_i64()) {
        (Some(number), _) => visitor.visit_u64(number),
        (None, Some(number)) => visitor.visit_i64(number),
        // Every number that is no integer is a double.
        (None, None) => visitor.visit_f64(number.as_f64().unwrap_or_default()),
    }
}

/// Whether a number stays the same as a double. One that is no 64-bit integer is a double already.
fn is_double(number: &serde_json::Number) -> bool {
    let Some(integer) = number.as_i64().map(i64::unsigned_abs) else { return true };
    let double = integer as f64;
    // An API server writes a large double as its shortest digits and zeros: 2^60 is 1152921504606847000, which is no double, but means one.
    double as u64 == integer
        || serde_json::Number::from_f64(double)
            .is_some_and(|double| digits(&double.to_string()).eq(digits(&integer.to_string())))
}

/// The digits of a number without its exponent and the zeros at its end.
fn digits(number: &str) -> impl Iterator<Item = u8> + use<'_> {
    let mantissa = number.split('e').next().unwrap_or_default();
    let whole = mantissa.strip_suffix(".0").unwrap_or(mantissa);
    whole.trim_end_matches('0').bytes().filter(|byte| byte.is_ascii_digit())
}

fn unexpected(value: &Value) -> Unexpected<'_> {
    match value {
        Value::Null => Unexpected::Unit,
        Value::Bool(value) => Unexpected::Bool(*value),
        Value::Number(_) => Unexpected::Other("a number"),
        Value::String(text) => Unexpected::Str(text),
        Value::Array(_) => Unexpected::Seq,
        Value::Object(_) => Unexpected::Map,
    }
}

struct Items {
    rest: std::vec::IntoIter<Value>,
    index: usize,
}

impl<'de> SeqAccess<'de> for Items {
    type Error = Misfit;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Misfit> {
        let Some(item) = self.rest.next() else { return Ok(None) };
        let index = self.index;
        self.index += 1;
        seed.deserialize(Reader(item)).map(Some).map_err(|misfit| misfit.within(Step::Item(index)))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

struct Fields {
    rest: serde_json::map::IntoIter,
    /// The field whose name was read, but not its value yet.
    current: Option<(String, Value)>,
}

impl<'de> MapAccess<'de> for Fields {
    type Error = Misfit;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Misfit> {
        let Some((name, value)) = self.rest.next() else { return Ok(None) };
        let key = seed.deserialize(name.as_str().into_deserializer())?;
        self.current = Some((name, value));
        Ok(Some(key))
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Misfit> {
        let Some((name, value)) = self.current.take() else {
            return Err(de::Error::custom("a value without a name"));
        };
        seed.deserialize(Reader(value)).map_err(|misfit| misfit.within(Step::Field(name)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::json;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    struct Tree {
        name: String,
        limit: Option<u8>,
        #[serde(default)]
        labels: BTreeMap<String, i32>,
        #[serde(default)]
        share: f64,
        #[serde(default)]
        growth: Growth,
        #[serde(default)]
        branches: Vec<Tree>,
    }

    #[derive(Debug, Default, PartialEq, serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    enum Growth {
        #[default]
        None,
        Slow(u8),
        Fast {
            until: u8,
        },
    }

    fn misfit(value: Value) -> (String, String) {
        let misfit = read::<Tree>(value).unwrap_err();
        (misfit.path(), misfit.message().to_owned())
    }

    #[test]
    fn what_fits_is_read_as_serde_json_reads_it() {
        for value in [
            json!({"name": "a"}),
            json!({"name": "a", "limit": null, "share": 1, "growth": "none"}),
            json!({"name": "a", "limit": 7, "share": 0.5, "labels": {"x/y": -1}, "growth": {"slow": 3}}),
            json!({"name": "a", "growth": {"fast": {"until": 9}}, "branches": [{"name": "b"}, {"name": "c"}]}),
        ] {
            assert_eq!(read::<Tree>(value.clone()).unwrap(), serde_json::from_value(value).unwrap());
        }
        let value = json!([1, -1, 0.5, "a", null, true, {"a": []}]);
        assert_eq!(read::<Value>(value.clone()).unwrap(), value);
    }

    #[test]
    fn the_field_that_does_not_fit_is_named() {
        let says = |value, path: &str, message: &str| {
            assert_eq!(misfit(value), (path.to_owned(), message.to_owned()))
        };
        says(json!({"name": "a", "limit": 256}), "limit", "must be u8, not 256");
        says(json!({"name": "a", "limit": 1.5}), "limit", "must be u8, not a number with a fraction");
        says(json!({"name": ["a"]}), "name", "must be a string, not a list");
        says(json!({"name": "a", "branches": {}}), "branches", "must be a list, not an object");
        says(
            json!({"name": "a", "branches": [{"name": "b"}, 4]}),
            "branches[1]",
            "must be an object, not a number",
        );
        says(
            json!({"name": "a", "branches": [{"name": "b", "branches": [{"name": null}]}]}),
            "branches[0].branches[0].name",
            "must be a string, not null",
        );
        says(
            json!({"name": "a", "labels": {"app.kubernetes.io/name": "x"}}),
            r#"labels["app.kubernetes.io/name"]"#,
            "must be i32, not `x`",
        );
        says(json!({"name": "a", "growth": "wild"}), "growth", "must be one of none, slow, fast, not `wild`");
        says(
            json!({"name": "a", "growth": {"fast": {"until": -1}}}),
            "growth.fast.until",
            "must be u8, not -1",
        );
    }

    #[test]
    fn an_integer_is_read_as_a_double_only_if_it_stays_the_same() {
        let share = |number: &str| {
            let value = serde_json::from_str(&format!(r#"{{"name": "a", "share": {number}}}"#)).unwrap();
            read::<Tree>(value)
                .map(|tree| tree.share)
                .map_err(|misfit| (misfit.path(), misfit.message().to_owned()))
        };
        for (number, double) in [
            ("1", 1.0),
            ("-9007199254740992", -9_007_199_254_740_992.0),
            ("9223372036854774784", 9_223_372_036_854_774_784.0),
            ("-9223372036854775808", -9_223_372_036_854_775_808.0),
            ("100000000000000000", 1e17),
            ("1152921504606847000", 1_152_921_504_606_846_976.0),
            ("18446744073709551615", 18_446_744_073_709_551_616.0),
            ("254.62859566035834", 254.628_595_660_358_34),
        ] {
            assert_eq!(share(number), Ok(double), "{number}");
        }
        for number in ["9007199254740993", "-9007199254740993", "9223372036854775807", "1152921504606847001"]
        {
            let message = format!("must be a number that a double can hold, not {number}");
            assert_eq!(share(number), Err(("share".to_owned(), message)));
        }
        assert_eq!(misfit(json!({"name": "a", "share": "1"})).1, "must be f64, not `1`");
    }

    #[test]
    fn a_field_that_is_missing_or_unknown_is_named_where_it_should_be() {
        assert_eq!(
            misfit(json!({"name": "a", "branches": [{}]})),
            ("branches[0].name".to_owned(), "is required".to_owned())
        );
        let (path, message) = misfit(json!({"name": "a", "limits": 3}));
        assert_eq!(
            (path.as_str(), message.as_str()),
            ("limits", "is no known field; there are name, limit, labels, share, growth, branches")
        );
    }
}
