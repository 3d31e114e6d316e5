//! The documents of views in the OpenAPI document: they are known only while somebody asks, since a View can come and go.

use pintle_core::view::{Lens, Verb};
use pintle_wit::views::Document;
use serde_json::{Map, Value, json};

use super::parameter;
use crate::{
    problem::PROBLEM_JSON,
    query::Form,
    rest::operations::{OPERATIONS, Operation},
};

/// Adds the documents of a view to the description of everything else.
pub(crate) fn describe(description: &mut Value, lens: &Lens) {
    let path = &lens.served.rest;
    description["components"]["schemas"][schema_of(path)] = document(lens);
    for operation in OPERATIONS.iter().filter(|operation| lens.served.allows(operation.verb)) {
        let at = if operation.is_one { format!("/{path}/{{name}}") } else { format!("/{path}") };
        let method = operation.method.as_str().to_ascii_lowercase();
        description["paths"][at][method] = described(operation, lens);
    }
}

/// Says why no documents are described.
pub(crate) fn leave_views_out(description: &mut Value, why: &str) {
    let said = description["info"]["description"].as_str().unwrap_or_default();
    description["info"]["description"] = format!("{said} The documents of views are left out: {why}").into();
}

/// Apart from the schemas of the other routes, whose names are those of types.
fn schema_of(path: &str) -> String {
    format!("document.{path}")
}

/// `photo-rooms` is `PhotoRooms`.
fn pascal(path: &str) -> String {
    let words = path.split('-').map(|word| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect::<String>()
    });
    words.collect()
}

fn described(operation: &Operation, lens: &Lens) -> Value {
    let path = &lens.served.rest;
    let one = json!({"$ref": format!("#/components/schemas/{}", schema_of(path))});
    let problem = json!({"$ref": "#/components/schemas/Problem"});
    let content = |form: &str, schema: &Value| json!({form: {"schema": schema}});
    let shown = match operation.verb {
        Verb::List => {
            let list = json!({"type": "object", "required": ["items", "resourceVersion"], "properties": {
                "items": {"type": "array", "items": one},
                "continue": {"type": "string", "description": "Asks for the next page; the last has none"},
                "resourceVersion": {"type": "string", "description": "Where a watch goes on"},
            }});
            let mut content = content("application/json", &list);
            content["text/event-stream"] = json!({"schema": {"type": "string"}});
            content
        }
        _ => content("application/json", &one),
    };
    let mut responses: Map<String, Value> = operation.answers.iter().map(|(code, is_shown)| {
        let mut answer = json!({"description": if *is_shown { "The document, as it is stored" } else { "It is gone" }});
        if *is_shown {
            answer["content"] = shown.clone();
        }
        (code.to_string(), answer)
    }).collect();
    responses.insert(
        "default".into(),
        json!({"description": "Why not", "content": content(PROBLEM_JSON, &problem)}),
    );
    let name = json!({"name": "name", "in": "path", "required": true, "schema": {"type": "string"}});
    let mut parameters: Vec<Value> = operation.is_one.then_some(name).into_iter().collect();
    let takes_namespace = lens.served.backing.namespaced;
    let query = operation.query.iter().filter(|param| takes_namespace || param.name != "namespace");
    // A watch is a list that goes on: without its verb there is no such parameter.
    let query = query.filter(|param| param.form != Form::Flag || lens.served.allows(Verb::Watch));
    parameters.extend(query.map(parameter));
    let of = if operation.is_one { "Document" } else { "Documents" };
    let mut described = json!({
        "operationId": format!("{}{}{of}", operation.verb.name(), pascal(path)),
        "summary": operation.summary, "tags": [path], "parameters": parameters, "responses": responses,
    });
    if let Some(form) = operation.takes {
        let schema = if operation.verb == Verb::Patch { json!({"type": "object"}) } else { one };
        described["requestBody"] = json!({"required": true, "content": content(form, &schema)});
    }
    described
}

/// The schema of a document: the fields of the guest, and those of the host.
fn document(lens: &Lens) -> Value {
    let mut schema = lens.served.schema.clone();
    as_json_schema(&mut schema);
    if !schema["properties"].is_object() {
        schema["properties"] = json!({});
    }
    for key in Document::OF_THE_HOST {
        let is_set = matches!(key, "name" | "namespace" | "resourceVersion");
        let mut field = json!({"type": "string"});
        if !is_set {
            field["readOnly"] = true.into();
            field["format"] = "date-time".into();
        }
        schema["properties"][key] = field;
    }
    schema
}

/// What the structural schemas of Kubernetes say in words of their own, in those of OpenAPI 3.1.
fn as_json_schema(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.remove("nullable") == Some(Value::Bool(true))
                && let Some(of) = fields.get("type").and_then(Value::as_str).map(str::to_owned)
            {
                fields.insert("type".into(), json!([of, "null"]));
            }
            fields.values_mut().for_each(as_json_schema);
        }
        Value::Array(items) => items.iter_mut().for_each(as_json_schema),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use pintle_core::view::{Access, Epoch, Served};

    use super::*;
    use crate::{
        openapi::{self, tests::references_that_lead_somewhere},
        table,
    };

    #[test]
    fn a_view_is_described_by_what_may_be_done_with_it() {
        let schema = json!({"type": "object", "properties": {
            "door": {"type": "string"}, "key": {"type": "string", "nullable": true, "writeOnly": true}}});
        let verbs = vec![Verb::Get, Verb::List, Verb::Patch];
        let served = Served { schema, verbs, ..Served::default() }.at_path("photo-rooms");
        let lens = Lens::new("rooms", served, Access::default(), Vec::new(), Epoch::default());
        let mut description = openapi::document(&table::endpoints());
        let before = references_that_lead_somewhere(&description);
        describe(&mut description, &lens);
        assert!(references_that_lead_somewhere(&description) > before + 5);
        let methods = |path: &str| -> Vec<(String, Value)> {
            let methods: BTreeMap<String, Value> =
                serde_json::from_value(description["paths"][path].clone()).unwrap();
            methods
                .into_iter()
                .map(|(method, described)| (method, described["operationId"].clone()))
                .collect()
        };
        assert_eq!(methods("/photo-rooms"), [("get".into(), json!("listPhotoRoomsDocuments"))]);
        assert_eq!(
            methods("/photo-rooms/{name}"),
            [
                ("get".into(), json!("getPhotoRoomsDocument")),
                ("patch".into(), json!("patchPhotoRoomsDocument"))
            ]
        );
        let parameters = &description["paths"]["/photo-rooms"]["get"]["parameters"];
        let names: Vec<&str> =
            parameters.as_array().unwrap().iter().filter_map(|param| param["name"].as_str()).collect();
        assert_eq!(names, ["search", "labelSelector", "limit", "continue", "resourceVersion"]);
        let fields = &description["components"]["schemas"]["document.photo-rooms"]["properties"];
        assert_eq!(fields["key"], json!({"type": ["string", "null"], "writeOnly": true}));
        assert_eq!(fields["creationTimestamp"]["readOnly"], true);
    }
}
