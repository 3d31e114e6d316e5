//! A Llama beside an object of a CRD of the same schema: each request is sent for both, and the answers are the same, or differ as
//! docs/views.md says.
//!
//! The ideas are those of Kubernetes' own tests of custom resources (test/e2e/apimachinery, test/cmd/crd.sh). The CRD is the oracle: what
//! the API server answers for it is right by definition.

mod cases;
mod differences;
mod side;
mod walks;

use std::{collections::BTreeMap, fmt::Write as _, fs, time::Instant};

use anyhow::{Context, ensure};
use futures::{StreamExt, future::LocalBoxFuture, stream};
use kit::{Look, eventually, host::or_error};
use kube::config::{KubeConfigOptions, Kubeconfig};
use pintle_testbed::ControlPlane;
use serde_json::{Value, json};

use crate::repository;
use differences::DIFFERENCES;
use side::{OF_THE_CRD, OF_THE_VIEW, Said, Side};

pub(crate) const NAME: &str = "a Llama is answered as an object of a CRD is";

/// How many cases run at once.
const AT_ONCE: usize = 6;

/// Where the table stands in docs/views.md.
const BEGIN: &str = "<!-- made from a run of the acceptance tests: begin -->\n";
const END: &str = "<!-- end -->\n";

/// What is done with both, and must be answered in the same way.
pub(crate) struct Case {
    /// What it is about.
    pub(crate) area: &'static str,
    /// The claim.
    pub(crate) name: &'static str,
    pub(crate) run: for<'a> fn(&'a mut Side) -> LocalBoxFuture<'a, anyhow::Result<()>>,
}

/// What came of a case.
struct Outcome {
    area: &'static str,
    name: &'static str,
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
    is_described(&client).await?;
    let begun = Instant::now();
    let all: Vec<&'static Case> = cases::all()
        .filter(|case| filter.is_none_or(|filter| case.name.contains(filter) || case.area.contains(filter)))
        .collect();
    let run = |(number, case): (usize, &'static Case)| {
        let client = client.clone();
        async move {
            let outcome = one(&client, number, case, is_long).await;
            (number, outcome.with_context(|| case.name))
        }
    };
    let mut outcomes: Vec<(usize, anyhow::Result<Outcome>)> =
        stream::iter(all.into_iter().enumerate().map(run)).buffer_unordered(AT_ONCE).collect().await;
    outcomes.sort_by_key(|(number, _)| *number);
    let mut done = Vec::new();
    let mut wrong = Vec::new();
    for (_, outcome) in outcomes {
        match outcome {
            Ok(outcome) => done.push(outcome),
            Err(error) => wrong.push(format!("{error:#}")),
        }
    }
    let walked = walks::walk(plane, filter)?;
    for outcome in done.iter().chain(&walked) {
        wrong.extend(outcome.different.iter().map(|what| format!("{}: {what}", outcome.name)));
    }
    println!(
        "        {} cases, {} answers of each, {:.1} s",
        done.len() + walked.len(),
        done.iter().chain(&walked).map(|outcome| outcome.answers).sum::<usize>(),
        begun.elapsed().as_secs_f32()
    );
    let cleared = clear(plane);
    ensure!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    cleared?;
    if filter.is_some() || is_long {
        return Ok(());
    }
    let outcomes: Vec<Outcome> = done.into_iter().chain(walked).collect();
    let unmet = DIFFERENCES
        .iter()
        .find(|difference| !outcomes.iter().any(|outcome| outcome.documented.contains(&difference.name)));
    ensure!(unmet.is_none(), "no case meets the difference {:?}", unmet.map(|unmet| unmet.name));
    the_docs_have(&table(&outcomes))
}

/// Waits until the API server describes both groups. It looks at aggregated ones at a pace.
async fn is_described(client: &kube::Client) -> anyhow::Result<()> {
    let side = Side::new(client.clone(), OF_THE_CRD, String::new(), false);
    eventually("OpenAPI has a document of both groups", async || {
        or_error(side.must(side::raw(http::Method::GET, "/openapi/v3")).await.map(|index| {
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

async fn one(
    client: &kube::Client,
    number: usize,
    case: &'static Case,
    is_long: bool,
) -> anyhow::Result<Outcome> {
    let side = async |group, of| {
        let side = Side::new(client.clone(), group, format!("beside-{number:03}-{of}"), is_long);
        let object = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": side.namespace, "labels": {"beside": "yes"}},
        });
        side.must(
            side::raw(http::Method::POST, "/api/v1/namespaces").body("application/json", object.to_string()),
        )
        .await?;
        anyhow::Ok(side)
    };
    let (mut crd, mut view) = (side(OF_THE_CRD, "crd").await?, side(OF_THE_VIEW, "view").await?);
    let (of_the_crd, of_the_view) = futures::join!((case.run)(&mut crd), (case.run)(&mut view));
    of_the_crd.context("the CRD")?;
    of_the_view.context("the view")?;
    Ok(judged(case.area, case.name, &crd.said(), view.said()))
}

/// Compares what was said.
fn judged(area: &'static str, name: &'static str, crd: &[Said], view: Vec<Said>) -> Outcome {
    let mut outcome =
        Outcome { area, name, answers: crd.len(), documented: Vec::new(), different: Vec::new() };
    if crd.len() != view.len() {
        outcome.different.push(format!("{} answers, and {} of the CRD", view.len(), crd.len()));
    }
    for (crd, mut view) in crd.iter().zip(view) {
        let original = view.clone();
        for difference in DIFFERENCES {
            if crd.is_as(&view) {
                break;
            }
            if (difference.explains)(crd, &mut view) && !outcome.documented.contains(&difference.name) {
                outcome.documented.push(difference.name);
            }
        }
        if !crd.is_as(&view) {
            outcome.different.push(shown(crd, &original));
        }
    }
    outcome
}

/// What differs, for a reader.
fn shown(crd: &Said, view: &Said) -> String {
    let text = |said: &Said| {
        format!(
            "{} {:?}\n{}\n",
            said.code,
            said.headers,
            serde_json::to_string_pretty(&said.body).unwrap_or_default()
        )
    };
    let (crd_text, view_text) = (text(crd), text(view));
    let diff = similar::TextDiff::from_lines(&crd_text, &view_text);
    format!("{}\n{}", crd.asked, diff.unified_diff().context_radius(2).header("CRD", "view"))
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
        "| | Cases | Answers | Equal | Equal but for what is listed below | Different |\n| --- | --- | --- | --- | --- | --- |\n",
    );
    let mut sum = [0; 4];
    for area in areas {
        let row = rows.get(area).copied().unwrap_or_default();
        sum.iter_mut().zip(row).for_each(|(sum, of)| *sum += of);
        let [cases, answers, equal, documented] = row;
        let _ = writeln!(text, "| {area} | {cases} | {answers} | {equal} | {documented} | 0 |");
    }
    let [cases, answers, equal, documented] = sum;
    let _ = writeln!(text, "| **All** | {cases} | {answers} | {equal} | {documented} | 0 |\n");
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
