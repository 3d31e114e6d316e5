//! The documents of views in the OpenAPI document: they are known only while somebody asks, since a View can come and go.

use std::collections::BTreeMap;

use pintle_core::view::{Lens, Verb};
use pintle_wit::views::Document;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::rest;

/// What may be done with documents at `{path}`, as OpenAPI has it. An operation names its parameters, which stand there once.
#[derive(Default, Deserialize)]
struct Operations {
    parameters: BTreeMap<String, Value>,
    paths: BTreeMap<String, BTreeMap<String, Value>>,
}

impl Operations {
    fn at(path: &str) -> Self {
        let text = include_str!("../rest/operations.json");
        let text = text.replace("{path}", path).replace("{Path}", &pascal(path));
        // The tests read it.
        serde_json::from_str(&text).unwrap_or_default()
    }
}

/// Adds the documents of a view to the description of everything else.
pub(crate) fn describe(description: &mut Value, lens: &Lens) {
    let path = &lens.served.rest;
    let refusal = description["paths"]["/openapi.json"]["get"]["responses"]["default"].clone();
    description["components"]["schemas"][format!("document.{path}")] = document(lens);
    let is_taken = |name: &&str| match *name {
        "namespace" => lens.served.backing.namespaced,
        "watch" => lens.served.allows(Verb::Watch),
        _ => true,
    };
    let Operations { parameters, paths } = Operations::at(path);
    for (at, methods) in paths {
        let operations = methods.into_iter().filter(|(method, _)| {
            let verb = rest::verb(&method.to_ascii_uppercase(), at.ends_with("{name}"));
            verb.is_some_and(|verb| lens.served.allows(verb))
        });
        for (method, mut operation) in operations {
            let names = operation["parameters"].take();
            let names = names.as_array().into_iter().flatten().filter_map(Value::as_str).filter(is_taken);
            operation["parameters"] = names.filter_map(|name| parameters.get(name).cloned()).collect();
            operation["responses"]["default"] = refusal.clone();
            description["paths"][&at][method] = operation;
        }
    }
}

/// Says why no documents are described.
pub(crate) fn leave_views_out(description: &mut Value, why: &str) {
    let said = description["info"]["description"].as_str().unwrap_or_default();
    description["info"]["description"] = format!("{said} The documents of views are left out: {why}").into();
}

/// `photo-rooms` is `PhotoRooms`.
fn pascal(path: &str) -> String {
    let words = path.split('-').map(|word| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect::<String>()
    });
    words.collect()
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
    use pintle_core::view::{Access, Epoch, Served};

    use super::*;
    use crate::{
        openapi::{self, tests::references_that_lead_somewhere},
        table,
    };

    #[test]
    fn requests_are_read_by_what_is_described() {
        let Operations { parameters, paths } = Operations::at("rooms");
        let names: Vec<&str> = parameters.keys().map(String::as_str).filter(|name| *name != "name").collect();
        assert_eq!(names, rest::PARAMETERS);
        let described: Vec<(&str, &str)> = paths
            .iter()
            .flat_map(|(at, methods)| methods.keys().map(|method| (at.as_str(), method.as_str())))
            .collect();
        assert_eq!(described.len(), 6);
        for (at, method) in described {
            let is_one = at == "/rooms/{name}";
            assert!(rest::verb(&method.to_ascii_uppercase(), is_one).is_some(), "{method} {at}");
        }
    }

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
        let id = |path: &str, method: &str| description["paths"][path][method]["operationId"].clone();
        let one = "/photo-rooms/{name}";
        assert_eq!(id("/photo-rooms", "get"), "listPhotoRoomsDocuments");
        assert_eq!(
            (id(one, "get"), id(one, "patch")),
            (json!("getPhotoRoomsDocument"), json!("patchPhotoRoomsDocument"))
        );
        for (path, method) in [("/photo-rooms", "post"), (one, "put"), (one, "delete")] {
            assert_eq!(id(path, method), Value::Null, "{method} {path}");
        }
        let parameters = &description["paths"]["/photo-rooms"]["get"]["parameters"];
        let names: Vec<&str> =
            parameters.as_array().unwrap().iter().filter_map(|param| param["name"].as_str()).collect();
        assert_eq!(names, ["search", "labelSelector", "limit", "continue", "resourceVersion"]);
        let fields = &description["components"]["schemas"]["document.photo-rooms"]["properties"];
        assert_eq!(fields["key"], json!({"type": ["string", "null"], "writeOnly": true}));
        assert_eq!(fields["creationTimestamp"]["readOnly"], true);
    }
}
