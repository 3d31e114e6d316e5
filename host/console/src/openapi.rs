//! The OpenAPI 3.1 document, and the types of it for TypeScript: both are made of the route table.

mod documents;
mod typescript;

use schemars::{SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use crate::{
    endpoint::{AnswerForm, Endpoint, MERGE_PATCH, Takes, WASM},
    problem::{PROBLEM_JSON, Written},
    query::{Form, Param},
};

pub(crate) use documents::{describe, leave_views_out};
pub use typescript::typescript;

/// Where the document has its schemas.
const SCHEMAS: &str = "/components/schemas";

/// The document of these endpoints.
pub fn document(endpoints: &[Endpoint]) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.definitions_path = SCHEMAS.into());
    // An answer has every field that is not left out on purpose; a body may lack all that have a default.
    let mut answers = settings.clone().for_serialize().into_generator();
    let mut bodies = settings.for_deserialize().into_generator();
    let problem = json!(answers.subschema_for::<Written<'_>>());
    let mut paths: Map<String, Value> = Map::new();
    for endpoint in endpoints {
        let operation = operation(endpoint, &problem, &mut answers, &mut bodies);
        let path = paths.entry(endpoint.path.as_str()).or_insert_with(|| json!({}));
        path[endpoint.method.as_str().to_ascii_lowercase()] = operation;
    }
    let mut schemas = answers.take_definitions(true);
    for (name, schema) in bodies.take_definitions(true) {
        debug_assert!(!schemas.contains_key(&name), "{name} is answered and sent: each form needs a name");
        schemas.insert(name, schema);
    }
    json!({
        "openapi": "3.1.0",
        "info": {"title": "Pintle", "version": env!("CARGO_PKG_VERSION"),
            "description": "What the console is made of. Every object is read and written as the caller."},
        "security": [{"token": []}],
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {
            "token": {"type": "http", "scheme": "bearer", "description": "In a cluster: a token that its API server accepts. On loopback: what stands behind the # of the address that pintle console prints"},
        }},
    })
}

fn operation(
    endpoint: &Endpoint,
    problem: &Value,
    answers: &mut SchemaGenerator,
    bodies: &mut SchemaGenerator,
) -> Value {
    let in_path = endpoint.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let mut parameters: Vec<Value> = in_path
        .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}))
        .collect();
    parameters.extend(endpoint.query.iter().map(parameter));
    let content = match endpoint.answer {
        AnswerForm::Json(shape) => json!({"application/json": {"schema": shape(answers)}}),
        AnswerForm::Events(events) => {
            let events = events.iter().map(|(name, shape)| ((*name).to_owned(), json!(shape(answers))));
            let events: Map<String, Value> = events.collect();
            json!({"text/event-stream": {"schema": {"type": "string"}, "x-events": events}})
        }
        AnswerForm::Text => json!({"text/plain": {"schema": {"type": "string"}}}),
    };
    let mut operation = json!({
        "operationId": endpoint.id, "summary": endpoint.summary, "parameters": parameters,
        "responses": {
            endpoint.status.to_string(): {"description": "What was asked for", "content": content},
            "default": {"description": "Why not", "content": {PROBLEM_JSON: {"schema": problem}}},
        },
    });
    if let Some((form, schema)) = body(endpoint, bodies) {
        operation["requestBody"] = json!({"required": true, "content": {form: {"schema": schema}}});
    }
    if endpoint.for_anyone {
        operation["security"] = json!([]);
    }
    operation
}

fn parameter(param: &Param) -> Value {
    let schema = match param.form {
        Form::Text => json!({"type": "string"}),
        Form::Flag => json!({"type": "boolean"}),
        Form::Number(least, most) => json!({"type": "integer", "minimum": least, "maximum": most}),
        Form::Word(words) => json!({"type": "string", "enum": words}),
        Form::Many(most) => json!({"type": "array", "items": {"type": "string"}, "maxItems": most}),
    };
    json!({"name": param.name, "in": "query", "description": param.summary, "schema": schema})
}

fn body(endpoint: &Endpoint, generator: &mut SchemaGenerator) -> Option<(&'static str, Value)> {
    match endpoint.takes {
        Takes::Nothing => None,
        Takes::Json(shape) => Some(("application/json", json!(shape(generator)))),
        Takes::MergePatch => Some((MERGE_PATCH, json!({"type": "object"}))),
        Takes::Wasm => Some((WASM, json!({"type": "string", "contentMediaType": WASM}))),
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;
    use crate::table;

    #[test]
    fn every_endpoint_is_described_once_and_every_reference_leads_somewhere() {
        let endpoints = table::endpoints();
        let document = document(&endpoints);
        let ids: BTreeSet<&str> = endpoints.iter().map(|endpoint| endpoint.id).collect();
        assert_eq!(ids.len(), endpoints.len(), "two operations have one name");
        for endpoint in &endpoints {
            let method = endpoint.method.as_str().to_ascii_lowercase();
            let operation = &document["paths"][&endpoint.path][&method];
            assert_eq!(operation["operationId"], endpoint.id, "{} {}", method, endpoint.path);
            let has_body = !matches!(endpoint.takes, Takes::Nothing);
            assert_eq!(operation.get("requestBody").is_some(), has_body, "{}", endpoint.id);
            assert!(!endpoint.for_anyone || endpoint.method == http::Method::GET, "{}", endpoint.id);
        }
        assert!(references_that_lead_somewhere(&document) > 10);
        // Two types of one name would be told apart by a number.
        let mut names = document["components"]["schemas"].as_object().unwrap().keys();
        assert_eq!(names.find(|name| name.ends_with(|letter: char| letter.is_ascii_digit())), None);
    }

    /// How many references there are.
    pub(super) fn references_that_lead_somewhere(document: &Value) -> u32 {
        let mut open = vec![document];
        let mut references = 0;
        while let Some(value) = open.pop() {
            match value {
                Value::Object(fields) => {
                    if let Some(target) = fields.get("$ref").and_then(Value::as_str) {
                        references += 1;
                        assert!(document.pointer(target.strip_prefix('#').unwrap()).is_some(), "{target}");
                    }
                    open.extend(fields.values());
                }
                Value::Array(items) => open.extend(items),
                _ => {}
            }
        }
        references
    }

    /// The files beside the pages are those of this table. `PINTLE_WRITE_DOCS=1` writes them.
    #[test]
    fn the_committed_description_and_types_are_those_of_the_table() {
        let document = document(&table::endpoints());
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../console");
        let text = serde_json::to_string_pretty(&document).unwrap() + "\n";
        for (file, wanted) in [("openapi.json", text), ("src/api/generated.ts", typescript(&document))] {
            let path = folder.join(file);
            if std::env::var_os("PINTLE_WRITE_DOCS").is_some() {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(&path, &wanted).unwrap();
            }
            let found = fs::read_to_string(&path).unwrap_or_default();
            assert!(
                found == wanted,
                "console/{file} is stale; write it with: PINTLE_WRITE_DOCS=1 cargo test --workspace --lib openapi"
            );
        }
    }
}
