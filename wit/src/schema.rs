//! The JSON Schemas of the documents, generated from the types.

use schemars::{JsonSchema, generate::SchemaSettings, transform::RecursiveTransform};
use serde_json::Value;

use crate::{
    Failure, HostStatus, Manifest, Request, Response,
    views::{ShowRequest, ShowResponse, StoreRequest, StoreResponse, ViewsManifest},
};

/// The published schemas: file name and content. `cargo xtask gen` writes them to `wit/schemas/`, and a check compares them.
pub fn published() -> Vec<(&'static str, Value)> {
    vec![
        ("manifest.schema.json", document::<Manifest>("https://pintle.dev/schemas/guest/v1/manifest.json")),
        ("request.schema.json", document::<Request>("https://pintle.dev/schemas/guest/v1/request.json")),
        ("response.schema.json", document::<Response>("https://pintle.dev/schemas/guest/v1/response.json")),
        ("failure.schema.json", document::<Failure>("https://pintle.dev/schemas/guest/v1/failure.json")),
        (
            "views-manifest.schema.json",
            document::<ViewsManifest>("https://pintle.dev/schemas/guest/v1/views-manifest.json"),
        ),
        (
            "show-request.schema.json",
            document::<ShowRequest>("https://pintle.dev/schemas/guest/v1/show-request.json"),
        ),
        (
            "show-response.schema.json",
            document::<ShowResponse>("https://pintle.dev/schemas/guest/v1/show-response.json"),
        ),
        (
            "store-request.schema.json",
            document::<StoreRequest>("https://pintle.dev/schemas/guest/v1/store-request.json"),
        ),
        (
            "store-response.schema.json",
            document::<StoreResponse>("https://pintle.dev/schemas/guest/v1/store-response.json"),
        ),
        (
            "host-status.schema.json",
            document::<HostStatus>("https://pintle.dev/schemas/guest/v1/host-status.json"),
        ),
    ]
}

fn document<T: JsonSchema>(id: &str) -> Value {
    let mut schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>();
    schema.insert("$id".into(), id.into());
    schema.to_value()
}

/// The schema of a type in the form that a CRD takes: everything inlined, OpenAPI 3 vocabulary, no titles, no `nullable` (an absent
/// optional field is simply not required), with descriptions.
pub fn structural<T: JsonSchema>() -> Value {
    inlined::<T>(clean)
}

/// The same for what a view shows. A field that is marked `writeOnly` stays so, and is nullable: null takes its value away. One that is
/// marked `readOnly` stays so too.
pub fn structural_of_view<T: JsonSchema>() -> Value {
    inlined::<T>(|schema| {
        let is_write_only = schema.get("writeOnly") == Some(&Value::Bool(true));
        let is_read_only = schema.get("readOnly") == Some(&Value::Bool(true));
        clean(schema);
        if is_read_only {
            schema.insert("readOnly".into(), true.into());
            schema.remove("default");
        }
        if is_write_only {
            schema.insert("writeOnly".into(), true.into());
            schema.insert("nullable".into(), true.into());
        }
    })
}

fn inlined<T: JsonSchema>(clean: fn(&mut schemars::Schema)) -> Value {
    let settings = SchemaSettings::openapi3().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
        settings.transforms.push(Box::new(RecursiveTransform(clean)));
    });
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

/// Removes from a schema what the API server does not accept, or what says nothing: `nullable` and the default `null` of optional fields,
/// annotations of JSON Schema, formats of unsigned integers, titles, `$schema`, and `oneOf` with nothing but constants.
fn clean(schema: &mut schemars::Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    for key in ["$schema", "title", "nullable", "deprecated", "examples", "readOnly", "writeOnly"] {
        object.remove(key);
    }
    for (key, says_nothing) in [("additionalProperties", Value::Bool(false)), ("default", Value::Null)] {
        if object.get(key) == Some(&says_nothing) {
            object.remove(key);
        }
    }
    if let Some(format) = object.get("format").and_then(Value::as_str)
        && format.starts_with("uint")
    {
        object.remove("format");
    }
    // A Rust enum with a doc comment on each variant becomes oneOf of constants. A structural schema needs a plain enum.
    if let Some(Value::Array(branches)) = object.get("oneOf") {
        let constants: Option<Vec<Value>> =
            branches.iter().map(constants).collect::<Option<Vec<_>>>().map(|all| all.concat());
        if let Some(constants) = constants {
            object.remove("oneOf");
            object.insert("type".into(), "string".into());
            object.insert("enum".into(), Value::Array(constants));
        }
    }
}

fn constants(branch: &Value) -> Option<Vec<Value>> {
    match (branch.get("const"), branch.get("enum")) {
        (Some(constant), _) => Some(vec![constant.clone()]),
        (None, Some(Value::Array(values))) => Some(values.clone()),
        _ => None,
    }
}

/// The schema of [`HostStatus`], ready to be merged into the `status` of a CRD: its `properties`, with the conditions as a list that
/// several writers can share.
pub fn host_status_properties() -> serde_json::Map<String, Value> {
    let mut schema = structural::<HostStatus>();
    if let Some(conditions) = schema.pointer_mut("/properties/conditions").and_then(Value::as_object_mut) {
        conditions.insert("x-kubernetes-list-type".into(), "map".into());
        conditions.insert("x-kubernetes-list-map-keys".into(), serde_json::json!(["type"]));
    }
    match schema.pointer_mut("/properties").map(Value::take) {
        Some(Value::Object(properties)) => properties,
        _ => serde_json::Map::new(),
    }
}
