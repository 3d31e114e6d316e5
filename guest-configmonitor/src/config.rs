//! The config of this guest: what an administrator may set for all ConfigMonitors.

use serde::Deserialize;

/// What an administrator may set for all ConfigMonitors.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// How long a ConfigMap must have been left alone before its change counts, in milliseconds, so that several edits in a row
    /// lead to one restart. One that is edited all the time counts after five times that.
    #[cfg_attr(feature = "schema", schemars(range(max = 60_000)))]
    pub settle_milliseconds: u32,
}

impl Default for Config {
    /// Two seconds: longer than it takes to apply several files, shorter than anybody waits for.
    fn default() -> Self {
        Self { settle_milliseconds: 2000 }
    }
}
