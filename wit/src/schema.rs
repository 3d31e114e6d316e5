//! The JSON Schemas of the documents, generated from the types.

mod place;

use schemars::{JsonSchema, generate::SchemaSettings};
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

/// The schema of a type in the form that a CRD takes: structural, with everything inlined, without titles and `nullable` (an absent optional
/// field is simply not required), with descriptions. What a structural schema cannot say is left to the guest: such a place takes any value
/// (`x-kubernetes-preserve-unknown-fields`).
pub fn structural<T: JsonSchema>() -> Value {
    inlined::<T>(false)
}

/// The same for what a view shows. A field that is marked `writeOnly` stays so, and is nullable: null takes its value away. One that is
/// marked `readOnly` stays so too.
pub fn structural_of_view<T: JsonSchema>() -> Value {
    inlined::<T>(true)
}

fn inlined<T: JsonSchema>(is_view: bool) -> Value {
    let settings = SchemaSettings::openapi3().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    place::place(&mut schema, is_view);
    schema
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
