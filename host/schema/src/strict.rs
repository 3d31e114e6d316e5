//! Strict reading: fields that a client wrote twice, or that nobody knows (`fieldValidation` of a write).

use std::{collections::BTreeSet, fmt};

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

pub use pintle_core::view::query::FieldValidation;

/// Below it, each whole number has a float of its own.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// A JSON text as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// The value. Of a field that is there twice, the last value counts. `2.0` is 2, as the API server shows it, and what is no 64-bit
    /// integer is a double.
    pub value: Value,
    /// The paths of the fields that are there more than once, in the order of the text: `spec.replicas`.
    pub duplicates: Vec<String>,
}

/// Why a text is not read.
#[derive(Debug)]
pub struct Unreadable {
    /// The field at which reading ended: `spec.replicas`. Empty outside of all fields.
    pub path: String,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = if self.path.is_empty() { "" } else { ": " };
        write!(f, "{}{separator}{}", self.path, self.message)
    }
}

impl std::error::Error for Unreadable {}

/// Reads a JSON text.
///
/// # Errors
/// The text is no JSON, nested more than 128 levels deep, or has a number that no double is.
pub fn parse(text: &[u8]) -> Result<Parsed, Unreadable> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let parsed = read(&mut reader)?;
    let end = reader.end();
    end.map_err(|error| Unreadable { path: String::new(), message: error.to_string() })?;
    Ok(parsed)
}

/// Reads a value of any format.
///
/// # Errors
/// As [`parse`].
pub fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Parsed, Unreadable> {
    let (mut path, mut duplicates) = (String::new(), Vec::new());
    let read = Reader { path: &mut path, duplicates: &mut duplicates }.deserialize(deserializer);
    match read {
        Ok(value) => Ok(Parsed { value, duplicates }),
        Err(error) => Err(Unreadable { path, message: error.to_string() }),
    }
}

struct Reader<'a> {
    path: &'a mut String,
    duplicates: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        i64::try_from(value).map_or_else(|_| self.visit_f64(value as f64), |value| Ok(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(match value.fract() == 0.0 && value.abs() < WHOLE_MAX {
            true => (value as i64).into(),
            false => {
                let number = Number::from_f64(value);
                number.ok_or_else(|| E::custom("number out of range"))?.into()
            }
        })
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut read = Vec::new();
        let length = self.path.len();
        loop {
            self.path.push_str(&format!("[{}]", read.len()));
            let item = items.next_element_seed(Reader { path: self.path, duplicates: self.duplicates });
            // After an error it says where that is.
            let item = item?;
            self.path.truncate(length);
            match item {
                Some(item) => read.push(item),
                None => return Ok(Value::Array(read)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut read = Map::new();
        let mut told = BTreeSet::new();
        let length = self.path.len();
        while let Some(name) = fields.next_key::<String>()? {
            if length > 0 {
                self.path.push('.');
            }
            self.path.push_str(&name);
            if read.contains_key(&name) && told.insert(name.clone()) {
                self.duplicates.push(self.path.clone());
            }
            let value = fields.next_value_seed(Reader { path: self.path, duplicates: self.duplicates });
            let value = value?;
            self.path.truncate(length);
            read.insert(name, value);
        }
        Ok(Value::Object(read))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_that_is_written_twice_is_named_once_and_its_last_value_counts() {
        let text =
            br#"{"spec": {"a": 1, "a": 2, "a": 3, "b": [{"c": null}, {"c": 1.5, "c": "x"}]}, "spec2": 2.0}"#;
        let parsed = parse(text).unwrap();
        assert_eq!(parsed.value, json!({"spec": {"a": 3, "b": [{"c": null}, {"c": "x"}]}, "spec2": 2}));
        assert_eq!(parsed.duplicates, ["spec.a", "spec.b[1].c"]);
        assert!(parse(b"{} x").is_err() && parse(b"{\"a\":").is_err());
    }

    #[test]
    fn a_number_is_a_64_bit_integer_or_a_double_or_refused_with_its_field() {
        for number in
            ["9007199254740993", "9223372036854775807", "-9223372036854775808", "254.62859566035834"]
        {
            assert_eq!(parse(number.as_bytes()).unwrap().value.to_string(), number);
        }
        let double = parse(b"18446744073709551615").unwrap().value;
        assert_eq!(double, json!(18_446_744_073_709_551_615_f64));
        let refused = parse(br#"{"a": 1, "spec": {"list": [1, {"weight": 1e400}]}}"#).unwrap_err();
        assert_eq!(refused.path, "spec.list[1].weight");
        assert!(refused.to_string().starts_with("spec.list[1].weight: number out of range"), "{refused}");
        assert_eq!(parse(br#"{"a": {"b": 1}, }"#).unwrap_err().path, "");
    }

    #[test]
    fn a_client_decides_what_becomes_of_fields_that_nobody_knows() {
        let (twice, unknown) = (["spec.a".to_owned()], ["spec.b".to_owned(), "x".to_owned()]);
        let judge = |parameter: &str| FieldValidation::of(parameter).unwrap().judge(&twice, &unknown);
        let told = [r#"duplicate field "spec.a""#, r#"unknown field "spec.b""#, r#"unknown field "x""#];
        assert_eq!(judge("Ignore"), Ok(vec![]));
        assert_eq!(judge(""), Ok(told.map(Into::into).to_vec()));
        assert_eq!(judge("Strict"), Err(format!("strict decoding error: {}", told.join(", "))));
        assert_eq!(FieldValidation::Strict.judge(&[], &[]), Ok(vec![]));
        assert_eq!(FieldValidation::of("strict"), None);
    }
}
