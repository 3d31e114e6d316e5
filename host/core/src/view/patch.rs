//! [`Patch`]: what a client wants changed of what it was shown.

mod bounded;

use json_patch::{AddOperation, PatchOperation};
use pintle_wit::{Limits, Weight};
use serde_json::{Map, Value};

use super::{Served, Status, accept::PatchType, status::fault};
use crate::object::json_bytes;

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
                // What is a list of objects can be read, and is refused as what cannot be carried out.
                let unknown = |error: serde_json::Error| match serde_json::from_slice::<Vec<Map<String, Value>>>(
                    body,
                ) {
                    Ok(_) => Status::no_operation(&error.to_string()),
                    Err(_) => wrong(error),
                };
                let patch: json_patch::Patch = serde_json::from_slice(body).map_err(unknown)?;
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

    /// How many copies it takes of what is there. More can come of them than the patch says itself.
    pub fn copies(&self) -> usize {
        let is_copy = |operation: &&PatchOperation| matches!(operation, PatchOperation::Copy(_));
        match self {
            Self::Json(patch) => patch.0.iter().filter(is_copy).count(),
            Self::Merge(_) => 0,
        }
    }

    /// The object as the client wants it. `room` is how much memory its copies may take, in bytes: [`Applying::copies`].
    ///
    /// # Errors
    /// 422 if it cannot be applied to the object, in the words of the API server.
    pub fn apply(&self, served: &Served, name: &str, mut object: Value, room: u64) -> Result<Value, Status> {
        match self {
            Self::Merge(patch) => {
                json_patch::merge(&mut object, patch);
                Ok(object)
            }
            Self::Json(patch) => bounded::apply(&patch.0, object, room).map_err(|why| {
                let cause = fault::invalid_value("patch", &why, "");
                Status::invalid(served, name, vec![cause])
            }),
        }
    }
}

/// The most memory that it takes to read a patch, in bytes.
pub fn reading_bytes(body: &[u8]) -> u64 {
    // What is no text is not read.
    let text = std::str::from_utf8(body).unwrap_or_default();
    // An operation is read twice: as whatever it is, and as what it says to be.
    parsed_bytes(text).saturating_mul(2)
}

/// The most memory that it takes to read a patch and to apply it to an object, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applying {
    /// The patch, what it adds, and the object.
    pub given: u64,
    /// What it copies.
    pub copies: u64,
}

impl Applying {
    /// What a patch takes that has so many copies.
    pub fn new(body: &[u8], copies: usize, object: &Value) -> Self {
        let text = std::str::from_utf8(body).unwrap_or_default();
        let taken = Weight { bytes: json_bytes(object), ..bounded::Extent::of(object).weight };
        let whole = parsed_bytes(text).saturating_add(taken.parsed_bytes() as u64);
        // Each copy doubles what there is at most.
        let grown =
            u32::try_from(copies).ok().and_then(|copies| 1u64.checked_shl(copies)).unwrap_or(u64::MAX);
        let copied = whole.saturating_mul(grown - 1).min(bounded::COPIED_MEMORY_BYTES_MAX);
        Self { given: reading_bytes(body).saturating_add(whole), copies: copied }
    }
}

fn parsed_bytes(text: &str) -> u64 {
    let any = Limits { depth: usize::MAX, values: usize::MAX, ..Limits::default() };
    Weight::of(text, any).map_or(u64::MAX, |weight| weight.parsed_bytes() as u64)
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
        let apply = |patch: Value| json(&patch).apply(&served, "x", json!({"a": 1}), 0);
        assert_eq!(apply(json!([{"op": "replace", "path": "/a", "value": 2}])), Ok(json!({"a": 2})));
        assert_eq!(apply(json!([{"op": "test", "path": "/a", "value": 2}])).unwrap_err().code, 422);
        assert_eq!(apply(json!([{"op": "remove", "path": "/b"}])).unwrap_err().code, 422);
        assert_eq!(read(PatchType::Json, &json!({})).unwrap_err().code, 400);
        assert_eq!(read(PatchType::Json, &json!([{"op": "jump", "path": "/a"}])).unwrap_err().code, 422);
        assert_eq!(read(PatchType::Json, &json!([1])).unwrap_err().code, 400);
        assert_eq!(read(PatchType::Merge, &json!([])).unwrap_err().code, 400);
        let many: Vec<Value> = (0..=OPERATIONS_MAX).map(|_| json!({"op": "remove", "path": "/a"})).collect();
        assert_eq!(read(PatchType::Json, &json!(many)).unwrap_err().code, 413);
    }

    #[test]
    fn too_many_copies_are_refused_as_the_api_server_refuses_them() {
        let served = Served { api_version: "a.b/v1".into(), kind: "A".into(), ..Served::default() };
        let copies = (0..37).map(|at| json!({"op": "copy", "from": "/spec", "path": format!("/spec/{at}")}));
        let patch = json(&copies.collect());
        assert_eq!((patch.copies(), merge(&json!({"a": 1})).copies()), (37, 0));
        let object = json!({"spec": {"a": "b".repeat(1000)}});
        let refused = patch.apply(&served, "x", object, 160 << 20).unwrap_err();
        assert_eq!(refused.code, 422);
        assert!(refused.message.contains("exceeding the limit 3145728"), "{}", refused.message);
    }

    #[test]
    fn a_patch_says_how_much_memory_it_may_take() {
        let body = json!([{"op": "add", "path": "/a", "value": "x".repeat(1 << 20)}]).to_string();
        let object = json!({"b": "y".repeat(1 << 20)});
        let reading = reading_bytes(body.as_bytes());
        assert!(reading >= 2 << 20, "{reading}");
        let applying = |copies: usize| Applying::new(body.as_bytes(), copies, &object);
        let alone = applying(0);
        assert!(alone.given >= reading + (2 << 20) && alone.copies == 0, "{alone:?}");
        assert_eq!(applying(1), Applying { copies: alone.given - reading, ..alone });
        assert_eq!(applying(100), Applying { copies: 160 << 20, ..alone });
    }
}
