//! Writes the generated files of a guest, or checks that they are up to date.

use std::{env, fmt, fs, io, path::Path, process::ExitCode};

use pintle_wit::schema::structural;
use schemars::JsonSchema;
use serde_json::{Map, Value};

use super::{Invalid, Root, ViewSchemas, crd};
use crate::{Guest, Views, call, json};

/// The structural schema of a guest's config.
pub fn config_schema<G>() -> Value
where
    G: Guest<Config: JsonSchema>,
{
    structural::<G::Config>()
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

/// The generated files of the views of a guest: name and content.
///
/// # Errors
/// When they cannot be written as JSON.
pub fn generated_views<V>() -> Result<Vec<(&'static str, String)>, GenerateError>
where
    V: Views<All: ViewSchemas<Config: JsonSchema>>,
{
    let views: Map<String, Value> =
        V::All::schemas().into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    let config = structural::<<V::All as crate::ViewList>::Config>();
    let file = sorted(json!({"configSchema": config, "views": views}));
    let text = serde_json::to_string_pretty(&file).map_err(GenerateError::Json)?;
    Ok(vec![("views.json", format!("{text}\n"))])
}

/// Writes the generated files into the guest's folder. With `--check`, compares them instead, and the exit code is 1 if one is stale. With
/// `call`, reads a request from the standard input instead, and prints what the guest answers: the exit code is 0 for a failure of the
/// guest's own too, and 101 for a panic.
pub fn run<G>(folder: &str) -> ExitCode
where
    G: Guest<Root: Root, Config: JsonSchema>,
{
    program(folder, generated::<G>, &[("call", call::reconcile::<G>)])
}

/// The same for a guest that serves views, with `show` and `store` in place of `call`.
pub fn run_views<V>(folder: &str) -> ExitCode
where
    V: Views<All: ViewSchemas<Config: JsonSchema>>,
{
    program(
        folder,
        generated_views::<V>,
        &[("show", call::views::show::<V>), ("store", call::views::store::<V>)],
    )
}

/// The same for a guest that reconciles and serves views.
pub fn run_both<G, V>(folder: &str) -> ExitCode
where
    G: Guest<Root: Root, Config: JsonSchema>,
    V: Views<All: ViewSchemas<Config: JsonSchema>>,
{
    let files = || Ok([generated::<G>()?, generated_views::<V>()?].concat());
    let calls: [(&str, Call); 3] = [
        ("call", call::reconcile::<G>),
        ("show", call::views::show::<V>),
        ("store", call::views::store::<V>),
    ];
    program(folder, files, &calls)
}

/// Answers a request: text in, text out.
type Call = fn(&str) -> Result<String, String>;

fn program(
    folder: &str,
    files: impl FnOnce() -> Result<Vec<(&'static str, String)>, GenerateError>,
    calls: &[(&str, Call)],
) -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let called = calls.iter().find(|(name, _)| arguments == [*name]);
    let check = match (called, arguments.as_slice()) {
        (Some((_, call)), _) => return answer(*call),
        (None, []) => false,
        (None, ["--check"]) => true,
        _ => {
            let names: Vec<&str> = calls.iter().map(|(name, _)| *name).collect();
            eprintln!(
                "usage: writes the generated files of the guest; with --check, compares them instead; with {}, answers the request on the standard input",
                names.join(" or ")
            );
            return ExitCode::from(2);
        }
    };
    let files = match files() {
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
fn answer(call: Call) -> ExitCode {
    let request = match io::read_to_string(io::stdin()) {
        Ok(request) => request,
        Err(error) => {
            eprintln!("error: the request cannot be read: {error}");
            return ExitCode::FAILURE;
        }
    };
    let (Ok(answer) | Err(answer)) = call(&request);
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
