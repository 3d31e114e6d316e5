//! What people would see of objects: the objects of a view, and their table.

use jiff::Timestamp;
use pintle_core::view::{
    accept::{Include, MetaVersion},
    table::{Columns, Row},
};
use pintle_wit::{
    Failure,
    views::{ShowItem, ViewManifest},
};
use serde_json::{Map, Value, json};

use super::{
    laws::{Functions, Unanswered},
    view::View,
};

/// What is shown of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendered {
    /// The object as people see it. Of one that cannot be shown, kind and metadata.
    pub object: Value,
    /// Why it cannot be shown.
    pub failure: Option<Failure>,
}

/// What is shown of objects of the backing kind. Without a gateway they have no version, which is made with the epoch of a View.
///
/// # Errors
/// When there is no answer about any of them.
pub fn rendered(
    view: &View<'_>,
    guest: &impl Functions,
    objects: &[Value],
) -> Result<Vec<Rendered>, Unanswered> {
    let shown = guest.show(objects)?;
    let render = |(object, item): (&Value, ShowItem)| {
        let (fields, failure) = match item {
            ShowItem::Object(fields) => (fields, None),
            ShowItem::Failure(failure) => (Map::new(), Some(failure)),
        };
        let mut object = view.whole(object, &fields);
        let of_host = match view.is_of_documents() {
            true => Some(&mut object),
            false => object.get_mut("metadata"),
        };
        if let Some(metadata) = of_host.and_then(Value::as_object_mut) {
            metadata.remove("resourceVersion");
        }
        Rendered { object, failure }
    };
    Ok(objects.iter().zip(shown.items).map(render).collect())
}

/// The table that kubectl prints: a head, and a row of each object. `wide` adds the columns of low priority. Objects of several namespaces
/// are printed with theirs.
///
/// # Errors
/// When the path of a column cannot be read.
pub fn table(
    manifest: &ViewManifest,
    rendered: &[Rendered],
    wide: bool,
    now: Timestamp,
) -> Result<Vec<Vec<String>>, String> {
    let columns = manifest.shown.as_ref().map(|shown| shown.columns.as_slice()).unwrap_or_default();
    let columns = Columns::new(columns)
        .map_err(|bad| format!("column {} of view {}: {}", bad.index + 1, manifest.name, bad.message))?;
    let reasons: Vec<Option<String>> =
        rendered.iter().map(|one| one.failure.as_ref().map(ToString::to_string)).collect();
    let objects: Vec<Value> = rendered.iter().map(|one| as_object(manifest, &one.object)).collect();
    let rows: Vec<Row<'_>> = objects
        .iter()
        .zip(&reasons)
        .map(|(object, reason)| match reason {
            Some(reason) => Row::Failed(object, reason),
            None => Row::Shown(object),
        })
        .collect();
    let table = columns.list(MetaVersion::V1, Include::None, Map::new(), &rows, now);
    let list = |key: &str| table.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let definitions = list("columnDefinitions");
    let is_printed = |column: &Value| wide || column["priority"].as_u64().unwrap_or_default() == 0;
    let printed: Vec<bool> = definitions.iter().map(is_printed).collect();
    let line = |cells: &mut dyn Iterator<Item = String>| -> Vec<String> {
        cells.zip(&printed).filter(|(_, is_printed)| **is_printed).map(|(cell, _)| cell).collect()
    };
    let mut lines = vec![line(&mut definitions.iter().map(|column| text(&column["name"]).to_uppercase()))];
    for row in list("rows") {
        let cells = row["cells"].as_array().cloned().unwrap_or_default();
        lines.push(line(&mut cells.iter().map(text)));
    }
    let namespaces: Vec<String> =
        objects.iter().map(|object| text(&object["metadata"]["namespace"])).collect();
    if namespaces.windows(2).any(|pair| pair.first() != pair.last()) {
        let head = std::iter::once("NAMESPACE".to_owned());
        for (line, namespace) in lines.iter_mut().zip(head.chain(namespaces)) {
            line.insert(0, namespace);
        }
    }
    Ok(lines)
}

/// What is shown as a row is made of: a document has its metadata among its fields.
fn as_object(manifest: &ViewManifest, shown: &Value) -> Value {
    match manifest.document {
        None => shown.clone(),
        Some(_) => json!({"metadata": shown}),
    }
}

/// A cell as kubectl prints it: nothing for null.
fn text(cell: &Value) -> String {
    match cell {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::laws::Shown;
    use pintle_wit::{
        Kind,
        views::{Column, ColumnType, Shown as ShownKind},
    };

    /// Shows the size of the data.
    struct Sizes;

    impl Functions for Sizes {
        fn show(&self, objects: &[Value]) -> Result<Shown, Unanswered> {
            let item = |object: &Value| match object["data"].as_object() {
                Some(data) => ShowItem::Object(json!({"size": data.len()}).as_object().cloned().unwrap()),
                None => ShowItem::Failure(Failure::terminal("Empty", "has no data")),
            };
            Ok(Shown { items: objects.iter().map(item).collect(), text: String::new() })
        }

        fn store(&self, _: &Value, _: Option<&Value>) -> Result<Map<String, Value>, Unanswered> {
            Ok(Map::new())
        }
    }

    fn manifest() -> ViewManifest {
        let mut shown = ShownKind::new("example.com/v1", "Size", "sizes");
        shown.schema = json!({"type": "object"});
        let wide = Column { priority: 1, ..Column::new("Wide", ColumnType::String, ".metadata.namespace") };
        shown.columns = vec![Column::new("Size", ColumnType::Integer, ".size"), wide];
        ViewManifest {
            prefix: "of-".into(),
            ..ViewManifest::new(Kind::new("v1", "ConfigMap"), &["data"], shown)
        }
    }

    fn config_map(name: &str, namespace: &str, data: Value) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data, "metadata": {
            "name": name, "namespace": namespace, "resourceVersion": "7", "creationTimestamp": "2000-01-01T00:00:00Z",
            "finalizers": ["a/b"], "ownerReferences": [{"name": "x"}], "labels": {"app": "a"}}})
    }

    #[test]
    fn the_metadata_are_the_hosts_and_what_a_read_only_view_hides_is_hidden() {
        let manifest = manifest();
        let view = View::new(&manifest, &[]).unwrap();
        let shown = rendered(&view, &Sizes, &[config_map("a", "n", json!({"k": "v"}))]).unwrap();
        assert_eq!(
            shown[0].object,
            json!({"apiVersion": "example.com/v1", "kind": "Size", "size": 1, "metadata": {
                "name": "of-a", "namespace": "n", "creationTimestamp": "2000-01-01T00:00:00Z", "labels": {"app": "a"}}})
        );
    }

    #[test]
    fn a_table_has_the_columns_that_kubectl_prints_and_a_row_for_what_cannot_be_shown() {
        let manifest = manifest();
        let view = View::new(&manifest, &[]).unwrap();
        let now: Timestamp = "2000-01-01T00:05:00Z".parse().unwrap();
        let lines = |objects: &[Value], wide| {
            let shown = rendered(&view, &Sizes, objects).unwrap();
            let table = table(&manifest, &shown, wide, now).unwrap();
            table.iter().map(|line| line.join("|")).collect::<Vec<_>>()
        };
        let (full, empty) = (config_map("a", "n", json!({"k": "v"})), config_map("b", "n", Value::Null));
        assert_eq!(
            lines(&[full.clone(), empty], false),
            ["NAME|SIZE|AGE", "of-a|1|5m", "of-b|<cannot be shown: Empty: has no data>|5m"]
        );
        assert_eq!(lines(std::slice::from_ref(&full), true), ["NAME|SIZE|WIDE|AGE", "of-a|1|n|5m"]);
        let elsewhere = config_map("a", "m", json!({}));
        assert_eq!(
            lines(&[full, elsewhere], false),
            ["NAMESPACE|NAME|SIZE|AGE", "n|of-a|1|5m", "m|of-a|0|5m"]
        );
    }
}
