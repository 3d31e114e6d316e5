//! The fields that belong to a subresource.

use crate::apply::fields::FieldSet;

/// The fields that a write cannot set: the status for most writes, and the reverse for writes of the status.
pub(crate) fn resets(kind: &str, custom: bool, status: bool, subresource: bool) -> FieldSet {
    match (subresource, custom, kind) {
        (false, ..) if status && kind != "CustomResourceDefinition" => FieldSet::named(&["status"]),
        (false, ..) => FieldSet::default(),
        (true, true, _) => FieldSet::named(&["metadata", "spec"]),
        (true, false, "Deployment") => FieldSet::named(&["spec", "metadata.labels"]),
        (true, false, _) => FieldSet::named(&["spec"]),
    }
}
