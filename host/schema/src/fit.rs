//! Checks that an object fits its kind: it has only fields that the kind declares, with values of their types and formats, and the items
//! of its lists have what they need and can be told apart, and a workload selects its own Pods. The API server says the same about an
//! apply; this needs no API server, and gives the path as in JSON.

use std::collections::{BTreeMap, BTreeSet};

use pintle_core::{number, object, quantity, reasons, view::status::fault::NO_FIELD, violations::Violations};
use pintle_wit::{Cause, Kind, ObjectRef};
use serde_json::{Map, Value};

use crate::{
    builtin,
    nearest::did_you_mean,
    shape::{List, Shape},
    structural::{Structural, format::Format},
};

/// The schemas of kinds: built-in ones that this program has, and those of CRDs.
#[derive(Clone, Debug, Default)]
pub struct Kinds {
    /// The `openAPIV3Schema` of each.
    custom: BTreeMap<Kind, Value>,
}

impl Kinds {
    /// The built-in kinds, and those of these CRDs. Other objects are skipped.
    pub fn with_crds<'a>(crds: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut custom = BTreeMap::new();
        for crd in crds {
            let (Some(group), Some(kind)) =
                (object::text(crd, &["spec", "group"]), object::text(crd, &["spec", "names", "kind"]))
            else {
                continue;
            };
            let versions = object::at(crd, &["spec", "versions"]).and_then(Value::as_array);
            for version in versions.into_iter().flatten() {
                let Some(name) = object::text(version, &["name"]) else { continue };
                let schema = version.pointer("/schema/openAPIV3Schema").cloned().unwrap_or_default();
                custom.insert(Kind::new(format!("{group}/{name}"), kind), schema);
            }
        }
        Self { custom }
    }

    /// Whether there is a schema of this kind, so that [`Kinds::fit`] says something about its objects.
    pub fn has(&self, kind: &Kind) -> bool {
        self.custom.contains_key(kind) || builtin::schema(kind).is_some()
    }

    /// Finds what its kind does not allow in a child: `FieldUndeclared` for a field that the kind does not have, and otherwise `Invalid`,
    /// with the path after `at`. If the kind is unknown, everything fits. Of fields that are missing, those of items of lists are reported,
    /// and for a kind whose CRD is known all.
    ///
    /// # Errors
    /// The places that do not fit.
    pub fn fit(&self, child: &Value, at: &str) -> Result<(), Violations> {
        self.judge(child, at, false)
    }

    /// The same for a patch, which leaves out what it does not change. Only what tells the items of a list apart may not be missing.
    ///
    /// # Errors
    /// The places that do not fit.
    pub fn fit_patch(&self, patch: &Value, at: &str) -> Result<(), Violations> {
        self.judge(patch, at, true)
    }

    fn judge(&self, object: &Value, at: &str, is_patch: bool) -> Result<(), Violations> {
        let kind = object::kind(object);
        let custom = self.custom.get(&kind);
        let (schema, whose) = match custom {
            Some(schema) => (builtin::with_metadata(schema), "in its CRD".to_owned()),
            None => match builtin::schema(&kind) {
                Some(schema) => (schema, format!("in Kubernetes {}", builtin::KUBERNETES)),
                None => return Ok(()),
            },
        };
        let about = object::reference(object);
        let mut found = Misfits { about, whose, is_patch, violations: Violations::default() };
        found.look(Shape::new(builtin::definitions(), &schema), object, &mut at.to_owned());
        if is_patch {
            return found.violations.into_result();
        }
        let below = |field: &str| if at.is_empty() { field.to_owned() } else { format!("{at}.{field}") };
        for cause in custom.map(|schema| causes(schema, object)).unwrap_or_default() {
            let path = if cause.field == NO_FIELD { at.to_owned() } else { below(&cause.field) };
            // The same in other words.
            if !found.violations.has(&path) {
                found.unfit(&path, &cause.message);
            }
        }
        if let (None, Some((name, value))) = (custom, missing_label(&kind, object)) {
            let why = "`selector` does not match template `labels`";
            found.unfit(&below(LABELS), &format!("{why}: it selects {name}: {value}"));
        }
        found.violations.into_result()
    }
}

/// What the API server holds against an object of a custom kind. A schema with something in it that is not evaluated here is left to the
/// API server.
fn causes(schema: &Value, object: &Value) -> Vec<Cause> {
    let Ok(structural) = Structural::of_crd(schema) else { return Vec::new() };
    let mut object = object.clone();
    // Nulls go, and fields that are not declared, which are found otherwise.
    structural.prune(&mut object);
    structural.admit(Vec::new(), &mut object, None)
}

/// The labels of the Pods of a workload.
const LABELS: &str = "spec.template.metadata.labels";

/// A label that a workload selects its Pods by and that they do not have. A Job may leave the selector to the API server.
fn missing_label<'a>(kind: &Kind, object: &'a Value) -> Option<(&'a String, &'a Value)> {
    if kind.api_version != "apps/v1" && kind.kind != "Job" {
        return None;
    }
    let labels = &object["spec"]["template"]["metadata"]["labels"];
    let selector = object["spec"]["selector"]["matchLabels"].as_object();
    selector.into_iter().flatten().find(|(name, value)| labels[name.as_str()] != **value)
}

/// The longest value that is shown, in characters.
const SHOWN_MAX: usize = 60;

/// Looks for the misfits of an object.
struct Misfits {
    about: ObjectRef,
    /// Where the fields of its kind are declared.
    whose: String,
    is_patch: bool,
    violations: Violations,
}

impl Misfits {
    fn unfit(&mut self, path: &str, why: &str) {
        let message = format!("{}: {why}", self.about);
        self.violations.add(reasons::INVALID, path, message);
    }

    /// Looks at a value and those within it. Afterwards `path` is what it was.
    fn look(&mut self, shape: Shape<'_>, value: &Value, path: &mut String) {
        if let Some(wanted) = wanted(shape, value) {
            return self.unfit(path, &format!("{} is not {wanted}", shown(shape, value)));
        }
        let before = path.len();
        match value {
            Value::Object(fields) => {
                for (name, within) in fields {
                    step(path, name);
                    if let Some(member) = shape.member(name) {
                        self.look(member, within, path);
                    } else {
                        let near = did_you_mean(name, shape.fields().map(|(name, _)| name.as_str()));
                        let message = format!("{} has no field {name} {}{near}", self.about, self.whose);
                        self.violations.add(reasons::FIELD_UNDECLARED, path.as_str(), message);
                    }
                    path.truncate(before);
                }
            }
            Value::Array(items) => {
                let mut keys = BTreeSet::new();
                for (index, item) in items.iter().enumerate() {
                    path.push_str(&format!("[{index}]"));
                    let at_item = path.len();
                    self.look(shape.items(), item, path);
                    if let Some(name) = item.as_object().and_then(|item| missing(shape, item, self.is_patch))
                    {
                        step(path, name);
                        self.unfit(path, &format!("{name} is missing"));
                        path.truncate(at_item);
                    }
                    if let Some(key) = shape.item_key(item).filter(|key| !keys.insert(key.clone())) {
                        self.unfit(path, &format!("the list has {key} twice"));
                    }
                    path.truncate(before);
                }
            }
            _ => {}
        }
    }
}

/// What a value should be, if it is something else.
fn wanted(shape: Shape<'_>, value: &Value) -> Option<&'static str> {
    let format = shape.get("format").and_then(Value::as_str);
    let is_int32 = |integer: i64| i32::try_from(integer).is_ok();
    let (fits, wanted) = match (shape.type_name(), value) {
        // Null counts as absent.
        (_, Value::Null) => return None,
        (Some("object"), _) => (value.is_object(), "an object"),
        (Some("array"), _) => (value.is_array(), "a list"),
        (Some("string"), Value::String(text)) => match format {
            Some("byte") => (is_base64(text), "base64"),
            Some("date-time") => (Format::DateTime.has(text), "a time such as 2026-01-31T12:00:00Z"),
            _ => return None,
        },
        (Some("string"), _) => (false, "text (put it in quotes)"),
        (Some("integer"), Value::Number(_)) if format == Some("int32") => {
            (integer(value).is_some_and(is_int32), "an integer of 32 bits")
        }
        (Some("integer"), Value::Number(_)) => (integer(value).is_some(), "an integer of 64 bits"),
        (Some("integer"), _) => (false, "an integer"),
        (Some("number"), _) => (value.is_number(), "a number"),
        (Some("boolean"), _) => (value.is_boolean(), "true or false"),
        (None, _) if format == Some("int-or-string") => {
            let fits = value.is_string() || integer(value).is_some_and(is_int32);
            (fits, "an integer of 32 bits or text")
        }
        (None, _) if shape.is_quantity() && !shape.preserves_unknown() => {
            let fits = value.is_number() || value.as_str().is_some_and(quantity::is_quantity);
            (fits, "a quantity such as 500m or 2Gi")
        }
        _ => return None,
    };
    (!fits).then_some(wanted)
}

/// A number as an integer: 80.0 is one to the API server.
fn integer(value: &Value) -> Option<i64> {
    value.as_number().and_then(|number| number::stored(number).as_i64())
}

/// Whether the API server reads a text as bytes. It passes over the ends of lines.
fn is_base64(text: &str) -> bool {
    let text: String = text.chars().filter(|letter| !matches!(letter, '\r' | '\n')).collect();
    text.is_empty() || Format::Byte.has(&text)
}

/// Fields that the schemas of built-in kinds require of items, and that the API server takes as empty: the value of a header or a sysctl, the
/// preference of an affinity that matches all nodes, and what a CRD says of a version.
const MAY_BE_MISSING: [&str; 4] = ["preference", "served", "storage", "value"];

/// The first field that an item of a list needs and does not have.
fn missing<'a>(list: Shape<'a>, item: &Map<String, Value>, is_patch: bool) -> Option<&'a str> {
    // The missing one may be there under a misspelt name, which is a violation already.
    if item.keys().any(|name| list.items().member(name).is_none()) {
        return None;
    }
    let required = list.items().get("required").and_then(Value::as_array);
    let is_needed = |name: &&str| match list.list() {
        List::Map(keys) if is_patch => keys.contains(name),
        _ => !MAY_BE_MISSING.contains(name),
    };
    let mut needed = required.into_iter().flatten().filter_map(Value::as_str).filter(is_needed);
    needed.find(|name| item.get(*name).is_none_or(Value::is_null))
}

/// In the form in which Kubernetes writes paths: `metadata.labels[example.com/a]`.
fn step(path: &mut String, name: &str) {
    match name.contains(['.', '/']) {
        true => path.push_str(&format!("[{name}]")),
        false if path.is_empty() => path.push_str(name),
        false => path.push_str(&format!(".{name}")),
    }
}

fn shown(shape: Shape<'_>, value: &Value) -> String {
    match value {
        // It may be of a Secret.
        _ if shape.get("format").and_then(Value::as_str) == Some("byte") => "the value".into(),
        Value::Object(_) => "an object".into(),
        Value::Array(_) => "a list".into(),
        other => {
            let text = other.to_string();
            match text.char_indices().nth(SHOWN_MAX) {
                None => text,
                Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment(spec: Value) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})
    }

    fn with_containers(containers: Value) -> Value {
        let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": containers}});
        deployment(json!({"selector": {"matchLabels": {"a": "b"}}, "template": template}))
    }

    /// A Deployment of one container, which has this field.
    fn container(field: &str, value: Value) -> Value {
        with_containers(json!([{"name": "a", "image": "b", field: value}]))
    }

    fn service(port: Value) -> Value {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": [port]}})
    }

    fn with_data(kind: &str, field: &str, data: Value) -> Value {
        json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "web"}, field: data})
    }

    fn lease(spec: Value) -> Value {
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "web"}, "spec": spec})
    }

    fn said(object: &Value) -> String {
        Kinds::default()
            .fit(object, "children[0].object")
            .map_or_else(|found| found.failure().to_string(), |()| "fits".into())
    }

    #[test]
    fn what_the_api_server_refuses_in_a_child_is_found_with_its_path() {
        let containers = "spec.template.spec.containers";
        let limits = |cpu: &str| container("resources", json!({"limits": {"cpu": cpu}}));
        for (child, path, word) in [
            (with_data("ConfigMap", "data", json!({"port": 8080})), "data.port", "8080 is not text"),
            (container("env", json!([{"name": "A"}, {"name": "A"}])), "env[1]", r#"{"name":"A"} twice"#),
            (with_containers(json!([{"name": "a"}, {"name": "a"}])), "spec.containers[1]", "twice"),
            (
                container("ports", json!([{"containerPort": 80}, {"containerPort": 80, "protocol": "TCP"}])),
                "ports[1]",
                "twice",
            ),
            (with_containers(json!([{"image": "b"}])), "spec.containers[0].name", "name is missing"),
            (container("env", json!([{"value": "1"}])), "env[0].name", "name is missing"),
            (container("env", json!([{"name": null}])), "env[0].name", "name is missing"),
            (
                container("ports", json!([{"name": "http"}])),
                "ports[0].containerPort",
                "containerPort is missing",
            ),
            (
                container("volumeMounts", json!([{"mountPath": "/a"}])),
                "volumeMounts[0].name",
                "name is missing",
            ),
            (with_data("Secret", "data", json!({"a": "c2VjcmV"})), "data.a", "the value is not base64"),
            (
                with_data("ConfigMap", "binaryData", json!({"a": "no base64"})),
                "binaryData.a",
                "is not base64",
            ),
            (limits("lots"), "limits.cpu", r#""lots" is not a quantity"#),
            (limits("2MB"), "limits.cpu", "is not a quantity"),
            (
                container("resources", json!({"limits": {"cpu": true}})),
                "limits.cpu",
                "true is not a quantity",
            ),
            (lease(json!({"renewTime": "yesterday"})), "spec.renewTime", "is not a time"),
            (
                deployment(json!({"replicas": 4_294_967_297_i64})),
                "spec.replicas",
                "is not an integer of 32 bits",
            ),
            (deployment(json!({"replicas": 1.5})), "spec.replicas", "1.5 is not an integer"),
            (
                container("securityContext", json!({"runAsUser": u64::MAX})),
                "runAsUser",
                "is not an integer of 64 bits",
            ),
            (
                service(json!({"port": 80, "targetPort": true})),
                "ports[0].targetPort",
                "true is not an integer of 32 bits or text",
            ),
            (service(json!({"port": "80"})), "ports[0].port", r#""80" is not an integer"#),
            (container("command", json!([1])), "command[0]", "1 is not text"),
        ] {
            let failure = Kinds::default().fit(&child, "").expect_err(path).failure();
            let at = failure.path.clone().unwrap_or_default();
            assert!(
                failure.reason == "Invalid" && at.ends_with(path) && failure.message.contains(word),
                "{failure}"
            );
            assert!(!at.contains("containers") || at.starts_with(containers), "{at}");
        }
    }

    #[test]
    fn all_misfits_of_a_child_are_told_at_once() {
        let child = with_containers(json!([{"name": "a", "imag": "b", "tty": 1}, {"image": "b"}]));
        let said = said(&child);
        for (path, word) in
            [("[0].imag", "no field imag"), ("[0].tty", "1 is not true or false"), ("[1].name", "missing")]
        {
            let (_, after) = said.split_once(&format!("spec.template.spec.containers{path}: ")).expect(path);
            assert!(after.contains(word), "{said}");
        }
    }

    #[test]
    fn a_workload_selects_its_own_pods() {
        let workload = |api_version: &str, kind: &str, selector: Value| {
            let template = json!({"metadata": {"labels": {"app": "web", "tier": "a"}}});
            json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "web"}, "spec": {"selector": selector, "template": template}})
        };
        for (api_version, kind) in
            [("apps/v1", "Deployment"), ("apps/v1", "StatefulSet"), ("batch/v1", "Job")]
        {
            let said = |labels: Value| said(&workload(api_version, kind, json!({"matchLabels": labels})));
            assert_eq!(said(json!({"app": "web"})), "fits");
            let expected = format!(
                "Invalid: children[0].object.spec.template.metadata.labels: {kind} web: `selector` does not match template `labels`: it selects "
            );
            assert_eq!(
                [said(json!({"app": "wbe"})), said(json!({"app": "web", "a": "b"}))],
                [format!("{expected}app: \"wbe\""), format!("{expected}a: \"b\"")]
            );
        }
        assert_eq!(said(&workload("batch/v1", "Job", Value::Null)), "fits");
    }

    #[test]
    fn a_patch_may_leave_out_what_it_does_not_change() {
        let mount = container("volumeMounts", json!([{"mountPath": "/a", "readOnly": true}]));
        let kinds = Kinds::default();
        assert!(kinds.fit_patch(&mount, "").is_ok() && kinds.fit(&mount, "").is_err());
        assert!(kinds.fit_patch(&container("volumeMounts", json!([{"name": "a"}])), "").is_err());
    }

    #[test]
    fn a_misspelt_field_is_named_with_the_nearest_that_there_are() {
        assert_eq!(
            said(&deployment(json!({"replica": 1}))),
            "FieldUndeclared: children[0].object.spec.replica: Deployment web has no field replica in Kubernetes 1.36; did you mean replicas?"
        );
        let ports = json!([{"name": "http", "containerport": 80}]);
        let template = json!({"spec": {"containers": [{"name": "a", "ports": ports}]}});
        assert_eq!(
            said(&deployment(json!({"template": template}))),
            "FieldUndeclared: children[0].object.spec.template.spec.containers[0].ports[0].containerport: Deployment web has no field containerport in Kubernetes 1.36; did you mean containerPort?"
        );
    }

    #[test]
    fn a_value_of_another_type_is_named_with_what_it_should_be() {
        for (object, wanted) in [
            (
                deployment(json!({"replicas": "3"})),
                r#"Invalid: children[0].object.spec.replicas: Deployment web: "3" is not an integer"#,
            ),
            (
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a.b": 1}}),
                "Invalid: children[0].object.data[a.b]: ConfigMap a: 1 is not text (put it in quotes)",
            ),
            (
                deployment(json!([])),
                "Invalid: children[0].object.spec: Deployment web: a list is not an object",
            ),
        ] {
            assert_eq!(said(&object), wanted);
        }
    }

    #[test]
    fn what_the_api_server_takes_fits() {
        let resources = json!({"limits": {"cpu": 1, "memory": "64Mi"}});
        let whole = json!({"name": "a", "resources": resources, "env": [{"name": "A", "value": null}]});
        let template = json!({"metadata": {"labels": {"a.b/c": "d"}}, "spec": {"containers": [whole]}});
        let strategy = json!({"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}});
        let object = deployment(json!({"template": template, "strategy": strategy}));
        assert_eq!(said(&object), "fits");
        let limits =
            json!({"cpu": "1000m", "memory": "2Mi", "ephemeral-storage": 0.5, "example.com/a": "0.5"});
        let both = json!([{"containerPort": 53}, {"containerPort": 53, "protocol": "UDP"}]);
        for fits in [
            container("resources", json!({"limits": limits})),
            container("ports", both),
            container("readinessProbe", json!({"httpGet": {"port": 80, "httpHeaders": [{"name": "A"}]}})),
            service(json!({"port": 80, "targetPort": 8080})),
            service(json!({"port": 80.0, "targetPort": "http"})),
            with_data("Secret", "data", json!({"a": "", "b": "c2Vj\ncmV0\n", "c": null})),
            with_data("Secret", "stringData", json!({"a": "no base64"})),
            lease(json!({"renewTime": "2026-01-31T12:00:00.000000Z"})),
        ] {
            assert_eq!(said(&fits), "fits", "{fits}");
        }
        let probe = json!({"httpGet": {"port": "http", "path": "/"}});
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [{"name": "a", "livenessProbe": probe}]}});
        assert_eq!(said(&pod), "fits");
        assert_eq!(
            said(&json!({"apiVersion": "example.com/v1", "kind": "X", "anything": {"goes": 1}})),
            "fits"
        );
    }

    #[test]
    fn the_schemas_of_crds_count_too() {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "required": ["size"], "properties": {
            "size": {"type": "integer", "minimum": 1},
        }}}});
        let crd = json!({"spec": {
            "group": "example.com", "names": {"kind": "Thing"}, "versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}],
        }});
        let kinds = Kinds::with_crds([&crd]);
        let thing = |spec: Value| json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": spec});
        assert!(kinds.fit(&thing(json!({"size": 1})), "").is_ok());
        let failure = kinds.fit(&thing(json!({"sise": 1})), "").unwrap_err().failure();
        assert_eq!(
            failure.to_string(),
            "FieldUndeclared: spec.sise: Thing a has no field sise in its CRD; did you mean size?;\nspec.size: Thing a: Required value (Invalid)"
        );
        for (spec, path) in [(json!({"size": 0}), "object.spec.size"), (json!({}), "object.spec.size")] {
            let failure = kinds.fit(&thing(spec), "object").unwrap_err().failure();
            assert_eq!((failure.reason.as_str(), failure.path.as_deref()), ("Invalid", Some(path)));
        }
        assert!(kinds.fit_patch(&thing(json!({})), "").is_ok());
    }
}
