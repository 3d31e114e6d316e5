//! Writes the generated files of a guest, the CRD and the schema of its config, or checks that they are up to date.

use std::{env, fmt, fs, io, path::Path, process::ExitCode};

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value};

use super::{Invalid, Root, crd};
use crate::{Guest, call};

/// The JSON Schema of a guest's config, without references.
pub fn config_schema<G>() -> Value
where
    G: Guest<Config: JsonSchema>,
{
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<G::Config>().to_value()
}

/// Why the files of a guest cannot be generated.
#[derive(Debug)]
pub enum GenerateError {
    /// There is no CRD.
    Crd(Invalid),
    /// The CRD cannot be written as YAML.
    Yaml(serde_saphyr::ser::Error),
    /// The schema of the config cannot be written as JSON.
    Json(serde_json::Error),
}

impl fmt::Display for GenerateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Crd(error) => error.fmt(f),
            Self::Yaml(error) => error.fmt(f),
            Self::Json(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for GenerateError {}

/// The generated files of a guest: name and content.
///
/// # Errors
/// What does not fit together in the guest's types and constants.
pub fn generated<G>() -> Result<Vec<(&'static str, String)>, GenerateError>
where
    G: Guest<Root: Root, Config: JsonSchema>,
{
    let crd = sorted(crd::<G>().map_err(GenerateError::Crd)?);
    let yaml = serde_saphyr::to_string(&crd).map_err(GenerateError::Yaml)?;
    let config = serde_json::to_string_pretty(&sorted(config_schema::<G>())).map_err(GenerateError::Json)?;
    Ok(vec![
        ("crd.yaml", format!("# Generated from the guest's types: do not edit, run `pintle build`.\n{yaml}")),
        ("config.schema.json", format!("{config}\n")),
    ])
}

/// Writes the generated files into the guest's folder. With `--check`, compares them instead, and the exit code is 1 if one is stale. With
/// `call`, reads a request from the standard input instead, and prints what the guest answers: the exit code is 0 for a failure of the
/// guest's own too, and 101 for a panic.
pub fn run<G>(folder: &str) -> ExitCode
where
    G: Guest<Root: Root, Config: JsonSchema>,
{
    let arguments: Vec<String> = env::args().skip(1).collect();
    let check = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        ["--check"] => true,
        ["call"] => return answer::<G>(),
        _ => {
            eprintln!(
                "usage: writes crd.yaml and config.schema.json; with --check, compares them instead; with call, answers the request on the standard input"
            );
            return ExitCode::from(2);
        }
    };
    let files = match generated::<G>() {
        Ok(files) => files,
        Err(message) => {
            eprintln!("error: {message}");
            return ExitCode::FAILURE;
        }
    };
    let mut stale = false;
    for (name, content) in files {
        let path = Path::new(folder).join(name);
        if fs::read_to_string(&path).is_ok_and(|found| found == content) {
            continue;
        }
        if check {
            stale = true;
            eprintln!(
                "error: {} is stale; run `pintle build`, or `cargo run --features schema` in {folder}",
                path.display()
            );
        } else if let Err(error) = fs::write(&path, content) {
            eprintln!("error: {} cannot be written: {error}", path.display());
            return ExitCode::FAILURE;
        } else {
            println!("wrote {}", path.display());
        }
    }
    if stale { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Answers the request on the standard input.
fn answer<G: Guest>() -> ExitCode {
    let request = match io::read_to_string(io::stdin()) {
        Ok(request) => request,
        Err(error) => {
            eprintln!("error: the request cannot be read: {error}");
            return ExitCode::FAILURE;
        }
    };
    let (Ok(answer) | Err(answer)) = call::reconcile::<G>(&request);
    println!("{answer}");
    ExitCode::SUCCESS
}

/// The same value with its keys sorted. The files must not depend on the order that the JSON library was built to keep.
fn sorted(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        Value::Object(map) => {
            let mut fields: Vec<_> = map.into_iter().collect();
            fields.sort_by(|(left, _), (right, _)| left.cmp(right));
            Value::Object(fields.into_iter().map(|(key, value)| (key, sorted(value))).collect::<Map<_, _>>())
        }
        scalar => scalar,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    /// kubectl reads YAML 1.1, in which more words than in YAML 1.2 are not read as text.
    #[test]
    fn text_that_yaml_would_take_for_something_else_is_quoted() {
        let texts = [
            "True",
            "y",
            "Yes",
            "no",
            "on",
            "OFF",
            "null",
            "~",
            "",
            "1.0",
            "012",
            "0x1f",
            "1e3",
            "1_000",
            ".5",
            "1:30",
            "2000-01-01",
            "=",
            "<<",
            "- a",
            "a: b",
            "a #b",
            "*a",
            "&a",
            "!a",
            "%a",
            "@a",
            "`a`",
            "{a}",
            "[a]",
            "a,\tb",
            " a",
            "a ",
            "'a'",
            "\"a\"",
            "?",
            "|",
            ">",
        ];
        let yaml = serde_saphyr::to_string(&texts.as_slice()).unwrap();
        for (line, text) in yaml.lines().zip(texts) {
            assert!(line.starts_with("- \"") || line.starts_with("- '"), "{text:?} is written as {line:?}");
        }
        assert_eq!(yaml.lines().count(), texts.len());
    }

    #[test]
    fn long_text_and_text_of_several_lines_survive() {
        let texts = json!([
            "word ".repeat(60).trim(),
            "two\nlines\n",
            "a\n\n  b\n",
            "trailing space \nx",
            "tab\there"
        ]);
        let yaml = serde_saphyr::to_string(&texts).unwrap();
        assert_eq!(serde_saphyr::from_str::<serde_json::Value>(&yaml).unwrap(), texts);
    }
}
