//! [`Marks`]: the fields of objects that nobody is to read, as views and CRDs mark them.

use pintle_wit::{
    Kind,
    views::{Document, ViewManifest},
};
use serde_json::Value;

/// The fields of objects that nobody is to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks(Vec<Mark>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Mark {
    /// Of any version.
    kind: Kind,
    path: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// The field of this name.
    Field(String),
    /// Every item of a list, or value of a map.
    Each,
}

impl Marks {
    /// Adds what a schema of a kind, as a CRD has it, marks `format: password`.
    pub fn add_schema(&mut self, kind: &Kind, schema: &Value) {
        for path in found(schema, &|schema| schema.get("format").is_some_and(|format| format == "password")) {
            self.add(kind, &path);
        }
    }

    /// Adds what a view marks `writeOnly`.
    pub fn add_view(&mut self, view: &ViewManifest) {
        if let Some(schema) = view.schema() {
            self.add_shown(&view.backing, schema, view.document.as_ref(), &view.writes);
        }
    }

    /// Adds what the schema of what is shown of a kind marks `writeOnly`: where a document says that its fields stand; and otherwise at the
    /// same path, and in every field of that name that is written.
    pub fn add_shown(
        &mut self,
        backing: &Kind,
        schema: &Value,
        document: Option<&Document>,
        writes: &[String],
    ) {
        for path in found(schema, &|schema| schema.get("writeOnly") == Some(&Value::Bool(true))) {
            match document {
                Some(document) => self.add(backing, &document.backing_path(&path)),
                None => {
                    self.add(backing, &path);
                    let name = |path: &str| path.rsplit('.').next().map(str::to_owned);
                    let same = writes.iter().filter(|written| name(written) == name(&path));
                    same.for_each(|written| self.add(backing, written));
                }
            }
        }
    }

    fn add(&mut self, kind: &Kind, path: &str) {
        let mark = Mark { kind: kind.clone(), path: steps(path) };
        if !mark.path.is_empty() && !self.0.contains(&mark) {
            self.0.push(mark);
        }
    }

    /// Whether any field of a kind is marked.
    pub(super) fn are_on(&self, kind: &Kind) -> bool {
        self.of(kind).next().is_some()
    }

    /// What stands at the marked fields of an object.
    pub(super) fn values<'a>(&self, kind: &Kind, object: &'a Value) -> Vec<&'a Value> {
        let mut found = Vec::new();
        for mark in self.of(kind) {
            let mut reached = vec![object];
            for step in &mark.path {
                reached = reached.into_iter().flat_map(|value| below(value, step)).collect();
            }
            found.extend(reached);
        }
        found
    }

    /// Changes what stands at the marked fields of an object.
    pub(super) fn change(&self, kind: &Kind, object: &mut Value, change: &dyn Fn(&mut Value)) {
        self.of(kind).for_each(|mark| change_at(object, &mark.path, change));
    }

    fn of<'a>(&'a self, kind: &Kind) -> impl Iterator<Item = &'a Mark> {
        let (group, name) = (kind.group().to_owned(), kind.kind.clone());
        self.0.iter().filter(move |mark| mark.kind.group() == group && mark.kind.kind == name)
    }
}

fn below<'a>(value: &'a Value, step: &Step) -> Vec<&'a Value> {
    match (step, value) {
        (Step::Field(name), Value::Object(fields)) => fields.get(name).into_iter().collect(),
        (Step::Each, Value::Object(fields)) => fields.values().collect(),
        (Step::Each, Value::Array(items)) => items.iter().collect(),
        _ => Vec::new(),
    }
}

fn change_at(value: &mut Value, path: &[Step], change: &dyn Fn(&mut Value)) {
    let Some((step, rest)) = path.split_first() else { return change(value) };
    match (step, value) {
        (Step::Field(name), Value::Object(fields)) => {
            fields.get_mut(name).into_iter().for_each(|value| change_at(value, rest, change));
        }
        (Step::Each, Value::Object(fields)) => {
            fields.values_mut().for_each(|value| change_at(value, rest, change));
        }
        (Step::Each, Value::Array(items)) => items.iter_mut().for_each(|item| change_at(item, rest, change)),
        _ => {}
    }
}

/// The paths of the fields whose schema is marked: `spec.keys[].value`, `spec.accounts.*.password`.
fn found(schema: &Value, is_marked: &dyn Fn(&Value) -> bool) -> Vec<String> {
    fn walk(schema: &Value, at: &str, is_marked: &dyn Fn(&Value) -> bool, found: &mut Vec<String>) {
        if is_marked(schema) {
            found.push(at.to_owned());
            return;
        }
        let join = |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            walk(property, &join(name), is_marked, found);
        }
        if let Some(items) = schema.get("items") {
            walk(items, &format!("{at}[]"), is_marked, found);
        }
        if let Some(values) = schema.get("additionalProperties") {
            walk(values, &join("*"), is_marked, found);
        }
    }
    let mut paths = Vec::new();
    walk(schema, "", is_marked, &mut paths);
    paths
}

fn steps(path: &str) -> Vec<Step> {
    let of_segment = |segment: &str| -> Vec<Step> {
        let name = segment.trim_end_matches("[]");
        let lists = (segment.len() - name.len()) / "[]".len();
        let named = match name {
            "" => None,
            "*" => Some(Step::Each),
            name => Some(Step::Field(name.to_owned())),
        };
        named.into_iter().chain(std::iter::repeat_n(Step::Each, lists)).collect()
    };
    path.split('.').flat_map(of_segment).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kind() -> Kind {
        Kind::new("a.example.com/v1", "Room")
    }

    #[test]
    fn what_a_crd_marks_as_a_password_is_found_in_lists_and_maps() {
        let mut marks = Marks::default();
        let password = json!({"type": "string", "format": "password"});
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "key": password,
            "keys": {"type": "array", "items": {"type": "object", "properties": {"value": password}}},
            "accounts": {"type": "object", "additionalProperties": password},
            "open": {"type": "string"},
        }}}});
        marks.add_schema(&kind(), &schema);
        let mut object = json!({"spec": {"key": "a", "keys": [{"value": "b"}, {"value": "c"}, 1], "accounts": {"x": "d"}, "open": "o"}});
        // Of another version of the kind too.
        let stored = Kind::new("a.example.com/v2", "Room");
        assert_eq!(marks.values(&stored, &object), ["d", "a", "b", "c"]);
        marks.change(&stored, &mut object, &|value| *value = Value::Null);
        assert_eq!(
            object,
            json!({"spec": {"key": null, "keys": [{"value": null}, {"value": null}, 1], "accounts": {"x": null}, "open": "o"}})
        );
        assert!(marks.are_on(&kind()) && !marks.are_on(&Kind::new("b.example.com/v1", "Room")));
    }

    #[test]
    fn what_a_view_writes_and_never_shows_is_found_where_it_is_stored() {
        let schema = json!({"type": "object", "properties": {"source": {"type": "object", "properties": {
            "secretKey": {"type": "string", "writeOnly": true}, "bucket": {"type": "string"}}}}});
        let document =
            Document { paths: [(String::new(), "spec".to_owned())].into(), schema: schema.clone() };
        let view = ViewManifest { backing: kind(), document: Some(document), ..ViewManifest::default() };
        let mut marks = Marks::default();
        marks.add_view(&view);
        let object = json!({"spec": {"source": {"secretKey": "a", "bucket": "b"}}});
        assert_eq!(marks.values(&kind(), &object), ["a"]);
        // What is shown as an object does not say where its fields stand.
        let mut marks = Marks::default();
        let writes = ["spec.deep.secretKey".to_owned(), "spec.bucket".to_owned()];
        marks.add_shown(&kind(), &schema, None, &writes);
        let object =
            json!({"source": {"secretKey": "a"}, "spec": {"deep": {"secretKey": "b"}, "bucket": "c"}});
        assert_eq!(marks.values(&kind(), &object), ["a", "b"]);
    }
}
