//! The command `pintle simulate`: it runs scenarios of a guest with faults, without a cluster.

use std::{
    collections::BTreeMap,
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use clap::Args;
use pintle_engine::Guest;
use pintle_offline as offline;
use pintle_offline::{documents, setting::default_spec};
use pintle_runtime::clock;
use pintle_simulation::{
    Differing, NotReady, Plan, Property, Replay, RunOutcome, Setting, Simulation, TraceEntry,
    choice::{self, Effort, Menu, Subject},
    scenario::ModuleFile,
    search::{self, Failure, Tally},
    words,
};
use pintle_wit::schema::host_status_properties;
use serde_json::{Value, json};

use super::{
    module,
    native::Native,
    output::{self, Colours, Format},
    plural::plural,
    problem::{CommandStatus, Problem},
};

/// Test a guest under crashes and errors
///
/// The command runs the operator with the guest on an API server in memory. It runs each scenario once without faults. Then every
/// custom resource must be Ready, unless the scenario expects otherwise. After that it runs the scenario many times with faults: the
/// host crashes, replies are lost, watch events are late or missing, requests fail, and other users change objects. The result must
/// be the same every time, and nothing may be left to do.
///
/// A scenario has `about`, `objects` and `steps`. docs/simulator.md describes the format. A file with objects only is a scenario
/// that creates the objects, deletes the custom resource and creates it again.
///
/// The exit code is 0 if every property holds, 1 if a property does not hold, and 2 if nothing could be run.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Create, delete and recreate the objects of
  # sample.yaml, with 500 plans of faults
  pintle simulate guest.wasm

  # Run a scenario
  pintle simulate guest.wasm --scenario steps.yaml

  # Run more plans
  pintle simulate guest.wasm --seeds 20000

  # Repeat one run; a failure prints this line
  pintle simulate guest.wasm \\
    --replay 'sample.yaml seed=0 plan=w3=crash-after'")]
pub(super) struct Simulate {
    /// Module of the guest, the file that `pintle build` wrote
    module: PathBuf,

    /// File with a scenario or with objects. Can be repeated [default: sample.yaml beside the module]
    #[arg(long = "scenario", value_name = "FILE")]
    scenarios: Vec<PathBuf>,

    /// File with the CRDs of the custom resource and of its children. Can be repeated [default: crd.yaml beside the module]
    #[arg(long = "crd", value_name = "FILE")]
    crds: Vec<PathBuf>,

    /// File with the Reconciler [default: one that grants what the guest declares]
    #[arg(long, value_name = "FILE")]
    reconciler: Option<PathBuf>,

    /// Number of plans to run
    #[arg(long, value_name = "N", default_value_t = 500, conflicts_with = "replay")]
    seeds: usize,

    /// Repeat one run and print everything that happens in it
    #[arg(long, value_name = "LINE")]
    replay: Option<String>,

    /// Do not use `crd.yaml` beside the module. The custom resource then has a schema that allows everything
    #[arg(long, conflicts_with = "crds")]
    no_crd: bool,

    /// Do not run the guest natively to get the message of a panic
    #[arg(long)]
    no_native: bool,

    /// Output format. One of table, yaml or json
    #[arg(short, long, value_name = "table|yaml|json", default_value = "table", hide_possible_values = true)]
    output: Format,
}

/// The name that the guest's Module has in a simulation.
const MODULE: &str = "under-test";

/// How many failures are shown.
const FAILURES_MAX: usize = 5;
/// How many of the steps before a failure are shown.
const STEPS_SHOWN: usize = 10;

/// What came of a search.
struct Found {
    failures: Vec<Failure>,
    /// How many scenarios broke a property with nothing going wrong, so that no plan was run with them.
    unsearched: usize,
    tally: Tally,
    seconds: f64,
}

/// Tells how far a search is, on the standard error: on a terminal in one line that is written over, otherwise a line now and then, so
/// that a log shows that something goes on.
struct Progress {
    plans: usize,
    is_terminal: bool,
    begun: Duration,
    told: Mutex<Duration>,
}

impl Progress {
    fn new(plans: usize) -> Self {
        let now = clock::monotonic();
        Self { plans, is_terminal: io::stderr().is_terminal(), begun: now, told: Mutex::new(now) }
    }

    fn tell(&self, done: usize, failed: usize) {
        let every = if self.is_terminal { Duration::from_millis(250) } else { Duration::from_secs(10) };
        let now = clock::monotonic();
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if now.saturating_sub(*told) < every {
            return;
        }
        *told = now;
        let seconds = now.saturating_sub(self.begun).as_secs_f64();
        let left = seconds / done.max(1) as f64 * self.plans.saturating_sub(done) as f64;
        let line = format!("{done} of {} plans, {failed} failed, {left:.0} s left", self.plans);
        // Who cannot be told loses nothing of the result.
        let _ = match self.is_terminal {
            true => write!(io::stderr(), "\r\x1b[K{line}"),
            false => writeln!(io::stderr(), "{line}"),
        };
    }

    fn end(&self) {
        if self.is_terminal {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

/// Why no scenario can be run.
fn not_set_up(error: anyhow::Error) -> Problem {
    let is_unknown = matches!(error.downcast_ref(), Some(NotReady::UnknownKinds { .. }));
    let problem = Problem::from(error);
    match is_unknown {
        true => problem
            .hint("give a CRD for each with --crd FILE; docs/simulator.md lists the kinds that it knows"),
        false => problem,
    }
}

impl Simulate {
    pub(super) fn run(self) -> Result<CommandStatus, Problem> {
        let replay = match &self.replay {
            Some(line) => Some(line.parse::<Replay>().map_err(|error| Problem::new(error.to_string()))?),
            None => None,
        };
        let engine = offline::engine()?;
        let guest = module::guest_of(&module::load(&engine, &self.module)?, &self.module)?;
        let bytes = std::fs::read(&self.module)?;
        let setting =
            Setting::new(&self.crds(&guest)?, &[(MODULE.into(), bytes)], &[], &[self.reconciler(&guest)?])
                .map_err(not_set_up)?;
        let mut subjects = Vec::new();
        for path in self.scenarios()? {
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
        let native = Native::new(&self.module, !self.no_native);
        match replay {
            Some(replay) => self.repeat(&replay, subjects, &native),
            None => self.search(subjects, &native),
        }
    }

    fn search(&self, subjects: Vec<Subject<'_>>, native: &Native<'_>) -> Result<CommandStatus, Problem> {
        let (sound, broken): (Vec<_>, Vec<_>) =
            subjects.into_iter().partition(|subject| subject.reference.outcome.broken.is_none());
        let of_reference = |subject: Subject<'_>| Failure {
            replay: Replay { scenario: subject.simulation.file.clone(), seed: 0, plan: Plan::default() },
            outcome: subject.reference.outcome,
        };
        let mut failures: Vec<Failure> = broken.into_iter().map(of_reference).collect();
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
        let effort =
            Effort { plans: self.seeds, seed: 0, threads, failures_max: FAILURES_MAX, again_every: 50 };
        let plans = choice::plans(&sound, Menu::default(), &[], &effort);
        let begun = clock::monotonic();
        let progress = Progress::new(plans.len());
        let mut tally = search::search(&sound, &plans, &effort, &|done, failed| progress.tell(done, failed))?;
        progress.end();
        let seconds = clock::monotonic().saturating_sub(begun).as_secs_f64();
        // Where something breaks although nothing goes wrong, there is nothing to compare plans with.
        let unsearched = failures.len();
        failures.append(&mut tally.failures);
        let found = Found { failures, unsearched, tally, seconds };
        output::print(&match self.output.data() {
            Some(form) => output::text(&self.data(&found, native), form)?,
            None => self.told(&found, native)?,
        })?;
        Ok(if found.failures.is_empty() { CommandStatus::Fine } else { CommandStatus::Failed })
    }

    fn repeat(
        &self,
        replay: &Replay,
        subjects: Vec<Subject<'_>>,
        native: &Native<'_>,
    ) -> Result<CommandStatus, Problem> {
        let Some(subject) = subjects.into_iter().next() else {
            return Err(Problem::new(format!("no scenario {} to replay", replay.scenario))
                .hint("name it with --scenario, as the line does"));
        };
        let outcome = match replay.plan.0.is_empty() && replay.seed == 0 {
            true => subject.reference.outcome,
            false => subject.simulation.run(replay.seed, &replay.plan, &subject.reference)?,
        };
        let verdict = if outcome.broken.is_some() { CommandStatus::Failed } else { CommandStatus::Fine };
        let failure = Failure { replay: replay.clone(), outcome };
        let text = match self.output.data() {
            Some(form) => {
                let mut data = self.data_of(&failure, usize::MAX, native);
                data["passed"] = (verdict == CommandStatus::Fine).into();
                output::text(&data, form)?
            }
            None => {
                let steps: String = failure.outcome.steps.iter().map(|step| format!("{step}\n")).collect();
                let end = match verdict {
                    CommandStatus::Fine => "every property holds\n".into(),
                    CommandStatus::Failed => self.told_of(&failure, 0, native)?,
                };
                format!("{steps}{end}")
            }
        };
        output::print(&text)?;
        Ok(verdict)
    }

    fn told(&self, found: &Found, native: &Native<'_>) -> Result<String, Problem> {
        let mut text = String::new();
        for failure in &found.failures {
            text.push_str(&self.told_of(failure, STEPS_SHOWN, native)?);
            text.push('\n');
        }
        let classes: Vec<String> = found
            .tally
            .by_class
            .iter()
            .filter(|(_, count)| count.hit > 0)
            .map(|(class, count)| format!("{} {}", count.hit, class.plural()))
            .collect();
        match found.unsearched {
            0 => {}
            1 => text.push_str(
                "1 scenario fails with nothing going wrong; mend that first: no plan was run with it\n",
            ),
            many => text.push_str(&format!(
                "{many} scenarios fail with nothing going wrong; mend that first: no plan was run with them\n"
            )),
        }
        if found.tally.plans > 0 {
            text.push_str(&format!(
                "{} plans, {} failed; {:.0} a second; {}\n",
                found.tally.plans,
                found.tally.failed,
                found.tally.plans as f64 / found.seconds.max(0.001),
                classes.join(", ")
            ));
        }
        Ok(text)
    }

    /// A failure for a person: what should hold, what went wrong, what was found, what happened before it, what to do.
    fn told_of(&self, failure: &Failure, steps: usize, native: &Native<'_>) -> Result<String, Problem> {
        let colours = Colours::of_stdout();
        let Failure { replay, outcome } = failure;
        let Some(broken) = &outcome.broken else { return Ok(String::new()) };
        let said = outcome.trapped.as_deref().and_then(|request| native.says("call", request));
        let said = said.map(|said| format!("  {said}\n")).unwrap_or_default();
        if matches!(broken.property, Property::Ready | Property::Fits) {
            return Ok(format!(
                "{}  {}: {}\n{said}  what to do: {}\n",
                colours.red("FAILED"),
                replay.scenario,
                indented(broken.what.trim_end(), "    "),
                broken.property.advice()
            ));
        }
        let letter = broken.property.letter();
        let mut text = format!(
            "{}  {}: it does not hold that {} ({letter})\n",
            colours.red("FAILED"),
            replay.scenario,
            broken.property.in_words()
        );
        let faults = words::faults(&replay.plan.0, outcome);
        match faults.is_empty() {
            true => text.push_str("  what goes wrong: nothing; this is the guest alone\n"),
            false => text.push_str(&format!("  what goes wrong: {}\n", faults.join("; "))),
        }
        text.push_str(&format!("  what was found: {}\n{said}", indented(broken.what.trim_end(), "    ")));
        if let Some(differing) = &outcome.differing {
            let Differing { about, before, after } = differing;
            text.push_str(&format!("  {about}\n"));
            text.push_str(&colours.faint(&format!("        - {}\n        + {}\n", before.0, after.0)));
            text.push_str(&super::test::difference(
                &output::yaml(&before.1)?,
                &output::yaml(&after.1)?,
                colours,
            ));
        }
        let last = last_steps(outcome, steps);
        if !last.is_empty() {
            let last: String = last.iter().map(|step| format!("    {step}\n")).collect();
            text.push_str(&format!("  what happened last:\n{last}"));
        }
        text.push_str(&format!("  what to do: {}\n", broken.property.advice()));
        text.push_str(&format!("  to repeat it: {}\n", self.command(replay)));
        Ok(text)
    }

    fn data(&self, found: &Found, native: &Native<'_>) -> Value {
        let classes: BTreeMap<&str, usize> =
            found.tally.by_class.iter().map(|(class, count)| (class.code(), count.hit)).collect();
        json!({
            "plans": found.tally.plans, "failed": found.tally.failed, "unsearched": found.unsearched,
            "seconds": found.seconds, "classes": classes,
            "failures": found.failures.iter().map(|failure| self.data_of(failure, STEPS_SHOWN, native)).collect::<Vec<_>>(),
        })
    }

    fn data_of(&self, failure: &Failure, steps: usize, native: &Native<'_>) -> Value {
        let Failure { replay, outcome } = failure;
        let mut data = json!({
            "scenario": replay.scenario, "replay": replay.to_string(), "command": self.command(replay),
            "faults": words::faults(&replay.plan.0, outcome),
            "steps": last_steps(outcome, steps).iter().map(ToString::to_string).collect::<Vec<_>>(),
        });
        if let Some(broken) = &outcome.broken {
            data["property"] = broken.property.letter().into();
            data["shouldHold"] = broken.property.in_words().into();
            data["found"] = broken.what.trim_end().into();
            data["advice"] = broken.property.advice().into();
        }
        if let Some(said) = outcome.trapped.as_deref().and_then(|request| native.says("call", request)) {
            data["native"] = said.into();
        }
        if let Some(Differing { about, before, after }) = &outcome.differing {
            data["difference"] = json!({
                "about": about, "before": {"is": before.0, "value": before.1}, "after": {"is": after.0, "value": after.1},
            });
        }
        data
    }

    /// The command that repeats a run, to be pasted into a shell.
    fn command(&self, replay: &Replay) -> String {
        let shown = |path: &Path| path.display().to_string();
        let mut words = vec!["pintle".to_owned(), "simulate".into(), shown(&self.module)];
        words.extend(["--scenario".into(), replay.scenario.clone()]);
        words.extend(self.crds.iter().flat_map(|file| ["--crd".into(), shown(file)]));
        words.extend(self.no_crd.then(|| "--no-crd".into()));
        words.extend(self.reconciler.iter().flat_map(|file| ["--reconciler".into(), shown(file)]));
        words.extend(["--replay".into(), replay.to_string()]);
        words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
    }

    fn scenarios(&self) -> Result<Vec<PathBuf>, Problem> {
        if !self.scenarios.is_empty() {
            return Ok(self.scenarios.clone());
        }
        let sample = self.module.with_file_name("sample.yaml");
        match sample.is_file() {
            true => Ok(vec![sample]),
            false => {
                let hint = "give a custom resource, or a scenario as docs/simulator.md describes it: --scenario FILE";
                Err(Problem::new("a scenario is needed: there is no sample.yaml beside the module")
                    .hint(hint))
            }
        }
    }

    fn crds(&self, guest: &Guest) -> Result<Vec<Value>, Problem> {
        let beside = self.module.with_file_name("crd.yaml");
        let files = match self.crds.as_slice() {
            [] if beside.is_file() && !self.no_crd => std::slice::from_ref(&beside),
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

    fn reconciler(&self, guest: &Guest) -> Result<Value, Problem> {
        let mut reconciler = match &self.reconciler {
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

/// The last steps up to the one at which a property broke.
fn last_steps(outcome: &RunOutcome, shown: usize) -> &[TraceEntry] {
    let until = outcome.broken.as_ref().and_then(|broken| {
        let step = broken.step.as_ref()?;
        outcome.steps.iter().rposition(|found| found == step)
    });
    let until = until.map_or(outcome.steps.len(), |at| at + 1);
    outcome.steps.get(until.saturating_sub(shown)..until).unwrap_or_default()
}

/// Further lines, under the first.
fn indented(text: &str, by: &str) -> String {
    text.replace('\n', &format!("\n{by}"))
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=,@%+".contains(&byte);
    match word.bytes().all(plain) && !word.is_empty() {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
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
    fn a_word_with_anything_in_it_is_one_word_of_a_shell() {
        assert_eq!(quoted("a/b-c.yaml"), "a/b-c.yaml");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }

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
