//! What kubectl prints.

use std::{
    io::{self, Write as _},
    process::{Command, Output, Stdio},
    sync::LazyLock,
};

use anyhow::{Context, ensure};
use regex::Regex;
use serde_json::json;

use super::{
    names::regex,
    side::{Said, Side},
};

const DOLLY: &str =
    "{apiVersion: GROUP/v1alpha, kind: Llama, metadata: {name: dolly}, spec: {height: 0.5, weight: 31.5}}";

impl Side<'_> {
    /// `kubectl WORDS <<< MANIFEST`. `LLAMAS` is the resource.
    pub(crate) async fn kubectl(&mut self, step: &str) -> anyhow::Result<()> {
        let (words, input) = step.split_once(" <<< ").unwrap_or((step, ""));
        let words = self.filled(&words.replace("LLAMAS", "llamas.GROUP"))?;
        let input = self.filled(&manifest(input))?;
        let mut command = self.plane.kubectl_command();
        command
            .args(words.split(' ').skip(1))
            .args(["--namespace", &self.namespace])
            .env("KUBE_EDITOR", "sed -i /weight:/s/31.5/35/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let output = tokio::task::spawn_blocking(move || output_of(command, &input)).await??;
        let code = output.status.code().context("kubectl was killed")?;
        ensure!(code < 125, "{words}: {code}");
        let clean = |bytes: &[u8]| -> Vec<String> {
            let text = String::from_utf8_lossy(bytes);
            let lines = text.lines().map(|line| plain(&self.names.text(line)));
            // The view's group has another resource.
            lines.filter(|line| !line.is_empty() && !line.starts_with("farmpods ")).collect()
        };
        let body = json!({"out": clean(&output.stdout), "err": clean(&output.stderr)});
        self.said.push(Said { asked: step.to_owned(), answer: json!({"code": code, "body": body}) });
        Ok(())
    }
}

fn output_of(mut command: Command, input: &str) -> io::Result<Output> {
    let mut child = command.spawn()?;
    if let Some(mut pipe) = child.stdin.take() {
        // kubectl reads it only where it is told to.
        let _ = pipe.write_all(input.as_bytes());
    }
    child.wait_with_output()
}

/// What kubectl reads.
fn manifest(name: &str) -> String {
    match name {
        "DOLLY" => DOLLY.to_owned(),
        "HEAVY" => DOLLY.replace("31.5", "310"),
        "WRONG" => DOLLY.replace("31.5", "0"),
        "UNKNOWN" => DOLLY.replace("weight:", "colour: red, weight:"),
        "NOBODY" => DOLLY.replace("dolly", "nobody"),
        "HERD" => {
            let one = |number: u32| {
                let breed = if number.is_multiple_of(2) { "wool" } else { "milk" };
                let named = format!("{{name: llama-{number}, labels: {{breed: {breed}}}}}");
                DOLLY.replace("{name: dolly}", &named).replace("31.5", &number.to_string())
            };
            (1..=5).map(one).collect::<Vec<_>>().join("\n---\n")
        }
        _ => String::new(),
    }
}

static SPACES: LazyLock<Regex> = LazyLock::new(|| regex(r"\s+"));
static AGE: LazyLock<Regex> = LazyLock::new(|| regex(r"(^|\s)\d+[smhd](\d+[smhd])?(\s|$)"));
static FOLDER: LazyLock<Regex> = LazyLock::new(|| regex(r"/tmp/[A-Za-z.]*(LIVE|MERGED)-\d+/\S*"));
static EDITED: LazyLock<Regex> = LazyLock::new(|| regex(r"/tmp/kubectl-edit-\S*"));
static DIFFED: LazyLock<Regex> = LazyLock::new(|| regex(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ \+\d+"));
static LOGGED: LazyLock<Regex> = LazyLock::new(|| regex(r"^[EFIW]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+"));

/// A line without what is different in each run.
fn plain(line: &str) -> String {
    let line = SPACES.replace_all(line.trim(), " ");
    let line = FOLDER.replace_all(&line, "<$1>");
    let line = EDITED.replace_all(&line, "<edited>");
    let line = DIFFED.replace_all(&line, "<time>");
    let line = LOGGED.replace_all(&line, "<logged>");
    AGE.replace_all(&line, "$1<age>$3").into_owned()
}
