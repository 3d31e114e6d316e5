//! Which packages of this workspace build on which, so that the decisions stay free of I/O, WebAssembly and clients.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

/// What core and engine know nothing of: clients of Kubernetes; and core, besides, no WebAssembly and no I/O.
const CLIENTS: [&str; 5] = ["kube", "kube-client", "kube-runtime", "k8s-openapi", "hyper"];
const IO: [&str; 4] = ["wasmtime", "tokio", "futures", "axum"];

/// All packages of the workspace, in their order: each builds only on those above it.
const ORDER: [&str; 33] = [
    "pintle-wit",
    "pintle-guest",
    "pintle-core",
    "pintle-schema",
    "pintle-engine",
    "pintle-runtime",
    "pintle-api",
    "pintle-kubernetes",
    "pintle-modules",
    "pintle-operator",
    "pintle-offline",
    "pintle-preview",
    "pintle-console",
    "pintle-gateway",
    "pintle",
    "pintle-simulator",
    "pintle-simulation",
    "pintle-simulate",
    "guest-bench",
    "guest-configmonitor",
    "guest-darkroom",
    "guest-farm",
    "guest-raw",
    "guest-tickets",
    "guest-webserver",
    "darkroom-next",
    "pintle-testbed",
    "pintle-bench",
    "kit",
    "xtask",
    "generators",
    "packager",
    "workbench",
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

/// What gets built when others build this package, a line each: its name, its version and its features.
fn built(package: &str) -> Vec<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--package", package, "--edges", "normal,build"])
        .args(["--prefix", "none", "--format", "{p} {f}"])
        .current_dir(workspace())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

/// The names of [`built`].
fn names(package: &str) -> BTreeSet<String> {
    built(package).iter().filter_map(|line| Some(line.split(' ').next()?.to_owned())).collect()
}

#[test]
fn core_is_built_without_kubernetes_without_webassembly_and_without_io() {
    let built = names("pintle-core");
    assert!(built.contains("pintle-wit") && built.contains("serde_json"), "{built:?}");
    for name in CLIENTS.iter().chain(&IO) {
        assert!(!built.contains(*name), "core is built on {name}");
    }
}

#[test]
fn engine_is_built_without_kubernetes() {
    let built = names("pintle-engine");
    assert!(built.contains("pintle-wit"), "{built:?}");
    for name in CLIENTS {
        assert!(!built.contains(name), "engine is built on {name}");
    }
}

#[test]
fn the_first_command_of_the_readme_waits_for_little() {
    let built = names("xtask");
    assert!(built.contains("clap") && built.len() < 40, "cargo xtask is built on {}: {built:?}", built.len());
}

#[test]
fn a_package_builds_only_on_those_above_it() {
    let packages = packages();
    let listed = BTreeSet::from(ORDER);
    let found: BTreeSet<&str> = packages.keys().map(String::as_str).collect();
    assert_eq!(listed, found, "each package of the workspace has its place");
    for (at, name) in ORDER.iter().enumerate() {
        for (dependency, kind) in &packages[*name] {
            let is_ours = packages.contains_key(dependency);
            assert!(
                !is_ours || kind == "dev" || ORDER[..at].contains(&dependency.as_str()),
                "{name} builds on {dependency}, which is not above it"
            );
        }
    }
}

#[test]
fn nothing_but_the_binary_and_the_simulation_builds_on_the_operator() {
    for (name, dependencies) in packages() {
        let needs = dependencies.iter().any(|(name, kind)| name == "pintle-operator" && kind != "dev");
        assert_eq!(needs, ["pintle", "pintle-simulation"].contains(&name.as_str()), "{name}");
    }
}

#[test]
fn guests_build_on_the_sdk_alone_even_in_their_tests() {
    let packages = packages();
    let mut guests = packages.iter().filter(|(name, _)| name.starts_with("guest-")).peekable();
    assert!(guests.peek().is_some(), "the guests were not found");
    for (name, dependencies) in guests {
        let mut ours = dependencies.iter().map(|(name, _)| name).filter(|name| packages.contains_key(*name));
        assert!(ours.all(|dependency| dependency == "pintle-guest"), "{name}: {dependencies:?}");
    }
}

#[test]
fn a_host_in_a_cluster_runs_without_the_clock_of_tests() {
    let built = built("pintle");
    let tokio = built.iter().find(|line| line.starts_with("tokio "));
    let tokio = tokio.expect("it runs on tokio");
    assert!(!tokio.contains("test-util"), "{tokio}");
}
