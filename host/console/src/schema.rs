//! The schema of a kind, as forms are made of it: what the API server publishes, with everything that it refers to put in its place.

use axum::response::Response;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{
    caller::Ask,
    discovery,
    endpoint::{self, Call, Endpoint},
    objects,
    place::Resource,
    problem::Problem,
};

/// How deep a schema may be, and how many parts it may have when everything is in its place. The largest CRDs have some ten thousand.
const DEPTH_MAX: usize = 64;
const PARTS_MAX: usize = 100_000;

/// How the API server marks whose schema it is.
const MARK: &str = "x-kubernetes-group-version-kind";

/// A kind and its schema.
#[derive(Debug, Serialize, JsonSchema)]
struct Described {
    #[serde(flatten)]
    resource: Resource,
    /// The kind.
    kind: String,
    /// Whether its objects live in namespaces.
    namespaced: bool,
    /// Its schema, in the words of OpenAPI 3.0, with Kubernetes' own beside them.
    schema: Map<String, Value>,
}

/// The endpoints of this file.
pub(crate) fn endpoints() -> Vec<Endpoint> {
    let path = "/api/v1/schema/{group}/{version}/{plural}";
    vec![Endpoint::get(path, "getSchema", "The schema of a kind", get).gives::<Described>()]
}

async fn get(call: Call) -> Result<Response, Problem> {
    let resource = objects::resource(&call)?;
    let caller = call.caller()?;
    let served = discovery::of_resource(caller, &resource).await?;
    let path = format!("/openapi/v3/apis/{}/{}", resource.group, resource.version);
    let document = caller.ask(Ask::get(path)).await?.json()?;
    let schema = of_kind(&document, &resource, &served.kind)?;
    let described = Described { resource, kind: served.kind, namespaced: served.namespaced, schema };
    endpoint::json(StatusCode::OK, &described)
}

/// Finds the schema of a kind, and puts everything that it refers to in its place.
fn of_kind(document: &Value, resource: &Resource, kind: &str) -> Result<Map<String, Value>, Problem> {
    let schemas = document.pointer("/components/schemas").and_then(Value::as_object);
    let is_it = |schema: &&Value| {
        schema.get(MARK).and_then(Value::as_array).into_iter().flatten().any(|mark| {
            mark["group"] == resource.group.as_str()
                && mark["version"] == resource.version.as_str()
                && mark["kind"] == kind
        })
    };
    let found = schemas.and_then(|schemas| schemas.values().find(is_it));
    let found = found.ok_or_else(|| Problem::not_found("the API server publishes no schema of this kind"))?;
    let mut parts = 0;
    let mut schema = found.clone();
    // Metadata are the same everywhere, and large.
    if let Some(metadata) = schema.pointer_mut("/properties/metadata") {
        *metadata = json!({"type": "object"});
    }
    match inlined(&schema, document, DEPTH_MAX, &mut parts) {
        Some(Value::Object(mut schema)) => {
            schema.remove(MARK);
            Ok(schema)
        }
        _ => Err(Problem::bad_gateway("the schema of this kind is too large or refers to itself")),
    }
}

/// The same with references replaced; `None` when that does not end.
fn inlined(schema: &Value, document: &Value, depth: usize, parts: &mut usize) -> Option<Value> {
    *parts += 1;
    if depth == 0 || *parts > PARTS_MAX {
        return None;
    }
    match schema {
        Value::Object(fields) => {
            if let Some(target) = fields.get("$ref").and_then(Value::as_str) {
                let target = document.pointer(target.strip_prefix('#')?)?;
                return inlined(target, document, depth - 1, parts);
            }
            // A reference with words of its own stands alone in an `allOf`.
            if let Some([only]) = fields.get("allOf").and_then(Value::as_array).map(Vec::as_slice)
                && only.get("$ref").is_some()
                && let Some(Value::Object(mut target)) = inlined(only, document, depth - 1, parts)
            {
                for (key, value) in fields.iter().filter(|(key, _)| *key != "allOf") {
                    target.insert(key.clone(), value.clone());
                }
                return Some(Value::Object(target));
            }
            let mut found = Map::new();
            for (key, value) in fields {
                found.insert(key.clone(), inlined(value, document, depth - 1, parts)?);
            }
            Some(Value::Object(found))
        }
        Value::Array(items) => {
            let items = items.iter().map(|item| inlined(item, document, depth - 1, parts));
            items.collect::<Option<Vec<_>>>().map(Value::Array)
        }
        plain => Some(plain.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{self, ask, request, upstream};

    fn document(schemas: Value) -> Value {
        json!({"components": {"schemas": schemas}})
    }

    fn mark(kind: &str) -> Value {
        json!([{"group": "a.example", "version": "v1", "kind": kind}])
    }

    #[tokio::test]
    async fn a_schema_is_whole_and_keeps_its_rules() {
        let (client, log) = upstream(|asked| match asked.path.as_str() {
            "/apis/a.example/v1" => {
                (200, json!({"resources": [{"name": "rooms", "kind": "Room", "namespaced": true}]}))
            }
            _ => (
                200,
                document(json!({
                    "example.a.v1.Other": {MARK: mark("Other"), "type": "object"},
                    "example.a.v1.Room": {MARK: mark("Room"), "type": "object", "properties": {
                        "metadata": {"allOf": [{"$ref": "#/components/schemas/Meta"}]},
                        "spec": {"description": "own", "allOf": [{"$ref": "#/components/schemas/Spec"}]}}},
                    "Meta": {"type": "object", "properties": {"uid": {"type": "string"}}},
                    "Spec": {"type": "object", "description": "its", "x-kubernetes-validations": [{"rule": "self.a != ''"}],
                        "properties": {"a": {"$ref": "#/components/schemas/Text"}}},
                    "Text": {"type": "string"},
                })),
            ),
        });
        let app = fake::app(fake::cluster(), client);
        let (code, described) = ask(&app, request("GET", "/api/v1/schema/a.example/v1/rooms", None)).await;
        assert_eq!(
            (code, described),
            (
                200,
                json!({"group": "a.example", "version": "v1", "plural": "rooms", "kind": "Room", "namespaced": true,
                "schema": {"type": "object", "properties": {"metadata": {"type": "object"},
                    "spec": {"type": "object", "description": "own", "x-kubernetes-validations": [{"rule": "self.a != ''"}],
                        "properties": {"a": {"type": "string"}}}}}})
            )
        );
        assert_eq!(log.lock().unwrap()[1].path, "/openapi/v3/apis/a.example/v1");
        assert_eq!(ask(&app, request("GET", "/api/v1/schema/a.example/v1/walls", None)).await.0, 404);
    }

    #[test]
    fn a_schema_that_does_not_end_is_refused() {
        let room = Resource::new("a.example", "v1", "rooms");
        let own = json!({MARK: mark("Room"), "properties": {"spec": {"$ref": "#/components/schemas/Room"}}});
        assert_eq!(of_kind(&document(json!({"Room": own})), &room, "Room").unwrap_err().status, 502);
        let nowhere = json!({MARK: mark("Room"), "properties": {"spec": {"$ref": "https://evil.test/"}}});
        assert_eq!(of_kind(&document(json!({"Room": nowhere})), &room, "Room").unwrap_err().status, 502);
        assert_eq!(of_kind(&json!({}), &room, "Room").unwrap_err().status, 404);
    }
}
