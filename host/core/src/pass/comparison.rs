//! Whether an object shows what was sent. The API server may leave out what is null, and write a number in another way.

use serde_json::{Map, Value};

use crate::{managed, number};

/// Whether the last write set something that this one leaves out. A field that we own as a whole (an atomic list or map) has no parts
/// in the managed fields entry, so its value is compared.
pub(super) fn is_leftover(entry: &Value, observed: &Value, sent: &Value) -> bool {
    !managed::owns_nothing_beyond(entry, sent) || has_stale_part(entry, observed, sent)
}

fn has_stale_part(entry: &Value, observed: &Value, sent: &Value) -> bool {
    let Some(owned) = entry.as_object() else { return false };
    if owned.is_empty() {
        let is_whole = matches!(
            (observed, sent),
            (Value::Object(_), Value::Object(_)) | (Value::Array(_), Value::Array(_))
        );
        return is_whole && !is_same(observed, sent);
    }
    let fields = owned.iter().filter_map(|(key, below)| Some((key.strip_prefix("f:")?, below)));
    fields.into_iter().any(|(name, below)| match (observed.get(name), sent.get(name)) {
        (Some(observed), Some(sent)) => has_stale_part(below, observed, sent),
        _ => false,
    })
}

/// Whether two values are the same JSON to every reader: 1.0 is 1, and a field that is null may be left out.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(a), Value::Object(b)) => {
            let within = |a: &Map<String, Value>, b: &Map<String, Value>| {
                a.iter().all(|(key, value)| b.get(key).map_or(value.is_null(), |other| is_same(value, other)))
            };
            within(a, b) && within(b, a)
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Value::Number(a), Value::Number(b)) => number::is_same(a, b),
        _ => one == other,
    }
}

/// Whether `observed` shows everything in `sent`. Conditions are compared by type, and conditions of others do not count.
pub(super) fn shows(observed: &Value, sent: &Value) -> bool {
    match (observed, sent) {
        (Value::Object(observed), Value::Object(sent)) => sent.iter().all(|(key, value)| {
            observed.get(key).map_or(value.is_null() || is_empty(value), |observed| {
                match (key.as_str(), observed, value) {
                    ("conditions", Value::Array(observed), Value::Array(sent)) => {
                        sent.iter().all(|condition| observed.iter().any(|other| shows(other, condition)))
                    }
                    _ => shows(observed, value),
                }
            })
        }),
        _ => is_same(observed, sent),
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty)
}
