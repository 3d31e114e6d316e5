//! `pintle-simulate`, which carries out `pintle simulate`: it runs scenarios of a guest with faults, without a cluster.

mod progress;
mod report;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::ExitCode,
};

use mimalloc::MiMalloc;
use pintle::cli::{
    self, module, output,
    plural::plural,
    problem::{CommandStatus, Problem},
    simulate::Simulate,
};
use pintle_engine::Guest;
use pintle_offline as offline;
use pintle_offline::{documents, setting::default_spec};
use pintle_runtime::clock;
use pintle_simulation::{
    Class, Failure, Hosts, Plan, Replay, Setting, Simulation, Subject, UnknownKinds, choice,
    run::Replicas as _,
    scenario::ModuleFile,
    search::{self, Effort},
};
use pintle_wit::schema::host_status_properties;
use serde_json::{Value, json};

use progress::Progress;
use report::{Found, LeftOut, Report};

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// The name that the guest's Module has in a simulation.
const MODULE: &str = "under-test";

/// A quick search runs one plan in so many. The plans are in turns of their classes, so that each class has its share.
const QUICK_STEP: usize = 10;

/// How many failures are shown.
const FAILURES_MAX: usize = 5;

fn main() -> ExitCode {
    cli::main_of_simulate(simulate)
}

fn simulate(arguments: &Simulate) -> Result<CommandStatus, Problem> {
    let replay = arguments.replay.as_ref().map(|line| line.parse::<Replay>()).transpose()?;
    let engine = offline::engine()?;
    let guest = module::guest_of(&module::load(&engine, &arguments.module)?, &arguments.module)?;
    if arguments.reconciler.is_none()
        && let Some((file, failures)) = module::reconciler_beside(&arguments.module, &guest)?
        && !failures.is_empty()
    {
        failures.iter().for_each(|failure| eprintln!("error: {file}: {failure}"));
        return Ok(CommandStatus::Failed);
    }
    let bytes = std::fs::read(&arguments.module)?;
    let setting = Setting::new(
        &crds(arguments, &guest)?,
        &[(MODULE.into(), bytes)],
        &[],
        &[reconciler(arguments, &guest)?],
    )
    .map_err(not_set_up)?;
    let mut subjects = Vec::new();
    for path in scenarios(arguments)? {
        let file = path.display().to_string();
        if replay.as_ref().is_some_and(|replay| replay.scenario != file) {
            continue;
        }
        let kind = &guest.manifest().reconciles.kind;
        let text = scenario_of(&path, &documents::read_text(&path)?, kind)?;
        let simulation = Simulation::new(&setting, &file, &text, &no_modules)?.must_be_ready();
        let reference = simulation.reference(0)?;
        subjects.push(Subject { simulation, reference });
    }
    let report = Report::new(arguments);
    match replay {
        Some(replay) => repeat(&report, &replay, subjects),
        None => search(&report, subjects),
    }
}

fn search(report: &Report<'_>, subjects: Vec<Subject<'_>>) -> Result<CommandStatus, Problem> {
    let (sound, broken): (Vec<_>, Vec<_>) =
        subjects.into_iter().partition(|subject| subject.reference.broken.is_none());
    let of_reference = |subject: Subject<'_>| Failure {
        replay: subject.replay(0, Plan::default()),
        outcome: subject.reference,
    };
    let mut failures: Vec<Failure> = broken.into_iter().map(of_reference).collect();
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let effort = Effort {
        plans: report.arguments.seeds,
        seed: 0,
        threads,
        failures_max: FAILURES_MAX,
        again_every: 50,
    };
    let all = choice::plans(&sound, &[], &effort);
    let step = if report.arguments.quick { QUICK_STEP } else { 1 };
    let plans: Vec<Replay> = all.iter().step_by(step).cloned().collect();
    let left_out = LeftOut {
        plans: all.len() - plans.len(),
        classes: classes(&all).difference(&classes(&plans)).copied().collect(),
    };
    let begun = clock::monotonic();
    let progress = Progress::new(plans.len());
    let mut tally = search::search(&sound, &plans, &effort, &|done, failed| progress.tell(done, failed))?;
    progress.end();
    let seconds = clock::monotonic().saturating_sub(begun).as_secs_f64();
    // Where something breaks although nothing goes wrong, there is nothing to compare plans with.
    let unsearched = failures.len();
    failures.append(&mut tally.failures);
    let found = Found { failures, unsearched, tally, left_out, seconds };
    output::print(&match report.arguments.output {
        Some(form) => output::text(&report.data(&found), form)?,
        None => report.told(&found)?,
    })?;
    Ok(if found.failures.is_empty() { CommandStatus::Fine } else { CommandStatus::Failed })
}

/// The classes of these plans.
fn classes(plans: &[Replay]) -> BTreeSet<Class> {
    plans.iter().flat_map(|replay| Hosts::classes_of(&replay.plan.0)).collect()
}

fn repeat(
    report: &Report<'_>,
    replay: &Replay,
    subjects: Vec<Subject<'_>>,
) -> Result<CommandStatus, Problem> {
    let Some(subject) = subjects.into_iter().next() else {
        return Err(Problem::new(format!("no scenario {} to replay", replay.scenario))
            .hint("name it with --scenario, as the line does"));
    };
    let outcome = match replay.plan.0.is_empty() && replay.seed == 0 {
        true => subject.reference,
        false => subject.run(replay.seed, &replay.plan)?,
    };
    let verdict = if outcome.broken.is_some() { CommandStatus::Failed } else { CommandStatus::Fine };
    let failure = Failure { replay: replay.clone(), outcome };
    let text = match report.arguments.output {
        Some(form) => {
            let mut data = report.data_of(&failure, usize::MAX);
            data["passed"] = (verdict == CommandStatus::Fine).into();
            output::text(&data, form)?
        }
        None => {
            let steps: String = failure.outcome.steps.iter().map(|step| format!("{step}\n")).collect();
            let end = match verdict {
                CommandStatus::Fine => "every property holds\n".into(),
                CommandStatus::Failed => report.told_of(&failure, 0)?,
            };
            format!("{steps}{end}")
        }
    };
    output::print(&text)?;
    Ok(verdict)
}

/// Why no scenario can be run.
fn not_set_up(error: anyhow::Error) -> Problem {
    let is_unknown = error.is::<UnknownKinds>();
    let problem = Problem::from(error);
    if !is_unknown {
        return problem;
    }
    problem.hint("give a CRD for each with --crd FILE; docs/simulator.md lists the kinds that it knows")
}

fn scenarios(arguments: &Simulate) -> Result<Vec<PathBuf>, Problem> {
    if !arguments.scenarios.is_empty() {
        return Ok(arguments.scenarios.clone());
    }
    let sample = arguments.module.with_file_name("sample.yaml");
    match sample.is_file() {
        true => Ok(vec![sample]),
        false => {
            let hint =
                "give a custom resource, or a scenario as docs/simulator.md describes it: --scenario FILE";
            Err(Problem::new("a scenario is needed: there is no sample.yaml beside the module").hint(hint))
        }
    }
}

fn crds(arguments: &Simulate, guest: &Guest) -> Result<Vec<Value>, Problem> {
    let beside = arguments.module.with_file_name("crd.yaml");
    let files = match arguments.crds.as_slice() {
        [] if beside.is_file() && !arguments.no_crd => std::slice::from_ref(&beside),
        files => files,
    };
    if files.is_empty() {
        return Ok(vec![open_crd(guest)]);
    }
    let mut crds = Vec::new();
    for file in files {
        crds.extend(read(file)?);
    }
    Ok(crds)
}

fn reconciler(arguments: &Simulate, guest: &Guest) -> Result<Value, Problem> {
    let mut reconciler = match &arguments.reconciler {
        Some(file) => {
            let found = read(file)?.into_iter().find(|object| object["kind"] == "Reconciler");
            found.ok_or_else(|| Problem::new(format!("{} has no Reconciler", file.display())))?
        }
        None => json!({
            "apiVersion": "pintle.dev/v1alpha1", "kind": "Reconciler",
            "metadata": {"name": guest.manifest().name}, "spec": default_spec(guest.manifest()),
        }),
    };
    reconciler["spec"]["module"] = MODULE.into();
    Ok(reconciler)
}

fn read(file: &Path) -> Result<Vec<Value>, Problem> {
    let text = documents::read_text(file)?;
    let documents = documents::parse(&file.display().to_string(), &text)?;
    Ok(documents.into_iter().map(|document| document.value).collect())
}

/// A CRD of the kind that a guest reconciles, that takes anything.
fn open_crd(guest: &Guest) -> Value {
    let kind = &guest.manifest().reconciles;
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

/// A scenario's text as it stands; of objects alone, one in which they are made, deleted, and made again.
fn scenario_of(path: &Path, text: &str, kind: &str) -> Result<String, Problem> {
    let file = path.display().to_string();
    if documents::parse_one::<Value>(&file, text).is_ok_and(|whole| whole.get("steps").is_some()) {
        return Ok(text.to_owned());
    }
    let documents = documents::parse(&file, text)?;
    let mut objects: Vec<Value> = documents.into_iter().map(|document| document.value).collect();
    for object in &mut objects {
        if let Some(metadata) = object["metadata"].as_object_mut() {
            // Each run has a namespace of its own, and the API server says the rest.
            for field in ["namespace", "uid", "resourceVersion", "generation", "creationTimestamp"] {
                metadata.remove(field);
            }
        }
    }
    let Some(root) = objects.iter().find(|object| object["kind"] == kind) else {
        return Err(Problem::new(format!("{file} has no {kind}")));
    };
    let target =
        json!({"apiVersion": root["apiVersion"], "kind": root["kind"], "name": root["metadata"]["name"]});
    let answered = json!([{"object": target, "matches": {"status": {"observedGeneration": 1}}}]);
    let scenario = json!({
        "about": "The objects of a file are made, deleted, and made again.",
        "objects": objects,
        "steps": [
            {"name": "it is answered for", "expect": answered},
            {"name": "it is deleted", "delete": {"object": target}, "within": "90s", "expect": [{"object": target, "absent": true}]},
            {"name": "and made again", "apply": [root], "expect": answered},
        ],
    });
    Ok(scenario.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_alone_are_made_deleted_and_made_again() {
        let object =
            "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a, namespace: n, uid: u}\nspec: {}\n";
        let text = scenario_of(Path::new("sample.yaml"), object, "Thing").expect("a scenario");
        let scenario = pintle_simulation::scenario::Scenario::read("sample.yaml", &text)
            .expect("a scenario that can be read");
        assert_eq!(scenario.steps.len(), 3);
        assert_eq!(scenario.objects[0]["metadata"], json!({"name": "a"}));
        let steps = "about: it\nsteps: [{name: nothing}]\n";
        assert_eq!(scenario_of(Path::new("s.yaml"), steps, "Thing").expect("itself"), steps);
    }
}
