//! Custom kinds of scenarios. All of them have the same shape, with more or less of a status.

use pintle_wit::schema::host_status_properties;
use serde_json::{Value, json};

use super::CustomKind;

const GROUP: &str = "acceptance.pintle.dev";

/// The group and version of the custom kinds of scenarios.
pub const API_VERSION: &str = "acceptance.pintle.dev/v1";

/// The CRD of a custom kind.
pub(super) fn crd(kind: &str, declares: CustomKind) -> Value {
    let singular = kind.to_lowercase();
    let plural = format!("{singular}s");
    let mut status = json!({"size": {"type": "integer"}});
    if !matches!(declares, CustomKind::NoHostStatus | CustomKind::NoStatus) {
        for (name, mut property) in host_status_properties() {
            if declares == CustomKind::AtomicConditions && name == "conditions" {
                property["x-kubernetes-list-type"] = "atomic".into();
                if let Some(property) = property.as_object_mut() {
                    property.remove("x-kubernetes-list-map-keys");
                }
            }
            status[name] = property;
        }
    }
    let mut version = json!({
        "name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "status": {"type": "object", "properties": status},
        }}},
    });
    if declares != CustomKind::NoStatus {
        version["subresources"] = json!({"status": {}});
    }
    let scope = if declares == CustomKind::ClusterScope { "Cluster" } else { "Namespaced" };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": scope, "versions": [version],
            "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": singular},
        },
    })
}
