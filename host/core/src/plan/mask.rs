//! [`Mask`]: other values in the place of those of Secrets.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::Value;

use super::is_secret;
use crate::{desired::SealingKey, object};

/// Values that are shorter are not looked for in other texts: too much would look like them.
const TEXT_BYTES_MIN: usize = 8;

/// How many values are remembered, to be found in other texts.
const SEEN_MAX: usize = 10_000;

/// Letters that are taken for a value that is text, so that a guest that reads it as text still can.
const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// Puts other values in the place of those of Secrets: valid base64 of other bytes, as many, and the same for the same value. What stands
/// for a value depends on a key that is made for one output; several masks of one key say the same.
#[derive(Debug)]
pub struct Mask {
    key: SealingKey,
    /// What was replaced, and by what.
    seen: Mutex<BTreeMap<String, String>>,
}

impl Mask {
    /// A mask with this key, which must be random.
    pub fn new(key: [u8; 32]) -> Self {
        Self { key: SealingKey::new(key), seen: Mutex::default() }
    }

    /// Whether anything was replaced.
    pub fn is_used(&self) -> bool {
        !self.seen.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// An object as it may be shown: a Secret with other values, anything else as it is.
    pub fn object(&self, object: &Value) -> Value {
        let mut object = object.clone();
        self.replace(&mut object);
        object
    }

    /// Replaces the values of an object, if it is a Secret.
    pub fn replace(&self, object: &mut Value) {
        if !is_secret(&object::reference(object)) {
            return;
        }
        if let Some(data) = object.get_mut("data").and_then(Value::as_object_mut) {
            for value in data.values_mut() {
                *value = value.as_str().map_or(Value::Null, |text| self.encoded(text).into());
            }
        }
        if let Some(data) = object.get_mut("stringData").and_then(Value::as_object_mut) {
            for value in data.values_mut() {
                *value = value.as_str().map_or(Value::Null, |text| self.text(text).into());
            }
        }
    }

    /// Replaces what was replaced before wherever it is a part of a text, for instance in a ConfigMap that a guest makes of a Secret.
    pub fn replace_copies(&self, value: &mut Value) {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if !seen.is_empty() {
            replace_copies(value, &seen);
        }
    }

    fn encoded(&self, value: &str) -> String {
        let Ok(bytes) = BASE64_STANDARD.decode(value) else { return self.text(value) };
        let replaced = self.bytes(&bytes);
        let encoded = BASE64_STANDARD.encode(&replaced);
        self.saw(value, &encoded);
        if let (Ok(plain), Ok(replaced)) = (String::from_utf8(bytes), String::from_utf8(replaced)) {
            self.saw(&plain, &replaced);
        }
        encoded
    }

    fn text(&self, value: &str) -> String {
        let replaced = String::from_utf8_lossy(&self.letters(value.as_bytes())).into_owned();
        self.saw(value, &replaced);
        replaced
    }

    fn saw(&self, value: &str, replaced: &str) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() < SEEN_MAX && value != replaced {
            seen.insert(value.to_owned(), replaced.to_owned());
        }
    }

    /// Other bytes, as many.
    fn bytes(&self, value: &[u8]) -> Vec<u8> {
        match std::str::from_utf8(value) {
            Ok(_) => self.letters(value),
            Err(_) => self.other(value, |byte| byte),
        }
    }

    fn letters(&self, value: &[u8]) -> Vec<u8> {
        self.other(value, |byte| LETTERS.get(usize::from(byte) % LETTERS.len()).copied().unwrap_or(b'a'))
    }

    fn other(&self, value: &[u8], as_what: impl Fn(u8) -> u8) -> Vec<u8> {
        let mut made = Vec::with_capacity(value.len());
        let mut block: u64 = 0;
        loop {
            while made.len() < value.len() {
                let text = [&block.to_le_bytes()[..], value].concat();
                let left = value.len() - made.len();
                made.extend(self.key.seal(&text).into_iter().map(&as_what).take(left));
                block += 1;
            }
            // Of a byte or two there are few others.
            if made != value || value.is_empty() {
                return made;
            }
            made.clear();
        }
    }
}

fn replace_copies(value: &mut Value, seen: &BTreeMap<String, String>) {
    match value {
        Value::String(text) => {
            for (known, replaced) in seen.iter().filter(|(known, _)| known.len() >= TEXT_BYTES_MIN) {
                if text.contains(known.as_str()) {
                    *text = text.replace(known.as_str(), replaced);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace_copies(item, seen)),
        Value::Object(fields) => fields.values_mut().for_each(|field| replace_copies(field, seen)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn secret(values: &[(&str, &str)]) -> Value {
        let data: serde_json::Map<String, Value> = values
            .iter()
            .map(|(key, value)| ((*key).to_owned(), BASE64_STANDARD.encode(value).into()))
            .collect();
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": data})
    }

    fn plain(object: &Value, key: &str) -> Vec<u8> {
        BASE64_STANDARD.decode(object["data"][key].as_str().unwrap()).unwrap()
    }

    #[test]
    fn a_value_becomes_another_of_its_length_and_the_same_one_the_same() {
        let mask = Mask::new([7; 32]);
        let before = secret(&[
            ("a", "correct horse"),
            ("b", "correct horse"),
            ("c", "x"),
            ("d", ""),
            ("e", "battery stapl"),
        ]);
        let after = mask.object(&before);
        assert!(mask.is_used());
        for (key, length) in [("a", 13), ("b", 13), ("c", 1), ("d", 0), ("e", 13)] {
            assert_eq!(plain(&after, key).len(), length, "{key}");
            assert!(length == 0 || after["data"][key] != before["data"][key], "{key}");
        }
        assert_eq!(after["data"]["a"], after["data"]["b"]);
        assert_ne!(after["data"]["a"], after["data"]["e"]);
        assert_eq!(mask.object(&before), after, "within one output");
        assert_ne!(Mask::new([8; 32]).object(&before), after, "and not in another");
        assert!(String::from_utf8(plain(&after, "a")).is_ok(), "text stays text");
    }

    #[test]
    fn bytes_that_are_no_text_become_other_bytes() {
        let mask = Mask::new([7; 32]);
        let before =
            json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": BASE64_STANDARD.encode([0xff; 100])}});
        let after = mask.object(&before);
        assert_eq!(plain(&after, "a").len(), 100);
        assert_ne!(plain(&after, "a"), [0xff; 100]);
    }

    #[test]
    fn a_copy_in_another_text_is_replaced_too_and_other_objects_stay() {
        let mask = Mask::new([7; 32]);
        let shown = mask.object(&secret(&[("password", "correct horse"), ("port", "80")]));
        let mut copy =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"url": "db://me:correct horse@db:80"}});
        assert_eq!(mask.object(&copy), copy, "it is no Secret");
        mask.replace_copies(&mut copy);
        let replaced = String::from_utf8(plain(&shown, "password")).unwrap();
        assert_eq!(copy["data"]["url"], format!("db://me:{replaced}@db:80"));
    }
}
