//! The view `llamas`: a Llama is shown as its LlamaRecord says, and stored there.

use pintle_guest::serde_json::Number;
use pintle_guest::{
    Column, ColumnType, Failure, Kind, Map, NoConfig, Shown, Value, View, ViewManifest, fields,
};
use serde::{Deserialize, Serialize};

/// A llama. The LlamaRecord that it is stored as has the same fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Llama {
    /// How large the llama is.
    pub spec: LlamaSpec,
}

/// How large a llama is. The numbers stay as they were written: 1 does not become 1.0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LlamaSpec {
    /// The weight in kilograms.
    #[cfg_attr(feature = "schema", schemars(extend("minimum" = 0, "exclusiveMinimum" = true)))]
    pub weight: Number,
    /// The height in metres.
    #[cfg_attr(feature = "schema", schemars(extend("minimum" = 0, "exclusiveMinimum" = true)))]
    pub height: Number,
}

/// The view.
pub struct Llamas;

impl View for Llamas {
    type Backing = Llama;
    type Shown = Llama;
    type Config = NoConfig;

    const NAME: &'static str = "llamas";

    fn manifest() -> ViewManifest {
        let shown = Shown {
            short_names: vec!["ll".to_owned()],
            columns: vec![
                Column::new("Weight", ColumnType::Number, ".spec.weight"),
                Column::new("Height", ColumnType::Number, ".spec.height"),
            ],
            ..Shown::new(crate::API_VERSION, "Llama", "llamas")
        };
        let record = Kind::new("store.farm.example.com/v1", "LlamaRecord");
        ViewManifest::new(record, &["spec"], shown).writing(&["spec.weight", "spec.height"])
    }

    fn show(record: Llama, _: &NoConfig) -> Result<Llama, Failure> {
        Ok(record)
    }

    fn store(llama: Llama, _: Option<Llama>, _: &NoConfig) -> Result<Map<String, Value>, Failure> {
        for (name, measure) in [("weight", &llama.spec.weight), ("height", &llama.spec.height)] {
            // The schema says the same. A guest is called by others than a gateway, too.
            if measure.as_f64().is_none_or(|measure| measure <= 0.0) {
                return Err(Failure::terminal("Invalid", "must be greater than 0").at(format!("spec.{name}")));
            }
        }
        Ok(fields(&llama))
    }
}

#[cfg(test)]
mod tests {
    use pintle_guest::{json, serde_json};

    use super::*;

    fn llama(weight: Value, height: Value) -> Llama {
        serde_json::from_value(json!({"spec": {"weight": weight, "height": height}})).unwrap()
    }

    #[test]
    fn what_is_stored_is_shown_as_it_was_written_and_the_other_way_round() {
        let dolly = llama(json!(31.4), json!(1));
        let stored = Llamas::store(dolly.clone(), None, &NoConfig {}).unwrap();
        assert_eq!(Value::Object(stored.clone()), json!({"spec": {"weight": 31.4, "height": 1}}));
        let record = serde_json::from_value(stored.into()).unwrap();
        assert_eq!(Llamas::show(record, &NoConfig {}).unwrap(), dolly);
    }

    #[test]
    fn a_llama_without_weight_or_height_is_refused_with_the_field() {
        let path = |weight: Value, height: Value| {
            let refused = Llamas::store(llama(weight, height), None, &NoConfig {});
            refused.unwrap_err().path.unwrap_or_default()
        };
        assert_eq!(path(json!(0), json!(1)), "spec.weight");
        assert_eq!(path(json!(1), json!(-0.5)), "spec.height");
    }
}
