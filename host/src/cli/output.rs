//! Printing.

use std::io::{self, Write};

use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use serde::Serialize;
use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};

use super::problem::Problem;

/// How many lines around a difference are shown: enough to see which object it is in.
const CONTEXT: usize = 4;

/// A form of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Data {
    /// YAML.
    Yaml,
    /// JSON, indented.
    Json,
}

/// A bar of how many roots are done, on stderr. It is drawn on a terminal alone, and goes when it is dropped.
pub fn roots_bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} roots");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(0).with_style(style).with_finish(ProgressFinish::AndClear)
}

/// A value in a form of data, with a line end.
pub fn text(value: &impl Serialize, form: Data) -> Result<String, Problem> {
    let mut text = match form {
        Data::Yaml => yaml(value)?,
        Data::Json => serde_json::to_string_pretty(value)?,
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

/// A value as YAML, as kubectl would print it.
pub fn yaml(value: &impl Serialize) -> Result<String, Problem> {
    let options = serde_saphyr::ser_options! {
        // A long line stays one: it is easier to compare and to search than one that was folded.
        folded_wrap_chars: usize::MAX,
    };
    Ok(serde_saphyr::to_string_with_options(value, options)?)
}

/// Several values as YAML documents.
pub(super) fn documents(values: &[Value]) -> Result<String, Problem> {
    let texts: Vec<String> = values.iter().map(|value| text(value, Data::Yaml)).collect::<Result<_, _>>()?;
    Ok(texts.join("---\n"))
}

/// Objects as kubectl prints them: in JSON, several are a List.
pub(super) fn objects(values: &[Value], form: Data) -> Result<String, Problem> {
    match (values, form) {
        ([one], form) => text(one, form),
        (all, Data::Yaml) => documents(all),
        (all, Data::Json) => text(&json!({"apiVersion": "v1", "kind": "List", "items": all}), Data::Json),
    }
}

/// Writes to the standard output. A reader that has seen enough and closed it is no error.
pub fn print(text: &str) -> Result<(), Problem> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Problem::new(format!("the standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Two texts, line by line.
pub fn difference(expected: &str, found: &str) -> String {
    let diff = TextDiff::from_lines(expected, found);
    let mut text = String::new();
    for (index, group) in diff.grouped_ops(CONTEXT).iter().enumerate() {
        if index > 0 {
            text.push_str("        ...\n");
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let line = change.value().trim_end_matches('\n');
            text.push_str(&match change.tag() {
                ChangeTag::Delete => format!("      - {line}\n"),
                ChangeTag::Insert => format!("      + {line}\n"),
                ChangeTag::Equal => format!("        {line}\n"),
            });
        }
    }
    text
}

/// Rows under each other, as kubectl prints them.
pub(super) fn columns(rows: &[[String; 2]]) -> String {
    let width = rows.iter().map(|[name, _]| name.chars().count()).max().unwrap_or(0);
    let line = |[name, value]: &[String; 2]| {
        let mut lines = value.lines();
        let mut text = format!("{name:width$}   {}\n", lines.next().unwrap_or_default());
        for more in lines {
            text.push_str(&format!("{:width$}   {more}\n", ""));
        }
        text
    };
    rows.iter().map(line).collect()
}
