//! [`Patch`]: what a client wants changed of what it was shown.

use json_patch::{AddOperation, PatchErrorKind, PatchOperation};
use serde_json::Value;

use super::{Served, Status, accept::PatchType, status::fault};

/// The most operations of a JSON patch, as the API server has it.
pub const OPERATIONS_MAX: usize = 10_000;

/// What a client wants changed of what it was shown.
#[derive(Clone, Debug, PartialEq)]
pub enum Patch {
    /// RFC 6902.
    Json(json_patch::Patch),
    /// RFC 7386.
    Merge(Value),
}

impl Patch {
    /// Reads a patch.
    ///
    /// # Errors
    /// 400 for what is none; 413 for one with too many operations.
    pub fn read(r#type: PatchType, body: &[u8]) -> Result<Self, Status> {
        let wrong = |error: serde_json::Error| Status::bad_request(format!("error decoding patch: {error}"));
        match r#type {
            PatchType::Json => {
                let patch: json_patch::Patch = serde_json::from_slice(body).map_err(wrong)?;
                match patch.0.len() > OPERATIONS_MAX {
                    true => Err(Status::too_many_operations(patch.0.len(), OPERATIONS_MAX)),
                    false => Ok(Self::Json(patch)),
                }
            }
            PatchType::Merge => {
                let patch: Value = serde_json::from_slice(body).map_err(wrong)?;
                match patch.is_object() {
                    true => Ok(Self::Merge(patch)),
                    false => Err(Status::bad_request("error decoding patch: it is no object")),
                }
            }
        }
    }

    /// Whether it changes metadata alone, so that no guest has to be asked.
    pub fn is_of_metadata(&self) -> bool {
        match self {
            Self::Json(patch) => patch.0.iter().all(|operation| {
                let from = match operation {
                    PatchOperation::Move(operation) => Some(&operation.from),
                    PatchOperation::Copy(operation) => Some(&operation.from),
                    _ => None,
                };
                let in_metadata = |path: &str| path.starts_with("/metadata/");
                in_metadata(operation.path().as_str()) && from.is_none_or(|from| in_metadata(from.as_str()))
            }),
            Self::Merge(patch) => {
                let own = ["apiVersion", "kind", "metadata"];
                patch.as_object().is_some_and(|fields| fields.keys().all(|key| own.contains(&key.as_str())))
            }
        }
    }

    /// Whether it says which version of the object it is for.
    pub fn names_version(&self) -> bool {
        const VERSION: &str = "/metadata/resourceVersion";
        match self {
            Self::Json(patch) => patch.0.iter().any(|operation| match operation {
                PatchOperation::Add(AddOperation { path, .. }) => path.as_str() == VERSION,
                operation => operation.path().as_str() == VERSION,
            }),
            Self::Merge(patch) => patch.pointer(VERSION).is_some_and(|version| !version.is_null()),
        }
    }

    /// The object as the client wants it.
    ///
    /// # Errors
    /// 422 if it cannot be applied to the object, in the words of the API server.
    pub fn apply(&self, served: &Served, name: &str, mut object: Value) -> Result<Value, Status> {
        match self {
            Self::Merge(patch) => json_patch::merge(&mut object, patch),
            Self::Json(patch) => json_patch::patch(&mut object, &patch.0).map_err(|error| {
                let message = match error.kind {
                    PatchErrorKind::TestFailed => format!("testing path {} failed", error.path),
                    _ => error.to_string(),
                };
                let cause = fault::invalid_value("patch", &message, "");
                Status::invalid(served, name, vec![cause])
            })?,
        }
        Ok(object)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(r#type: PatchType, patch: &Value) -> Result<Patch, Status> {
        Patch::read(r#type, patch.to_string().as_bytes())
    }

    fn json(patch: &Value) -> Patch {
        read(PatchType::Json, patch).unwrap()
    }

    fn merge(patch: &Value) -> Patch {
        read(PatchType::Merge, patch).unwrap()
    }

    #[test]
    fn a_patch_of_metadata_alone_is_known() {
        assert!(merge(&json!({"kind": "Llama", "metadata": {"labels": {}}})).is_of_metadata());
        assert!(!merge(&json!({"metadata": {}, "spec": {}})).is_of_metadata());
        assert!(json(&json!([{"op": "remove", "path": "/metadata/labels/a"}])).is_of_metadata());
        for patch in [
            json!([{"op": "remove", "path": "/metadata"}]),
            json!([{"op": "copy", "from": "/spec/a", "path": "/metadata/labels/a"}]),
            json!([{"op": "test", "path": "/spec/a", "value": 1}, {"op": "remove", "path": "/metadata/labels"}]),
        ] {
            assert!(!json(&patch).is_of_metadata(), "{patch}");
        }
    }

    #[test]
    fn a_patch_that_names_a_version_is_known() {
        assert!(merge(&json!({"metadata": {"resourceVersion": "7"}})).names_version());
        assert!(!merge(&json!({"metadata": {"resourceVersion": null}})).names_version());
        assert!(
            json(&json!([{"op": "test", "path": "/metadata/resourceVersion", "value": "7"}])).names_version()
        );
        assert!(!json(&json!([{"op": "test", "path": "/metadata/uid", "value": "7"}])).names_version());
    }

    #[test]
    fn what_cannot_be_applied_or_read_is_refused() {
        let served = Served { api_version: "a.b/v1".into(), kind: "A".into(), ..Served::default() };
        let apply = |patch: Value| json(&patch).apply(&served, "x", json!({"a": 1}));
        assert_eq!(apply(json!([{"op": "replace", "path": "/a", "value": 2}])), Ok(json!({"a": 2})));
        assert_eq!(apply(json!([{"op": "test", "path": "/a", "value": 2}])).unwrap_err().code, 422);
        assert_eq!(apply(json!([{"op": "remove", "path": "/b"}])).unwrap_err().code, 422);
        assert_eq!(read(PatchType::Json, &json!({})).unwrap_err().code, 400);
        assert_eq!(read(PatchType::Merge, &json!([])).unwrap_err().code, 400);
        let many: Vec<Value> = (0..=OPERATIONS_MAX).map(|_| json!({"op": "remove", "path": "/a"})).collect();
        assert_eq!(read(PatchType::Json, &json!(many)).unwrap_err().code, 413);
    }
}
