//! Transcripts: files that say what is in a folder, which commands somebody types there, and what each of them prints.
//!
//! A transcript has sections, each below a line `-- NAME --`. `$ COMMAND` is run by bash, and below it stand the exit code, the standard
//! output, and the standard error behind `2> `. Every other section is a file, and one that ends with `.wasm` describes a guest.

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
};

use kit::modules;
use pintle_engine::fixtures::{
    self,
    views::{self, Outcome},
};
use pintle_simulation::scenario::CUSTOM_API_VERSION;
use pintle_wit::schema::host_status_properties;
use regex::Regex;
use serde_json::Value;

use super::folder::{Folder, Run};
use crate::snapshot;

/// What differs from one run, machine or version to the next, and what stands for it.
const VARYING: [(&str, &str); 6] = [
    ("sha256:[0-9a-f]{64}", "sha256:[digest]"),
    ("[0-9.]+ (us|ms|fuel)\\b", "[n] $1"),
    ("(Size +)[0-9]+", "$1[n]"),
    ("(\"(fuel|microseconds|compileMilliseconds|sizeBytes)\": )[0-9]+", "$1[n]"),
    ("[0-9]+ a second; .*", "[n] a second; [faults]"),
    ("pintle [0-9]+\\.[0-9]+\\.[0-9]+", "pintle [version]"),
];

#[test]
fn commands_print_what_the_transcripts_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/offline/cli/transcripts");
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let varying = VARYING.map(|(pattern, name)| (Regex::new(pattern).unwrap(), name));
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let differences: Vec<String> = thread::scope(|scope| {
        let play = |part: &[PathBuf]| -> Vec<String> {
            part.iter().filter_map(|file| snapshot::difference(file, &played(file, &varying))).collect()
        };
        let parts = files.chunks(files.len().div_ceil(threads));
        let running: Vec<_> = parts.map(|part| scope.spawn(move || play(part))).collect();
        running.into_iter().flat_map(|part| part.join().unwrap()).collect()
    });
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// A transcript with what its commands print now.
fn played(file: &Path, varying: &[(Regex, &str)]) -> String {
    let text = fs::read_to_string(file).unwrap();
    let mut sections = text.split("\n-- ");
    let mut played = format!("{}\n", sections.next().unwrap().trim_end());
    let folder = Folder::new();
    for section in sections {
        let (name, content) = section.split_once(" --\n").unwrap_or_else(|| panic!("{file:?}: {section}"));
        let content = match name.strip_prefix("$ ") {
            Some(line) => printed(&folder.run_bash(line), varying),
            None => {
                folder.write(name, bytes(name, content));
                content.to_owned()
            }
        };
        played += &format!("\n-- {name} --\n{content}");
    }
    played
}

/// What a command printed, and its exit code.
fn printed(run: &Run, varying: &[(Regex, &str)]) -> String {
    let mut text = format!("exit {}\n{}", run.code, run.stdout);
    run.stderr.lines().for_each(|line| text += &format!("2> {line}\n"));
    for (pattern, name) in varying {
        text = pattern.replace_all(&text, *name).into_owned();
    }
    text
}

/// What is written for a section.
fn bytes(name: &str, content: &str) -> Vec<u8> {
    if name.ends_with(".wasm") {
        return module(content);
    }
    content.replace("HOST_STATUS", &Value::Object(host_status_properties()).to_string()).into_bytes()
}

/// The guest that a section describes: as a scenario does, or by a fixture that no scenario has.
fn module(description: &str) -> Vec<u8> {
    let mut module: Value = serde_saphyr::from_str(description).unwrap();
    let manifest = fixtures::manifest("thing", CUSTOM_API_VERSION, "Thing", &["v1/ConfigMap"]);
    if let Some(failure) = module.get_mut("fails") {
        failure["apiVersion"] = "guest.pintle.dev/v1".into();
        return fixtures::fails(&manifest, &failure.to_string());
    }
    match module["fixture"].as_str() {
        Some("wrongType") => fixtures::wrong_type(&manifest),
        Some("invalidUtf8") => fixtures::invalid_utf8(&manifest),
        Some("noManifest") => fixtures::answers("not a manifest", "{}"),
        Some("trapsInViews") => views::serves(&views::manifest("thing"), Outcome::Trap, Outcome::Trap),
        _ => modules::resolve(&serde_json::from_value(module).unwrap()).unwrap(),
    }
}
