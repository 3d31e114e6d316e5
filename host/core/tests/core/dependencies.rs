//! Checks which packages of this workspace may depend on which, so that the decisions stay free of I/O, WebAssembly and clients.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

/// What core and engine know nothing of: clients of Kubernetes; and core, besides, no WebAssembly and no I/O.
const CLIENTS: [&str; 5] = ["kube", "kube-client", "kube-runtime", "k8s-openapi", "hyper"];
const IO: [&str; 4] = ["wasmtime", "tokio", "futures", "axum"];

/// The packages of the workspace that each may build on. Whatever is not listed here is a guest when its folder says so, and free
/// otherwise (`testbed`).
const MAY_USE: [(&str, &[&str]); 21] = [
    ("pintle-wit", &[]),
    ("pintle-guest", &["pintle-wit"]),
    ("pintle-core", &["pintle-wit"]),
    ("pintle-engine", &["pintle-wit"]),
    ("pintle-api", &["pintle-wit", "pintle-core"]),
    ("pintle-runtime", &[]),
    ("pintle-kubernetes", &["pintle-wit", "pintle-core", "pintle-runtime"]),
    ("pintle-schema", &["pintle-wit", "pintle-core"]),
    (
        "pintle-offline",
        &["pintle-wit", "pintle-core", "pintle-engine", "pintle-api", "pintle-schema", "pintle-runtime"],
    ),
    (
        "pintle-modules",
        &[
            "pintle-wit",
            "pintle-core",
            "pintle-engine",
            "pintle-api",
            "pintle-schema",
            "pintle-runtime",
            "pintle-kubernetes",
        ],
    ),
    (
        "pintle-operator",
        &[
            "pintle-wit",
            "pintle-core",
            "pintle-engine",
            "pintle-api",
            "pintle-schema",
            "pintle-runtime",
            "pintle-kubernetes",
            "pintle-modules",
        ],
    ),
    (
        "pintle-gateway",
        &[
            "pintle-wit",
            "pintle-core",
            "pintle-engine",
            "pintle-api",
            "pintle-schema",
            "pintle-runtime",
            "pintle-kubernetes",
            "pintle-modules",
            "pintle-console",
        ],
    ),
    (
        "pintle-preview",
        &[
            "pintle-wit",
            "pintle-core",
            "pintle-engine",
            "pintle-api",
            "pintle-schema",
            "pintle-runtime",
            "pintle-kubernetes",
            "pintle-modules",
        ],
    ),
    (
        "pintle-console",
        &[
            "pintle-wit",
            "pintle-core",
            "pintle-engine",
            "pintle-api",
            "pintle-schema",
            "pintle-runtime",
            "pintle-kubernetes",
            "pintle-modules",
            "pintle-preview",
        ],
    ),
    ("pintle-simulator", &["pintle-wit", "pintle-schema"]),
    (
        "pintle-simulation",
        &[
            "pintle-wit",
            "pintle-core",
            "pintle-engine",
            "pintle-api",
            "pintle-schema",
            "pintle-runtime",
            "pintle-kubernetes",
            "pintle-modules",
            "pintle-offline",
            "pintle-preview",
            "pintle-operator",
            "pintle-gateway",
            "pintle-simulator",
        ],
    ),
    (
        "pintle",
        &[
            "pintle-wit",
            "pintle-core",
            "pintle-engine",
            "pintle-api",
            "pintle-schema",
            "pintle-runtime",
            "pintle-kubernetes",
            "pintle-modules",
            "pintle-offline",
            "pintle-preview",
            "pintle-operator",
            "pintle-gateway",
            "pintle-console",
        ],
    ),
    (
        "pintle-simulate",
        &["pintle-wit", "pintle-engine", "pintle-runtime", "pintle-offline", "pintle-simulation", "pintle"],
    ),
    ("pintle-bench", &["pintle-testbed", "guest-bench"]),
    ("xtask", &[]),
    ("workbench", &["pintle-testbed", "xtask"]),
];

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The packages of the workspace, each with its dependencies by kind (`normal`, `build`, `dev`).
fn packages() -> BTreeMap<String, Vec<(String, String)>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(workspace())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap().iter().map(|package| {
        let dependencies = package["dependencies"].as_array().unwrap().iter().map(|dependency| {
            let text = |key: &str| dependency[key].as_str().unwrap_or("normal").to_owned();
            (text("name"), text("kind"))
        });
        (package["name"].as_str().unwrap().to_owned(), dependencies.collect())
    });
    packages.collect()
}

/// What each package in Cargo.lock builds on. For packages of the workspace this includes what only their tests use.
fn locked() -> BTreeMap<String, BTreeSet<String>> {
    let lock = fs::read_to_string(workspace().join("Cargo.lock")).unwrap();
    let mut locked: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut package = String::new();
    for line in lock.lines() {
        if let Some(name) = line.strip_prefix("name = ") {
            package = name.trim_matches('"').into();
        } else if let Some(dependency) = line.strip_prefix(" \"") {
            let name = dependency.trim_end_matches([',', '"']).split(' ').next().unwrap();
            locked.entry(package.clone()).or_default().insert(name.into());
        }
    }
    assert!(locked.len() > 20, "Cargo.lock was not understood");
    locked
}

/// Everything that gets built when others build this package.
fn closure(of: &str) -> BTreeSet<String> {
    let (packages, locked) = (packages(), locked());
    let (mut seen, mut open) = (BTreeSet::new(), vec![of.to_owned()]);
    while let Some(name) = open.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        match packages.get(&name) {
            Some(dependencies) => {
                open.extend(
                    dependencies.iter().filter(|(_, kind)| kind != "dev").map(|(name, _)| name.clone()),
                );
            }
            None => open.extend(locked.get(&name).into_iter().flatten().cloned()),
        }
    }
    seen
}

#[test]
fn core_is_built_without_kubernetes_without_webassembly_and_without_io() {
    let built = closure("pintle-core");
    assert!(built.contains("pintle-wit") && built.contains("serde_json"), "{built:?}");
    for name in CLIENTS.iter().chain(&IO) {
        assert!(!built.contains(*name), "core is built on {name}");
    }
}

#[test]
fn engine_is_built_without_kubernetes() {
    let built = closure("pintle-engine");
    assert!(built.contains("pintle-wit"), "{built:?}");
    for name in CLIENTS {
        assert!(!built.contains(name), "engine is built on {name}");
    }
}

#[test]
fn the_first_command_of_the_readme_waits_for_little() {
    let built = closure("xtask");
    assert!(built.contains("clap") && built.len() < 40, "cargo xtask is built on {}: {built:?}", built.len());
}

#[test]
fn packages_of_the_workspace_build_only_on_those_below_them() {
    let packages = packages();
    for (name, dependencies) in &packages {
        let allowed: &[&str] = match MAY_USE.iter().find(|(package, _)| package == name) {
            Some((_, allowed)) => allowed,
            None if name.starts_with("guest-") => &["pintle-guest"],
            None => continue,
        };
        for (dependency, kind) in dependencies {
            let is_ours = packages.contains_key(dependency);
            assert!(
                !is_ours || kind == "dev" || allowed.contains(&dependency.as_str()),
                "{name} builds on {dependency}; it may build on {allowed:?}"
            );
        }
    }
}

#[test]
fn a_host_in_a_cluster_is_built_without_the_simulator() {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--package", "pintle", "--edges", "normal"])
        .args(["--prefix", "none", "--format", "{p} {f}"])
        .current_dir(workspace())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8_lossy(&output.stdout);
    let line = |name: &str| tree.lines().find(|line| line.split(' ').next() == Some(name));
    assert!(line("pintle-operator").is_some(), "{tree}");
    for name in ["pintle-simulation", "pintle-simulator"] {
        assert_eq!(line(name), None);
    }
    let tokio = line("tokio").expect("it runs on tokio");
    assert!(!tokio.contains("test-util"), "{tokio}");
}

#[test]
fn guests_know_nothing_of_the_host_not_even_in_their_tests() {
    let is_host = |name: &str| {
        name == "pintle" || name.starts_with("pintle-") && !["pintle-wit", "pintle-guest"].contains(&name)
    };
    let packages = packages();
    let guests = packages.iter().filter(|(name, _)| name.starts_with("guest-") || *name == "pintle-guest");
    let mut seen = 0;
    for (name, dependencies) in guests {
        for (dependency, kind) in dependencies {
            assert!(!is_host(dependency), "{name} has the {kind} dependency {dependency}");
        }
        seen += 1;
    }
    assert!(seen >= 3, "the guests were not found");
}

/// Beyond this a file is about more than one thing, and nobody reads it as a whole.
const LINES_MAX: usize = 600;

/// The Rust sources below a folder, without what was built.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            sources(&path, found);
        } else if name.ends_with(".rs") {
            found.push(path);
        }
    }
}

#[test]
fn no_source_file_is_longer_than_one_reads_at_once() {
    let mut files = Vec::new();
    sources(&workspace(), &mut files);
    assert!(files.len() > 200, "the sources were not found: {files:?}");
    let is_long = |file: &&PathBuf| fs::read_to_string(file).unwrap().lines().count() > LINES_MAX;
    let long: Vec<&PathBuf> = files.iter().filter(is_long).collect();
    assert!(long.is_empty(), "at most {LINES_MAX} lines; split by what they are about: {long:#?}");
}
