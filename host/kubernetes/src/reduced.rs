//! [`Reduced`]: objects that are reduced while they are parsed.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};

/// What kubectl keeps on objects: a second copy of them.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// An object as the API server sent it, without parts that the host does not need: kubectl's copy of the object, and the managed fields of
/// all operations but applies. Managed fields are most of an object, and the parts that are left out never take memory. Manager and time
/// are kept for writes of the object itself and of `scale`, since they show who fights over it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reduced(pub Value);

impl<'de> Deserialize<'de> for Reduced {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        In::Object.deserialize(deserializer).map(Self)
    }
}

/// The place of a map in an object.
#[derive(Clone, Copy)]
enum In {
    Object,
    Metadata,
    Annotations,
    ManagedField,
}

/// The entries of `metadata.managedFields`.
struct ManagedFields;

impl<'de> DeserializeSeed<'de> for In {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        // A field may be null.
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for In {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let value = match (self, key.as_str()) {
                (Self::Object, "metadata") => access.next_value_seed(Self::Metadata)?,
                (Self::Metadata, "annotations") => access.next_value_seed(Self::Annotations)?,
                (Self::Metadata, "managedFields") => access.next_value_seed(ManagedFields)?,
                (Self::Annotations, LAST_APPLIED) | (Self::ManagedField, "fieldsType") => {
                    access.next_value::<IgnoredAny>()?;
                    continue;
                }
                // Every API server sends the operation before the fields. If one did not, the fields would only be kept for a moment.
                (Self::ManagedField, "fieldsV1") if is_update(&map) => {
                    access.next_value::<IgnoredAny>()?;
                    continue;
                }
                _ => access.next_value()?,
            };
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

fn is_update(entry: &Map<String, Value>) -> bool {
    entry.get("operation").is_some_and(|operation| operation != "Apply")
}

impl<'de> DeserializeSeed<'de> for ManagedFields {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ManagedFields {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut kept = Vec::new();
        while let Some(mut entry) = access.next_element_seed(In::ManagedField)? {
            if let Some(fields) = entry.as_object_mut().filter(|entry| is_update(entry)) {
                let subresource = fields.get("subresource").and_then(Value::as_str).unwrap_or_default();
                if !matches!(subresource, "" | "scale") {
                    continue;
                }
                // This was parsed anyway if it came before the operation.
                fields.remove("fieldsV1");
            }
            kept.push(entry);
        }
        Ok(Value::Array(kept))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_nobody_looks_at_is_left_out_and_the_rest_is_as_it_was() {
        let apply = |subresource: &str| {
            json!({"manager": "m", "operation": "Apply", "apiVersion": "v1", "subresource": subresource,
                "fieldsV1": {"f:data": {"f:managedFields": {}}}})
        };
        let mut live = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"managedFields": "x", "time": "y"},
            "metadata": {"name": "a", "labels": {"time": "t"}, "annotations": {"b": "c"}, "ownerReferences": null,
                "managedFields": [apply(""), apply("status")]},
        });
        let mut reduced = live.clone();
        live["metadata"]["annotations"][LAST_APPLIED] = "{}".into();
        let entries = live["metadata"]["managedFields"].as_array_mut().unwrap();
        entries[0]["fieldsType"] = "FieldsV1".into();
        let update = json!({"manager": "kubectl", "operation": "Update", "time": "2000-01-01T00:00:00Z"});
        let (mut of_status, mut of_scale) = (update.clone(), update.clone());
        of_status["subresource"] = "status".into();
        of_scale["subresource"] = "scale".into();
        for mut entry in [of_status, of_scale.clone(), update.clone()] {
            entry["fieldsV1"] = json!({"f:data": {}});
            entries.insert(0, entry);
        }
        let kept = reduced["metadata"]["managedFields"].as_array_mut().unwrap();
        kept.insert(0, of_scale);
        kept.insert(0, update);
        let read: Reduced = serde_json::from_str(&live.to_string()).unwrap();
        assert_eq!(read.0, reduced);
    }

    #[test]
    fn what_is_null_or_no_object_is_no_error() {
        for text in
            [r#"{"metadata":null}"#, r#"{"metadata":{"annotations":null,"managedFields":null}}"#, "{}"]
        {
            let read: Reduced = serde_json::from_str(text).unwrap();
            assert_eq!(read.0, serde_json::from_str::<Value>(text).unwrap());
        }
        assert!(serde_json::from_str::<Reduced>("[]").is_err());
    }
}
