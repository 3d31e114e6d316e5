//! What of an answer is shown as it is, and what is not.

use pintle_wit::{Kind, names};
use serde_json::Value;

/// What stands for the host's time in what is printed and expected.
pub const TIME: &str = "<time>";

/// Whether the values of objects of this kind must not be shown.
pub(crate) fn is_secret(kind: &Kind) -> bool {
    kind.api_version == "v1" && kind.kind == "Secret"
}

/// A child of an answer without what the host adds to it: owner reference, labels and hash.
pub fn plain(child: &Value) -> Value {
    let mut child = child.clone();
    if let Some(metadata) = child.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("ownerReferences");
        for key in ["labels", "annotations"] {
            let Some(entries) = metadata.get_mut(key).and_then(Value::as_object_mut) else { continue };
            entries.retain(|key, _| !names::is_ours(key));
            if entries.is_empty() {
                metadata.remove(key);
            }
        }
    }
    child
}
