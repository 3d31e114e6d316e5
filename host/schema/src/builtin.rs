//! The schemas of Kubernetes' built-in kinds, as far as this program has them.
//!
//! `builtin.json` has the definitions of `/openapi/v3` that these kinds need, without their descriptions. The conformance test of the
//! simulator compares it with what a real API server serves.

use std::sync::LazyLock;

use pintle_wit::Kind;
use serde_json::{Value, json};

use crate::shape::Shape;

/// The version of Kubernetes that the schemas come from.
pub const KUBERNETES: &str = "1.36";

static DEFINITIONS: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("builtin.json")).unwrap_or_default());

/// The definitions that references in schemas lead to.
pub fn definitions() -> &'static Value {
    &DEFINITIONS
}

/// The schema of a built-in kind, if this program has it.
pub fn schema(kind: &Kind) -> Option<Value> {
    let (group, version) = (kind.group(), kind.version());
    let package = match group {
        "" => format!("io.k8s.api.core.{version}"),
        "apiextensions.k8s.io" => format!("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.{version}"),
        group => format!("io.k8s.api.{}.{version}", group.split('.').next().unwrap_or(group)),
    };
    let is_own = !group.contains('.') || group.ends_with(".k8s.io");
    let name = format!("{package}.{}", kind.kind);
    (is_own && definitions().get(&name).is_some()).then(|| json!({"$ref": name}))
}

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The shape of the metadata of every object.
pub fn metadata() -> Shape<'static> {
    match definitions().get(OBJECT_META) {
        Some(schema) => Shape::new(definitions(), schema),
        None => Shape::new(definitions(), &Value::Null),
    }
}

/// The schema of a custom kind, with the metadata of every object.
pub fn with_metadata(schema: &Value) -> Value {
    let mut whole = schema.clone();
    if !whole.is_object() {
        whole = json!({});
    }
    for (field, of) in [
        ("apiVersion", json!({"type": "string"})),
        ("kind", json!({"type": "string"})),
        ("metadata", json!({"$ref": OBJECT_META})),
    ] {
        whole["properties"][field] = of;
    }
    whole["type"] = "object".into();
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_in_the_built_in_schemas_leads_somewhere() {
        fn references(node: &Value, found: &mut Vec<String>) {
            match node {
                Value::Object(fields) => {
                    found.extend(fields.get("$ref").and_then(Value::as_str).map(Into::into));
                    fields.values().for_each(|within| references(within, found));
                }
                Value::Array(items) => items.iter().for_each(|item| references(item, found)),
                _ => {}
            }
        }
        let mut found = Vec::new();
        references(definitions(), &mut found);
        assert!(found.len() > 100);
        for name in found {
            assert!(definitions().get(&name).is_some(), "{name}");
        }
    }

    #[test]
    fn a_kind_that_only_sounds_like_one_of_kubernetes_has_no_schema() {
        for (api_version, kind) in [
            ("apps/v1", "Deployment"),
            ("v1", "ConfigMap"),
            ("rbac.authorization.k8s.io/v1", "Role"),
            ("networking.k8s.io/v1", "Ingress"),
        ] {
            assert!(schema(&Kind::new(api_version, kind)).is_some(), "{api_version} {kind}");
        }
        for (api_version, kind) in
            [("apps.example.com/v1", "Deployment"), ("v1", "Deployment"), ("v2", "Pod")]
        {
            assert_eq!(schema(&Kind::new(api_version, kind)), None, "{api_version} {kind}");
        }
    }
}
