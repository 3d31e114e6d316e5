//! A Llama beside an object of a CRD of the same schema: each request is sent for both, and the answers are the same, or differ as
//! docs/views.md says.
//!
//! The ideas are those of Kubernetes' own tests of custom resources (test/e2e/apimachinery, test/cmd/crd.sh). The CRD is the oracle: what
//! the API server answers for it is right by definition.

mod cases;
mod differences;
mod kubectl;
mod names;
mod request;
mod side;
mod special;

use std::{collections::BTreeMap, fmt::Write as _, fs, time::Instant};

use anyhow::{Context, ensure};
use futures::{StreamExt, stream};
use kit::{Look, eventually, host::or_error};
use kube::config::{KubeConfigOptions, Kubeconfig};
use pintle_testbed::ControlPlane;
use serde_json::{Value, json};

use crate::repository;
use cases::Case;
use differences::DIFFERENCES;
use side::{Said, Side};

pub(crate) const NAME: &str = "a Llama is answered as an object of a CRD is";

/// The group of the view.
const OF_THE_VIEW: &str = "farm.example.com";

/// The group of the CRD.
const OF_THE_CRD: &str = "twin.example.com";

/// How many cases run at once.
const AT_ONCE: usize = 6;

/// Where the table stands in docs/views.md.
const BEGIN: &str = "<!-- made from a run of the acceptance tests: begin -->\n";
const END: &str = "<!-- end -->\n";

/// What came of a case.
struct Outcome {
    area: &'static str,
    claim: &'static str,
    answers: usize,
    /// The documented differences that it met.
    documented: Vec<&'static str>,
    /// What else differs.
    different: Vec<String>,
}

/// Compares them all, on a control plane where the farm is served.
pub(crate) async fn compare(plane: &ControlPlane, filter: Option<&str>, is_long: bool) -> anyhow::Result<()> {
    the_crd(plane)?;
    let kubeconfig = Kubeconfig::read_from(plane.kubeconfig())?;
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    // What is answered first is compared.
    config.default_retry = false;
    let client = kube::Client::try_from(config)?;
    let side = |group, namespace| Side::new(plane, client.clone(), group, namespace, is_long);
    is_described(&side(OF_THE_CRD, String::new())).await?;
    let begun = Instant::now();
    let is_wanted =
        |case: &Case| filter.is_none_or(|filter| case.claim.contains(filter) || case.area.contains(filter));
    let run = |(number, case): (usize, Case)| {
        let crd = side(OF_THE_CRD, format!("beside-{number:03}-crd"));
        let view = side(OF_THE_VIEW, format!("beside-{number:03}-view"));
        async move { (number, outcome_of(&case, crd, view).await) }
    };
    let running = stream::iter(cases::all().into_iter().filter(is_wanted).enumerate().map(run));
    let mut all: Vec<(usize, anyhow::Result<Outcome>)> = running.buffer_unordered(AT_ONCE).collect().await;
    all.sort_by_key(|(number, _)| *number);
    let (mut outcomes, mut wrong) = (Vec::new(), Vec::new());
    for (_, outcome) in all {
        match outcome {
            Ok(outcome) => outcomes.push(outcome),
            Err(error) => wrong.push(format!("{error:#}")),
        }
    }
    for outcome in &outcomes {
        wrong.extend(outcome.different.iter().map(|what| format!("{}: {what}", outcome.claim)));
    }
    println!(
        "        {} cases, {} answers of each, {:.1} s",
        outcomes.len(),
        outcomes.iter().map(|outcome| outcome.answers).sum::<usize>(),
        begun.elapsed().as_secs_f32()
    );
    let cleared = clear(plane);
    ensure!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    cleared?;
    if filter.is_some() || is_long {
        return Ok(());
    }
    let unmet = DIFFERENCES
        .iter()
        .find(|difference| !outcomes.iter().any(|outcome| outcome.documented.contains(&difference.name)));
    ensure!(unmet.is_none(), "no case meets the difference {:?}", unmet.map(|unmet| unmet.name));
    the_docs_have(&table(&outcomes))
}

/// Waits until the API server describes both groups. It looks at aggregated ones at a pace.
async fn is_described(side: &Side<'_>) -> anyhow::Result<()> {
    eventually("OpenAPI has a document of both groups", async || {
        or_error(side.must("GET /openapi/v3").await.map(|index| {
            let has = |group: &str| index["paths"].get(format!("apis/{group}/v1alpha")).is_some();
            let state = || format!("of the CRD: {}, of the view: {}", has(OF_THE_CRD), has(OF_THE_VIEW));
            Look::reached_if(has(OF_THE_CRD) && has(OF_THE_VIEW), state)
        }))
    })
    .await
}

/// Takes away what the cases left.
fn clear(plane: &ControlPlane) -> anyhow::Result<()> {
    plane.run_kubectl(&["delete", "namespaces", "--selector=beside", "--timeout=180s"], None)?;
    plane.run_kubectl(&["delete", "crd", "llamas.twin.example.com"], None).map(drop)
}

/// What Kubernetes says of the column of the age.
const AGE: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. It is represented in RFC3339 form and is in UTC.";

/// The CRD: what the View serves, under a group of its own.
fn the_crd(plane: &ControlPlane) -> anyhow::Result<()> {
    let served = plane.run_kubectl(&["get", "view", "llamas", "--output=jsonpath={.status.served}"], None)?;
    let served: Value = serde_json::from_str(&served)?;
    let mut schema = served["schema"].clone();
    for (field, of) in [("apiVersion", "string"), ("kind", "string"), ("metadata", "object")] {
        schema["properties"][field] = json!({"type": of});
    }
    // The view has the age as built-in resources have it, and columns have a description in both.
    let age =
        json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp", "description": AGE});
    let columns = served["columns"].as_array().cloned().unwrap_or_default().into_iter().map(|mut column| {
        column["description"] =
            format!("View column (in JSONPath format): {}", column["jsonPath"].as_str().unwrap_or_default())
                .into();
        column
    });
    let columns: Vec<Value> = columns.chain([age]).collect();
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("llamas.{OF_THE_CRD}")},
        "spec": {
            "group": OF_THE_CRD, "scope": "Namespaced",
            "names": {
                "kind": served["kind"], "listKind": served["listKind"], "plural": served["plural"], "singular": served["singular"],
                "shortNames": served.get("shortNames").cloned().unwrap_or_else(|| json!([])),
                "categories": served.get("categories").cloned().unwrap_or_else(|| json!([])),
            },
            "versions": [{
                "name": "v1alpha", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
                "additionalPrinterColumns": columns,
            }],
        },
    });
    plane.run_kubectl(&["apply", "--server-side", "--filename=-"], Some(&crd.to_string()))?;
    let wait = ["wait", "--for=condition=Established", "--timeout=180s", "crd/llamas.twin.example.com"];
    plane.run_kubectl(&wait, None).map(drop)
}

async fn outcome_of(case: &Case, mut crd: Side<'_>, mut view: Side<'_>) -> anyhow::Result<Outcome> {
    let (of_the_crd, of_the_view) = futures::join!(crd.carry_out(case), view.carry_out(case));
    of_the_crd.with_context(|| format!("{}: the CRD", case.claim))?;
    of_the_view.with_context(|| format!("{}: the view", case.claim))?;
    let (documented, different) = (Vec::new(), Vec::new());
    let mut outcome =
        Outcome { area: case.area, claim: case.claim, answers: crd.said.len(), documented, different };
    if crd.said.len() != view.said.len() {
        outcome.different.push(format!("{} answers, and {} of the CRD", view.said.len(), crd.said.len()));
    }
    for (crd, view) in crd.said.iter().zip(&view.said) {
        outcome.judge(crd, view);
    }
    Ok(outcome)
}

impl Outcome {
    /// Compares two answers, but for the fields in which they may differ.
    fn judge(&mut self, crd: &Said, view: &Said) {
        let (mut of_the_crd, mut of_the_view) = (crd.answer.clone(), view.answer.clone());
        for difference in DIFFERENCES {
            let differs = |field: &&str| of_the_crd.pointer(field) != of_the_view.pointer(field);
            if !difference.forgives.iter().any(differs) || !(difference.is_in)(crd, view) {
                continue;
            }
            for field in difference.forgives {
                take_away(&mut of_the_crd, field);
                take_away(&mut of_the_view, field);
            }
            if !self.documented.contains(&difference.name) {
                self.documented.push(difference.name);
            }
        }
        if of_the_crd != of_the_view {
            self.different.push(shown(&crd.asked, &of_the_crd, &of_the_view));
        }
    }
}

fn take_away(answer: &mut Value, field: &str) {
    let (parent, name) = field.rsplit_once('/').unwrap_or_default();
    if let Some(fields) = answer.pointer_mut(parent).and_then(Value::as_object_mut) {
        fields.remove(name);
    }
}

/// What differs, for a reader.
fn shown(asked: &str, crd: &Value, view: &Value) -> String {
    let (crd, view) = (format!("{crd:#}\n"), format!("{view:#}\n"));
    let diff = similar::TextDiff::from_lines(&crd, &view);
    format!("{asked}\n{}", diff.unified_diff().context_radius(2).header("CRD", "view"))
}

/// What docs/views.md says of a run.
fn table(outcomes: &[Outcome]) -> String {
    let mut areas: Vec<&str> = Vec::new();
    let mut rows: BTreeMap<&str, [usize; 4]> = BTreeMap::new();
    for outcome in outcomes {
        if !areas.contains(&outcome.area) {
            areas.push(outcome.area);
        }
        let row = rows.entry(outcome.area).or_default();
        row[0] += 1;
        row[1] += outcome.answers;
        row[if outcome.documented.is_empty() { 2 } else { 3 }] += 1;
    }
    let mut text = String::from(
        "| | Cases | Answers | Equal | Equal but for what is listed below |\n| --- | --- | --- | --- | --- |\n",
    );
    let mut sum = [0; 4];
    for area in areas {
        let row = rows.get(area).copied().unwrap_or_default();
        sum.iter_mut().zip(row).for_each(|(sum, of)| *sum += of);
        let [cases, answers, equal, documented] = row;
        let _ = writeln!(text, "| {area} | {cases} | {answers} | {equal} | {documented} |");
    }
    let [cases, answers, equal, documented] = sum;
    let _ = writeln!(text, "| **All** | {cases} | {answers} | {equal} | {documented} |\n");
    for difference in DIFFERENCES {
        // A sentence a line.
        let _ = writeln!(text, "- {}\n  {}", difference.name, difference.reason.replace(". ", ".\n  "));
    }
    text.push('\n');
    text
}

/// Compares the table with that in the docs, or writes it there.
fn the_docs_have(table: &str) -> anyhow::Result<()> {
    let path = repository().join("docs/views.md");
    let text = fs::read_to_string(&path)?;
    let (before, rest) = text.split_once(BEGIN).context("docs/views.md has no place for the table")?;
    let (found, after) = rest.split_once(END).context("docs/views.md has no end of the table")?;
    if std::env::var_os("PINTLE_WRITE_DOCS").is_some() {
        fs::write(&path, format!("{before}{BEGIN}{table}{END}{after}"))?;
        return Ok(());
    }
    ensure!(found == table, "docs/views.md has another table than this run makes:\n{table}");
    Ok(())
}
