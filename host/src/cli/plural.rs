//! The plural of a kind, as URLs and RBAC have it. Without a cluster it can only be guessed.

use kube::core::{ApiResource, GroupVersionKind};

/// The plural of a kind, by the rule that Kubernetes' generators use.
pub fn plural(kind: &str) -> String {
    ApiResource::from_gvk(&GroupVersionKind::gvk("", "", kind)).plural
}
