//! Generates the CustomResourceDefinition of a guest's root from its types and constants.

use std::fmt;

use pintle_wit::schema::{host_status_properties, structural};
use serde_json::{Map, Value, json};

use super::{Column, Crd, CustomResource, Root, Rule};
use crate::Guest;

/// Why no CRD can be generated: the constants do not fit the types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// A rule is about a field that the types do not have.
    RuleWithoutField {
        /// The rule's path.
        path: String,
    },
    /// A status field of the guest has the name of one of the host's.
    HostField {
        /// The field.
        name: String,
    },
    /// A name is missing, or the manifest's `reconciles` has no group. Kinds of the core group are not custom.
    Names,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RuleWithoutField { path } => write!(f, "there is a rule on `{path}`, but no such field"),
            Self::HostField { name } => write!(f, "the status field `{name}` is the host's; call it otherwise"),
            Self::Names => {
                f.write_str("a CRD needs plural and singular, and a manifest that reconciles a kind with a group and a version")
            }
        }
    }
}

impl std::error::Error for Invalid {}

/// The CustomResourceDefinition of a guest's root.
///
/// # Errors
/// When the constants of [`CustomResource`] do not fit the types.
pub fn crd<G>() -> Result<Value, Invalid>
where
    G: Guest<Root: Root>,
{
    definition::<<G::Root as Root>::Spec>(&G::manifest().reconciles)
}

fn definition<Spec: CustomResource>(kind: &crate::Kind) -> Result<Value, Invalid> {
    let Crd { plural, singular, short_names, categories, cluster_scope, columns, scale, rules } = Spec::CRD;
    let (group, version) = (kind.group(), kind.version());
    if [plural, singular, group, version, &kind.kind].contains(&"") {
        return Err(Invalid::Names);
    }

    let mut names = json!({
        "kind": kind.kind,
        "listKind": format!("{}List", kind.kind),
        "plural": plural,
        "singular": singular,
    });
    for (key, values) in [("shortNames", short_names), ("categories", categories)] {
        if !values.is_empty() {
            names[key] = json!(values);
        }
    }

    let mut subresources = json!({"status": {}});
    if let Some(scale) = scale {
        subresources["scale"] =
            json!({"specReplicasPath": scale.spec_replicas, "statusReplicasPath": scale.status_replicas});
        if let Some(selector) = scale.label_selector {
            subresources["scale"]["labelSelectorPath"] = json!(selector);
        }
    }

    let mut version = json!({
        "name": version,
        "served": true,
        "storage": true,
        "subresources": subresources,
        "schema": {"openAPIV3Schema": root_schema::<Spec>(rules)?},
    });
    if !columns.is_empty() {
        version["additionalPrinterColumns"] = columns.iter().map(printer_column).collect();
    }

    Ok(json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group,
            "names": names,
            "scope": if cluster_scope { "Cluster" } else { "Namespaced" },
            "versions": [version],
        },
    }))
}

fn printer_column(column: &Column) -> Value {
    let mut printed = json!({"name": column.name, "type": column.r#type, "jsonPath": column.json_path});
    if column.wide {
        printed["priority"] = json!(1);
    }
    printed
}

fn root_schema<Spec: CustomResource>(rules: &[Rule]) -> Result<Value, Invalid> {
    let spec = structural::<Spec>();
    let mut schema = json!({
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "status": status_schema::<Spec::Status>()?,
        },
    });
    if let Some(description) = spec.get("description") {
        schema["description"] = description.clone();
    }
    schema["properties"]["spec"] = spec;
    for rule in rules {
        let unknown = || Invalid::RuleWithoutField { path: rule.path.to_owned() };
        let at = field(&mut schema, rule.path).and_then(Value::as_object_mut).ok_or_else(unknown)?;
        let mut validation = json!({"rule": rule.rule, "message": rule.message});
        if let Some(field) = rule.field {
            validation["fieldPath"] = json!(field);
        }
        if let Value::Array(all) = at.entry("x-kubernetes-validations").or_insert_with(|| json!([])) {
            all.push(validation);
        }
    }
    Ok(schema)
}

/// The guest's status fields and the host's.
fn status_schema<Status: schemars::JsonSchema>() -> Result<Value, Invalid> {
    let mut schema = structural::<Status>();
    let Some(object) = schema.as_object_mut() else { return Ok(schema) };
    // The host writes its own fields even before the guest has answered, so none of the guest's fields may be required.
    for key in ["required", "anyOf", "oneOf", "allOf"] {
        object.remove(key);
    }
    object.insert("type".to_owned(), json!("object"));
    remove_defaults(object);
    if let Value::Object(properties) = object.entry("properties").or_insert_with(|| Value::Object(Map::new()))
    {
        for (name, property) in host_status_properties() {
            if properties.insert(name.clone(), property).is_some() {
                return Err(Invalid::HostField { name });
            }
        }
    }
    Ok(schema)
}

/// Removes the defaults from the schema of a status. Otherwise the API server would set fields that nobody wrote.
fn remove_defaults(schema: &mut Map<String, Value>) {
    schema.remove("default");
    for key in ["items", "additionalProperties"] {
        schema.get_mut(key).and_then(Value::as_object_mut).into_iter().for_each(remove_defaults);
    }
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    properties
        .into_iter()
        .flat_map(Map::values_mut)
        .filter_map(Value::as_object_mut)
        .for_each(remove_defaults);
}

/// The schema of the field at a path: `spec.subDomains[]` are the items of an array.
fn field<'schema>(schema: &'schema mut Value, path: &str) -> Option<&'schema mut Value> {
    let mut at = schema;
    for name in path.split('.').filter(|name| !name.is_empty()) {
        let (name, items) = name.strip_suffix("[]").map_or((name, false), |name| (name, true));
        at = at.get_mut("properties")?.get_mut(name)?;
        if items {
            at = at.get_mut("items")?;
        }
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;

    use super::*;
    use crate::{Failure, Kind, Manifest, NoConfig, Object, Request, Response};

    #[derive(serde::Deserialize, JsonSchema)]
    #[serde(rename_all = "camelCase")]
    #[allow(dead_code, reason = "only its schema matters")]
    struct Spec {
        /// How many.
        #[serde(default)]
        replicas: Option<u32>,
        hosts: Vec<String>,
        mode: Mode,
    }

    /// How.
    #[derive(serde::Deserialize, JsonSchema)]
    enum Mode {
        /// At once.
        Fast,
        /// With care.
        Slow,
    }

    #[derive(JsonSchema, serde::Deserialize)]
    #[allow(dead_code, reason = "only its schema matters")]
    struct Status {
        #[serde(default)]
        hosts: Vec<String>,
        #[serde(default)]
        parts: Vec<Part>,
    }

    #[derive(JsonSchema, serde::Deserialize)]
    #[allow(dead_code, reason = "only its schema matters")]
    struct Part {
        #[serde(default)]
        default: u32,
    }

    impl CustomResource for Spec {
        type Status = Status;
        const CRD: Crd = Crd {
            plural: "samples",
            singular: "sample",
            short_names: &["sp"],
            columns: &[Column::date("Age", ".metadata.creationTimestamp").wide()],
            rules: &[
                Rule::new("", "self.metadata.name.size() < 9", "the name is too long"),
                Rule::new("spec.hosts[]", "self != ''", "a host must not be empty"),
                Rule::new("spec", "self.hosts.size() > 0", "there must be a host").field(".hosts"),
            ],
            ..Crd::EMPTY
        };
    }

    struct Sample;
    impl Guest for Sample {
        type Root = Object<Spec>;
        type Config = NoConfig;
        fn manifest() -> Manifest {
            Manifest::new("sample", "0.1.0", Kind::new("example.com/v1beta1", "Sample"))
        }
        fn reconcile(_: Request<Self::Root, NoConfig>) -> Result<Response, Failure> {
            Ok(Response::default())
        }
    }

    fn schema() -> Value {
        crd::<Sample>().unwrap()["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
    }

    #[test]
    fn names_come_from_the_manifest_and_the_constants() {
        let crd = crd::<Sample>().unwrap();
        assert_eq!(crd["metadata"]["name"], "samples.example.com");
        assert_eq!(
            crd["spec"]["names"],
            json!({"kind": "Sample", "listKind": "SampleList", "plural": "samples", "singular": "sample", "shortNames": ["sp"]})
        );
        let version = &crd["spec"]["versions"][0];
        assert_eq!(
            (version["name"].as_str(), &version["subresources"]),
            (Some("v1beta1"), &json!({"status": {}}))
        );
        assert_eq!(version["additionalPrinterColumns"][0]["priority"], 1);
    }

    #[test]
    fn the_schema_is_structural() {
        let schema = schema();
        let spec = &schema["properties"]["spec"];
        assert_eq!(
            spec["properties"]["replicas"],
            json!({"type": "integer", "minimum": 0, "description": "How many."})
        );
        assert_eq!(
            spec["properties"]["mode"],
            json!({"type": "string", "enum": ["Fast", "Slow"], "description": "How."})
        );
        assert_eq!(spec["required"], json!(["hosts", "mode"]));
    }

    #[test]
    fn rules_stand_where_they_say() {
        let schema = schema();
        assert_eq!(
            schema["x-kubernetes-validations"],
            json!([{"rule": "self.metadata.name.size() < 9", "message": "the name is too long"}])
        );
        assert_eq!(schema["properties"]["spec"]["x-kubernetes-validations"][0]["fieldPath"], ".hosts");
        assert_eq!(
            schema["properties"]["spec"]["properties"]["hosts"]["items"]["x-kubernetes-validations"][0]["rule"],
            "self != ''"
        );
        let mut schema = schema.clone();
        assert!(field(&mut schema, "spec.hosts.name").is_none());
    }

    #[test]
    fn the_status_has_the_hosts_fields_and_requires_nothing() {
        let status = &schema()["properties"]["status"];
        assert_eq!(status.get("required"), None);
        let names: Vec<_> = status["properties"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["conditions", "hosts", "observedGeneration", "parts", "pintle"]);
        assert_eq!(status["properties"]["conditions"]["x-kubernetes-list-map-keys"], json!(["type"]));
    }

    #[test]
    fn the_api_server_fills_nothing_into_a_status() {
        let status = &schema()["properties"]["status"]["properties"];
        assert_eq!(status["hosts"], json!({"type": "array", "items": {"type": "string"}}));
        let part = json!({"type": "object", "properties": {"default": {"type": "integer", "minimum": 0}}});
        assert_eq!(status["parts"], json!({"type": "array", "items": part}));
    }
}
