//! What somebody does to an object, and the name of an object, in short.

use pintle_simulator::{Act, Cascade};
use pintle_wit::ObjectRef;
use serde_json::Value;

pub(crate) fn apply(object: &Value) -> Act {
    Act::Apply { object: object.clone(), manager: "kubectl".into(), force: true }
}

pub(crate) fn merge(target: &ObjectRef, patch: Value) -> Act {
    Act::Merge { target: target.clone(), subresource: None, patch }
}

/// A deletion after which the garbage collector deletes what the object owns.
pub(crate) fn delete(target: &ObjectRef) -> Act {
    Act::Delete { target: target.clone(), cascade: Cascade::Background }
}

pub(crate) fn reference(api_version: &str, kind: &str, namespace: Option<&str>, name: &str) -> ObjectRef {
    ObjectRef {
        api_version: api_version.into(),
        kind: kind.into(),
        namespace: namespace.map(Into::into),
        name: name.into(),
    }
}
