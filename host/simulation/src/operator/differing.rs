//! The two values that show a broken property, for a diff.

use pintle_simulator::Record;
use serde_json::{Value, json};

use super::{
    Broken, Evidence, Property, RunOutcome,
    script::{is_about_hosts, is_host},
    world::World,
};

/// Two values that should be the same, or an object before and after a write.
#[derive(Clone, Debug, PartialEq)]
pub struct Differing {
    /// The subject: an object, or the guest's answer.
    pub about: String,
    /// What the first value is, and the value, which is null if there is none.
    pub before: (&'static str, Value),
    /// The same for the second value.
    pub after: (&'static str, Value),
}

/// The two values that show a broken property, if there are two.
pub(super) fn of(
    world: &World,
    broken: &Broken,
    evidence: &Evidence,
    reference: Option<&RunOutcome>,
) -> Option<Differing> {
    match broken.property {
        Property::SameEnd | Property::Returns => {
            let (found, expected) = (&evidence.end, &reference?.evidence.end);
            let about =
                found.keys().chain(expected.keys()).find(|name| found.get(*name) != expected.get(*name))?;
            let value = |end: Option<&Value>| end.cloned().unwrap_or_default();
            Some(Differing {
                about: about.to_string(),
                before: ("where nothing goes wrong", value(expected.get(about))),
                after: ("in this run", value(found.get(about))),
            })
        }
        Property::Pure => {
            let caught = world.own.impure.caught.get()?;
            let read = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| json!(text));
            Some(Differing {
                about: "the guest's answer".into(),
                before: ("the first answer", read(&caught.first)),
                after: (caught.how, read(&caught.again)),
            })
        }
        Property::Steady
        | Property::NoForeignHarm
        | Property::SafeOnTheWay
        | Property::Monotone
        | Property::Bounded => {
            let at = broken.at?;
            world.with_records(|records| {
                let script = world.script();
                let is_change = |record: &&Record| {
                    is_host(&record.seen.client) && record.changed() && !is_about_hosts(&record.seen)
                };
                let is_since = |record: &&Record| {
                    is_change(record) && script.times.get(&record.seen.number).is_some_and(|time| *time >= at)
                };
                // If the hosts never come to rest, this is the last change.
                let record = match broken.property {
                    Property::Bounded => records.iter().rfind(is_change)?,
                    _ => records.iter().find(is_since)?,
                };
                let value = |object: &Option<std::sync::Arc<Value>>| {
                    object.as_deref().map(without_books).unwrap_or_default()
                };
                let object = record.after.as_ref().or(record.before.as_ref())?;
                Some(Differing {
                    about: pintle_core::object::reference(object).to_string(),
                    before: ("before that write", value(&record.before)),
                    after: ("after it", value(&record.after)),
                })
            })
        }
        _ => None,
    }
}

/// An object without what every write changes.
fn without_books(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
        metadata.remove("resourceVersion");
    }
    object
}
