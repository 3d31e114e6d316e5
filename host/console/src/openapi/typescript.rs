//! The types of an OpenAPI document for TypeScript.

use serde_json::{Map, Value, json};

/// How far the parts of an operation stand to the right.
const INNER: &str = "    ";

/// What stands above all types. Whatever a schema says nothing of is JSON.
const HEAD: &str = "\
// The types of the console's API, made of its route table. Do not edit: PINTLE_WRITE_DOCS=1 cargo test --workspace --lib openapi

/** Any JSON. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
";

/// The types of a document's schemas, and its operations by their names: what each takes and answers, and where it is.
pub fn typescript(document: &Value) -> String {
    let mut text = HEAD.to_owned();
    let schemas = document.pointer("/components/schemas").and_then(Value::as_object);
    for (name, schema) in schemas.into_iter().flatten() {
        text.push('\n');
        comment(&mut text, schema, "");
        match schema.get("properties").and_then(Value::as_object) {
            Some(properties) => {
                text.push_str(&format!("export interface {name} {}\n", object(schema, properties, "")));
            }
            None => text.push_str(&format!("export type {name} = {};\n", of(schema, ""))),
        }
    }
    let (mut types, mut places) = (String::new(), String::new());
    let paths = document.get("paths").and_then(Value::as_object);
    for (path, methods) in paths.into_iter().flatten() {
        for (method, operation) in methods.as_object().into_iter().flatten() {
            let id = operation.get("operationId").and_then(Value::as_str).unwrap_or_default();
            if let Some(summary) = operation.get("summary").and_then(Value::as_str) {
                types.push_str(&format!("  /** {summary}. */\n"));
            }
            types.push_str(&format!("  {id}: {{\n{}  }};\n", parts(operation)));
            let form = operation.pointer("/requestBody/content").and_then(only).map(|(form, _)| form);
            let form = form.filter(|form| *form != "application/json");
            let form = form.map(|form| format!(", form: \"{form}\"")).unwrap_or_default();
            let method = method.to_uppercase();
            places.push_str(&format!("  {id}: {{ method: \"{method}\", path: \"{path}\"{form} }},\n"));
        }
    }
    text.push_str("\n/** What each operation takes and answers: `never` where there is none. */\n");
    text.push_str(&format!("export interface Operations {{\n{types}}}\n"));
    text.push_str("\n/** Where the operations are. A body is JSON unless another form is named. */\n");
    text.push_str(&format!("export const operations = {{\n{places}}} as const;\n"));
    text
}

/// What an operation takes and answers, a line each.
fn parts(operation: &Value) -> String {
    let body = operation.pointer("/requestBody/content").and_then(only);
    let body = match body {
        None => "never".into(),
        Some((form, content)) if form.ends_with("json") => of(&content["schema"], INNER),
        Some(_) => "ArrayBuffer | Blob".into(),
    };
    let mut responses = operation.get("responses").and_then(Value::as_object).into_iter().flatten();
    let success = responses.find(|(status, _)| *status != "default").map(|(_, response)| response);
    let content = success.and_then(|response| only(response.get("content")?));
    let (answer, events) = match content {
        None => ("void".into(), None),
        Some(("text/event-stream", content)) => ("never".into(), content.get("x-events")),
        Some((form, content)) if form.ends_with("json") => (of(&content["schema"], INNER), None),
        Some(_) => ("string".into(), None),
    };
    let mut text = String::new();
    for (name, part) in [
        ("path", taken(operation, "path")),
        ("query", taken(operation, "query")),
        ("body", body),
        ("answer", answer),
    ] {
        text.push_str(&format!("{INNER}{name}: {part};\n"));
    }
    if let Some(events) = events.and_then(Value::as_object) {
        let names: Vec<&String> = events.keys().collect();
        text.push_str(&format!("{INNER}events: {};\n", object(&json!({"required": names}), events, INNER)));
    }
    text
}

/// The parameters of an operation in its path, or in its query.
fn taken(operation: &Value, place: &str) -> String {
    let parameters = operation.get("parameters").and_then(Value::as_array).into_iter().flatten();
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for parameter in parameters.filter(|parameter| parameter["in"] == *place) {
        let name = parameter["name"].as_str().unwrap_or_default();
        let mut schema = parameter["schema"].clone();
        if let Some(description) = parameter.get("description") {
            schema["description"] = description.clone();
        }
        if parameter["required"] == true {
            required.push(name);
        }
        properties.insert(name.to_owned(), schema);
    }
    if properties.is_empty() {
        return "never".into();
    }
    object(&json!({"required": required}), &properties, INNER)
}

/// The one form of a body or an answer.
fn only(content: &Value) -> Option<(&str, &Value)> {
    content.as_object()?.iter().next().map(|(form, content)| (form.as_str(), content))
}

/// The type of a schema.
fn of(schema: &Value, indent: &str) -> String {
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        return target.rsplit('/').next().unwrap_or_default().to_owned();
    }
    if let Some(value) = schema.get("const") {
        return value.to_string();
    }
    // Where there is a type, the branches only say which of its values are allowed.
    let keys: &[&str] = if schema.get("type").is_some() { &["enum"] } else { &["enum", "anyOf", "oneOf"] };
    for &key in keys {
        if let Some(choices) = schema.get(key).and_then(Value::as_array) {
            let choices = choices.iter().map(|choice| match key {
                "enum" => choice.to_string(),
                _ => of(choice, indent),
            });
            return choices.collect::<Vec<_>>().join(" | ");
        }
    }
    match schema.get("type") {
        Some(Value::String(name)) => named(name, schema, indent),
        Some(Value::Array(names)) => {
            let names = names.iter().filter_map(Value::as_str).map(|name| named(name, schema, indent));
            names.collect::<Vec<_>>().join(" | ")
        }
        _ => "Json".into(),
    }
}

fn named(name: &str, schema: &Value, indent: &str) -> String {
    match name {
        "string" => "string".into(),
        "integer" | "number" => "number".into(),
        "boolean" => "boolean".into(),
        "null" => "null".into(),
        "array" => {
            let items = schema.get("items").map_or_else(|| "Json".into(), |items| of(items, indent));
            if items.contains(" | ") { format!("({items})[]") } else { format!("{items}[]") }
        }
        _ => match schema.get("properties").and_then(Value::as_object) {
            Some(properties) => object(schema, properties, indent),
            None => {
                let values = schema.get("additionalProperties").filter(|values| values.is_object());
                let values = values.map_or_else(|| "Json".into(), |values| of(values, indent));
                format!("Record<string, {values}>")
            }
        },
    }
}

fn object(schema: &Value, properties: &Map<String, Value>, indent: &str) -> String {
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let inner = format!("{indent}  ");
    let mut text = String::from("{\n");
    for (name, property) in properties {
        comment(&mut text, property, &inner);
        let mark = if required.contains(&name.as_str()) { "" } else { "?" };
        text.push_str(&format!("{inner}{name}{mark}: {};\n", of(property, &inner)));
    }
    text.push_str(indent);
    text.push('}');
    text
}

fn comment(text: &mut String, schema: &Value, indent: &str) {
    if let Some(description) = schema.get("description").and_then(Value::as_str) {
        let line = description.replace("*/", "* /").replace('\n', " ");
        text.push_str(&format!("{indent}/** {line} */\n"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn types_are_written_as_people_write_them() {
        let document = json!({
            "paths": {"/a/{b}": {
                "get": {"operationId": "getA", "summary": "An A",
                    "parameters": [
                        {"name": "b", "in": "path", "required": true, "schema": {"type": "string"}},
                        {"name": "most", "in": "query", "description": "How many.", "schema": {"type": "integer"}}],
                    "responses": {
                        "200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}}},
                        "default": {"content": {"application/problem+json": {"schema": {"type": "object"}}}}}},
                "put": {"operationId": "putA",
                    "requestBody": {"content": {"application/wasm": {"schema": {"type": "string"}}}},
                    "responses": {"200": {"content": {"text/event-stream": {"schema": {"type": "string"},
                        "x-events": {"b": {"$ref": "#/components/schemas/B"}}}}}}},
                "patch": {"operationId": "patchA",
                    "requestBody": {"content": {"application/merge-patch+json": {"schema": {"type": "object"}}}},
                    "responses": {"204": {}}}}},
            "components": {"schemas": {
                "A": {"type": "object", "description": "An A.", "required": ["n", "items"], "properties": {
                    "items": {"type": "array", "items": {"$ref": "#/components/schemas/B"}},
                    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                    "n": {"type": ["integer", "null"], "description": "How */ many."},
                    "one": {"anyOf": [{"$ref": "#/components/schemas/B"}, {"type": "null"}]},
                    "words": {"type": "array", "items": {"type": "string", "enum": ["x", "y"]}},
                    "any": true}},
                "B": {"type": "string", "enum": ["x", "y"]}}},
        });
        let text = typescript(&document);
        let expected = "\
/** An A. */
export interface A {
  any?: Json;
  items: B[];
  labels?: Record<string, string>;
  /** How * / many. */
  n: number | null;
  one?: B | null;
  words?: (\"x\" | \"y\")[];
}

export type B = \"x\" | \"y\";

/** What each operation takes and answers: `never` where there is none. */
export interface Operations {
  /** An A. */
  getA: {
    path: {
      b: string;
    };
    query: {
      /** How many. */
      most?: number;
    };
    body: never;
    answer: A;
  };
  patchA: {
    path: never;
    query: never;
    body: Record<string, Json>;
    answer: void;
  };
  putA: {
    path: never;
    query: never;
    body: ArrayBuffer | Blob;
    answer: never;
    events: {
      b: B;
    };
  };
}

/** Where the operations are. A body is JSON unless another form is named. */
export const operations = {
  getA: { method: \"GET\", path: \"/a/{b}\" },
  patchA: { method: \"PATCH\", path: \"/a/{b}\", form: \"application/merge-patch+json\" },
  putA: { method: \"PUT\", path: \"/a/{b}\", form: \"application/wasm\" },
} as const;
";
        assert_eq!(text.strip_prefix(HEAD).unwrap(), format!("\n{expected}"));
    }
}
