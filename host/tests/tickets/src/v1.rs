//! Version 1: as it is stored.

use pintle_guest::{Failure, Map, NoConfig, Value, View, ViewManifest, fields};
use serde::{Deserialize, Serialize};

use crate::{Record, RecordSpec};

/// A ticket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ticket {
    /// What the ticket is about.
    pub spec: Spec,
}

/// What a ticket is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Spec {
    /// What is to be done.
    pub title: String,
    /// The effort, in minutes.
    pub minutes: u32,
}

impl View for Ticket {
    type Backing = Record;
    type Shown = Self;
    type Config = NoConfig;
    const NAME: &'static str = "tickets-v1";

    fn manifest() -> ViewManifest {
        crate::manifest("v1")
    }

    fn show(record: Record, _: &NoConfig) -> Result<Self, Failure> {
        let RecordSpec { title, minutes } = record.spec;
        Ok(Self { spec: Spec { title, minutes } })
    }

    fn store(ticket: Self, _: Option<Record>, _: &NoConfig) -> Result<Map<String, Value>, Failure> {
        let Spec { title, minutes } = ticket.spec;
        Ok(fields(&Record { spec: RecordSpec { title, minutes } }))
    }
}
