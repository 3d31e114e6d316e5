//! The two values that show a broken property, for a diff.

use pintle_core::object;
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
    let differing = |about: String, before, after| Some(Differing { about, before, after });
    match broken.property {
        Property::SameEnd | Property::Returns => {
            let (found, expected) = (&evidence.end, &reference?.evidence.end);
            let mut all = found.keys().chain(expected.keys());
            let about = all.find(|name| found.get(*name) != expected.get(*name))?;
            let value = |end: Option<&Value>| end.cloned().unwrap_or_default();
            let before = ("where nothing goes wrong", value(expected.get(about)));
            differing(about.to_string(), before, ("in this run", value(found.get(about))))
        }
        Property::Pure => {
            let caught = world.own.impure.caught.get()?;
            let read = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| json!(text));
            let before = ("the first answer", read(&caught.first));
            differing("the guest's answer".into(), before, (caught.how, read(&caught.again)))
        }
        Property::Steady
        | Property::NoForeignHarm
        | Property::SafeOnTheWay
        | Property::Monotone
        | Property::Bounded => {
            let at = broken.at?;
            world.with_records(|records| {
                let script = world.script();
                let is_since = |number: &u64| script.times.get(number).is_some_and(|time| *time >= at);
                let mut changes = records.iter().filter(|record| {
                    is_host(&record.seen.client) && record.changed() && !is_about_hosts(&record.seen)
                });
                // If the hosts never come to rest, this is the last change.
                let record = match broken.property {
                    Property::Bounded => changes.next_back()?,
                    _ => changes.find(|record| is_since(&record.seen.number))?,
                };
                let object = record.after.as_ref().or(record.before.as_ref())?;
                let value = |object: Option<&Value>| object.map(without_books).unwrap_or_default();
                let before = ("before that write", value(record.before.as_deref()));
                let after = ("after it", value(record.after.as_deref()));
                differing(object::reference(object).to_string(), before, after)
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
