//! The schema of a kind, as forms are made of it: what the API server publishes, with everything that it refers to put in its place. And its
//! printer columns, as lists show them.

use axum::response::Response;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{
    caller::{Ask, Caller, TABLE},
    discovery,
    endpoint::{self, Call, Endpoint},
    objects,
    place::{Place, Resource},
    problem::Problem,
    query::Form,
    rows::Fields,
};

/// How deep a schema may be, and how many parts it may have when everything is in its place. The largest CRDs have some ten thousand.
const DEPTH_MAX: usize = 64;
const PARTS_MAX: usize = 100_000;

/// How the API server marks whose schema it is.
const MARK: &str = "x-kubernetes-group-version-kind";

/// What the API server, and a view, say of a printer column that has no description of its own; then its path.
const DESCRIBED: &str = "column (in JSONPath format): ";

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
    /// Its printer columns.
    columns: Vec<Column>,
}

/// A column of the lists of a kind, as kubectl prints it.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "PrinterColumn")]
struct Column {
    /// Its title.
    name: String,
    /// What its values are: `string`, `integer`, `number`, `boolean` or `date`.
    r#type: String,
    /// Lists have those of 0.
    priority: i64,
    /// The path of its values, as the fields of a list are named.
    path: String,
}

/// The endpoints of this file.
pub(crate) fn endpoints() -> Vec<Endpoint> {
    let path = "/api/v1/schema/{group}/{version}/{plural}";
    let namespace = ("namespace", Form::Text, "One whose objects the caller may list, if not all");
    let schema = Endpoint::get(path, "getSchema", "The schema and the printer columns of a kind", get);
    vec![schema.query(&[namespace]).gives::<Described>()]
}

async fn get(call: Call) -> Result<Response, Problem> {
    let resource = objects::resource(&call)?;
    let place = Place::within(&resource, call.query.text("namespace"))?;
    let caller = call.caller()?;
    let served = discovery::of_resource(caller, &resource).await?;
    let path = format!("/openapi/v3/apis/{}/{}", resource.group, resource.version);
    let document = caller.ask(Ask::get(path)).await?.json()?;
    let schema = of_kind(&document, &resource, &served.kind)?;
    let place = if served.namespaced { place } else { resource.everywhere() };
    let columns = columns(caller, &place).await;
    let described = Described { resource, kind: served.kind, namespaced: served.namespaced, schema, columns };
    endpoint::json(StatusCode::OK, &described)
}

/// The columns that kubectl prints of a kind, but its name and age, which every list has. Its CRD has them. Where that may not be read, the API
/// server describes the table of its objects; a column with a description of its own is then left out. Where neither may be read, there is no
/// list that needs columns.
async fn columns(caller: &Caller, place: &Place) -> Vec<Column> {
    let Resource { group, version, plural } = &place.resource;
    let crd = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.{group}");
    if let Ok(crd) = caller.ask(Ask::get(crd)).await.and_then(|answer| answer.json()) {
        let versions = crd.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten();
        let found = versions.filter(|one| one["name"] == version.as_str());
        let columns = found.filter_map(|one| one.get("additionalPrinterColumns")?.as_array()).flatten();
        return columns.filter_map(|column| column_of(column, column["jsonPath"].as_str()?)).collect();
    }
    let table = Ask::get(place.path()).with("limit", "1").with("includeObject", "None").accepting(TABLE);
    let Ok(table) = caller.ask(table).await.and_then(|answer| answer.json()) else { return Vec::new() };
    let columns = table.get("columnDefinitions").and_then(Value::as_array).into_iter().flatten();
    let described = |column: &Value| {
        let (_, path) = column["description"].as_str()?.split_once(DESCRIBED)?;
        column_of(column, path)
    };
    columns.filter_map(described).collect()
}

/// A column, if lists can follow its path.
fn column_of(column: &Value, path: &str) -> Option<Column> {
    let is_shown = path != ".metadata.creationTimestamp"
        && path.starts_with('.')
        && !path.contains([',', ';'])
        && Fields::read(Some(path)).is_ok();
    let text = |key: &str| column[key].as_str().map(str::to_owned);
    let priority = column["priority"].as_i64().unwrap_or_default();
    is_shown.then_some(Column { name: text("name")?, r#type: text("type")?, priority, path: path.to_owned() })
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
    use crate::fake::{self, ask, refused, request, upstream};

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
            path if !path.starts_with("/openapi") => refused(403, "Forbidden", "no"),
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
                json!({"group": "a.example", "version": "v1", "plural": "rooms", "kind": "Room", "namespaced": true, "columns": [],
                "schema": {"type": "object", "properties": {"metadata": {"type": "object"},
                    "spec": {"type": "object", "description": "own", "x-kubernetes-validations": [{"rule": "self.a != ''"}],
                        "properties": {"a": {"type": "string"}}}}}})
            )
        );
        assert_eq!(log.lock().unwrap()[1].path, "/openapi/v3/apis/a.example/v1");
        assert_eq!(ask(&app, request("GET", "/api/v1/schema/a.example/v1/walls", None)).await.0, 404);
    }

    #[tokio::test]
    async fn the_columns_are_those_of_the_crd_or_else_of_the_table_of_a_namespace() {
        let crd = json!({"spec": {"versions": [
            {"name": "v0", "additionalPrinterColumns": [{"name": "Old", "type": "string", "jsonPath": ".spec.old"}]},
            {"name": "v1", "additionalPrinterColumns": [
                {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "description": "How large"},
                {"name": "Ready", "type": "string", "priority": 1, "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"},
                {"name": "All", "type": "string", "jsonPath": ".spec.list[*]"},
                {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]}]}});
        let definition = |name: &str, description: &str| json!({"name": name, "type": "string", "format": "", "priority": 0, "description": description});
        let table = json!({"columnDefinitions": [
            definition("Name", "Name must be unique within a namespace."),
            definition("Size", "How large"),
            definition("Phase", "Custom resource definition column (in JSONPath format): .status.phase"),
            definition("Age", "Custom resource definition column (in JSONPath format): .metadata.creationTimestamp")]});
        let of_crd = json!([{"name": "Size", "type": "integer", "priority": 0, "path": ".spec.size"},
            {"name": "Ready", "type": "string", "priority": 1, "path": ".status.conditions[?(@.type==\"Ready\")].status"}]);
        let of_table = json!([{"name": "Phase", "type": "string", "priority": 0, "path": ".status.phase"}]);
        for (may_read, namespace, expected) in
            [(true, None, of_crd), (false, Some("blog"), of_table), (false, None, json!([]))]
        {
            let (crd, table) = (crd.clone(), table.clone());
            let (client, _) = upstream(move |asked| match asked.path.split('?').next().unwrap() {
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/rooms.a.example" if may_read => {
                    (200, crd.clone())
                }
                "/apis/a.example/v1/namespaces/blog/rooms" if asked.header("accept") == Some(TABLE) => {
                    (200, table.clone())
                }
                _ => refused(403, "Forbidden", "no"),
            });
            let caller = Caller::of_kubeconfig(client, fake::memory());
            let place = Place::within(&Resource::new("a.example", "v1", "rooms"), namespace).unwrap();
            assert_eq!(
                serde_json::to_value(columns(&caller, &place).await).unwrap(),
                expected,
                "{namespace:?}"
            );
        }
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
