use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use super::*;
use crate::conditions;

/// Crates that play the API server or judge from outside: their words are not the host's.
const NOT_THE_HOST: [&str; 2] = ["simulation", "simulator"];
/// Words that also mean something else than a reason: a condition's type, a Pod's phase, a kind, how far a load is, whether an APIService is
/// available.
const AMBIGUOUS: [&str; 7] =
    [READY, PROGRESSING, SUCCEEDED, SERVICE_ACCOUNT, LOADING, REGISTERED, REGISTERED_AND_AVAILABLE];

fn is_camel_case(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_uppercase())
        && word.chars().all(|letter| letter.is_ascii_alphanumeric())
        && word.chars().any(|letter| letter.is_ascii_lowercase())
}

fn host() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
            found.push(path);
        }
    }
}

/// The lines of the host's code, without tests, comments and the registry itself, with where they stand.
fn code() -> Vec<(String, String)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(host()).unwrap() {
        let folder = entry.unwrap().path();
        if folder.join("src").is_dir() && !NOT_THE_HOST.iter().any(|name| folder.ends_with(name)) {
            collect(&folder.join("src"), &mut files);
        }
    }
    collect(&host().join("src"), &mut files);
    let mut lines = Vec::new();
    // A Status of the API, and a problem that says the same, have reasons of their own, which are Kubernetes'.
    let is_apart = |file: &PathBuf| {
        let file = file.to_string_lossy();
        ["core/src/reasons/", "core/src/view/", "console/src/"].iter().any(|folder| file.contains(folder))
    };
    for file in files.into_iter().filter(|file| !is_apart(file)) {
        let text = fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        lines.extend(
            code.lines()
                .enumerate()
                .filter(|(_, line)| !line.trim_start().starts_with("//"))
                .map(|(index, line)| (format!("{}:{}", file.display(), index + 1), line.to_owned())),
        );
    }
    assert!(lines.len() > 10_000, "{} lines", lines.len());
    lines
}

/// The strings of a line that are one word.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split('"').skip(1).step_by(2).filter(|word| is_camel_case(word))
}

#[test]
fn every_reason_and_condition_has_a_name_of_its_own_and_texts() {
    let names: Vec<&str> = ALL.iter().map(|reason| reason.name).collect();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(names, sorted, "unique, and sorted by name");
    for Reason { name, on, means, remedy, .. } in ALL.iter() {
        assert!(is_camel_case(name) && name.len() <= 128, "{name}");
        assert!(!on.is_empty() && means.ends_with('.') && remedy.ends_with('.'), "{name}: {means} {remedy}");
    }
    let types: BTreeSet<&str> = CONDITION_TYPES.iter().map(|condition| condition.name).collect();
    assert_eq!(types.len(), CONDITION_TYPES.len());
    for ConditionType { name, means, remedy, .. } in CONDITION_TYPES {
        assert!(is_camel_case(name), "{name}");
        assert!(means.ends_with('.') && remedy.ends_with('.'), "{name}: {means} {remedy}");
    }
}

#[test]
fn every_reason_of_the_contract_is_here() {
    let contract = include_str!("../../../../wit/src/failure.rs");
    let theirs = contract.lines().filter_map(|line| line.trim().strip_prefix("pub const "));
    let theirs = theirs.filter_map(|line| line.split_once(": &str = \"")?.1.strip_suffix("\";"));
    let missing: Vec<&str> = theirs.filter(|name| ALL.iter().all(|reason| reason.name != *name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn no_code_of_the_host_has_a_reason_as_a_literal() {
    let known: BTreeSet<&str> = ALL
        .iter()
        .map(|reason| reason.name)
        .chain(CONDITION_TYPES.iter().map(|condition| condition.name))
        .filter(|name| !AMBIGUOUS.contains(name))
        .collect();
    const STARTS: [&str; 9] = [
        "Failure::terminal(\"",
        "Failure::transient(\"",
        "Self::terminal(\"",
        "Self::transient(\"",
        "found.add(\"",
        "found.add_for_now(\"",
        ".refuse(\"",
        "reason = \"",
        "reason: \"",
    ];
    let mut wrong = Vec::new();
    let mut before = String::new();
    for (at, line) in code() {
        // rustfmt puts a long argument on a line of its own.
        let call = format!("{}{}", before.trim(), line.trim());
        let is_given = STARTS.iter().any(|start| {
            let mut after = call.split(start).skip(1).filter_map(|rest| rest.split('"').next());
            after.any(is_camel_case)
        });
        let is_known = words(&line).any(|word| known.contains(word));
        let is_constant = line.contains("const ")
            && line.contains(": &str = \"")
            && words(&line).any(|word| !conditions::HOST_CONDITIONS.contains(&word));
        if is_given || is_known || is_constant {
            wrong.push(format!("{at}: {}", line.trim()));
        }
        before = line;
    }
    assert!(wrong.is_empty(), "a reason stands in host/core/src/reasons/ alone:\n{}", wrong.join("\n"));
}

#[test]
fn every_reason_is_given_somewhere() {
    let mut files = Vec::new();
    collect(&host().join("core/src/reasons"), &mut files);
    let registry: String = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    let is_constant = |letter: char| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_';
    let constants: BTreeMap<&str, &str> = registry
        .lines()
        .filter_map(|line| line.strip_prefix("    ")?.split_once(" = "))
        .filter(|(constant, _)| constant.chars().all(is_constant))
        .collect();
    assert_eq!(constants.len(), ALL.len());
    // The contract's are also given by what reads a guest's answer, and by guests themselves. Views have reasons of Status beside ours.
    let mut others = Vec::new();
    for folder in ["../wit/src", "../guest-sdk/src", "core/src/view"] {
        collect(&host().join(folder), &mut others);
    }
    let others = others.iter().map(|file| fs::read_to_string(file).unwrap());
    let text: String = code().into_iter().map(|(_, line)| line).chain(others).collect();
    let used: BTreeSet<&str> = ["reasons::", "r::"]
        .iter()
        .flat_map(|path| text.split(path).skip(1))
        .filter_map(|rest| rest.split(|letter| !is_constant(letter)).next())
        .collect();
    let unused: Vec<&&str> = constants.keys().filter(|constant| !used.contains(*constant)).collect();
    assert!(unused.is_empty(), "nobody gives {unused:?}");
}

#[test]
fn the_page_about_reasons_is_about_these() {
    let path = host().join("../docs/reasons.md");
    if std::env::var_os("PINTLE_WRITE_DOCS").is_some() {
        fs::write(&path, page()).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page(),
        "docs/reasons.md is stale; run: PINTLE_WRITE_DOCS=1 cargo test --workspace --lib reasons"
    );
}
