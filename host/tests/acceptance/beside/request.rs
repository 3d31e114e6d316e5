//! Requests as the steps of a case write them.

use anyhow::{Context, ensure};
use http::{Request, header};
use kube::client::Body;
use serde_json::{Value, json};

use super::side::Side;

/// A uid that no object has.
pub(crate) const SOMEBODYS: &str = "6f9619ff-8b86-4011-b42d-00c04fc964ff";

const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

const JSON: &str = "application/json";
const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// An operation of a JSON patch that changes nothing.
const TEST: &str = r#"{"op": "test", "path": "/spec/weight", "value": 31.25}"#;

/// The first word of a text, and what stands behind it.
pub(crate) fn first_word(text: &str) -> (&str, &str) {
    text.split_once(' ').unwrap_or((text, ""))
}

impl Side<'_> {
    /// The request that a text writes.
    pub(crate) fn request(&self, text: &str) -> anyhow::Result<Request<Body>> {
        let text = self.filled(text)?;
        let (verb, rest) = first_word(&text);
        let (target, mut rest) = first_word(rest);
        let (target, query) = target.split_once('?').unwrap_or((target, ""));
        let target = self.path(target);
        let mut request = Request::builder();
        while let Some((header, behind)) = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
            let (name, value) = header.split_once(": ").with_context(|| format!("{header} is no header"))?;
            request = request.header(name, value);
            rest = behind.trim_start();
        }
        let (parent, name) = target.rsplit_once('/').unwrap_or_default();
        let (method, path, form, body) = match verb {
            "create" => {
                let kind = if parent.ends_with("/configmaps") { config_map } else { llama };
                ("POST", parent, JSON, self.named(&with_fields(kind(name), rest)?))
            }
            "put" => {
                let (kept, fields) = first_word(rest);
                let object = if kept == "llama" { llama(name) } else { self.kept(kept)?.clone() };
                ("PUT", target.as_str(), JSON, self.named(&with_fields(object, fields)?))
            }
            method => {
                ensure!(METHODS.contains(&method), "{method} is no step");
                let (form, body) = form_of(method, rest)?;
                (method, target.as_str(), form, body)
            }
        };
        if !form.is_empty() {
            request = request.header(header::CONTENT_TYPE, form);
        }
        let uri = if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") };
        Ok(request.method(method).uri(uri).body(Body::from(body.into_bytes()))?)
    }

    /// The path of a target.
    fn path(&self, target: &str) -> String {
        let llamas = format!("/apis/{}/v1alpha/namespaces/{}/llamas", self.group, self.namespace);
        match target.split_once('/') {
            None if target == "." => llamas,
            Some(("", _)) => target.to_owned(),
            Some(("configmap", name)) => format!("/api/v1/namespaces/{}/configmaps/{name}", self.namespace),
            _ => format!("{llamas}/{target}"),
        }
    }

    /// A text with what its marks and its words in capitals stand for.
    pub(crate) fn filled(&self, text: &str) -> anyhow::Result<String> {
        let (mut filled, mut rest) = (String::new(), text);
        while let Some((before, behind)) = rest.split_once("${") {
            let (mark, behind) =
                behind.split_once('}').with_context(|| format!("no end of a mark: {text}"))?;
            filled.push_str(before);
            filled.push_str(&self.meaning(mark)?);
            rest = behind;
        }
        filled.push_str(rest);
        Ok(self.named(&filled))
    }

    /// What a mark stands for.
    pub(crate) fn meaning(&self, mark: &str) -> anyhow::Result<String> {
        if let Some((repeated, count)) = mark.split_once('*') {
            let count = count.parse()?;
            return Ok(if repeated == "test" { vec![TEST; count].join(",") } else { repeated.repeat(count) });
        }
        if let Some(name) = mark.strip_prefix("llama:") {
            return Ok(llama(name).to_string());
        }
        if let Some(name) = mark.strip_prefix("owner:") {
            return Ok(reference(self.kept(name)?).to_string());
        }
        let (name, _) = mark.split_once('/').with_context(|| format!("{mark} is no mark"))?;
        let field = self.kept(name)?.pointer(&mark[name.len()..]);
        let field = field.with_context(|| format!("there is no {mark}"))?;
        Ok(field.as_str().map_or_else(|| field.to_string(), str::to_owned))
    }

    fn named(&self, text: &str) -> String {
        let mut text = text.replace("GROUP", self.group).replace("NAMESPACE", &self.namespace);
        // The longer name of two is the first.
        for (word, meaning) in [
            ("SOMEBODYS", SOMEBODYS),
            ("METADATA_LIST", METADATA_LIST),
            ("METADATA", METADATA),
            ("TABLE", TABLE),
        ] {
            text = text.replace(word, meaning);
        }
        text
    }
}

fn llama(name: &str) -> Value {
    json!({
        "apiVersion": "GROUP/v1alpha", "kind": "Llama", "metadata": {"name": name}, "spec": {"height": 1.5, "weight": 31.25},
    })
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

/// How a dependent names its owner.
fn reference(owner: &Value) -> Value {
    json!({
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": true,
    })
}

/// An object with other fields, as JSON.
fn with_fields(mut object: Value, mut fields: &str) -> anyhow::Result<String> {
    while !fields.is_empty() {
        let (pointer, rest) = first_word(fields);
        let (parent, field) = pointer.rsplit_once('/').with_context(|| format!("{pointer} is no pointer"))?;
        let parent = object.pointer_mut(parent).and_then(Value::as_object_mut);
        let parent = parent.with_context(|| format!("{pointer} is in no object"))?;
        if let Some(rest) = rest.strip_prefix("none") {
            parent.remove(field);
            fields = rest.trim_start();
            continue;
        }
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        let value = values.next().with_context(|| format!("{pointer} has no value"))??;
        parent.insert(field.to_owned(), value);
        fields = rest[values.byte_offset()..].trim_start();
    }
    Ok(object.to_string())
}

/// The form of a body, and the body. Both are empty where there is none.
fn form_of<'a>(method: &str, text: &'a str) -> anyhow::Result<(&'a str, String)> {
    let (form, body) = first_word(text);
    Ok(match form {
        "" => ("", String::new()),
        "merge" => ("application/merge-patch+json", body.to_owned()),
        "json" => ("application/json-patch+json", body.to_owned()),
        form if form.contains('/') && !form.starts_with(['{', '[']) => (form, body.to_owned()),
        _ if method == "DELETE" => (JSON, delete_options(text)?),
        _ => (JSON, text.to_owned()),
    })
}

fn delete_options(text: &str) -> anyhow::Result<String> {
    let mut options: Value = serde_json::from_str(text)?;
    if options.get("kind").is_none() {
        options["kind"] = "DeleteOptions".into();
        options["apiVersion"] = "v1".into();
    }
    Ok(options.to_string())
}
