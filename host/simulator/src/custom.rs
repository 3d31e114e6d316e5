//! Kinds that CRDs define.

use pintle_schema::structural::Structural;
use serde_json::Value;

/// What a CRD declares, and the API server observes, but the simulator does not model.
pub(crate) fn not_modelled(crd: &Value) -> Option<String> {
    let spec = &crd["spec"];
    if spec["conversion"]["strategy"] == "Webhook" {
        return Some("conversion by a webhook".into());
    }
    let versions = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    if versions.iter().filter(|version| version["served"] == true).count() > 1 {
        return Some("more than one served version of a kind".into());
    }
    let mut schemas = versions.iter().filter_map(|version| version.pointer("/schema/openAPIV3Schema"));
    schemas.find_map(|schema| Structural::of_crd(schema).err()).map(|why| format!("{why} of a CRD"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_crd_asks_for_and_nobody_looks_at_is_named() {
        let crd = |node: Value| {
            json!({"spec": {"versions": [{"name": "v1", "served": true, "schema": {"openAPIV3Schema":
            {"type": "object", "properties": {"spec": {"type": "object", "properties": {"x": node}}}}}}]}})
        };
        assert_eq!(not_modelled(&crd(json!({"type": "string", "format": "date-time"}))), None);
        assert_eq!(
            not_modelled(&crd(json!({"not": {"dependencies": {}}}))).as_deref(),
            Some("dependencies in spec.x of the schema of a CRD")
        );
        let mut two = crd(json!({}));
        two["spec"]["versions"] = json!([{"name": "v1", "served": true}, {"name": "v2", "served": true}]);
        assert!(not_modelled(&two).is_some());
        assert!(not_modelled(&json!({"spec": {"conversion": {"strategy": "Webhook"}}})).is_some());
    }
}
