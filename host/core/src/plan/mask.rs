//! [`Mask`]: something else in the place of what nobody is to read.

mod known;

use std::sync::atomic::{AtomicBool, Ordering};

use base64::{
    Engine as _,
    engine::GeneralPurpose,
    prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE, BASE64_URL_SAFE_NO_PAD},
};
use pintle_wit::Kind;
use serde_json::{Map, Number, Value};

use self::known::{BYTES_MIN, Known};
use super::{Marks, is_secret};
use crate::{
    desired::SealingKey,
    object::{self, texts},
};

/// Letters in the place of a text, which any guest and most rules of a schema take. They are base64 too.
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Fields that name something. What stands there is no secret, and what refers to it must find it.
const NAMES: [&str; 6] = ["name", "namespace", "generateName", "apiVersion", "kind", "uid"];

/// What stands in the place of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instead {
    /// A word: for people.
    Word,
    /// Another value, as long and as valid: for guests. Base64 becomes base64.
    Value,
}

/// Something else in the place of what nobody is to read: the values of Secrets, and fields that are [marked](Marks).
///
/// Whatever of that is at least 8 bytes long is replaced wherever it stands in what goes out, also as a part of a longer text and as
/// base64, and not in names and keys. Equal values have equal replacements within one output: they come of a random key, which is kept
/// nowhere. The length of another value is that of the value, and nothing else of it remains.
#[derive(Debug)]
pub struct Mask {
    key: SealingKey,
    instead: Instead,
    marks: Marks,
    known: Known,
    used: AtomicBool,
}

impl Mask {
    /// A mask with this key, which must be random, for what nobody is to read in these objects.
    pub fn new<'a>(
        key: [u8; 32],
        instead: Instead,
        marks: Marks,
        objects: impl IntoIterator<Item = &'a Value>,
    ) -> Self {
        let known = Known::default();
        let mut mask =
            Self { key: SealingKey::new(key), instead, marks, known, used: AtomicBool::new(false) };
        let objects: Vec<&Value> = objects.into_iter().collect();
        // First what stands in Secrets, where it is known what is base64.
        for object in objects.iter().filter(|object| is_secret(&object::kind(object))) {
            for text in entries(object, "data") {
                match BASE64_STANDARD.decode(text) {
                    Ok(bytes) => mask.learn(&bytes),
                    Err(_) => mask.learn(text.as_bytes()),
                }
            }
            entries(object, "stringData").for_each(|text| mask.learn(text.as_bytes()));
        }
        let mut marked = Vec::new();
        for object in objects {
            let found = mask.marks.values(&object::kind(object), object);
            found.into_iter().for_each(|value| texts(value, &mut marked));
        }
        marked.iter().for_each(|text| mask.learn(text.as_bytes()));
        mask
    }

    /// Whether anything was replaced.
    pub fn is_used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    /// Whether fields of a kind are replaced whatever stands there.
    pub(super) fn covers(&self, kind: &Kind) -> bool {
        is_secret(kind) || self.marks.are_on(kind)
    }

    /// An object as it may be shown.
    pub fn object(&self, object: &Value) -> Value {
        let mut object = object.clone();
        self.replace(&mut object);
        object
    }

    /// Replaces in an object what nobody is to read. An object is given once: what was replaced would be replaced again.
    pub fn replace(&self, object: &mut Value) {
        let kind = object::kind(object);
        if is_secret(&kind) {
            self.replace_entries(object, "data", &|text| self.encoded(text));
            self.replace_entries(object, "stringData", &|text| self.text(text));
        }
        self.marks.change(&kind, object, &|value| self.replace_marked(value));
        self.replace_copies(object);
    }

    /// The same for a field of an object of a kind: its status, for instance.
    pub fn replace_in(&self, kind: &Kind, field: &str, value: &mut Value) {
        let mut object = Value::Object(Map::from_iter([(field.to_owned(), value.take())]));
        self.marks.change(kind, &mut object, &|value| self.replace_marked(value));
        *value = object.get_mut(field).map(Value::take).unwrap_or_default();
        self.replace_copies(value);
    }

    /// Replaces what nobody is to read wherever it is a part of a text, for instance in a ConfigMap that a guest makes of a Secret. What was
    /// replaced stays.
    pub fn replace_copies(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.replace_in_text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.replace_copies(item)),
            Value::Object(fields) => {
                let named = |key: &str, field: &Value| NAMES.contains(&key) && field.is_string();
                let fields = fields.iter_mut().filter(|(key, field)| !named(key, field));
                fields.for_each(|(_, field)| self.replace_copies(field));
            }
            _ => {}
        }
    }

    /// The same for one text.
    pub fn replace_in_text(&self, text: &mut String) {
        if let Some(replaced) = self.known.replaced(text) {
            self.use_it();
            *text = replaced;
        }
    }

    fn use_it(&self) {
        self.used.store(true, Ordering::Relaxed);
    }

    fn replace_entries(&self, object: &mut Value, field: &str, instead: &dyn Fn(&str) -> String) {
        for value in
            object.get_mut(field).and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut)
        {
            self.use_it();
            *value = value.as_str().map_or(Value::Null, |text| instead(text).into());
        }
    }

    fn replace_marked(&self, value: &mut Value) {
        match (&mut *value, self.instead) {
            (Value::Null, _) => return,
            (Value::String(text), _) => *text = self.text(text),
            (other, Instead::Word) => *value = self.word(other.to_string().as_bytes()).into(),
            (Value::Number(number), Instead::Value) => *number = self.number(number),
            (Value::Bool(_), Instead::Value) => return,
            (Value::Array(items), _) => items.iter_mut().for_each(|item| self.replace_marked(item)),
            (Value::Object(fields), _) => fields.values_mut().for_each(|field| self.replace_marked(field)),
        }
        self.use_it();
    }

    /// What stands in the place of a text.
    fn text(&self, text: &str) -> String {
        match (self.known.instead_of(text), self.instead) {
            (Some(instead), _) => instead.to_owned(),
            (None, Instead::Word) => self.word(text.as_bytes()),
            (None, Instead::Value) => String::from_utf8_lossy(&self.other(text.as_bytes())).into_owned(),
        }
    }

    /// What stands in the place of base64.
    fn encoded(&self, text: &str) -> String {
        let Ok(bytes) = BASE64_STANDARD.decode(text) else { return self.text(text) };
        match self.instead {
            Instead::Word => self.word(&bytes),
            Instead::Value => BASE64_STANDARD.encode(self.other(&bytes)),
        }
    }

    /// Looks for a value from now on: as it is, in a text of JSON, and as base64, also within that of something longer.
    fn learn(&mut self, value: &[u8]) {
        if value.len() < BYTES_MIN {
            return;
        }
        let other = self.other(value);
        let word = (self.instead == Instead::Word).then(|| self.word(value));
        let mut add = |text: &str, other: &str| self.known.add(text, word.as_deref().unwrap_or(other));
        if let (Ok(text), Ok(other)) = (std::str::from_utf8(value), std::str::from_utf8(&other)) {
            add(text, other);
            add(&escaped(text), &escaped(other));
        }
        for (whole, part) in
            [(BASE64_STANDARD, BASE64_STANDARD_NO_PAD), (BASE64_URL_SAFE, BASE64_URL_SAFE_NO_PAD)]
        {
            add(&whole.encode(value), &whole.encode(&other));
            for before in 0..3 {
                add(&within(&part, before, value), &within(&part, before, &other));
            }
        }
        // What is base64 already is looked for as what it stands for, too.
        if let Some(inner) = base64_text(value) {
            self.learn(&inner);
        }
    }

    /// A word in the place of a value. It does not matter whether the value is base64 already.
    fn word(&self, value: &[u8]) -> String {
        if value.is_empty() {
            return String::new();
        }
        let sealed = match base64_text(value) {
            Some(inner) => self.key.seal(&inner),
            None => self.key.seal(value),
        };
        let letters: String = sealed.iter().take(3).map(|byte| format!("{byte:02x}")).collect();
        format!("<hidden {letters}>")
    }

    /// Another value, as long: base64 for base64, letters for text, and bytes for anything else.
    fn other(&self, value: &[u8]) -> Vec<u8> {
        if let Some(inner) = base64_text(value) {
            return BASE64_STANDARD.encode(self.derived(&inner)).into_bytes();
        }
        self.derived(value)
    }

    fn derived(&self, value: &[u8]) -> Vec<u8> {
        let letter = |byte: u8| LETTERS.get(usize::from(byte) % LETTERS.len()).copied().unwrap_or(b'a');
        match std::str::from_utf8(value) {
            Ok(_) => self.filled(value, letter),
            Err(_) => self.filled(value, |byte| byte),
        }
    }

    /// A whole number with as many digits.
    fn number(&self, number: &Number) -> Number {
        let text = number.to_string();
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_digit).take(15).collect();
        let other = self.filled(&digits, |byte| b'1' + byte % 9);
        String::from_utf8_lossy(&other).parse::<u64>().map_or_else(|_| 0.into(), Number::from)
    }

    fn filled(&self, value: &[u8], as_what: impl Fn(u8) -> u8) -> Vec<u8> {
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

/// The texts of a Secret.
fn entries<'a>(secret: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    let entries = secret.get(field).and_then(Value::as_object);
    entries.into_iter().flat_map(Map::values).filter_map(Value::as_str)
}

/// A text as it stands in a text of JSON.
fn escaped(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or_default().to_owned()
}

/// What a value stands for that is base64 itself, as far as that can be told: many a word could be base64 too.
fn base64_text(value: &[u8]) -> Option<Vec<u8>> {
    let decoded = BASE64_STANDARD.decode(value).ok().filter(|decoded| !decoded.is_empty())?;
    let is_text =
        |bytes: &[u8]| std::str::from_utf8(bytes).is_ok_and(|text| !text.contains(char::is_control));
    let is_marked = value.iter().any(|byte| matches!(byte, b'+' | b'/' | b'='));
    (is_marked || is_text(&decoded)).then_some(decoded)
}

/// What the base64 of something longer has of a value, wherever its neighbours make no difference: so many bytes before it are in the same
/// group of three.
fn within(engine: &GeneralPurpose, before: usize, value: &[u8]) -> String {
    let text = engine.encode([&[0; 2][..before.min(2)], value].concat());
    let (first, last) = ((before * 8).div_ceil(6), (before + value.len()) * 8 / 6);
    text.get(first..last).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const KEY: [u8; 32] = [7; 32];

    fn secret(values: &[(&str, &str)]) -> Value {
        let data: Map<String, Value> = values
            .iter()
            .map(|(key, value)| ((*key).to_owned(), BASE64_STANDARD.encode(value).into()))
            .collect();
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": data})
    }

    fn mask(instead: Instead, objects: &[&Value]) -> Mask {
        Mask::new(KEY, instead, marks(), objects.iter().copied())
    }

    fn room() -> Kind {
        Kind::new("a.example.com/v1", "Room")
    }

    fn marks() -> Marks {
        let password = json!({"format": "password"});
        let schema = json!({"properties": {"spec": {"properties": {"key": password, "pin": password, "all": password}}}});
        let mut marks = Marks::default();
        marks.add_schema(&room(), &schema);
        marks
    }

    fn room_with(spec: &Value) -> Value {
        json!({"apiVersion": "a.example.com/v1", "kind": "Room", "metadata": {"name": "r"}, "spec": spec})
    }

    fn plain(object: &Value, key: &str) -> Vec<u8> {
        BASE64_STANDARD.decode(object["data"][key].as_str().unwrap()).unwrap()
    }

    #[test]
    fn a_value_becomes_another_of_its_length_and_the_same_one_the_same() {
        let before = secret(&[
            ("a", "correct horse"),
            ("b", "correct horse"),
            ("c", "x"),
            ("d", ""),
            ("e", "battery stapl"),
        ]);
        let mask = mask(Instead::Value, &[&before]);
        assert!(!mask.is_used());
        let after = mask.object(&before);
        assert!(mask.is_used());
        for (key, length) in [("a", 13), ("b", 13), ("c", 1), ("d", 0), ("e", 13)] {
            assert_eq!(plain(&after, key).len(), length, "{key}");
            assert!(length == 0 || after["data"][key] != before["data"][key], "{key}");
        }
        assert_eq!(after["data"]["a"], after["data"]["b"]);
        assert_ne!(after["data"]["a"], after["data"]["e"]);
        assert_eq!(mask.object(&before), after, "within one output");
        let other = Mask::new([8; 32], Instead::Value, Marks::default(), [&before]);
        assert_ne!(other.object(&before), after, "and not in another");
        assert!(String::from_utf8(plain(&after, "a")).is_ok(), "text stays text");
    }

    #[test]
    fn bytes_that_are_no_text_become_other_bytes() {
        let before =
            json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": BASE64_STANDARD.encode([0xff; 100])}});
        let after = mask(Instead::Value, &[&before]).object(&before);
        assert_eq!(plain(&after, "a").len(), 100);
        assert_ne!(plain(&after, "a"), [0xff; 100]);
    }

    #[test]
    fn a_root_and_a_secret_with_the_same_value_have_the_same_one_again() {
        let value = "correct horse battery";
        let root = room_with(
            &json!({"key": value, "pin": 12_345_678, "all": {"x": ["staple!!", true, null]}, "open": "o"}),
        );
        let made = secret(&[("SECRET", value), ("other", "staple!!")]);
        let mask = mask(Instead::Value, &[&root, &made]);
        let (root, made) = (mask.object(&root), mask.object(&made));
        let replaced = root["spec"]["key"].as_str().unwrap();
        assert!(replaced != value && replaced.len() == value.len());
        assert_eq!(plain(&made, "SECRET"), replaced.as_bytes());
        assert_eq!(plain(&made, "other"), root["spec"]["all"]["x"][0].as_str().unwrap().as_bytes());
        assert_eq!(root["spec"]["all"]["x"].as_array().unwrap()[1..], [json!(true), json!(null)]);
        assert_eq!(root["spec"]["pin"].as_u64().map(|pin| pin.to_string().len()), Some(8));
        assert_ne!(root["spec"]["pin"], 12_345_678);
        assert_eq!(root["spec"]["open"], "o");
    }

    #[test]
    fn a_copy_is_replaced_wherever_it_stands_but_in_names_and_keys() {
        let value = "correct \"horse\"";
        let secret = secret(&[("password", value), ("port", "80")]);
        let basic = BASE64_STANDARD.encode(format!("me:{value}"));
        let copy = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": value, "annotations": {"last": json!({"password": value}).to_string()}},
        "data": {
            "url": format!("db://me:{value}@db:80"), value: "80",
            "encoded": BASE64_STANDARD.encode(value),
            "basic": format!("Basic {basic}"), "safe": BASE64_URL_SAFE.encode(format!("x{value}>>>???")),
        }});
        for instead in [Instead::Value, Instead::Word] {
            let mask = mask(instead, &[&secret]);
            let (shown, made) = (mask.object(&secret), mask.object(&copy));
            let text = made.to_string();
            assert_eq!((&made["metadata"]["name"], &made["data"][value]), (&json!(value), &json!("80")));
            for live in [BASE64_STANDARD.encode(value), basic.clone(), format!("me:{value}")] {
                assert!(!text.contains(&live), "{instead:?}: {live} in {text}");
            }
            let unsafely = made["data"]["safe"].as_str().unwrap();
            assert_ne!(unsafely, copy["data"]["safe"].as_str().unwrap());
            let last = made["metadata"]["annotations"]["last"].as_str().unwrap();
            let last: Value = serde_json::from_str(last).unwrap();
            if instead == Instead::Word {
                assert_eq!(
                    made["data"]["url"],
                    format!("db://me:{}@db:80", shown["data"]["password"].as_str().unwrap())
                );
                assert_eq!(
                    (&last["password"], &made["data"]["encoded"]),
                    (&shown["data"]["password"], &shown["data"]["password"])
                );
            } else {
                let replaced = String::from_utf8(plain(&shown, "password")).unwrap();
                assert_eq!(made["data"]["url"], format!("db://me:{replaced}@db:80"));
                assert_eq!(last["password"], replaced);
                assert_eq!(made["data"]["encoded"], shown["data"]["password"]);
            }
        }
    }

    #[test]
    fn what_is_base64_in_a_root_stays_base64_and_fits_its_secret() {
        for value in ["correct horse", "a longer text, with more"] {
            let encoded = BASE64_STANDARD.encode(value);
            let root = room_with(&json!({"key": encoded}));
            let (decoded, again) = (secret(&[("k", value)]), secret(&[("k", &encoded)]));
            for objects in [[&root, &decoded, &again], [&again, &root, &decoded]] {
                let mask = mask(Instead::Value, &objects);
                let key = mask.object(&root)["spec"]["key"].clone();
                assert_ne!(key, encoded);
                assert_eq!(key, mask.object(&decoded)["data"]["k"]);
                assert_eq!(plain(&mask.object(&again), "k"), key.as_str().unwrap().as_bytes());
            }
            let mask = mask(Instead::Word, &[&root, &decoded]);
            assert_eq!(mask.object(&root)["spec"]["key"], mask.object(&decoded)["data"]["k"]);
        }
    }

    #[test]
    fn people_see_a_word_that_tells_values_apart_and_says_nothing_of_them() {
        let root = room_with(&json!({"key": "k", "pin": 1, "all": null}));
        let secret = secret(&[("a", "correct horse"), ("b", "correct horse"), ("c", "x")]);
        let mask = mask(Instead::Word, &[&root, &secret]);
        let (root, secret) = (mask.object(&root), mask.object(&secret));
        let words = [&secret["data"]["a"], &secret["data"]["c"], &root["spec"]["key"], &root["spec"]["pin"]];
        for word in words {
            let word = word.as_str().unwrap();
            assert!(word.starts_with("<hidden ") && word.len() == "<hidden 012345>".len(), "{word}");
        }
        assert_eq!(secret["data"]["a"], secret["data"]["b"]);
        assert_ne!(secret["data"]["a"], secret["data"]["c"]);
        assert_eq!(root["spec"]["all"], json!(null));
    }

    #[test]
    fn a_field_of_a_kind_is_replaced_as_in_the_whole_object() {
        let root = room_with(&json!({"key": "k"}));
        let mask = mask(Instead::Value, &[&root]);
        let mut spec = root["spec"].clone();
        mask.replace_in(&room(), "spec", &mut spec);
        assert_eq!(spec, mask.object(&root)["spec"]);
        assert!(mask.covers(&room()) && !mask.covers(&Kind::new("v1", "ConfigMap")));
    }
}
