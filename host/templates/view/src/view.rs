//! The view `__PLURAL__`: of each ConfigMap, how many entries it has.

use pintle_guest::{Column, ColumnType, Failure, Kind, NoConfig, Shown, Value, View, ViewManifest};

/// What people see of a ConfigMap, besides its name and age.
#[derive(serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct __KIND__ {
    /// How many entries the ConfigMap has.
    pub entries: usize,
}

impl View for __KIND__ {
    type Backing = Value;
    type Shown = Self;
    type Config = NoConfig;
    const NAME: &'static str = "__PLURAL__";

    fn manifest() -> ViewManifest {
        let columns = vec![Column::new("Entries", ColumnType::Integer, ".entries")];
        let shown = Shown { columns, ..Shown::new("__GROUP__/v1", "__KIND__", "__PLURAL__") };
        ViewManifest::new(Kind::new("v1", "ConfigMap"), &["data"], shown)
    }

    fn show(config_map: Value, _: &NoConfig) -> Result<Self, Failure> {
        Ok(Self { entries: config_map["data"].as_object().map_or(0, |data| data.len()) })
    }
}
