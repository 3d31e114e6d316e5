//! Reading Kubernetes objects from files, as `kubectl -f` does.

use std::{
    fmt, fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use pintle_core::object;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// One object, and where it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The file, and which of its documents: for messages.
    pub source: String,
    /// The object.
    pub value: Value,
}

impl Document {
    /// Whether it is a CRD.
    pub(crate) fn is_crd(&self) -> bool {
        let kind = object::kind(&self.value);
        kind.group() == "apiextensions.k8s.io" && kind.kind == "CustomResourceDefinition"
    }
}

/// Why documents cannot be read: a file that is none, or of another form, with its name, line and column.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct DocumentError(String);

fn unread(path: impl fmt::Display, error: &io::Error) -> DocumentError {
    DocumentError(format!("{path} cannot be read: {error}"))
}

/// Reads every object in these files and directories; `-` stands for the standard input. Lists (`kind: List`) count as their
/// items.
///
/// # Errors
/// The first file that cannot be read.
pub fn read(paths: &[PathBuf]) -> Result<Vec<Document>, DocumentError> {
    let mut documents = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            let mut text = String::new();
            let read = io::stdin().lock().read_to_string(&mut text);
            read.map_err(|error| unread("the standard input", &error))?;
            documents.extend(parse("the standard input", &text)?);
            continue;
        }
        for file in files(path)? {
            documents.extend(parse(&file.display().to_string(), &read_text(&file)?)?);
        }
    }
    Ok(documents)
}

/// The files that a path names: itself, or the YAML and JSON files of a directory by name, without those of its directories.
///
/// # Errors
/// When the directory cannot be read, or has no such file.
pub fn files(path: &Path) -> Result<Vec<PathBuf>, DocumentError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let error = |error| unread(path.display(), &error);
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(error)? {
        let file = entry.map_err(error)?.path();
        let extension = file.extension().and_then(|extension| extension.to_str());
        if file.is_file() && matches!(extension, Some("yaml" | "yml" | "json")) {
            files.push(file);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(DocumentError(format!("{} has no .yaml, .yml or .json file", path.display())));
    }
    Ok(files)
}

/// A file's text.
///
/// # Errors
/// When it cannot be read.
pub fn read_text(path: &Path) -> Result<String, DocumentError> {
    fs::read_to_string(path).map_err(|error| unread(path.display(), &error))
}

/// The objects in a text of one or more documents.
///
/// # Errors
/// When it is not YAML, or a document is not an object.
pub fn parse(source: &str, text: &str) -> Result<Vec<Document>, DocumentError> {
    let values: Vec<Value> =
        serde_saphyr::from_multiple_with_options(text, options()).map_err(|error| syntax(source, &error))?;
    let several = values.len() > 1;
    let mut documents = Vec::new();
    for (index, value) in values.into_iter().enumerate() {
        let place = if several { format!("{source} (document {})", index + 1) } else { source.to_owned() };
        add(place, value, &mut documents)?;
    }
    Ok(documents)
}

/// One typed document.
///
/// # Errors
/// When it is not YAML, or does not fit the type.
pub fn parse_one<T: DeserializeOwned>(source: &str, text: &str) -> Result<T, DocumentError> {
    serde_saphyr::from_str_with_options(text, options()).map_err(|error| syntax(source, &error))
}

fn add(place: String, value: Value, documents: &mut Vec<Document>) -> Result<(), DocumentError> {
    if value.is_null() {
        return Ok(());
    }
    let kind = value.get("kind").and_then(Value::as_str).unwrap_or_default();
    if kind == "List" && value.get("apiVersion").and_then(Value::as_str) == Some("v1") {
        let items = value.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
        for (index, item) in items.into_iter().enumerate() {
            add(format!("{place} (item {})", index + 1), item, documents)?;
        }
        return Ok(());
    }
    for key in ["apiVersion", "kind"] {
        if value.get(key).and_then(Value::as_str).is_none_or(str::is_empty) {
            let message = if value.get("objects").is_some_and(Value::is_array) {
                "this is a golden case, and not an object; run it with: pintle test".to_owned()
            } else {
                format!("the document has no {key}, so it is no Kubernetes object")
            };
            return Err(DocumentError(format!("{place}: {message}")));
        }
    }
    documents.push(Document { source: place, value });
    Ok(())
}

fn options() -> serde_saphyr::Options {
    // A message is one line; the file and the line in it say where to look.
    serde_saphyr::options! { with_snippet: false }
}

fn syntax(source: &str, error: &serde_saphyr::Error) -> DocumentError {
    let message = error.to_string().lines().map(str::trim).collect::<Vec<_>>().join(" ");
    DocumentError(format!("{source}: {message}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_and_lists_are_taken_apart() {
        let text = "---\napiVersion: v1\nkind: A\n---\n# nothing\n---\napiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: B}]\n";
        let found = parse("f.yaml", text).unwrap();
        let kinds: Vec<&str> =
            found.iter().map(|document| document.value["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["A", "B"]);
        assert_eq!(found[0].source, "f.yaml (document 1)");
    }

    #[test]
    fn json_is_read_as_well() {
        let found = parse("f.json", r#"{"apiVersion": "v1", "kind": "A", "spec": {"n": 1}}"#).unwrap();
        assert_eq!(found[0].value["spec"]["n"], 1);
    }

    #[test]
    fn an_error_names_the_file_and_the_line() {
        let error = parse("f.yaml", "apiVersion: v1\nkind: [\n").unwrap_err().to_string();
        assert!(error.starts_with("f.yaml: ") && error.contains("line") && !error.contains('\n'), "{error}");
        let error = parse("f.yaml", "kind: A\n").unwrap_err().to_string();
        assert_eq!(error, "f.yaml: the document has no apiVersion, so it is no Kubernetes object");
    }
}
