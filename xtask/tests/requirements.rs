//! Tests what `cargo xtask` prints on machines that lack something. The built xtask runs with a PATH that has only what the test puts
//! there.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what helps a test may fail it")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use tempfile::TempDir;

/// A machine: a folder of programs. Each program is a shell script that logs how it was called.
struct Machine {
    folder: TempDir,
}

impl Machine {
    /// A machine that has everything. cargo exits with 9, so that nothing is built.
    fn complete() -> Self {
        let machine = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir_all(machine.path("bin")).unwrap();
        fs::create_dir_all(machine.path("wasm-lib")).unwrap();
        machine.tool("cargo", "exit 9");
        machine.tool("rustc", &format!("echo {}", machine.path("wasm-lib").display()));
        machine.tool("rustup", "exit 0");
        machine.tool("rustfmt", "exit 0");
        machine.tool("clippy-driver", "exit 0");
        machine.tool("go", "echo go version go1.26.8 linux/amd64");
        machine.tool("df", "echo header; echo /dev/disk 999999999 0 999999999 0% /");
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn tool(&self, name: &str, script: &str) {
        let path = self.path("bin").join(name);
        let log = self.path("log");
        let text = format!("#!/bin/sh\necho \"{name} $*\" >> {}\n{script}\n", log.display());
        // Another process writes it: what this one has open for writing, a process that another test starts now has open too, and then
        // nobody can run it.
        let write = r#"printf %s "$1" > "$0" && chmod 755 "$0""#;
        assert!(Command::new("sh").args(["-c", write]).arg(path).arg(text).status().unwrap().success());
    }

    fn without(self, name: &str) -> Self {
        fs::remove_file(self.path("bin").join(name)).unwrap();
        self
    }

    /// The errors of `cargo xtask` with these arguments.
    fn run(&self, words: &[&str]) -> String {
        String::from_utf8(self.output(words).stderr).unwrap()
    }

    /// All that it prints.
    fn output(&self, words: &[&str]) -> Output {
        let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
            .args(words)
            .env_clear()
            .env("PATH", self.path("bin"))
            .env("HOME", self.folder.path())
            .env("CARGO", self.path("bin/cargo"))
            .env("CARGO_TARGET_DIR", self.path("target"))
            .output()
            .unwrap();
        assert!(!output.status.success(), "cargo fails on this machine, if it is called");
        output
    }

    /// The calls of a tool.
    fn calls(&self, tool: &str) -> Vec<String> {
        let log = fs::read_to_string(self.path("log")).unwrap_or_default();
        let mine = log.lines().filter(|line| line.split(' ').next() == Some(tool));
        mine.map(ToOwned::to_owned).collect()
    }
}

const COMMANDS: [&[&str]; 8] =
    [&["demo"], &["test"], &["guests"], &["cluster"], &["bench"], &["simulate"], &["image"], &["release"]];

#[test]
fn on_a_machine_that_has_everything_each_command_goes_on_to_build() {
    for words in COMMANDS {
        let machine = Machine::complete();
        let said = machine.run(words);
        assert!(!said.contains("lacks"), "{words:?}: {said}");
        assert!(!machine.calls("cargo").is_empty(), "{words:?} calls cargo");
        assert_eq!(machine.calls("rustup"), Vec::<String>::new(), "{words:?}: nothing need be added");
    }
}

#[test]
fn all_that_is_missing_is_said_at_once_and_nothing_is_built() {
    let machine = Machine::complete()
        .without("rustup")
        .without("rustc")
        .without("rustfmt")
        .without("clippy-driver")
        .without("go");
    machine.tool("df", "echo header; echo /dev/disk 10 9 1 90% /");
    let said = machine.run(&["test"]);
    for word in [
        "wasm32-unknown-unknown",
        "rustfmt",
        "clippy",
        "Go 1.26",
        "GiB",
        "https://rustup.rs",
        "https://go.dev",
    ] {
        assert!(said.contains(word), "{word} in: {said}");
    }
    assert_eq!(machine.calls("cargo"), Vec::<String>::new());
}

#[test]
fn the_wasm_target_is_added_before_anything_is_built() {
    for words in [&["demo"][..], &["test"], &["guests"], &["bench"], &["simulate"]] {
        let machine = Machine::complete();
        fs::remove_dir(machine.path("wasm-lib")).unwrap();
        machine.tool(
            "rustup",
            &format!("[ $1 = --version ] || /bin/mkdir -p {}", machine.path("wasm-lib").display()),
        );
        let said = machine.run(words);
        assert!(!said.contains("lacks"), "{words:?}: {said}");
        let added = machine.calls("rustup");
        assert_eq!(added.last().map(String::as_str), Some("rustup target add wasm32-unknown-unknown"));
        assert_eq!(
            log_of(&machine).first().map(String::as_str),
            Some("rustc"),
            "the compiler is asked first"
        );
        let (rustup, cargo) = (place(&machine, "rustup target"), place(&machine, "cargo"));
        assert!(rustup < cargo, "{words:?}: {:?}", log_of(&machine));
    }
}

#[test]
fn where_rustup_cannot_add_the_target_the_error_has_its_command() {
    let machine = Machine::complete();
    fs::remove_dir(machine.path("wasm-lib")).unwrap();
    machine.tool("rustup", "[ $1 = --version ]");
    let said = machine.run(&["demo"]);
    assert!(said.contains("rustup target add wasm32-unknown-unknown"), "{said}");
    assert_eq!(machine.calls("cargo"), Vec::<String>::new());
}

#[test]
fn a_go_that_is_too_old_is_named_and_one_for_nothing_is_not_asked_for() {
    let machine = Machine::complete();
    machine.tool("go", "echo go version go1.22.1 linux/amd64");
    let said = machine.run(&["cluster"]);
    assert!(said.contains("found 1.22") && said.contains("PINTLE_TESTBED_KUBECONFIG"), "{said}");
    assert_eq!(machine.calls("cargo"), Vec::<String>::new());

    for built in ["kubernetes-v1.36.3-linux-x86_64-0", "kwok-v0.8.0-linux-x86_64-0"] {
        fs::create_dir_all(machine.path(".cache/pintle").join(built)).unwrap();
    }
    let said = machine.run(&["cluster"]);
    assert!(!said.contains("lacks"), "the control plane is built already: {said}");

    let offline = Machine::complete().without("go");
    let said = offline.run(&["test", "--offline"]);
    assert!(!said.contains("lacks"), "{said}");
}

#[test]
fn who_pushes_the_image_is_asked_for_skopeo_before_it_is_built() {
    let machine = Machine::complete();
    let said = machine.run(&["image", "--push", "registry.example.com/pintle:0.1.0"]);
    assert!(said.contains("apt-get install skopeo"), "{said}");
    assert_eq!(machine.calls("cargo"), Vec::<String>::new());
}

#[test]
fn who_wants_pods_to_run_is_told_the_first_thing_that_is_missing_before_anything_is_built() {
    let machine = Machine::complete();
    machine.tool("bash", "echo runc");
    let said = machine.run(&["demo", "--node"]);
    assert!(said.contains("  runc\n") && said.contains("testbed/node/needs.sh"), "{said}");
    assert_eq!(machine.calls("cargo"), Vec::<String>::new());
    assert_eq!(machine.calls("bash"), ["bash testbed/node/needs.sh"]);
    let said = machine.run(&["node"]);
    assert!(said.contains("no Pod can run here: this machine lacks runc"), "{said}");
    assert_eq!(machine.calls("cargo"), Vec::<String>::new());
}

#[test]
fn a_step_that_the_machine_lacks_something_for_is_counted_as_skipped() {
    // Every other step fails, as cargo does.
    let output = Machine::complete().output(&["test", "--offline"]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("console: skipped, this machine lacks Node 20 or newer\n"), "{said}");
    assert!(said.ends_with("8 steps, 7 failed, 1 skipped\n"), "{said}");
}

fn log_of(machine: &Machine) -> Vec<String> {
    let log = fs::read_to_string(machine.path("log")).unwrap();
    log.lines().filter_map(|line| line.split(' ').next()).map(ToOwned::to_owned).collect()
}

/// The position of the first such call in the log.
fn place(machine: &Machine, call: &str) -> usize {
    let log = fs::read_to_string(Path::new(&machine.path("log"))).unwrap();
    log.lines().position(|line| line.starts_with(call)).unwrap_or_else(|| panic!("{call} in: {log}"))
}
