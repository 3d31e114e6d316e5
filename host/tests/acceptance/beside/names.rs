//! [`Names`]: takes out of an answer what must differ.

use std::{collections::BTreeMap, sync::LazyLock};

use regex::Regex;
use serde_json::{Map, Value};

use super::request::SOMEBODYS;

/// What takes the place of what must differ. A uid is called after the object that has it.
pub(crate) struct Names {
    group: &'static str,
    namespace: String,
    uids: BTreeMap<String, String>,
}

static UID: LazyLock<Regex> =
    LazyLock::new(|| regex("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"));
static VERSION: LazyLock<Regex> = LazyLock::new(|| regex(r"(?i)(version[^0-9]{0,40}?)\d{2,}( \(\d+\))?"));
static RANDOM: LazyLock<Regex> = LazyLock::new(|| regex(r"(random-)[a-z0-9]{5}\b"));
static AGE: LazyLock<Regex> = LazyLock::new(|| regex(r"^\d+[smhd](\d+[smhd])?$"));
static TIME: LazyLock<Regex> = LazyLock::new(|| regex(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ"));

#[allow(clippy::expect_used, reason = "they are constants")]
pub(crate) fn regex(text: &str) -> Regex {
    Regex::new(text).expect("a regular expression")
}

impl Names {
    pub(crate) fn new(group: &'static str, namespace: String) -> Self {
        Self { group, namespace, uids: BTreeMap::new() }
    }

    pub(crate) fn text(&self, text: &str) -> String {
        let text = text.replace(self.group, "GROUP").replace(&self.namespace, "NAMESPACE");
        let text = RANDOM.replace_all(&text, "${1}XXXXX");
        let text = TIME.replace_all(&text, "<time>");
        let text = VERSION.replace_all(&text, "${1}<version>");
        let text = UID.replace_all(&text, |found: &regex::Captures<'_>| match &found[0] {
            SOMEBODYS => SOMEBODYS.to_owned(),
            uid => format!("<uid {}>", self.uids.get(uid).map_or("of nobody", String::as_str)),
        });
        text.into_owned()
    }

    pub(crate) fn clean(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(items) => {
                for item in items {
                    self.clean(item);
                    if let Value::String(text) = item
                        && AGE.is_match(text)
                    {
                        "<age>".clone_into(text);
                    }
                }
            }
            Value::Object(fields) => self.fields(fields),
            _ => {}
        }
    }

    fn fields(&mut self, fields: &mut Map<String, Value>) {
        // Managed fields are not shown, which is said for all objects at once; and a view stores nothing in any version.
        fields.remove("managedFields");
        fields.remove("storageVersionHash");
        in_order(fields);
        // Only custom resources say in this way that a list is complete.
        if fields.get("continue").is_some_and(|token| token == "") {
            fields.remove("continue");
        }
        if let (Some(uid), Some(name)) = (fields.get("uid"), fields.get("name"))
            && let (Some(uid), Some(name)) = (uid.as_str(), name.as_str())
            && !self.uids.contains_key(uid)
        {
            let name = RANDOM.replace_all(name, "${1}XXXXX");
            let is_namesake = |known: &&String| known.split(' ').next() == Some(&name);
            let namesakes = self.uids.values().filter(is_namesake).count();
            self.uids.insert(uid.to_owned(), format!("{name} {namesakes}"));
        }
        for (key, value) in fields.iter_mut() {
            match (key.as_str(), &*value) {
                ("resourceVersion", Value::String(version)) if version.len() > 1 => {
                    *value = "<version>".into()
                }
                ("continue", Value::String(_)) => *value = "<continue>".into(),
                // Custom resources have an order of their own, and other resources that of the alphabet.
                ("verbs", Value::Array(verbs)) => {
                    let mut verbs = verbs.clone();
                    verbs.sort_by_key(ToString::to_string);
                    *value = verbs.into();
                }
                _ => self.clean(value),
            }
        }
    }
}

/// The API server says several causes of one refusal in any order.
fn in_order(status: &mut Map<String, Value>) {
    let Some(Value::Array(causes)) = status.get_mut("details").and_then(|details| details.get_mut("causes"))
    else {
        return;
    };
    if causes.len() > 1 {
        causes.sort_by_key(ToString::to_string);
        if let Some(Value::String(message)) = status.get_mut("message")
            && let Some(at) = message.find(": [")
        {
            message.truncate(at);
        }
    }
}
