//! [`Shown`]: an answer as it is printed, and as a golden case expects it.

use std::collections::BTreeMap;

use pintle_core::{Allowed, plan};
use pintle_wit::{Event, Evictions, Failure, GuestCondition, Need};
use serde::{Deserialize, Serialize, Serializer, ser::Error as _};
use serde_json::{Map, Value, json};

/// An answer, or why there is none. What a case leaves out of it is expected to be empty.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Shown {
    /// The children, without what the host adds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub children: Option<Vec<Value>>,
    /// The stages of the children that are not of the first one, as `Kind/name: stage`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub stages: BTreeMap<String, u32>,
    /// The guest's status fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Map<String, Value>>,
    /// The guest's conditions.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_json")]
    pub conditions: Option<Vec<GuestCondition>>,
    /// The guest's events.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_json")]
    pub events: Option<Vec<Event>>,
    /// The patches of objects that the root does not own: `object`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub patches: Vec<Value>,
    /// The Pods that are to go.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_json")]
    pub evictions: Option<Evictions>,
    /// What the guest asked to see in the end. Compared where a case has it.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_json")]
    pub needs: Option<Vec<Need>>,
    /// The root's condition `Ready` after the pass: status, reason, message. Compared as far as a case has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<Map<String, Value>>,
    /// For each object of `show`, what a view shows of it.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "as_json")]
    pub shown: Vec<ShownItem>,
    /// The fields that `store` sets, at the paths that the view declares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored: Option<Map<String, Value>>,
    /// Why there is no answer, or why nothing is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<ShownFailure>,
}

/// What a view shows of an object.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ShownItem {
    /// The fields of the shown object, besides `apiVersion`, `kind` and `metadata`.
    Object(Map<String, Value>),
    /// Why it cannot be shown.
    Failure(ShownFailure),
}

/// A failure.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ShownFailure {
    /// The message. Compared where a case has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The field at fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The reason.
    pub reason: String,
    /// Whether a retry can help. No case has it.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub retry: Option<bool>,
}

/// With its fields in the order of JSON, as everything else in a case is.
fn as_json<T: Serialize, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serde_json::to_value(value).map_err(S::Error::custom)?.serialize(serializer)
}

impl From<&Failure> for ShownFailure {
    fn from(failure: &Failure) -> Self {
        Self {
            message: Some(failure.message.clone()),
            path: failure.path.clone(),
            reason: failure.reason.clone(),
            retry: Some(failure.retry),
        }
    }
}

impl ShownFailure {
    /// Leaves out what a case does not have.
    fn reduce(&mut self, expected: Option<&Self>) {
        self.retry = None;
        self.message.take_if(|_| expected.is_none_or(|expected| expected.message.is_none()));
    }
}

impl Shown {
    /// An answer about a root.
    pub fn of(mut allowed: Allowed, root: &Value, needs: Vec<Need>) -> Self {
        allowed.stamp(root, plan::TIME);
        let later = allowed.children().iter().filter(|child| child.stage() > 0).map(|child| {
            let reference = child.reference();
            (format!("{}/{}", reference.kind, reference.name), child.stage())
        });
        let patches = allowed.patches().iter();
        Self {
            stages: later.collect(),
            children: Some(allowed.children().iter().map(|child| plan::plain(child.object())).collect()),
            status: Some(allowed.status().clone()),
            conditions: Some(allowed.conditions().to_vec()),
            events: Some(allowed.events().to_vec()),
            patches: patches.map(|patch| json!({"object": patch.object()})).collect(),
            evictions: allowed.evictions().cloned(),
            needs: Some(needs),
            ..Self::default()
        }
    }

    /// What a case expects: a root has an answer or a failure, and is not compared with more than that.
    pub(crate) fn expected(mut self, is_of_root: bool) -> Self {
        if is_of_root && self.failure.is_some() {
            return Self { ready: self.ready, failure: self.failure, ..Self::default() };
        }
        if is_of_root {
            self.children.get_or_insert_default();
        }
        self.without_empty()
    }

    /// The same in the form of what a case expects: of what the host says it has as much, since these words may change without a change of
    /// the guest.
    pub(crate) fn like(mut self, expected: &Self) -> Self {
        self.needs.take_if(|_| expected.needs.is_none());
        self.ready = self.ready.zip(expected.ready.as_ref()).map(|(mut ready, wanted)| {
            ready.retain(|key, _| wanted.contains_key(key));
            ready
        });
        if let Some(failure) = &mut self.failure {
            failure.reduce(expected.failure.as_ref());
        }
        for (index, item) in self.shown.iter_mut().enumerate() {
            if let ShownItem::Failure(failure) = item {
                failure.reduce(match expected.shown.get(index) {
                    Some(ShownItem::Failure(expected)) => Some(expected),
                    _ => None,
                });
            }
        }
        self.without_empty()
    }

    /// The same without what is empty, and may be left out.
    #[must_use]
    pub fn without_empty(mut self) -> Self {
        self.status.take_if(|status| status.is_empty());
        self.conditions.take_if(|conditions| conditions.is_empty());
        self.events.take_if(|events| events.is_empty());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(value: Value) -> Shown {
        serde_json::from_value::<Shown>(value).unwrap().expected(true)
    }

    #[test]
    fn what_a_case_leaves_out_is_expected_to_be_empty() {
        let found = Shown { children: Some(Vec::new()), status: Some(Map::new()), ..Shown::default() };
        assert_eq!(expected(json!({"children": []})), found.clone().like(&Shown::default()));
        assert_eq!(expected(json!({})), found.like(&Shown::default()));
    }

    #[test]
    fn of_what_the_host_says_a_case_is_compared_with_what_it_has() {
        let ready = json!({"status": "False", "reason": "Odd", "message": "no"});
        let found = Shown {
            ready: ready.as_object().cloned(),
            failure: Some((&Failure::terminal("Odd", "no").at("spec")).into()),
            ..Shown::default()
        };
        let like = |value: Value| found.clone().like(&expected(value));
        let short = json!({"failure": {"reason": "Odd", "path": "spec"}});
        assert_eq!(like(short.clone()), expected(short));
        let long = json!({"ready": {"reason": "Odd"}, "failure": {"reason": "Odd", "path": "spec", "message": "no"}});
        assert_eq!(like(long.clone()), expected(long));
    }

    #[test]
    fn an_item_has_the_words_of_the_contract() {
        let items =
            json!({"shown": [{"object": {"spec": {}}}, {"failure": {"path": "spec", "reason": "Odd"}}]});
        assert_eq!(json!(serde_json::from_value::<Shown>(items.clone()).unwrap()), items);
    }
}
