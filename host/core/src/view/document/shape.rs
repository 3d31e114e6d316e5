//! Between objects and documents: what is shown, what somebody wrote, and what a merge patch makes of it.

use pintle_wit::{Cause, views::Document};
use serde_json::{Map, Value, json};

use super::problem::Refusal;
use crate::{
    object::texts,
    view::{BackingObject, Lens, Served},
};

/// The shortest text that is looked for in messages because it is a secret. A shorter one would stand in every message.
const SECRET_BYTES_MIN: usize = 4;

/// A document as somebody wrote it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Written {
    /// Its name, if it says one.
    pub name: Option<String>,
    /// Its namespace, if it says one.
    pub namespace: Option<String>,
    /// The version that whoever wrote it knows; empty if none is said.
    pub version: String,
    /// The guest's fields, without those that are only shown.
    pub fields: Value,
}

/// What somebody wrote at the fields that are never shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Secrets {
    /// The paths of those fields in the backing object.
    paths: Vec<String>,
    /// What stands there.
    values: Vec<String>,
}

impl Lens {
    /// The document that is shown of an object, as JSON. `fields` is what the guest shows: the JSON of an object.
    pub fn document_json(&self, backing: &BackingObject, fields: &str) -> String {
        let mut json = Value::Object(self.document_head(backing)).to_string();
        // `{"a":1}` behind `{"name":..}` is `{"name":..,"a":1}`.
        if let Some(inner) = fields.trim().strip_prefix('{').filter(|inner| inner.trim() != "}") {
            json.pop();
            json.push(',');
            json.push_str(inner);
        }
        json
    }

    /// The fields of a document that are the host's.
    pub fn document_head(&self, backing: &BackingObject) -> Map<String, Value> {
        let shown = self.shown_metadata(&backing.metadata);
        let host = Document::OF_THE_HOST.into_iter();
        host.filter_map(|key| Some((key.to_owned(), shown.get(key)?.clone()))).collect()
    }

    /// What a gateway writes to the backing kind for a document with this name, of which the guest stores these fields.
    ///
    /// # Errors
    /// 422 for a name that no object of the view can have.
    pub fn create_document(
        &self,
        name: &str,
        namespace: &str,
        stored: &Map<String, Value>,
    ) -> Result<Value, Refusal> {
        let mut metadata = json!({"name": name});
        if self.served.backing.namespaced {
            metadata["namespace"] = namespace.into();
        }
        let write = self.create(&json!({"metadata": metadata}), stored).map_err(Refusal::of_write)?;
        Ok(write.body)
    }

    /// The merge patch of the backing object for a document of which the guest stores these fields. The metadata stay.
    ///
    /// # Errors
    /// As [`Lens::update`].
    pub fn update_document(
        &self,
        current: &BackingObject,
        stored: &Map<String, Value>,
    ) -> Result<Value, Refusal> {
        let metadata = self.shown_metadata(&current.metadata);
        Ok(self.update(current, &metadata, Some(stored)).map_err(Refusal::of_write)?.body)
    }
}

impl Served {
    /// What is wrong with fields of a document, with the paths that Kubernetes has for them.
    pub fn as_kubernetes_says(&self, mut causes: Vec<Cause>) -> Vec<Cause> {
        let document = Document { paths: self.paths.clone(), ..Document::default() };
        for cause in &mut causes {
            let told = document.backing_path(&cause.field);
            // The words name the field too: `source.type in body must be of type string`.
            if !cause.field.is_empty() {
                cause.message =
                    cause.message.replace(&format!("{} in body", cause.field), &format!("{told} in body"));
            }
            cause.field = told;
        }
        causes
    }
}

/// What a list of documents is, as JSON. Items are JSON.
pub fn list_json<'a>(version: &str, next: Option<&str>, items: impl Iterator<Item = &'a str>) -> String {
    let mut json = "{\"items\":[".to_owned();
    for (index, item) in items.enumerate() {
        if index > 0 {
            json.push(',');
        }
        json.push_str(item);
    }
    json.push(']');
    if let Some(next) = next {
        json.push_str(&format!(",\"continue\":{}", Value::from(next)));
    }
    json.push_str(&format!(",\"resourceVersion\":{}}}", Value::from(version)));
    json
}

impl Written {
    /// Reads what somebody wrote. Fields that are only shown, and times, are left out: whoever sends back what was read need not take them out.
    ///
    /// # Errors
    /// 400 for what is no object, or has a name, namespace or version that is no text.
    pub fn read(document: Value, schema: &Value) -> Result<Self, Refusal> {
        let Value::Object(mut fields) = document else { return Err(Refusal::unreadable()) };
        let mut text = |key: &str| match fields.remove(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text).filter(|text| !text.is_empty())),
            Some(_) => Err(Refusal::bad_request(format!("{key} must be a text"))),
        };
        let (name, namespace) = (text("name")?, text("namespace")?);
        let version = text("resourceVersion")?.unwrap_or_default();
        for key in Document::OF_THE_HOST {
            fields.remove(key);
        }
        let mut fields = Value::Object(fields);
        take_read_only(&mut fields, schema);
        Ok(Self { name, namespace, version, fields })
    }

    /// What a merge patch (RFC 7386) makes of a document that is shown. At a field that is never shown a null stays one, since there it takes a
    /// value away that the document does not have.
    ///
    /// # Errors
    /// 400 as [`Self::read`], and for a patch that is no object.
    pub fn patched(shown: Value, patch: &Value, schema: &Value) -> Result<Self, Refusal> {
        if !patch.is_object() {
            return Err(Refusal::unreadable());
        }
        let mut document = shown;
        // The version that is known is said by the patch alone.
        if let Some(fields) = document.as_object_mut() {
            fields.remove("resourceVersion");
        }
        merge(&mut document, patch, schema);
        Self::read(document, schema)
    }

    /// What stands at the fields that are never shown.
    pub fn secrets(&self, served: &Served) -> Secrets {
        let document = Document { paths: served.paths.clone(), ..Document::default() };
        let mut secrets = Secrets::default();
        secrets.collect(&self.fields, &served.schema, "", &document);
        secrets
    }
}

impl Refusal {
    /// The same, and nothing of what somebody wrote at fields that are only written: a cause that is about one is told without the value, as
    /// API servers repeat it, and the values are taken out of all other words.
    #[must_use]
    pub fn without_secrets(mut self, secrets: &Secrets) -> Self {
        let mut is_hidden = false;
        for cause in &mut self.causes {
            if secrets.is_about(&cause.field) && secrets.is_repeated(&cause.message) {
                cause.message = "is not valid; what was written is not repeated".to_owned();
                is_hidden = true;
            }
            cause.message = secrets.hidden(&cause.message);
        }
        if is_hidden {
            let said = |cause: &Cause| format!("{}: {}", cause.field, cause.message);
            self.details = self.causes.iter().map(said).collect::<Vec<_>>().join("; ");
        }
        self.details = secrets.hidden(&self.details);
        self
    }
}

impl Secrets {
    fn collect(&mut self, value: &Value, schema: &Value, at: &str, document: &Document) {
        if is_marked(schema, "writeOnly") {
            self.paths.push(document.backing_path(at));
            texts(value, &mut self.values);
            return;
        }
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    let at = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
                    self.collect(value, member(schema, key), &at, document);
                }
            }
            Value::Array(items) => {
                let of_items = schema.get("items").unwrap_or(&Value::Null);
                for (index, item) in items.iter().enumerate() {
                    self.collect(item, of_items, &format!("{at}[{index}]"), document);
                }
            }
            _ => {}
        }
    }

    /// Whether a field is one that is never shown, or within one.
    pub fn is_about(&self, field: &str) -> bool {
        self.paths.iter().any(|path| {
            field
                .strip_prefix(path.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        })
    }

    /// Whether what is said of such a field repeats what stands there.
    fn is_repeated(&self, message: &str) -> bool {
        let echoes = ["Invalid value: ", "Unsupported value: "];
        let mut values = self.values.iter().filter(|value| !value.is_empty());
        echoes.iter().any(|echo| message.starts_with(echo))
            || values.any(|value| message.contains(value.as_str()))
    }

    /// A text in which none of the values stands.
    pub fn hidden(&self, text: &str) -> String {
        let long = self.values.iter().filter(|value| value.len() >= SECRET_BYTES_MIN);
        long.fold(text.to_owned(), |text, value| text.replace(value.as_str(), "<hidden>"))
    }
}

fn is_marked(schema: &Value, mark: &str) -> bool {
    schema.get(mark) == Some(&Value::Bool(true))
}

/// The schema of a field.
fn member<'a>(schema: &'a Value, key: &str) -> &'a Value {
    let declared = schema.get("properties").and_then(|properties| properties.get(key));
    declared.or_else(|| schema.get("additionalProperties")).unwrap_or(&Value::Null)
}

/// Takes out what is only shown.
pub fn take_read_only(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, _| !is_marked(member(schema, key), "readOnly"));
            for (key, value) in fields {
                take_read_only(value, member(schema, key));
            }
        }
        Value::Array(items) => {
            let of_items = schema.get("items").unwrap_or(&Value::Null);
            items.iter_mut().for_each(|item| take_read_only(item, of_items));
        }
        _ => {}
    }
}

fn merge(target: &mut Value, patch: &Value, schema: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let Some(fields) = target.as_object_mut() else { return };
    for (key, value) in patch {
        let of_field = member(schema, key);
        if value.is_null() && !is_marked(of_field, "writeOnly") {
            fields.remove(key);
        } else {
            merge(fields.entry(key.clone()).or_insert(Value::Null), value, of_field);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{Access, Backing, Cut, Epoch};

    fn schema() -> Value {
        json!({"type": "object", "properties": {
            "version": {"type": "string"},
            "source": {"type": "object", "properties": {
                "type": {"type": "string"},
                "secretKey": {"type": "string", "nullable": true, "writeOnly": true},
            }},
            "status": {"type": "object", "readOnly": true},
        }})
    }

    fn lens() -> Lens {
        let served = Served {
            rest: "darkrooms".into(),
            plural: "darkrooms".into(),
            schema: schema(),
            paths: [(String::new(), "spec".to_owned())].into(),
            backing: Backing {
                api_version: "a/v1".into(),
                kind: "A".into(),
                plural: "as".into(),
                namespaced: true,
            },
            reads: vec!["spec".into()],
            writes: vec!["spec.version".into(), "spec.source.secretKey".into()],
            ..Served::default()
        };
        Lens::new("darkrooms", served, Access::default(), Vec::new(), Epoch::default())
    }

    fn backing(lens: &Lens) -> BackingObject {
        Cut::new(lens.served.reads.iter().chain(&lens.served.writes)).of(&json!({
            "metadata": {"name": "a", "namespace": "n", "uid": "6f9619ff-8b86-4011-b42d-00c04fc964ff", "resourceVersion": "7",
                "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"x": "y"}},
            "spec": {"version": "1", "source": {"secretKey": "s3cr3t", "other": 1}},
        }))
    }

    #[test]
    fn a_document_is_the_hosts_fields_and_the_guests() {
        let lens = lens();
        let read = |fields: &str| {
            serde_json::from_str::<Value>(&lens.document_json(&backing(&lens), fields)).unwrap()
        };
        let head = json!({"name": "a", "namespace": "n", "resourceVersion": "7000000", "creationTimestamp": "2026-01-01T00:00:00Z"});
        assert_eq!(read("{}"), head);
        let mut whole = head;
        whole["version"] = json!("1");
        assert_eq!(read(r#"{"version":"1"}"#), whole);
    }

    #[test]
    fn a_list_has_its_items_its_version_and_the_next_page_if_there_is_one() {
        let read = |text: String| serde_json::from_str::<Value>(&text).unwrap();
        let items = ["{\"name\":\"a\"}", "{\"name\":\"b\"}"];
        assert_eq!(
            read(list_json("7000000", Some("x\"y"), items.into_iter())),
            json!({"items": [{"name": "a"}, {"name": "b"}], "continue": "x\"y", "resourceVersion": "7000000"})
        );
        assert_eq!(read(list_json("7", None, [].into_iter())), json!({"items": [], "resourceVersion": "7"}));
    }

    #[test]
    fn what_is_only_shown_can_be_sent_back() {
        let sent = json!({"name": "a", "namespace": "n", "resourceVersion": "7000000", "creationTimestamp": "t", "deletionTimestamp": "t",
            "version": "1", "source": {"secretKey": null}, "status": {"domains": []}});
        let written = Written::read(sent, &schema()).unwrap();
        assert_eq!(written.fields, json!({"version": "1", "source": {"secretKey": null}}));
        assert_eq!((written.name.as_deref(), written.version.as_str()), (Some("a"), "7000000"));
        assert_eq!(Written::read(json!([]), &schema()).unwrap_err().details, "Could not read entity");
        assert_eq!(Written::read(json!({"name": 7}), &schema()).unwrap_err().status, 400);
    }

    #[test]
    fn a_patch_merges_and_a_null_at_a_field_that_is_never_shown_reaches_the_guest() {
        let shown = json!({"name": "a", "resourceVersion": "7000000", "version": "1", "source": {"type": "S3"}, "status": {}});
        let patched = |patch: Value| Written::patched(shown.clone(), &patch, &schema()).unwrap();
        assert_eq!(
            patched(json!({"source": {"secretKey": null}})).fields["source"],
            json!({"type": "S3", "secretKey": null})
        );
        assert_eq!(patched(json!({"version": null})).fields, json!({"source": {"type": "S3"}}));
        assert_eq!(
            patched(json!({"source": {"type": "X", "new": {"a": null, "b": 1}}})).fields["source"],
            json!({"type": "X", "new": {"b": 1}})
        );
        assert_eq!(patched(json!({})).version, "", "a patch that names no version knows none");
        assert_eq!(patched(json!({"resourceVersion": "8000000"})).version, "8000000");
        assert_eq!(Written::patched(shown, &json!([]), &schema()).unwrap_err().status, 400);
    }

    #[test]
    fn a_document_becomes_an_object_and_its_change_a_patch_of_the_declared_fields() {
        let lens = lens();
        let stored = json!({"spec": {"version": "2", "source": {"secretKey": null, "other": 2}}});
        let stored = stored.as_object().unwrap();
        assert_eq!(
            lens.create_document("b", "n", stored).unwrap(),
            json!({"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "b", "namespace": "n"}, "spec": {"version": "2"}})
        );
        assert_eq!(
            lens.update_document(&backing(&lens), stored).unwrap(),
            json!({"metadata": {"uid": "6f9619ff-8b86-4011-b42d-00c04fc964ff", "resourceVersion": "7"},
                "spec": {"version": "2", "source": {"secretKey": null}}})
        );
    }

    #[test]
    fn nothing_of_a_secret_is_in_a_refusal() {
        let written = Written::read(json!({"source": {"secretKey": "s3cr3t"}}), &schema()).unwrap();
        let secrets = written.secrets(&lens().served);
        let cause = |field: &str, message: &str| Cause {
            field: field.into(),
            message: message.into(),
            ..Cause::default()
        };
        let refusal = Refusal::invalid(vec![
            cause("spec.source.secretKey", "Invalid value: \"s3\": too short"),
            cause("spec", "has s3cr3t in it"),
        ]);
        let refusal = refusal.without_secrets(&secrets);
        let all = format!("{refusal:?}");
        assert!(!all.contains("s3cr3t") && !all.contains("\"s3\""), "{all}");
        assert!(refusal.details.starts_with("spec.source.secretKey: is not valid"), "{all}");
        for field in ["spec.source.secretKeys", "spec.source.secretKey"] {
            let harmless = Refusal::invalid(vec![cause(field, "required fields missing: secretKey")]);
            assert_eq!(harmless.clone().without_secrets(&secrets), harmless);
        }
    }

    #[test]
    fn what_is_wrong_with_a_document_is_told_as_kubernetes_says_it() {
        let message =
            "Invalid value: \"integer\": source.type in body must be of type string: \"integer\"".to_owned();
        let cause = Cause { field: "source.type".into(), message, reason: "FieldValueTypeInvalid".into() };
        let told = lens().served.as_kubernetes_says(vec![cause]).remove(0);
        assert_eq!(told.field, "spec.source.type");
        assert_eq!(
            told.message,
            "Invalid value: \"integer\": spec.source.type in body must be of type string: \"integer\""
        );
    }
}
