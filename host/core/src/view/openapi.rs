//! OpenAPI v3: what `kubectl explain` reads, and what kubectl goes by when it validates and patches.
//!
//! The shape is that of the API server's documents for CRDs. What all kinds have in common (metadata, delete options, parameters) stands in
//! `openapi/parts.json`, taken from the API server's own document of `coordination.k8s.io/v1` in Kubernetes 1.36.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::{
    accept::{JSON, PATCHES, YAML},
    discovery::of_version,
    etag::Etag,
    served::{Served, Verb},
};

static PARTS: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("openapi/parts.json")).unwrap_or_default());

const API_VERSION: &str = "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
const KIND: &str = "Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";
const METADATA: &str = "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";
const LIST_METADATA: &str = "Standard list metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";

/// The name before that of a type of `meta.k8s.io/v1`.
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/// The parameters of each kind of request, in the order of the document.
const LIST: [&str; 10] = [
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
];
const WRITE: [&str; 3] = ["dryRun", "fieldManager", "fieldValidation"];
const DELETE: [&str; 4] = ["dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy"];
const DELETE_COLLECTION: [&str; 11] = [
    "continue",
    "dryRun",
    "fieldSelector",
    "gracePeriodSeconds",
    "labelSelector",
    "limit",
    "orphanDependents",
    "propagationPolicy",
    "resourceVersion",
    "resourceVersionMatch",
    "timeoutSeconds",
];

/// `GET /openapi/v3`: where the document of each version is. The hash is in its URL, so that clients may keep it forever.
pub fn root(served: &[&Served]) -> Value {
    let mut api_versions: Vec<&str> = served.iter().map(|served| served.api_version.as_str()).collect();
    api_versions.sort_unstable();
    api_versions.dedup();
    let paths: Map<String, Value> = api_versions
        .into_iter()
        .filter_map(|api_version| {
            let hash = Etag::of(&document(served, api_version)?).hash().to_owned();
            let url = format!("/openapi/v3/apis/{api_version}?hash={hash}");
            Some((format!("apis/{api_version}"), json!({"serverRelativeURL": url})))
        })
        .collect();
    json!({"paths": paths})
}

/// `GET /openapi/v3/apis/<group>/<version>`: the document of a version. None: there is no such version.
pub fn document(served: &[&Served], api_version: &str) -> Option<Value> {
    let resources = of_version(served, api_version)?;
    let mut paths = Map::new();
    let mut schemas = PARTS["schemas"].as_object().cloned().unwrap_or_default();
    for served in resources {
        paths.extend(Resource(served).paths());
        schemas.insert(Resource(served).model(&served.kind), Resource(served).schema());
        schemas.insert(Resource(served).model(&served.list_kind), Resource(served).list_schema());
    }
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": "Pintle views", "version": "unversioned"},
        "paths": paths,
        "components": {"schemas": schemas},
    }))
}

fn reference(model: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{model}")})
}

/// A reference with a description of its own, as the API server writes it: beside a bare `$ref`, nothing counts.
fn described(model: &str, description: &str) -> Value {
    json!({"description": description, "allOf": [reference(model)], "default": {}})
}

fn meta(name: &str) -> String {
    format!("{META}{name}")
}

fn parameters(names: &[&str]) -> Value {
    names.iter().map(|name| PARTS["parameters"][name].clone()).collect()
}

struct Resource<'a>(&'a Served);

impl Resource<'_> {
    fn kind(&self, kind: &str) -> Value {
        json!({"group": self.0.group(), "kind": kind, "version": self.0.version()})
    }

    /// The name of a schema: the group backwards, as Go names packages.
    fn model(&self, kind: &str) -> String {
        let group: Vec<&str> = self.0.group().split('.').rev().collect();
        format!("{}.{}.{kind}", group.join("."), self.0.version())
    }

    /// The schema of an object: that of the view, with what every object has.
    fn schema(&self) -> Value {
        let mut schema = self.0.schema.clone();
        if let Some(fields) = schema.as_object_mut() {
            let properties = fields.entry("properties").or_insert_with(|| json!({}));
            if let Some(properties) = properties.as_object_mut() {
                properties.insert("apiVersion".into(), json!({"type": "string", "description": API_VERSION}));
                properties.insert("kind".into(), json!({"type": "string", "description": KIND}));
                properties.insert("metadata".into(), described(&meta("ObjectMeta"), METADATA));
            }
            fields.insert("x-kubernetes-group-version-kind".into(), json!([self.kind(&self.0.kind)]));
        }
        schema
    }

    fn list_schema(&self) -> Value {
        let (kind, list_kind) = (&self.0.kind, &self.0.list_kind);
        json!({
            "description": format!("{list_kind} is a list of {kind}"),
            "type": "object",
            "required": ["items"],
            "properties": {
                "apiVersion": {"type": "string", "description": API_VERSION},
                "kind": {"type": "string", "description": KIND},
                "metadata": described(&meta("ListMeta"), LIST_METADATA),
                "items": {
                    "type": "array",
                    "description": format!("List of {}. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md", self.0.plural),
                    "items": reference(&self.model(kind)),
                },
            },
            "x-kubernetes-group-version-kind": [self.kind(list_kind)],
        })
    }

    /// The paths of the resource, with the operations that it has.
    fn paths(&self) -> Map<String, Value> {
        let (api_version, plural) = (&self.0.api_version, &self.0.plural);
        let is_namespaced = self.0.backing.namespaced;
        let place = if is_namespaced { "/namespaces/{namespace}" } else { "" };
        let collection = format!("/apis/{api_version}{place}/{plural}");
        let namespace: &[&str] = if is_namespaced { &["namespace"] } else { &[] };
        let mut paths = Map::new();
        if is_namespaced {
            let everywhere = self.operations(&[("get", Verb::List)], "ForAllNamespaces");
            paths.insert(format!("/apis/{api_version}/{plural}"), with_parameters(everywhere, &[]));
        }
        let place = if is_namespaced { "Namespaced" } else { "" };
        let of_all = [("get", Verb::List), ("post", Verb::Create), ("delete", Verb::DeleteCollection)];
        let of_one =
            [("get", Verb::Get), ("put", Verb::Update), ("patch", Verb::Patch), ("delete", Verb::Delete)];
        let named: Vec<&str> = ["name"].iter().chain(namespace).copied().collect();
        paths.insert(collection.clone(), with_parameters(self.operations(&of_all, place), namespace));
        paths.insert(
            format!("{collection}/{{name}}"),
            with_parameters(self.operations(&of_one, place), &named),
        );
        paths.retain(|_, path| {
            path.as_object().is_some_and(|path| path.keys().any(|key| key != "parameters"))
        });
        paths
    }

    fn operations(&self, methods: &[(&str, Verb)], place: &str) -> Map<String, Value> {
        let allowed = methods.iter().filter(|(_, verb)| self.0.allows(*verb));
        allowed.map(|(method, verb)| ((*method).to_owned(), self.operation(*verb, place))).collect()
    }

    fn operation(&self, verb: Verb, place: &str) -> Value {
        let kind = &self.0.kind;
        let (model, list) = (self.model(kind), self.model(&self.0.list_kind));
        let [options, patch, status] = ["DeleteOptions", "Patch", "Status"].map(meta);
        let forms = [JSON, YAML];
        let (action, name, says, asked, body, answer) = match verb {
            Verb::List | Verb::Watch => {
                ("list", "list", "list or watch objects of kind ", &LIST[..], None, &list)
            }
            Verb::Create => ("post", "create", "create a ", &WRITE[..], Some((&forms[..], &model)), &model),
            Verb::DeleteCollection => (
                "deletecollection",
                "deleteCollection",
                "delete collection of ",
                &DELETE_COLLECTION[..],
                Some((&forms[..], &options)),
                &list,
            ),
            Verb::Get => ("get", "read", "read the specified ", &["resourceVersion"][..], None, &model),
            Verb::Update => {
                ("put", "replace", "replace the specified ", &WRITE[..], Some((&forms[..], &model)), &model)
            }
            Verb::Patch => (
                "patch",
                "patch",
                "partially update the specified ",
                &WRITE[..],
                Some((&PATCHES[..], &patch)),
                &model,
            ),
            Verb::Delete => {
                ("delete", "delete", "delete a ", &DELETE[..], Some((&forms[..], &options)), &status)
            }
        };
        let group: String = self.0.group().split('.').map(capital).collect();
        let code = if verb == Verb::Create { "201" } else { "200" };
        let description = if verb == Verb::Create { "Created" } else { "OK" };
        let mut operation = json!({
            "description": format!("{says}{kind}"),
            "operationId": match place {
                "ForAllNamespaces" => format!("{name}{group}{}{kind}{place}", capital(self.0.version())),
                place => format!("{name}{group}{}{place}{kind}", capital(self.0.version())),
            },
            "tags": [format!("{}_{}", uncapital(&group), self.0.version())],
            "parameters": parameters(asked),
            "responses": {
                code: {"description": description, "content": content(&[JSON], answer)},
                "401": {"description": "Unauthorized"},
            },
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": self.kind(kind),
        });
        if let Some((forms, model)) = body {
            operation["requestBody"] = json!({"content": content(forms, model)});
            if !matches!(verb, Verb::Delete | Verb::DeleteCollection) {
                operation["requestBody"]["required"] = true.into();
            }
        }
        operation
    }
}

/// A body or answer in one of these forms.
fn content(forms: &[&str], model: &str) -> Map<String, Value> {
    forms.iter().map(|form| ((*form).to_owned(), json!({"schema": reference(model)}))).collect()
}

fn with_parameters(mut path: Map<String, Value>, names: &[&str]) -> Value {
    if !names.is_empty() {
        path.insert("parameters".into(), parameters(names));
    }
    path.into()
}

fn capital(word: &str) -> String {
    let (first, rest) = word.split_at(word.len().min(1));
    format!("{}{rest}", first.to_uppercase())
}

fn uncapital(word: &str) -> String {
    let (first, rest) = word.split_at(word.len().min(1));
    format!("{}{rest}", first.to_lowercase())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::view::served::Backing;

    const ITEM: &str = "/apis/farm.example.com/v1alpha/namespaces/{namespace}/llamas/{name}";

    fn llamas() -> Served {
        Served {
            api_version: "farm.example.com/v1alpha".into(),
            kind: "Llama".into(),
            plural: "llamas".into(),
            list_kind: "LlamaList".into(),
            verbs: Verb::ALL.into(),
            schema: json!({
                "type": "object", "description": "A llama.", "required": ["spec"],
                "properties": {"spec": {"type": "object", "description": "Its size."}},
            }),
            backing: Backing { namespaced: true, ..Backing::default() },
            ..Served::default()
        }
    }

    fn farm_pods() -> Served {
        Served {
            kind: "FarmPod".into(),
            plural: "farmpods".into(),
            list_kind: "FarmPodList".into(),
            verbs: vec![Verb::Get, Verb::List, Verb::Watch],
            ..llamas()
        }
    }

    fn of_farm() -> Value {
        document(&[&llamas(), &farm_pods()], "farm.example.com/v1alpha").expect("it is served")
    }

    /// Every value of a field of this name, wherever it stands.
    fn all<'a>(value: &'a Value, name: &str, found: &mut Vec<&'a Value>) {
        if let Some(fields) = value.as_object() {
            found.extend(fields.get(name));
            fields.values().for_each(|value| all(value, name, found));
        }
        value.as_array().into_iter().flatten().for_each(|value| all(value, name, found));
    }

    #[test]
    fn every_reference_leads_to_a_schema() {
        let document = of_farm();
        let mut references = Vec::new();
        all(&document, "$ref", &mut references);
        assert!(references.len() > 30, "{}", references.len());
        for reference in references {
            let pointer = reference.as_str().and_then(|text| text.strip_prefix('#')).expect("a local one");
            assert!(document.pointer(pointer).is_some(), "{pointer}");
        }
    }

    #[test]
    fn every_operation_has_an_id_of_its_own_and_parameters_that_are_known() {
        let document = of_farm();
        let mut ids = Vec::new();
        all(&document["paths"], "operationId", &mut ids);
        assert_eq!(ids.len(), 8 + 3);
        assert_eq!(ids.iter().filter_map(|id| id.as_str()).collect::<BTreeSet<_>>().len(), ids.len());
        assert!(ids.contains(&&json!("listFarmExampleComV1alphaNamespacedLlama")));
        assert!(ids.contains(&&json!("listFarmExampleComV1alphaLlamaForAllNamespaces")));
        let mut parameters = Vec::new();
        all(&document["paths"], "parameters", &mut parameters);
        for parameter in parameters.into_iter().flat_map(|list| list.as_array().expect("a list")) {
            assert!(parameter["name"].is_string() && parameter["in"].is_string(), "{parameter}");
        }
    }

    #[test]
    fn kubectl_lets_the_server_validate_and_patches_by_merge() {
        let patch = &of_farm()["paths"][ITEM]["patch"];
        let parameters = patch["parameters"].as_array().expect("a list");
        assert!(parameters.iter().any(|one| one["name"] == "fieldValidation" && one["in"] == "query"));
        let forms: Vec<&String> =
            patch["requestBody"]["content"].as_object().expect("forms").keys().collect();
        assert_eq!(forms, ["application/json-patch+json", "application/merge-patch+json"]);
        assert_eq!(
            (&patch["x-kubernetes-action"], &patch["requestBody"]["required"]),
            (&json!("patch"), &json!(true))
        );
        assert!(!parameters.iter().any(|one| one["name"] == "force"), "it is for server-side apply alone");
    }

    #[test]
    fn an_operation_is_there_if_the_view_has_its_verb() {
        let document = of_farm();
        let methods = |path: &str| {
            let path = document["paths"][path].as_object().expect("a path");
            path.keys().filter(|key| *key != "parameters").cloned().collect::<Vec<_>>()
        };
        assert_eq!(methods(ITEM), ["delete", "get", "patch", "put"]);
        assert_eq!(methods(ITEM.trim_end_matches("/{name}")), ["delete", "get", "post"]);
        assert_eq!(methods("/apis/farm.example.com/v1alpha/llamas"), ["get"]);
        let pods = ITEM.replace("llamas", "farmpods");
        assert_eq!(methods(&pods), ["get"]);
        assert_eq!(methods(pods.trim_end_matches("/{name}")), ["get"]);
        let kinds = Served { verbs: vec![Verb::Get], backing: Backing::default(), ..llamas() };
        let cluster = document_of(&kinds);
        let paths: Vec<&String> = cluster["paths"].as_object().expect("paths").keys().collect();
        assert_eq!(paths, ["/apis/farm.example.com/v1alpha/llamas/{name}"]);
    }

    fn document_of(served: &Served) -> Value {
        document(&[served], &served.api_version).expect("it is served")
    }

    #[test]
    fn the_root_leads_to_each_document_by_its_hash() {
        let (llamas, pods) = (llamas(), farm_pods());
        let newer = Served { api_version: "farm.example.com/v1".into(), ..llamas.clone() };
        let root = root(&[&pods, &newer, &llamas]);
        let hash = Etag::of(&of_farm());
        assert_eq!(
            root["paths"]["apis/farm.example.com/v1alpha"],
            json!({"serverRelativeURL": format!("/openapi/v3/apis/farm.example.com/v1alpha?hash={}", hash.hash())})
        );
        assert_eq!(root["paths"].as_object().map(Map::len), Some(2));
        assert_eq!(document(&[&llamas], "apps/v1"), None);
    }
}
