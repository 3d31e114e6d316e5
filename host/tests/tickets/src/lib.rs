//! Two versions of one resource: a Ticket of version 1 has its effort in minutes, as it is stored, and one of version 2 in hours and
//! minutes, with a default. Only open tickets are shown.

pub mod v1;
pub mod v2;

use pintle_guest::{Kind, Shown, ViewManifest, Views};
use serde::{Deserialize, Serialize};

pintle_guest::export!(views: Tickets);

/// The group of what is shown.
const GROUP: &str = "tickets.example.com";

/// The label that an open ticket has.
const OPEN: &str = "tickets.example.com/open";

/// The guest.
pub struct Tickets;

impl Views for Tickets {
    const NAME: &'static str = "tickets";
    const VERSION: &'static str = "0.1.0";
    type All = (v1::Ticket, v2::Ticket);
}

/// What is stored. A TicketRecord has other fields too, which neither version knows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// What a ticket is about and takes.
    pub spec: RecordSpec,
}

/// What a ticket is about and takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordSpec {
    /// What is to be done.
    pub title: String,
    /// The effort, in minutes.
    pub minutes: u32,
}

/// What both versions declare.
fn manifest(version: &str) -> ViewManifest {
    let shown = Shown::new(format!("{GROUP}/{version}"), "Ticket", "tickets");
    let stored = Kind::new("store.tickets.example.com/v1", "TicketRecord");
    let fields = ["spec.title", "spec.minutes"];
    let mut manifest = ViewManifest::new(stored, &fields, shown).writing(&fields);
    manifest.selector.insert(OPEN.to_owned(), "true".to_owned());
    manifest
}

#[cfg(test)]
mod tests {
    use pintle_guest::{ViewsManifest, call::views, json, serde_json};

    use super::*;

    const GENERATED: &str = include_str!("../views.json");

    #[test]
    fn two_versions_of_one_resource_show_the_same_objects() {
        let manifest: ViewsManifest = serde_json::from_str(&views::describe::<Tickets>(GENERATED)).unwrap();
        assert_eq!(manifest.check(), Ok(()));
        let [first, second] = manifest.views.as_slice() else { panic!("{manifest:?}") };
        assert_eq!(
            (&first.backing, &first.selector, &first.prefix),
            (&second.backing, &second.selector, &second.prefix)
        );
        assert_eq!(first.shown.as_ref().unwrap().plural, second.shown.as_ref().unwrap().plural);
        let effort = &second.schema().unwrap()["properties"]["spec"]["properties"]["effort"];
        assert_eq!(effort["default"], json!({"hours": 1, "minutes": 0}));
    }
}
