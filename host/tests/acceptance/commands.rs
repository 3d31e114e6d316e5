//! What people type, and what they see, as text: `commands/*.txt`.
//!
//! A case has its claim behind `## `. `$ COMMAND` is run by bash, with `pintle` and `kubectl` in the PATH, and `until $ COMMAND` until it is as
//! it should be. What must be so stands below it, behind two blanks:
//!
//! - `TEXT`: a line of the output begins with it; `... TEXT`: a line has it somewhere. Many blanks are as one.
//! - `2> TEXT`: the same of the error output, and `2>` alone: that has no other lines.
//! - `exit CODE`: the exit code, which is 0 where nothing is said.
//!
//! `NAMESPACE` is a namespace of the case's own, and `<version>` that of the workspace.

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use anyhow::{Context, bail};
use kit::{Look, modules};
use pintle_simulation::scenario::{Fixture, ModuleFile};
use pintle_testbed::{ControlPlane, eventually};
use serde_json::json;

use crate::{
    install,
    real::{Real, make_namespace},
    repository,
};

/// Removes Pintle from the cluster: the last thing that is done with it.
pub(crate) const REMOVAL: Case = Case {
    claim: "the command line removes Pintle and leaves the roots and their children",
    steps: include_str!("commands/removal.txt"),
};

pub(crate) const PREVIEWS: Case = Case {
    claim: "plan, inspect and record say what is there and what would change",
    steps: include_str!("commands/previews.txt"),
};

/// A llama.
const DOLLY: &str = r#"{"apiVersion": "farm.example.com/v1alpha", "kind": "Llama", "metadata": {"name": "dolly"}, "spec": {"height": 0.5, "weight": 31.4}}"#;

/// Each right that a role gives, and what it is called.
const RIGHTS: &str = r#"{{.metadata.name}} {{.metadata.labels}}
{{range .rules}}{{$rule := .}}{{range .apiGroups}}{{$group := .}}{{range $rule.resources}}{{$resource := .}}{{range $rule.verbs}}{{$group}} {{$resource}} {{.}}
{{end}}{{end}}{{end}}{{end}}"#;

/// What a ConfigMonitor writes into the Deployment that it restarts.
const HASH: &str = r"{.spec.template.metadata.annotations.magalix\.com/config-hash-flakapp-config-monitor}";

#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub(crate) claim: &'static str,
    pub(crate) steps: &'static str,
}

/// The cases that need nothing but the host.
pub(crate) fn cases() -> impl Iterator<Item = Case> {
    cases_of(include_str!("commands/cases.txt"))
}

fn cases_of(text: &'static str) -> impl Iterator<Item = Case> {
    let cases = text.split("\n## ").skip(1).filter_map(|case| case.split_once('\n'));
    cases.map(|(claim, steps)| Case { claim, steps })
}

/// A case of the farm, whose gateways are there.
pub(crate) fn farm(plane: &ControlPlane, claim: &'static str) -> anyhow::Result<()> {
    let case = cases_of(include_str!("commands/farm.txt")).find(|case| case.claim == claim);
    case.context("there is no such case")?.run(plane).context(claim)
}

/// What a plan says on a real control plane. Scenarios compare it with what a swap then does.
pub(crate) async fn previews(plane: &ControlPlane, real: &Real<'_>) -> anyhow::Result<()> {
    let outcome = PREVIEWS.run(plane);
    // They leave one that is suspended.
    plane.run_kubectl(&["delete", "reconciler/darkroom", "--ignore-not-found", "--timeout=180s"], None)?;
    install::push_guests(real).await?;
    outcome
}

/// What kubectl says of two versions of a resource, step by step.
pub(crate) fn tickets() -> impl Iterator<Item = Case> {
    let steps = include_str!("commands/tickets.txt").split("\n\n");
    steps.map(|steps| Case { claim: "two versions of a resource", steps })
}

impl Case {
    pub(crate) fn run(&self, plane: &ControlPlane) -> anyhow::Result<()> {
        let folder = folder(plane)?;
        let letters = self.claim.chars().filter(|letter| letter.is_ascii_lowercase()).take(50);
        let namespace: String = letters.collect();
        let steps = self.steps.replace("NAMESPACE", &namespace);
        let steps = steps.replace("<version>", env!("CARGO_PKG_VERSION"));
        let has_namespace = self.steps.contains("NAMESPACE");
        if has_namespace {
            make_namespace(plane, &namespace)?;
        }
        let mut lines = steps.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).peekable();
        while let Some(line) = lines.next() {
            let mut expected = Vec::new();
            while let Some(text) = lines.peek().and_then(|line| line.strip_prefix("  ")) {
                expected.push(text);
                lines.next();
            }
            let (command, is_waited_for) = match line.strip_prefix("until ") {
                Some(command) => (command, true),
                None => (line, false),
            };
            let command = command.strip_prefix("$ ").with_context(|| format!("no command: {line}"))?;
            let look = || {
                let output = bash(plane, &folder, command)?;
                let unmet = unmet(&output, &expected);
                anyhow::Ok(Look::reached_if(unmet.is_empty(), || {
                    format!("lacking: {unmet:#?} in {output:?}")
                }))
            };
            if is_waited_for {
                eventually(command, look)?;
            } else if let Look::NotYet(why) = look()? {
                bail!("{command}: {why}");
            }
        }
        if has_namespace {
            plane.run_kubectl(&["delete", "namespace", &namespace, "--wait=false"], None)?;
        }
        Ok(())
    }
}

/// What must be so, and is not.
fn unmet(output: &Output, expected: &[&str]) -> Vec<String> {
    let lines = |bytes: &[u8]| -> Vec<String> {
        let text = String::from_utf8_lossy(bytes);
        let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        lines.filter(|line| !line.is_empty()).collect()
    };
    let (printed, complaints) = (lines(&output.stdout), lines(&output.stderr));
    let is = |line: &String, text: &str| match text.strip_prefix("... ") {
        Some(part) => line.contains(part),
        None => line.starts_with(text),
    };
    let is_met = |text: &str| {
        if let Some(code) = text.strip_prefix("exit ") {
            return output.status.code().is_some_and(|found| found.to_string() == code);
        }
        match text.strip_prefix("2>").map(str::trim) {
            None => printed.iter().any(|line| is(line, text)),
            Some("") => complaints.iter().all(|line| {
                expected.iter().filter_map(|text| text.strip_prefix("2> ")).any(|text| is(line, text))
            }),
            Some(text) => complaints.iter().any(|line| is(line, text)),
        }
    };
    let names_code = expected.iter().any(|text| text.starts_with("exit "));
    let ended = (!names_code).then_some("exit 0");
    let all = ended.into_iter().chain(expected.iter().copied());
    all.filter(|text| !is_met(text)).map(str::to_owned).collect()
}

fn bash(plane: &ControlPlane, folder: &Path, command: &str) -> anyhow::Result<Output> {
    let path = env::var("PATH").unwrap_or_default();
    let output = Command::new("bash")
        .args(["-eo", "pipefail", "-c", command])
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", folder.display()))
        .env("KUBECONFIG", plane.kubeconfig())
        .env("KUBECACHEDIR", folder.join("cache"))
        .env("KUBERC", "off")
        .env("LC_ALL", "C")
        .env("DEPLOY", repository().join("deploy"))
        .env("TICKETS", repository().join("host/tests/tickets/deploy"))
        .env("GUESTS", std::path::absolute(modules::guests())?)
        .env("DOLLY", DOLLY)
        .env("RIGHTS", RIGHTS)
        .env("HASH", HASH)
        .stdin(Stdio::null())
        .output();
    output.context("bash cannot run")
}

/// The folder of the commands, with the programs, and the modules that are swapped: the same answers again are another module.
fn folder(plane: &ControlPlane) -> anyhow::Result<PathBuf> {
    let folder = plane.directory().join("commands");
    fs::create_dir_all(&folder)?;
    let program = Path::new(env!("CARGO_BIN_EXE_pintle"));
    for (name, to) in [("pintle", program), ("kubectl-pintle", program), ("kubectl", plane.kubectl())] {
        let link = folder.join(name);
        if !link.exists() {
            symlink(to, link)?;
        }
    }
    for (name, value, padded) in [
        ("swaps-1", Some("one"), false),
        ("swaps-2", Some("two"), false),
        ("swaps-2-again", Some("two"), true),
        ("swaps-traps", None, false),
        ("swaps-traps-again", None, true),
    ] {
        let answer = |value| {
            json!({"children": [{"id": "made", "object": {
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made"}, "data": {"is": value}}}]})
        };
        let module = ModuleFile {
            answers: value.map(answer),
            fixture: value.is_none().then_some(Fixture::Traps),
            reconciles: Some("Swapped".into()),
            children: vec!["v1/ConfigMap".into()],
            padded,
            ..ModuleFile::default()
        };
        fs::write(folder.join(format!("{name}.wasm")), modules::resolve(&module)?)?;
    }
    Ok(folder)
}
