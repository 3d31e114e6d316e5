//! The version of the contract's JSON documents.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The version of the JSON documents. It is the `apiVersion` of each of them.
pub const API_VERSION: &str = "guest.pintle.dev/v1";

/// The `apiVersion` of a document. It serialises as [`API_VERSION`] and accepts nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ApiVersion;

impl Serialize for ApiVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(API_VERSION)
    }
}

impl<'de> Deserialize<'de> for ApiVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = ApiVersion;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "the string `{API_VERSION}`")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<ApiVersion, E> {
                if text == API_VERSION {
                    Ok(ApiVersion)
                } else {
                    Err(E::invalid_value(de::Unexpected::Str(text), &self))
                }
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for ApiVersion {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ApiVersion".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "const": API_VERSION})
    }
}
