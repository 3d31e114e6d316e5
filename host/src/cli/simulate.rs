use std::path::{Path, PathBuf};

use clap::Args;
use pintle_engine::Module;
use pintle_wit::schema::host_status_properties;
use serde_json::{Value, json};

use super::{
    output::{self, Colours},
    plural::plural,
    problem::{Problem, Verdict},
};
use crate::{
    clock,
    offline::{self, documents, setting::default_spec},
    scenario::ModuleFile,
    simulate::{
        Outcome, Replay, Setting, Simulation,
        search::{self, Effort, Menu, Subject},
    },
};

/// Search for crashes, lost replies and stale views that a guest does not survive, without a cluster
///
/// Runs each scenario with the operator on an API server in memory: once as it stands, and then with things going wrong: the host
/// ends before and after every write, replies are lost, events of watches come late, twice or not at all, errors come, somebody
/// edits and deletes children, the root is made again. Whatever goes wrong, the end must be the same, and then nothing may be left
/// to do. Every guest call is made twice, and with the children in another order: the answers must be the same.
///
/// A scenario has `about`, `objects` (the custom resources) and `steps`, each with `expect`; see docs/simulator.md. What a run that
/// fails prints in its first line repeats it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Search 500 plans
  pintle simulate guest.wasm --scenario scenario.yaml

  # Search more of them
  pintle simulate guest.wasm --scenario scenario.yaml --seeds 20000

  # Repeat a run that failed, step by step
  pintle simulate guest.wasm --scenario scenario.yaml --replay 'scenario.yaml seed=0 plan=w3=crash-after'")]
pub(super) struct Simulate {
    /// The guest: a module that `pintle build` made
    module: PathBuf,

    /// A scenario; may be given more than once
    #[arg(long = "scenario", value_name = "FILE", required = true)]
    scenarios: Vec<PathBuf>,

    /// The CRD of the guest's kind, and those of its children [default: crd.yaml beside the module, or a schema that takes anything]
    #[arg(long = "crd", value_name = "FILE")]
    crds: Vec<PathBuf>,

    /// The Reconciler [default: one with the grants that the manifest declares]
    #[arg(long, value_name = "FILE")]
    reconciler: Option<PathBuf>,

    /// How many plans to run
    #[arg(long, value_name = "N", default_value_t = 500, conflicts_with = "replay")]
    seeds: usize,

    /// Repeat one run, and print all that happened in it
    #[arg(long, value_name = "LINE")]
    replay: Option<String>,
}

/// The name that the guest's Module has in a simulation.
const MODULE: &str = "under-test";

/// How many failures are shown.
const FAILURES_MAX: usize = 5;
/// How many of the steps before a failure are shown.
const STEPS_SHOWN: usize = 15;

impl Simulate {
    pub(super) fn run(self) -> Result<Verdict, Problem> {
        let replay = match &self.replay {
            Some(line) => Some(line.parse::<Replay>().map_err(Problem::new)?),
            None => None,
        };
        let engine = offline::engine()?;
        let module = offline::load(&engine, &self.module)?
            .map_err(|failure| Problem::of_module(&self.module, &failure))?;
        let bytes = std::fs::read(&self.module)?;
        let setting =
            Setting::new(&self.crds(&module)?, &[(MODULE.into(), bytes)], &[], &[self.reconciler(&module)?])
                .map_err(|error| Problem::failed(format!("{error:#}")))?;
        let mut subjects = Vec::new();
        let mut verdict = Verdict::Fine;
        for path in &self.scenarios {
            let file = path.display().to_string();
            if replay.as_ref().is_some_and(|replay| replay.scenario != file) {
                continue;
            }
            let simulation = Simulation::new(&setting, &file, &documents::read_text(path)?, &no_modules)?;
            let reference = simulation.reference(0)?;
            match &reference.outcome.broken {
                Some(broken) => {
                    verdict = Verdict::Failed;
                    let steps = last_steps(&reference.outcome);
                    output::print(&format!(
                        "FAILED  {file}, although nothing goes wrong\n{broken}\n{steps}"
                    ))?;
                }
                None => subjects.push(Subject { simulation, reference }),
            }
        }
        if let Some(replay) = &replay {
            let Some(subject) = subjects.first() else {
                return Err(Problem::new(format!("no scenario {} to replay", replay.scenario)));
            };
            let outcome = subject.simulation.run(replay.seed, &replay.plan, &subject.reference)?;
            let steps: String = outcome.steps.iter().map(|step| format!("{step}\n")).collect();
            let end = match &outcome.broken {
                Some(broken) => format!("{broken}\n"),
                None => "every property holds\n".into(),
            };
            output::print(&format!("{steps}{end}"))?;
            return Ok(if outcome.broken.is_some() { Verdict::Failed } else { Verdict::Fine });
        }
        if subjects.is_empty() {
            return Ok(verdict);
        }
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
        let effort = Effort { plans: self.seeds, seed: 0, threads, failures_max: FAILURES_MAX };
        let plans = search::plans(&subjects, Menu::default(), &effort);
        let begun = clock::monotonic();
        let tally = search::search(&subjects, &plans, &effort, &|_| {})?;
        let seconds = clock::monotonic().saturating_sub(begun).as_secs_f64();
        let colours = Colours::of_stdout();
        for failure in &tally.failures {
            let line = format!("--replay '{}'", failure.replay);
            let broken = failure.outcome.broken.as_ref().map(ToString::to_string).unwrap_or_default();
            let steps = last_steps(&failure.outcome);
            output::print(&format!("{}  {line}\n{broken}\n{steps}\n", colours.red("FAILED")))?;
        }
        let classes: Vec<String> =
            tally.by_class.iter().map(|(class, number)| format!("{class} {number}")).collect();
        output::print(&format!(
            "{} plans, {} failed; {:.0} a second; {}\n",
            tally.plans,
            tally.failed,
            tally.plans as f64 / seconds.max(0.001),
            classes.join(", ")
        ))?;
        Ok(if tally.failed > 0 { Verdict::Failed } else { verdict })
    }

    fn crds(&self, module: &Module) -> Result<Vec<Value>, Problem> {
        let beside = self.module.with_file_name("crd.yaml");
        let files = match self.crds.as_slice() {
            [] if beside.is_file() => std::slice::from_ref(&beside),
            files => files,
        };
        if files.is_empty() {
            return Ok(vec![open_crd(module)]);
        }
        let mut crds = Vec::new();
        for file in files {
            crds.extend(read(file)?);
        }
        Ok(crds)
    }

    fn reconciler(&self, module: &Module) -> Result<Value, Problem> {
        let mut reconciler = match &self.reconciler {
            Some(file) => {
                let found = read(file)?.into_iter().find(|object| object["kind"] == "Reconciler");
                found.ok_or_else(|| Problem::new(format!("{} has no Reconciler", file.display())))?
            }
            None => json!({
                "apiVersion": "pintle.dev/v1alpha1", "kind": "Reconciler",
                "metadata": {"name": module.manifest().name}, "spec": default_spec(module.manifest()),
            }),
        };
        reconciler["spec"]["module"] = MODULE.into();
        Ok(reconciler)
    }
}

fn read(file: &Path) -> Result<Vec<Value>, Problem> {
    let text = documents::read_text(file)?;
    let documents = documents::parse(&file.display().to_string(), &text)?;
    Ok(documents.into_iter().map(|document| document.value).collect())
}

/// A CRD of the kind that a guest reconciles, that takes anything.
fn open_crd(module: &Module) -> Value {
    let kind = &module.manifest().reconciles;
    let plural = plural(&kind.kind);
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let mut status = anything.clone();
    status["properties"] = host_status_properties().into();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{}", kind.group())},
        "spec": {
            "group": kind.group(), "scope": "Namespaced",
            "names": {
                "kind": kind.kind, "listKind": format!("{}List", kind.kind), "plural": plural,
                "singular": kind.kind.to_lowercase(),
            },
            "versions": [{
                "name": kind.version(), "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object", "properties": {"spec": anything, "status": status},
                }},
            }],
        },
    })
}

fn no_modules(_: &ModuleFile) -> anyhow::Result<Vec<u8>> {
    anyhow::bail!("a scenario of pintle simulate brings no modules of its own: there is the one under test")
}

fn last_steps(outcome: &Outcome) -> String {
    let until = outcome.broken.as_ref().and_then(|broken| {
        let step = broken.step.as_ref()?;
        outcome.steps.iter().rposition(|found| found == step)
    });
    let until = until.map_or(outcome.steps.len(), |at| at + 1);
    let from = until.saturating_sub(STEPS_SHOWN);
    outcome.steps.iter().take(until).skip(from).map(|step| format!("  {step}\n")).collect()
}
