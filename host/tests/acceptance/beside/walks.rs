//! What people do with kubectl, for both resources.

use std::{collections::BTreeMap, io::Write as _, process::Stdio, sync::LazyLock, thread};

use anyhow::{Context, ensure};
use pintle_testbed::ControlPlane;
use regex::Regex;
use serde_json::json;

use super::{
    Outcome, judged,
    side::{GROUP, Names, OF_THE_CRD, OF_THE_VIEW, Said},
};

const AREA: &str = "kubectl";

/// What people do, one after the other, in a namespace of their own. `LLAMAS` is the resource; what kubectl reads stands behind `<<<`.
struct Walk {
    name: &'static str,
    steps: &'static [&'static str],
}

const DOLLY: &str =
    "{apiVersion: GROUP/v1alpha, kind: Llama, metadata: {name: dolly}, spec: {height: 0.5, weight: 31.5}}";

const WALKS: &[Walk] = &[
    Walk {
        name: "kubectl knows the resource, its fields and who may use it",
        steps: &[
            "api-resources --api-group=GROUP --no-headers",
            "api-resources --api-group=GROUP --namespaced=false",
            "api-resources --api-group=GROUP --verbs=create,deletecollection,watch --no-headers",
            "explain llamas --api-version=GROUP/v1alpha",
            "explain llamas.spec --api-version=GROUP/v1alpha",
            "explain llamas.spec.weight --api-version=GROUP/v1alpha",
            "explain llamas.metadata.labels --api-version=GROUP/v1alpha",
            "explain llamas --recursive --api-version=GROUP/v1alpha",
            "explain llamas.colour --api-version=GROUP/v1alpha",
            "auth can-i list LLAMAS",
            "auth can-i create LLAMAS --as=jane",
            "auth can-i delete LLAMAS/dolly --as=jane",
        ],
    },
    Walk {
        name: "apply, again, changed, and away",
        steps: &[
            "diff -f - <<< DOLLY",
            "apply -f - --dry-run=server <<< DOLLY",
            "apply -f - --dry-run=client <<< DOLLY",
            "apply -f - <<< DOLLY",
            "apply -f - <<< DOLLY",
            "diff -f - <<< DOLLY",
            "diff -f - <<< HEAVY",
            "apply -f - --dry-run=server <<< HEAVY",
            "get LLAMAS dolly -o jsonpath={.spec}",
            "apply -f - <<< HEAVY",
            "apply view-last-applied LLAMAS/dolly",
            "get LLAMAS dolly -o jsonpath={.spec}",
            "apply -f - <<< WRONG",
            "apply -f - <<< UNKNOWN",
            "apply -f - --validate=false <<< UNKNOWN",
            "delete -f - <<< DOLLY",
            "delete -f - <<< DOLLY",
            "delete -f - --ignore-not-found <<< DOLLY",
        ],
    },
    Walk {
        name: "create, get in each form, describe",
        steps: &[
            "get LLAMAS",
            "create -f - --dry-run=server -o yaml <<< DOLLY",
            "create -f - <<< DOLLY",
            "create -f - <<< DOLLY",
            "create -f - <<< HERD",
            "get LLAMAS",
            "get LLAMAS --no-headers",
            "get LLAMAS dolly",
            "get LLAMAS/dolly LLAMAS/llama-1",
            "get LLAMAS nobody",
            "get LLAMAS nobody --ignore-not-found",
            "get LLAMAS -o wide",
            "get LLAMAS -o name",
            "get LLAMAS -o yaml",
            "get LLAMAS -o json",
            "get LLAMAS dolly -o yaml --show-managed-fields=false",
            "get LLAMAS -o jsonpath={.items[*].spec.weight}",
            "get LLAMAS -o custom-columns=N:.metadata.name,W:.spec.weight,X:.spec.nothing",
            "get LLAMAS --sort-by=.spec.weight",
            "get LLAMAS --sort-by=.metadata.name -o name",
            "get LLAMAS --chunk-size=1",
            "get LLAMAS --chunk-size=1 -o name",
            "get LLAMAS -l breed=wool",
            "get LLAMAS -l breed!=wool -o name",
            "get LLAMAS -L breed",
            "get LLAMAS --show-labels",
            "get LLAMAS --show-kind",
            "get LLAMAS --field-selector metadata.name=dolly",
            "get LLAMAS --field-selector spec.weight=1",
            "get LLAMAS --subresource=status dolly",
            "get LLAMAS --subresource=scale dolly",
            "describe LLAMAS dolly",
            "describe LLAMAS -l breed=wool",
            "get --raw /apis/GROUP/v1alpha/namespaces/NAMESPACE/llamas/dolly/status",
        ],
    },
    Walk {
        name: "edit, patch, label, annotate, replace",
        steps: &[
            "apply -f - <<< DOLLY",
            "edit LLAMAS dolly",
            "get LLAMAS dolly -o jsonpath={.spec}",
            "edit LLAMAS dolly",
            "patch LLAMAS dolly --type=merge -p {\"spec\":{\"weight\":3}}",
            "patch LLAMAS dolly --type=merge -p {\"spec\":{\"weight\":3}}",
            "patch LLAMAS dolly --type=json -p [{\"op\":\"replace\",\"path\":\"/spec/weight\",\"value\":4}]",
            "patch LLAMAS dolly --type=strategic -p {\"spec\":{\"weight\":5}}",
            "patch LLAMAS dolly --type=merge -p {\"spec\":{\"weight\":0}}",
            "patch LLAMAS dolly --type=merge -p {\"spec\":{\"weight\":9}} --dry-run=server",
            "patch LLAMAS dolly --subresource=status --type=merge -p {\"status\":{}}",
            "patch LLAMAS nobody --type=merge -p {}",
            "label LLAMAS dolly breed=wool",
            "label LLAMAS dolly breed=wool",
            "label LLAMAS dolly breed=milk",
            "label LLAMAS dolly breed=milk --overwrite",
            "label LLAMAS dolly breed=milk --overwrite --dry-run=server",
            "label LLAMAS dolly a=b,c",
            "label LLAMAS --all herd=one",
            "label LLAMAS dolly breed-",
            "annotate LLAMAS dolly note=hello",
            "annotate LLAMAS --all note=all --overwrite",
            "annotate LLAMAS dolly note-",
            "get LLAMAS dolly -o yaml",
            "replace -f - <<< DOLLY",
            "replace -f - --dry-run=server <<< HEAVY",
            "replace -f - <<< NOBODY",
            "replace --force -f - <<< HEAVY",
            "get LLAMAS dolly -o jsonpath={.spec}",
            "scale LLAMAS dolly --replicas=2",
        ],
    },
    Walk {
        name: "wait and delete in each way",
        steps: &[
            "create -f - <<< HERD",
            "wait --for=jsonpath={.spec.weight}=1 LLAMAS/llama-1 --timeout=180s",
            "wait --for=jsonpath={.spec.weight}=99 LLAMAS/llama-1 --timeout=5s",
            "wait --for=create LLAMAS/llama-1 --timeout=180s",
            "wait --for=delete LLAMAS/nobody --timeout=180s",
            "wait --for=condition=Ready LLAMAS/llama-1 --timeout=5s",
            "wait --for=jsonpath={.spec.height} LLAMAS/llama-1 LLAMAS/llama-2 --timeout=180s",
            "wait --for=jsonpath={.spec.height}=0.5 LLAMAS --all --timeout=180s",
            "delete LLAMAS llama-1 --dry-run=server",
            "delete LLAMAS llama-1 --dry-run=client",
            "delete LLAMAS llama-1 --cascade=foreground",
            "delete LLAMAS llama-2 --cascade=orphan",
            "delete LLAMAS llama-3 --cascade=background --wait=false",
            "delete LLAMAS llama-3",
            "delete LLAMAS llama-4 --now",
            "delete LLAMAS llama-5 --grace-period=0 --force",
            "create -f - <<< HERD",
            "delete LLAMAS -l breed=wool",
            "delete LLAMAS --all",
            "get LLAMAS",
        ],
    },
    Walk {
        name: "the ways of apply that a CRD has and a view has not",
        steps: &["apply --server-side -f - <<< DOLLY"],
    },
];

/// Walks with both, and compares.
pub(super) fn walk(plane: &ControlPlane, filter: Option<&str>) -> anyhow::Result<Vec<Outcome>> {
    let wanted =
        |walk: &&Walk| filter.is_none_or(|filter| walk.name.contains(filter) || AREA.contains(filter));
    let mut outcomes = Vec::new();
    for (number, walk) in WALKS.iter().filter(wanted).enumerate() {
        let of = |group: &'static str, side: &str| {
            let namespace = format!("beside-walk-{number}-{side}");
            walked(plane, walk, group, &namespace).with_context(|| format!("{}, {side}", walk.name))
        };
        let (crd, view) = thread::scope(|scope| {
            let crd = scope.spawn(|| of(OF_THE_CRD, "crd"));
            let view = of(OF_THE_VIEW, "view");
            (crd.join(), view)
        });
        let crd = crd.map_err(|_| anyhow::anyhow!("the walk with the CRD panicked"))??;
        outcomes.push(judged(AREA, walk.name, &crd, view?));
    }
    Ok(outcomes)
}

fn walked(plane: &ControlPlane, walk: &Walk, group: &str, namespace: &str) -> anyhow::Result<Vec<Said>> {
    plane.run_kubectl(&["create", "namespace", namespace], None)?;
    plane.run_kubectl(&["label", "namespace", namespace, "beside=yes"], None)?;
    let mut names = Names::default();
    let mut all = Vec::new();
    for step in walk.steps {
        let (words, stdin) = step.split_once(" <<< ").map_or((*step, ""), |(words, stdin)| (words, stdin));
        let stdin = manifest(stdin).replace(GROUP, group);
        let words =
            words.replace("LLAMAS", "llamas.GROUP").replace(GROUP, group).replace("NAMESPACE", namespace);
        let mut command = plane.kubectl_command();
        command
            .args(words.split(' '))
            .args(["--namespace", namespace])
            .env("KUBE_EDITOR", "sed -i /weight:/s/31.5/35/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn()?;
        if let Some(mut pipe) = child.stdin.take() {
            // kubectl reads it only where it is told to.
            let _ = pipe.write_all(stdin.as_bytes());
        }
        let output = child.wait_with_output()?;
        let mut clean = |bytes: &[u8]| -> Vec<String> {
            let text = String::from_utf8_lossy(bytes);
            let lines = text.lines().map(|line| plain(&names.text(group, namespace, line)));
            // The view's group has another resource.
            lines.filter(|line| !line.is_empty() && !line.starts_with("farmpods ")).collect()
        };
        let body = json!({"out": clean(&output.stdout), "err": clean(&output.stderr)});
        let code = output.status.code().context("kubectl was killed")?;
        ensure!(code < 125, "kubectl {words}: {code}");
        all.push(Said {
            asked: format!("kubectl {step}"),
            code: u16::try_from(code)?,
            headers: BTreeMap::new(),
            body,
        });
    }
    Ok(all)
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
                DOLLY
                    .replace(
                        "{name: dolly}",
                        &format!("{{name: llama-{number}, labels: {{breed: {breed}}}}}"),
                    )
                    .replace("31.5", &number.to_string())
            };
            (1..=5).map(one).collect::<Vec<_>>().join("\n---\n")
        }
        _ => String::new(),
    }
}

static SPACES: LazyLock<Regex> = LazyLock::new(|| super::side::regex(r"\s+"));
static AGE: LazyLock<Regex> = LazyLock::new(|| super::side::regex(r"(^|\s)\d+[smhd](\d+[smhd])?(\s|$)"));
static FOLDER: LazyLock<Regex> =
    LazyLock::new(|| super::side::regex(r"/tmp/[A-Za-z.]*(LIVE|MERGED)-\d+/\S*"));
static EDITED: LazyLock<Regex> = LazyLock::new(|| super::side::regex(r"/tmp/kubectl-edit-\S*"));
static DIFFED: LazyLock<Regex> =
    LazyLock::new(|| super::side::regex(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ \+\d+"));

static LOGGED: LazyLock<Regex> =
    LazyLock::new(|| super::side::regex(r"^[EFIW]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+"));

/// A line without what is different in each run.
fn plain(line: &str) -> String {
    let line = SPACES.replace_all(line.trim(), " ");
    let line = FOLDER.replace_all(&line, "<$1>");
    let line = EDITED.replace_all(&line, "<edited>");
    let line = DIFFED.replace_all(&line, "<time>");
    let line = LOGGED.replace_all(&line, "<logged>");
    AGE.replace_all(&line, "$1<age>$3").into_owned()
}
