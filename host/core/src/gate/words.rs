//! Checks conditions and events, which are what a guest says to people. Its text is data, not markup.

use std::collections::BTreeSet;

use pintle_wit::{Event, GuestCondition};

use super::{Violations, reasons};
use crate::{conditions::HOST_CONDITIONS, text::clean};

/// The longest condition message, in bytes. The API allows 32 KiB; 4 KiB is more than anybody reads.
const MESSAGE_BYTES_MAX: usize = 4096;
/// The longest Event note in bytes, as events.k8s.io has it.
const NOTE_BYTES_MAX: usize = 1024;
/// The longest reason in bytes, as events.k8s.io has it.
const REASON_BYTES_MAX: usize = 128;
/// The most conditions of a guest. Ten times what the sample guests have.
const CONDITIONS_MAX: usize = 32;
/// The most Events of one answer, so that no guest can flood the Events of a namespace.
const EVENTS_MAX: usize = 16;

pub(super) fn conditions(conditions: &[GuestCondition], found: &mut Violations) {
    if conditions.len() > CONDITIONS_MAX {
        let message = format_args!("{} conditions, the limit is {CONDITIONS_MAX}", conditions.len());
        found.add(reasons::CONDITION_INVALID, "conditions", message);
    }
    let mut seen = BTreeSet::new();
    for (index, condition) in conditions.iter().enumerate() {
        let path = format_args!("conditions[{index}].type");
        if HOST_CONDITIONS.contains(&condition.r#type.as_str()) {
            let message = format_args!("condition {} is the host's to write", condition.r#type);
            found.add(reasons::CONDITION_RESERVED, path, message);
        } else if !seen.insert(&condition.r#type) {
            found.add(
                reasons::CONDITION_RESERVED,
                path,
                format_args!("condition {} stands twice", condition.r#type),
            );
        } else if !is_word(&condition.r#type) {
            found.add(reasons::CONDITION_INVALID, path, "a condition's type is one CamelCase word");
        }
        if !is_word(&condition.reason) {
            let message =
                format_args!("the reason of condition {} is not one CamelCase word", condition.r#type);
            found.add(reasons::CONDITION_INVALID, format_args!("conditions[{index}].reason"), message);
        }
    }
}

pub(super) fn events(events: &[Event], found: &mut Violations) {
    if events.len() > EVENTS_MAX {
        found.add(
            reasons::EVENT_INVALID,
            "events",
            format_args!("{} events, the limit is {EVENTS_MAX}", events.len()),
        );
    }
    for (index, event) in events.iter().enumerate() {
        if !is_word(&event.reason) {
            found.add(
                reasons::EVENT_INVALID,
                format_args!("events[{index}].reason"),
                "an event's reason is one CamelCase word",
            );
        }
        if event.message.trim().is_empty() {
            found.add(
                reasons::EVENT_INVALID,
                format_args!("events[{index}].message"),
                "an event says what happened",
            );
        }
    }
}

pub(super) fn cleaned_condition(condition: GuestCondition) -> GuestCondition {
    GuestCondition { message: clean(&condition.message, MESSAGE_BYTES_MAX), ..condition }
}

pub(super) fn cleaned_event(event: Event) -> Event {
    Event { message: clean(&event.message, NOTE_BYTES_MAX), ..event }
}

/// One CamelCase word, as the API has it for types and reasons.
pub(crate) fn is_word(text: &str) -> bool {
    text.len() <= REASON_BYTES_MAX
        && text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric())
}
