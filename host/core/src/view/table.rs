//! Tables: objects as kubectl prints them, a row each. Cells are computed here, since kubectl prints them as they are.

mod age;
pub mod path;

use jiff::Timestamp;
use pintle_wit::views::{Column, ColumnType};
use serde::Serialize;
use serde_json::{Map, Value, json};

use self::path::Path;
use super::{
    accept::{Include, META},
    item::to_json,
};
use crate::text;

/// The longest message in a cell, in bytes. More would push the other columns off the terminal.
const MESSAGE_BYTES_MAX: usize = 120;

const NAME: &str = "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";

const AGE: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. It is represented in RFC3339 form and is in UTC.";

/// The columns of a view, with their paths read.
#[derive(Clone, Debug)]
pub struct Columns {
    columns: Vec<(ColumnType, Path)>,
    definitions: Value,
}

/// A column whose path cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadColumn {
    /// Which column.
    pub index: usize,
    /// What is wrong with its path.
    pub message: String,
}

/// A row.
#[derive(Clone, Copy, Debug)]
pub enum Row<'a> {
    /// An object.
    Shown(&'a Value),
    /// An object that cannot be shown, and why. Of the object itself, there are kind and metadata.
    Failed(&'a Value, &'a str),
}

impl Columns {
    /// Reads the columns: the name, those of the view, and the age, unless the view has such a column itself.
    ///
    /// # Errors
    /// When a path cannot be read.
    pub fn new(columns: &[Column]) -> Result<Self, BadColumn> {
        let age = Column {
            description: AGE.to_owned(),
            ..Column::new("Age", ColumnType::Date, ".metadata.creationTimestamp")
        };
        let has_age = columns.iter().any(|column| column.name.eq_ignore_ascii_case("age"));
        let all = columns.iter().chain((!has_age).then_some(&age));
        let mut definitions = vec![
            json!({"name": "Name", "type": "string", "format": "name", "description": NAME, "priority": 0}),
        ];
        let mut read = Vec::new();
        for (index, column) in all.enumerate() {
            let path = Path::read(&column.json_path).map_err(|message| BadColumn { index, message })?;
            read.push((column.r#type, path));
            definitions.push(definition(column));
        }
        Ok(Self { columns: read, definitions: definitions.into() })
    }

    /// What stands before the rows of the Table of a list, as JSON. Behind them stands [`super::item::list_end`].
    pub fn list_begin(&self) -> String {
        let (api_version, definitions) = (Value::from(META), &self.definitions);
        format!(
            "{{\"kind\":\"Table\",\"apiVersion\":{api_version},\"columnDefinitions\":{definitions},\"rows\":["
        )
    }

    /// A row of such a Table, as JSON.
    pub fn row_json(&self, include: Include, row: &Row<'_>, now: Timestamp) -> String {
        to_json(&self.row(include, row, now))
    }

    /// The Table of one object, as JSON: the answer to a get, or the object of an event. Of the events of a watch, only the first has the
    /// columns.
    pub fn one(&self, include: Include, with_columns: bool, row: Row<'_>, now: Timestamp) -> String {
        let object_version = row.object()["metadata"].get("resourceVersion").cloned();
        let metadata =
            object_version.into_iter().map(|version| ("resourceVersion".to_owned(), version)).collect();
        let column_definitions = if with_columns { &self.definitions } else { &Value::Null };
        let rows = vec![self.row(include, &row, now)];
        to_json(&Table { kind: "Table", api_version: META, metadata, column_definitions, rows })
    }

    fn row<'a>(&self, include: Include, row: &Row<'a>, now: Timestamp) -> RowJson<'a> {
        let object = row.object();
        // A bookmark's object has no name, and a column of it is text all the same.
        let mut cells = vec![object["metadata"]["name"].as_str().unwrap_or_default().into()];
        cells.extend(self.columns.iter().map(|(kind, path)| cell(*kind, path.find(object), now)));
        if let Row::Failed(_, why) = row {
            let message = format!("<cannot be shown: {}>", text::clean(why, MESSAGE_BYTES_MAX));
            if let Some(second) = cells.get_mut(1) {
                *second = message.into();
            }
        }
        let object = match include {
            Include::None => Included::None,
            Include::Metadata => Included::Metadata {
                kind: "PartialObjectMetadata",
                api_version: META,
                metadata: &object["metadata"],
            },
            Include::Object => Included::Object(object),
        };
        RowJson { cells, object }
    }
}

/// A Table, as it is written.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Table<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: Map<String, Value>,
    column_definitions: &'a Value,
    rows: Vec<RowJson<'a>>,
}

/// A row, as it is written. It borrows its object, since that may be large.
#[derive(Serialize)]
struct RowJson<'a> {
    cells: Vec<Value>,
    object: Included<'a>,
}

/// What a row has of its object.
#[derive(Serialize)]
#[serde(untagged)]
enum Included<'a> {
    None,
    #[serde(rename_all = "camelCase")]
    Metadata {
        kind: &'static str,
        api_version: &'static str,
        metadata: &'a Value,
    },
    Object(&'a Value),
}

impl<'a> Row<'a> {
    fn object(&self) -> &'a Value {
        match self {
            Self::Shown(object) | Self::Failed(object, _) => object,
        }
    }
}

fn definition(column: &Column) -> Value {
    let description = match column.description.as_str() {
        "" => format!("View column (in JSONPath format): {}", column.json_path),
        description => description.to_owned(),
    };
    json!({
        "name": column.name, "type": column.r#type, "format": "",
        "description": description, "priority": column.priority,
    })
}

/// What a column prints of a value. What is absent, or not of the column's type, is null, and kubectl prints nothing.
fn cell(kind: ColumnType, value: Option<&Value>, now: Timestamp) -> Value {
    let Some(value) = value else { return Value::Null };
    match (kind, value) {
        (_, Value::Null) => Value::Null,
        (ColumnType::String, value) => printed(value).into(),
        (ColumnType::Integer, Value::Number(number)) => match number.as_i64() {
            Some(whole) => whole.into(),
            // The API server cuts, and so does the cast.
            None => number.as_f64().map_or(Value::Null, |number| (number as i64).into()),
        },
        (ColumnType::Number, Value::Number(_)) | (ColumnType::Boolean, Value::Bool(_)) => value.clone(),
        (ColumnType::Date, Value::String(then)) => age::since_written(then, now).into(),
        _ => Value::Null,
    }
}

/// A value as text: texts as they are, whole numbers without a point, everything else as JSON.
fn printed(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => {
            let text = number.to_string();
            text.strip_suffix(".0").unwrap_or(&text).to_owned()
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(json: &str) -> Value {
        serde_json::from_str(json).expect("JSON")
    }

    fn now() -> Timestamp {
        "2026-01-02T03:04:05Z".parse().expect("a time")
    }

    fn columns() -> Columns {
        let columns = [
            Column::new("Weight", ColumnType::Number, ".spec.weight"),
            Column::new("Ready", ColumnType::String, ".status.conditions[0].status"),
        ];
        Columns::new(&columns).expect("they can be read")
    }

    fn dolly() -> Value {
        json!({
            "apiVersion": "farm.example.com/v1alpha", "kind": "Llama",
            "metadata": {"name": "dolly", "resourceVersion": "7000042", "creationTimestamp": "2026-01-02T03:00:00Z"},
            "spec": {"weight": 31.4}, "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        })
    }

    fn metadata() -> Map<String, Value> {
        [("resourceVersion".to_owned(), json!("9000042")), ("continue".to_owned(), json!("x"))]
            .into_iter()
            .collect()
    }

    fn list(columns: &Columns, metadata: &Map<String, Value>, rows: &str) -> Value {
        let (begin, end) = (columns.list_begin(), super::super::item::list_end(metadata));
        serde_json::from_str(&format!("{begin}{rows}{end}")).expect("JSON")
    }

    #[test]
    fn a_list_has_a_row_for_each_object_and_the_metadata_of_the_list() {
        let dolly = dolly();
        let row = columns().row_json(Include::Metadata, &Row::Shown(&dolly), now());
        let table = list(&columns(), &metadata(), &row);
        assert_eq!((&table["kind"], &table["apiVersion"]), (&json!("Table"), &json!("meta.k8s.io/v1")));
        assert_eq!(table["metadata"], json!({"resourceVersion": "9000042", "continue": "x"}));
        assert_eq!(
            table["rows"],
            json!([{
                "cells": ["dolly", 31.4, "True", "4m5s"],
                "object": {
                    "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": dolly["metadata"],
                },
            }])
        );
        let empty = list(&columns(), &Map::new(), "");
        assert_eq!((&empty["rows"], &empty["apiVersion"]), (&json!([]), &json!("meta.k8s.io/v1")));
    }

    #[test]
    fn a_view_may_have_an_age_of_its_own() {
        let age = [Column::new("AGE", ColumnType::Date, ".spec.born")];
        let table = list(&Columns::new(&age).expect("read"), &Map::new(), "");
        assert_eq!(table["columnDefinitions"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn an_object_that_cannot_be_shown_is_a_row_that_says_so() {
        let backing = json!({"metadata": {"name": "dolly", "creationTimestamp": "2026-01-02T03:00:00Z"}});
        let failed = Row::Failed(&backing, "spec.weight: must be\ngreater than 0");
        let cells = |columns: &Columns| {
            value(&columns.one(Include::None, true, failed, now()))["rows"][0]["cells"].clone()
        };
        let said = "<cannot be shown: spec.weight: must be greater than 0>";
        assert_eq!(cells(&columns()), json!(["dolly", said, null, "4m5s"]));
        let without = Columns::new(&[]).expect("read");
        assert_eq!(cells(&without), json!(["dolly", said]));
        let long = "x".repeat(500);
        let text = value(&columns().one(Include::None, true, Row::Failed(&backing, &long), now()));
        assert!(text["rows"][0]["cells"][1].as_str().is_some_and(|text| text.len() < 150));
    }

    #[test]
    fn cells_are_of_their_columns_type() {
        let of = |kind, value: Value| cell(kind, Some(&value), now());
        for (kind, value, expected) in [
            (ColumnType::String, json!("a"), json!("a")),
            (ColumnType::String, json!(5), json!("5")),
            (ColumnType::String, json!(1.0), json!("1")),
            (ColumnType::String, json!(true), json!("true")),
            (ColumnType::String, json!({"a": [1]}), json!("{\"a\":[1]}")),
            (ColumnType::Integer, json!(5), json!(5)),
            (ColumnType::Integer, json!(5.9), json!(5)),
            (ColumnType::Integer, json!("5"), json!(null)),
            (ColumnType::Number, json!(5.5), json!(5.5)),
            (ColumnType::Number, json!(true), json!(null)),
            (ColumnType::Boolean, json!(false), json!(false)),
            (ColumnType::Boolean, json!("false"), json!(null)),
            (ColumnType::Date, json!("2026-01-02T03:04:00Z"), json!("5s")),
            (ColumnType::Date, json!("then"), json!("<invalid>")),
            (ColumnType::Date, json!(5), json!(null)),
            (ColumnType::String, json!(null), json!(null)),
        ] {
            assert_eq!(of(kind, value.clone()), expected, "{kind:?} {value}");
        }
        assert_eq!(cell(ColumnType::String, None, now()), Value::Null);
    }

    #[test]
    fn a_column_whose_path_cannot_be_read_is_named() {
        let columns =
            [Column::new("A", ColumnType::String, ".a"), Column::new("B", ColumnType::String, ".b[")];
        let bad = Columns::new(&columns).expect_err("it cannot be read");
        assert_eq!(bad, BadColumn { index: 1, message: "a bracket is not closed".to_owned() });
    }
}
