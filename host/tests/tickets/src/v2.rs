//! Version 2: the effort in hours and minutes. Whoever does not say it means an hour.

use pintle_guest::{Column, ColumnType, Failure, Map, NoConfig, Shown, Value, View, ViewManifest, fields};
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
    /// The effort.
    #[serde(default)]
    pub effort: Effort,
}

/// An effort.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Effort {
    /// Hours.
    #[cfg_attr(feature = "schema", schemars(extend("maximum" = 1_000_000)))]
    pub hours: u32,
    /// Minutes of the next hour.
    #[cfg_attr(feature = "schema", schemars(extend("maximum" = 59)))]
    pub minutes: u32,
}

impl Default for Effort {
    fn default() -> Self {
        Self { hours: 1, minutes: 0 }
    }
}

impl View for Ticket {
    type Backing = Record;
    type Shown = Self;
    type Config = NoConfig;
    const NAME: &'static str = "tickets-v2";

    fn manifest() -> ViewManifest {
        let manifest = crate::manifest("v2");
        let columns = vec![
            Column::new("Title", ColumnType::String, ".spec.title"),
            Column::new("Hours", ColumnType::Integer, ".spec.effort.hours"),
        ];
        ViewManifest { shown: manifest.shown.map(|shown| Shown { columns, ..shown }), ..manifest }
    }

    fn show(record: Record, _: &NoConfig) -> Result<Self, Failure> {
        let RecordSpec { title, minutes } = record.spec;
        let effort = Effort { hours: minutes / 60, minutes: minutes % 60 };
        Ok(Self { spec: Spec { title, effort } })
    }

    fn store(ticket: Self, _: Option<Record>, _: &NoConfig) -> Result<Map<String, Value>, Failure> {
        let Spec { title, effort } = ticket.spec;
        let minutes = effort.hours.checked_mul(60).and_then(|minutes| minutes.checked_add(effort.minutes));
        let minutes =
            minutes.ok_or_else(|| Failure::terminal("TooLong", "nobody works as long").at("spec.effort"))?;
        Ok(fields(&Record { spec: RecordSpec { title, minutes } }))
    }
}
