//! [`StatusSchema`]: which fields a root's CRD declares in its status.

use std::fmt::{self, Display};

use serde_json::{Map, Value, json};

use crate::request::HOST_STATUS;

/// The status part of a root's CRD.
///
/// The API server refuses the whole status apply if it has an undeclared field, with a 500 that does not say whose mistake that is. So the
/// host writes only fields that are declared, and refuses an answer that has others.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum StatusSchema {
    /// Every field is allowed. This is for offline runs without a CRD.
    #[default]
    Anything,
    /// The CRD has no status subresource, so there is no status.
    Nothing,
    /// What the OpenAPI schema of `status` declares.
    Declared(Value),
}

impl StatusSchema {
    /// Reads the status schema of one version of a CRD (an element of `spec.versions`).
    pub fn of_crd_version(version: &Value) -> Self {
        if version.pointer("/subresources/status").is_none() {
            return Self::Nothing;
        }
        let schema = version.pointer("/schema/openAPIV3Schema");
        if schema.is_some_and(preserves) {
            return Self::Anything;
        }
        match schema.and_then(|schema| schema.pointer("/properties/status")) {
            Some(status) => Self::Declared(status.clone()),
            None => Self::Declared(Value::Object(Map::new())),
        }
    }

    /// Passes on the paths of a guest's status that are not declared: `status.domains[0].name`. There may be very many, so a path is
    /// written only when it is used.
    pub fn undeclared(&self, status: &Map<String, Value>, see: &mut dyn FnMut(&dyn Display)) {
        let root = Path { above: None, step: Step::Key("status") };
        let fields = status.iter().filter(|(key, _)| !HOST_STATUS.contains(&key.as_str()));
        match self {
            Self::Anything => {}
            Self::Nothing => {
                for key in status.keys() {
                    see(&root.below(Step::Key(key)));
                }
            }
            Self::Declared(schema) => {
                for (key, value) in fields {
                    undeclared_below(schema, key, value, &root, see);
                }
            }
        }
    }

    /// A status without the fields that are not declared. This is for the host's own fields; an answer with such fields is refused instead.
    pub fn prune(&self, status: Value) -> Value {
        match self {
            Self::Anything => status,
            Self::Nothing => Value::Object(Map::new()),
            Self::Declared(schema) => prune(schema, status),
        }
    }

    /// The parts of HostStatus that the CRD lacks. The condition `StatusSchemaIncomplete` lists them.
    pub fn lacks(&self) -> Vec<String> {
        let fields = HOST_STATUS.into_iter().filter(|field| !self.declares(field)).map(Into::into);
        let parts = [
            ("unwatched", json!([{"apiVersion": "v1", "kind": "Secret", "namespace": "a", "name": "a"}])),
            ("evicting", json!(["uid"])),
        ];
        let parts =
            parts.into_iter().filter(|(part, value)| self.declares("pintle") && !self.keeps(part, value));
        fields.chain(parts.map(|(part, _)| format!("pintle.{part}"))).collect()
    }

    /// Whether the host can name in the status the Pods that are being evicted.
    pub fn takes_evicting(&self) -> bool {
        self.keeps("evicting", &json!(["uid"]))
    }

    /// Whether the API server keeps everything that the host writes below `pintle`.
    fn keeps(&self, part: &str, value: &Value) -> bool {
        let status = json!({"pintle": {part: value}});
        self.prune(status.clone()) == status
    }

    fn declares(&self, field: &str) -> bool {
        match self {
            Self::Anything => true,
            Self::Nothing => false,
            Self::Declared(schema) => !matches!(below(schema, field), Below::Undeclared),
        }
    }
}

enum Below<'a> {
    Declared(&'a Value),
    Anything,
    Undeclared,
}

fn preserves(schema: &Value) -> bool {
    schema.get("x-kubernetes-preserve-unknown-fields").and_then(Value::as_bool) == Some(true)
}

fn below<'a>(schema: &'a Value, key: &str) -> Below<'a> {
    if let Some(declared) = schema.get("properties").and_then(|properties| properties.get(key)) {
        return Below::Declared(declared);
    }
    match schema.get("additionalProperties") {
        Some(Value::Bool(true)) => Below::Anything,
        Some(declared @ Value::Object(_)) => Below::Declared(declared),
        _ if preserves(schema) => Below::Anything,
        _ => Below::Undeclared,
    }
}

/// The path of a value.
struct Path<'a> {
    above: Option<&'a Path<'a>>,
    step: Step<'a>,
}

enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

impl<'a> Path<'a> {
    fn below(&'a self, step: Step<'a>) -> Self {
        Self { above: Some(self), step }
    }
}

impl Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(above) = self.above {
            above.fmt(f)?;
        }
        match (&self.step, self.above) {
            (Step::Key(key), None) => f.write_str(key),
            (Step::Key(key), Some(_)) => write!(f, ".{key}"),
            (Step::Index(index), _) => write!(f, "[{index}]"),
        }
    }
}

fn undeclared_below(
    schema: &Value,
    key: &str,
    value: &Value,
    above: &Path<'_>,
    see: &mut dyn FnMut(&dyn Display),
) {
    let path = above.below(Step::Key(key));
    match below(schema, key) {
        Below::Declared(schema) => undeclared(schema, value, &path, see),
        Below::Anything => {}
        Below::Undeclared => see(&path),
    }
}

fn undeclared(schema: &Value, value: &Value, path: &Path<'_>, see: &mut dyn FnMut(&dyn Display)) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                undeclared_below(schema, key, value, path, see);
            }
        }
        Value::Array(items) => {
            let Some(schema) = schema.get("items") else { return };
            for (index, item) in items.iter().enumerate() {
                undeclared(schema, item, &path.below(Step::Index(index)), see);
            }
        }
        _ => {}
    }
}

fn prune(schema: &Value, value: Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .filter_map(|(key, value)| match below(schema, &key) {
                    Below::Declared(schema) => Some((key, prune(schema, value))),
                    Below::Anything => Some((key, value)),
                    Below::Undeclared => None,
                })
                .collect(),
        ),
        Value::Array(items) => match schema.get("items") {
            Some(schema) => items.into_iter().map(|item| prune(schema, item)).collect(),
            None => Value::Array(items),
        },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> StatusSchema {
        StatusSchema::of_crd_version(&json!({
            "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"status": {"type": "object", "properties": {
                "domains": {"type": "array", "items": {"type": "object", "properties": {"host": {"type": "string"}}}},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "conditions": {"type": "array", "items": {"type": "object", "properties": {"type": {}, "status": {}}}},
            }}}}},
        }))
    }

    #[test]
    fn an_undeclared_field_is_named_by_its_path() {
        let Value::Object(status) = json!({"domains": [{"host": "a"}, {"hots": "b"}], "labels": {"x": "y"}, "free": {"z": {}}, "other": 1})
        else {
            unreachable!()
        };
        let undeclared = |schema: StatusSchema| {
            let mut found = Vec::new();
            schema.undeclared(&status, &mut |path| found.push(path.to_string()));
            found
        };
        assert_eq!(undeclared(schema()), ["status.domains[1].hots", "status.other"]);
        assert_eq!(
            undeclared(StatusSchema::Nothing),
            ["status.domains", "status.free", "status.labels", "status.other"]
        );
        assert!(undeclared(StatusSchema::Anything).is_empty());
    }

    #[test]
    fn the_host_writes_what_is_declared_and_nothing_else() {
        let status = json!({"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True", "observedGeneration": 1}]});
        assert_eq!(schema().prune(status), json!({"conditions": [{"type": "Ready", "status": "True"}]}));
        assert_eq!(schema().lacks(), ["observedGeneration", "pintle"]);
    }

    #[test]
    fn what_the_host_keeps_has_a_place_only_where_every_part_of_it_is_declared() {
        let pintle = |unwatched: Value| {
            let pintle = json!({"properties": {"unwatched": {"items": {"properties": unwatched}}}});
            StatusSchema::Declared(json!({"properties": {"pintle": pintle}}))
        };
        let all = pintle(json!({"apiVersion": {}, "kind": {}, "namespace": {}, "name": {}}));
        assert!(!all.takes_evicting());
        let lacks = ["observedGeneration", "conditions", "pintle.evicting"];
        assert_eq!(all.lacks(), lacks);
        let short = pintle(json!({"apiVersion": {}, "kind": {}, "name": {}}));
        assert!(short.lacks().contains(&"pintle.unwatched".to_owned()), "without namespace");
        assert!(StatusSchema::Anything.takes_evicting() && StatusSchema::Anything.lacks().is_empty());
        assert!(!StatusSchema::Nothing.takes_evicting());
    }

    #[test]
    fn a_crd_without_the_subresource_takes_nothing() {
        assert_eq!(StatusSchema::of_crd_version(&json!({"schema": {}})), StatusSchema::Nothing);
    }
}
