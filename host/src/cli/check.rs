//! The command `pintle check`: it says whether a module is a sound guest.

mod views;

use std::{collections::BTreeSet, path::PathBuf};

use clap::Args;
use pintle_core::reasons;
use pintle_engine::{CallStats, Guest, Module};
use pintle_modules::upload;
use pintle_offline as offline;
use pintle_offline::{
    ask::{Answer, Blame, Objects, Refused, Subject, are_for_views, ask},
    case::{self, Case},
    documents::{self, Document},
    numbers::{self, Numbers},
};
use pintle_wit::{Failure, Kind, Manifest};
use serde_json::{Value, json};

use super::{
    module, output,
    problem::{CommandStatus, Problem},
};
use views::ViewTrial;

/// Check a module and show what it declares
///
/// The command loads the module as the operator does and calls it. The input is the objects in the files of -f. Without -f, it is
/// every case in the directory `cases` beside the module. Without cases, it is `sample.yaml` beside the module, with `reconciler.yaml`
/// there. Without that too, it is a custom resource with an empty spec. Every call is made several times and with the observed children
/// in another order. The answers must be the same. In another namespace the answer must be allowed too, with as many children of each
/// kind. Instructions are counted, so that a call takes a little longer here than in a cluster.
///
/// Of each number of a resource, also of those that only its CRD declares, the command makes others that are easily lost: integers
/// beyond 2^53, and doubles of 17 digits. The guest must hand them on as they are, or refuse them.
///
/// The laws of views are tried on the cases, and on objects that the command generates from the schemas of the kinds. The first object
/// that breaks a law is reduced to what is needed to break it, and printed. The schema of a custom kind comes from its CRD.
///
/// If there is a `reconciler.yaml` beside the module, it must be one that a host accepts for the guest, and grant whatever the manifest
/// declares.
///
/// The exit code is 1 if a host would refuse the module or that Reconciler, if a call fails and its case does not expect that, if the
/// answers differ, if a number comes out as another one, or if a view breaks a law.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Check a module before you upload it
  pintle check guest.wasm

  # Show what a call with this resource costs
  pintle check guest.wasm -f webserver.yaml

  # Try the laws of views on other objects
  pintle check farm.wasm --crd llamarecords.yaml --seed 7")]
pub(super) struct Check {
    /// Module of the guest, the file that `pintle build` wrote
    module: PathBuf,

    /// File or directory with objects, as for `pintle render`. Can be repeated
    #[arg(short, long = "filename", value_name = "FILE", num_args = 1)]
    filenames: Vec<PathBuf>,

    /// File with the CRDs of the kinds behind the views. Can be repeated [default: crd.yaml beside the module]
    #[arg(long = "crd", value_name = "FILE", conflicts_with = "no_crd")]
    crds: Vec<PathBuf>,

    /// Do not use `crd.yaml` beside the module
    #[arg(long)]
    no_crd: bool,

    /// Seed of the objects that are generated for views
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Number of objects to generate for each view
    #[arg(long, value_name = "N", default_value_t = 1000)]
    objects: usize,
}

/// How often a call is made to say how long it takes.
const TIMED_CALLS: usize = 50;

/// What came of asking the guest about something.
struct Call {
    name: String,
    microseconds: Option<u64>,
    stats: CallStats,
    outcome: String,
    failure: Option<Failure>,
    numbers: Numbers,
    warnings: Vec<String>,
    unchecked: BTreeSet<Kind>,
}

/// What is known of a module.
struct Findings {
    supported: Result<(), Failure>,
    calls: Vec<Call>,
    views: Vec<ViewTrial>,
    /// The laws that the cases of views show to be broken, each with the file.
    view_cases: Vec<(String, Failure)>,
    /// What a host holds against `reconciler.yaml` beside the module, with the name of the file.
    reconciler: Option<(String, Vec<Failure>)>,
}

/// What is said of a property of a module, a line each, and what speaks against the module.
struct Verdict {
    /// The name that the table has for it.
    name: &'static str,
    lines: Vec<String>,
    failure: Option<Failure>,
}

/// The reasons of the failures that a property of their own is about.
const OF_PROPERTIES: [&str; 3] =
    [reasons::NOT_DETERMINISTIC, reasons::NOT_IDEMPOTENT, reasons::NUMBER_CHANGED];

impl Check {
    pub(super) fn run(self) -> Result<CommandStatus, Problem> {
        let module = module::load(&offline::engine()?, &self.module)?;
        let findings = self.findings(&module)?;
        for call in &findings.calls {
            call.warnings.iter().for_each(|warning| eprintln!("warning: {}: {warning}", call.name));
        }
        module::warn_unchecked(&findings.calls.iter().flat_map(|call| call.unchecked.clone()).collect());
        let verdicts = findings.verdicts();
        let failure = verdicts.iter().find_map(|verdict| verdict.failure.clone());
        output::print(&(table(&module, verdicts) + &findings.counterexamples()?))?;
        let Some(failure) = failure else { return Ok(CommandStatus::Fine) };
        eprintln!("error: {}: {failure}", self.module.display());
        if failure.reason == reasons::TRAP {
            eprintln!(
                "hint: beside the guest's sources, pintle render and pintle test show the message of its panic"
            );
        }
        Ok(CommandStatus::Failed)
    }

    /// Asks whatever there is to ask of a module that a host would take.
    fn findings(&self, module: &Module) -> Result<Findings, Problem> {
        let mut findings = Findings {
            supported: upload::supports(module),
            calls: Vec::new(),
            views: Vec::new(),
            view_cases: Vec::new(),
            reconciler: None,
        };
        let crds = match self.crds.as_slice() {
            [] => module::crds_beside(&self.module, self.no_crd)?,
            files => documents::read(files)?,
        };
        let given = if self.filenames.is_empty() { Vec::new() } else { documents::read(&self.filenames)? };
        if findings.supported.is_err() {
            return Ok(findings);
        }
        module::check_rules(&crds)?;
        if let Some(guest) = module.guest() {
            findings.reconciler = module::reconciler_beside(&self.module, &guest)?;
        }
        let cases = self.cases()?;
        if let Some(guest) = module.guest().filter(|_| !are_for_views(module, &given)) {
            findings.calls = self.calls(&guest, &given, &cases, &crds)?;
        }
        if let Some(views) = module.views() {
            findings.views = views::tried(&views, &crds, &given, (self.seed, self.objects));
            for (file, case) in cases.iter().filter(|(_, case)| case.view.is_some()) {
                let broken = views::broken(&views, case, &crds)
                    .map_err(|error| Problem::new(format!("{}: {error:#}", file.display())))?;
                let broken = broken.into_iter().map(|failure| (file.display().to_string(), failure));
                findings.view_cases.extend(broken);
            }
        }
        Ok(findings)
    }

    /// The golden cases beside the module, where nothing else is named.
    fn cases(&self) -> Result<Vec<(PathBuf, Case)>, Problem> {
        let folder = self.module.with_file_name("cases");
        let is_any = folder.read_dir().is_ok_and(|mut entries| entries.next().is_some());
        if !self.filenames.is_empty() || !is_any {
            return Ok(Vec::new());
        }
        let files = documents::files(&folder)?.into_iter();
        files.map(|file| Ok((file.clone(), case::read(&file)?))).collect()
    }

    /// Asks a guest that reconciles: about its cases, about what is given, about the sample beside the module, or else about a root with an
    /// empty spec.
    fn calls(
        &self,
        guest: &Guest,
        given: &[Document],
        cases: &[(PathBuf, Case)],
        crds: &[Document],
    ) -> Result<Vec<Call>, Problem> {
        let subject = Subject::Reconciler(guest.clone());
        let mut calls = Vec::new();
        for (file, case) in cases.iter().filter(|(_, case)| case.view.is_none()) {
            let name = file.display().to_string();
            let answer =
                case.ask(&subject, crds).map_err(|error| Problem::new(format!("{name}: {error:#}")))?;
            let is_meant = |refused: &Refused| {
                case.reason() == Some(refused.failure.reason.as_str()) && refused.blame != Blame::Engine
            };
            match before_any_call(&answer) {
                // The guest is not asked about what a host refuses before.
                Some(refused) if is_meant(refused) => {}
                Some(refused) => return Err(Problem::failed(format!("{name}: {}", refused.message))),
                None => calls.push(Call::of(name, answer, is_meant, guest)),
            }
        }
        if !calls.is_empty() || cases.iter().any(|(_, case)| case.view.is_none()) {
            return Ok(calls);
        }
        let now = case::time(None)?;
        let (mut files, sample) = (self.filenames.clone(), self.module.with_file_name("sample.yaml"));
        if files.is_empty() && sample.is_file() {
            let reconciler = module::reconciler_beside(&self.module, guest)?;
            let sound = reconciler.filter(|(_, failures)| failures.is_empty());
            files = std::iter::once(sample).chain(sound.map(|(file, _)| file.into())).collect();
        }
        let given = if given.is_empty() { documents::read(&files)? } else { given.to_vec() };
        let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        let (mut name, documents) = (names.join(", "), given.clone());
        let mut objects = Objects { documents, beside: crds, now, strict: true, ..Objects::default() };
        if given.is_empty() {
            name = "an empty spec".to_owned();
            let Kind { api_version, kind } = &guest.manifest().reconciles;
            let value =
                json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "check"}, "spec": {}});
            objects.documents.push(Document { source: "an empty root".into(), value });
            // Where the CRD does not take an empty spec, the guest is asked all the same: it should say what it lacks, and not break.
            objects.expected = Some("");
        }
        // A guest, or the gate, may refuse a root that nobody meant. That the guest breaks, or answers what no kind has, is its own fault.
        let is_meant =
            |refused: &Refused| given.is_empty() && matches!(refused.blame, Blame::Guest | Blame::Gate);
        let answer = ask(&subject, objects)?;
        match before_any_call(&answer) {
            Some(refused) => Err(Problem::new(refused.message.clone())),
            None => Ok(vec![Call::of(name, answer, is_meant, guest)]),
        }
    }
}

/// What a host would refuse before any call.
fn before_any_call(answer: &Answer) -> Option<&Refused> {
    answer.refused.first().filter(|_| answer.requests.is_none())
}

impl Call {
    /// What came of it. A failure that is meant does not speak against the module.
    fn of(name: String, answer: Answer, is_meant: impl Fn(&Refused) -> bool, guest: &Guest) -> Self {
        let stats = answer.calls.first().copied().unwrap_or_default();
        let microseconds = answer.requests.as_ref().map(|(first, _)| {
            // A request is plain data with string keys, so that writing it as JSON cannot fail.
            let request = serde_json::to_string(first).unwrap_or_default();
            let call = |_| match guest.reconcile(&request, &answer.limits) {
                Ok(answer) => answer.stats.duration,
                Err(error) => error.stats.duration,
            };
            // A guest that is slow is not called often.
            let calls = if stats.duration.as_millis() > 10 { 1 } else { TIMED_CALLS };
            let mut durations: Vec<_> = (0..calls).map(call).collect();
            durations.sort();
            let middle = durations.get(calls / 2).copied().unwrap_or_default();
            u64::try_from(middle.as_micros()).unwrap_or(u64::MAX)
        });
        let numbers = match (&answer.requests, answer.refused.as_slice()) {
            (Some((_, last)), []) => numbers::tried(guest, &answer.limits, last, answer.schema.as_ref()),
            _ => Numbers::default(),
        };
        let refused = answer.refused.first();
        let outcome = match (refused, &answer.requests, answer.objects.len()) {
            (Some(refused), ..) => refused.failure.reason.clone(),
            (None, None, _) => "not asked".into(),
            (None, Some(_), 1) => "1 child".into(),
            (None, Some(_), count) => format!("{count} children"),
        };
        let refused = refused.filter(|refused| !is_meant(refused)).map(|refused| &refused.failure);
        let failure = refused.or(answer.violation.as_ref()).or(numbers.failure.as_ref());
        Self {
            failure: failure.cloned(),
            name,
            microseconds,
            stats,
            outcome,
            numbers,
            warnings: answer.warnings,
            unchecked: answer.unchecked,
        }
    }
}

fn call(call: &Call) -> String {
    let time = call.microseconds.map_or_else(String::new, |time| format!("{time} us, "));
    let Call { name, outcome, stats, .. } = call;
    let fuel = stats.fuel.unwrap_or_default();
    let memory = stats.peak_memory_bytes / 1024;
    format!(
        "{name}: {outcome}; {time}{fuel} fuel, {memory} KiB memory, {} bytes answer",
        stats.response_bytes
    )
}

/// A failure with what was asked about.
fn of(name: &str, failure: &Failure) -> Failure {
    Failure { message: format!("{} ({name})", failure.message), ..failure.clone() }
}

impl Findings {
    fn verdicts(&self) -> Vec<Verdict> {
        let failed = || self.calls.iter().filter_map(|call| Some((call, call.failure.as_ref()?)));
        let first = |is_meant: &dyn Fn(&Failure) -> bool| {
            failed().find(|(_, failure)| is_meant(failure)).map(|(call, failure)| of(&call.name, failure))
        };
        let mut verdicts = Vec::new();
        let mut add = |name, lines, failure| verdicts.push(Verdict { name, lines, failure });
        if !self.calls.is_empty() {
            let is_of_property = |failure: &Failure| OF_PROPERTIES.contains(&failure.reason.as_str());
            let calls = self.calls.iter().map(call).collect();
            add("Calls", calls, first(&|failure| !is_of_property(failure)));
            // What a failed call would have answered the second time, nobody knows.
            let is_known = failed().all(|(_, failure)| failure.reason == reasons::NUMBER_CHANGED);
            let idempotent = if is_known { "yes" } else { "not known, since a call failed" };
            for (name, reason, otherwise) in [
                ("Deterministic", reasons::NOT_DETERMINISTIC, "yes".to_owned()),
                ("Idempotent", reasons::NOT_IDEMPOTENT, idempotent.to_owned()),
                ("Numbers", reasons::NUMBER_CHANGED, self.numbers()),
            ] {
                let failure = failed().map(|(_, failure)| failure).find(|failure| failure.reason == reason);
                let line = failure.map_or(otherwise, |failure| format!("no: {failure}"));
                add(name, vec![line], first(&|failure| failure.reason == reason));
            }
        }
        if let Some((file, failures)) = &self.reconciler {
            let lines = match failures.as_slice() {
                [] => vec![format!("{file} grants what the guest declares")],
                failures => failures.iter().map(|failure| format!("no: {failure}")).collect(),
            };
            add("Reconciler", lines, failures.first().map(|failure| of(file, failure)));
        }
        let of_cases =
            self.view_cases.iter().map(|(file, failure)| format!("no: {file}: {}", failure.message));
        let in_cases = self.view_cases.first().map(|(file, failure)| of(file, failure));
        let in_search = || self.views.iter().find_map(|view| view.failure.clone());
        let laws = self.views.iter().map(ViewTrial::line).chain(of_cases).collect();
        add("Laws", laws, in_cases.or_else(in_search));
        add("Cost", self.views.iter().filter_map(ViewTrial::cost_line).collect(), None);
        let supported = self.supported.as_ref().err();
        let line = supported.map_or("yes".into(), |failure| format!("no: {failure}"));
        add("Supported", vec![line], supported.cloned());
        verdicts
    }

    /// How many numbers went through the guest as they are.
    fn numbers(&self) -> String {
        let all = || self.calls.iter().map(|call| &call.numbers);
        let untried = all().find_map(|numbers| numbers.untried.as_ref());
        let tried: usize = all().map(|numbers| numbers.tried).sum();
        match (tried, all().map(|numbers| numbers.refused).sum::<usize>()) {
            (0, 0) => untried.map_or("none were tried".into(), |why| format!("none were tried: {why}")),
            (tried, 0) => format!("{tried} stay the same"),
            (tried, refused) => format!("{tried} stay the same, {refused} were refused"),
        }
    }

    /// What shows that views break laws, as YAML.
    fn counterexamples(&self) -> Result<String, Problem> {
        self.views.iter().map(ViewTrial::counterexample).collect()
    }
}

fn table(module: &Module, verdicts: Vec<Verdict>) -> String {
    let mut rows = vec![
        ["Guest".into(), format!("{} {}", module.name(), module.version())],
        ["Digest".into(), module.digest().to_string()],
        ["Size".into(), format!("{} bytes", module.size_bytes())],
        ["Exports".into(), module.interfaces().join("\n")],
    ];
    if let Some(guest) = module.guest() {
        let manifest = guest.manifest();
        rows.push(["Reconciles".into(), manifest.reconciles.to_string()]);
        rows.push(["Children".into(), or_none(children(manifest))]);
        rows.push(["Config".into(), config(manifest.config_schema.as_ref())]);
        rows.extend(powers(manifest));
    }
    if let Some(views) = module.views() {
        rows.push(["Views".into(), module::views(&views).join("\n")]);
        rows.push(["Views config".into(), config(views.manifest().config_schema.as_ref())]);
    }
    rows.push(["Compiled in".into(), format!("{} ms", module.compile_duration().as_millis())]);
    rows.extend(verdicts.into_iter().filter_map(|verdict| row(verdict.name, verdict.lines)));
    output::columns(&rows)
}

/// A row of the table, if there is something to say.
fn row(name: &str, lines: Vec<String>) -> Option<[String; 2]> {
    (!lines.is_empty()).then(|| [name.to_owned(), lines.join("\n")])
}

fn or_none(text: String) -> String {
    if text.is_empty() { "none".into() } else { text }
}

fn children(manifest: &Manifest) -> String {
    let each = manifest.children.iter().map(|child| {
        let observed = if child.observe { " (observed)" } else { "" };
        format!("{}{observed}", child.kind())
    });
    each.collect::<Vec<_>>().join("\n")
}

/// What the guest looks at, patches and has go besides its children, and what that asks of the CRD of its roots.
fn powers(manifest: &Manifest) -> Vec<[String; 2]> {
    let needs = manifest.needs.iter().map(|need| {
        let indexes = if need.indexes.is_empty() { "" } else { " by " };
        format!("{} {}{indexes}{}", need.api_version, need.kind, need.indexes.join(", "))
    });
    let patches = manifest
        .patches
        .iter()
        .map(|patch| format!("{} {}: {}", patch.api_version, patch.kind, patch.fields.join(", ")));
    let evictions = manifest.evictions.then(|| "Pods (wants status.pintle.evicting in the CRD)".to_owned());
    let rows = [
        row("Needs", needs.collect()),
        row("Patches", patches.collect()),
        row("Evictions", evictions.into_iter().collect()),
    ];
    rows.into_iter().flatten().collect()
}

fn config(schema: Option<&Value>) -> String {
    let fields = schema.and_then(|schema| schema.get("properties")?.as_object());
    let names: Vec<&str> = fields.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    or_none(names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_wit::{NeedKind, PatchKind};

    #[test]
    fn what_a_guest_does_besides_its_children_is_told_with_what_the_crd_must_have_for_it() {
        let manifest = Manifest {
            needs: vec![NeedKind::new("v1", "Pod"), NeedKind::new("v1", "Node").indexed_by("spec.a")],
            patches: vec![PatchKind::new("apps/v1", "Deployment", &["spec.replicas", "spec.paused"])],
            evictions: true,
            ..Manifest::new("a", "0.1.0", Kind::new("a/v1", "A"))
        };
        let said: Vec<String> =
            powers(&manifest).into_iter().map(|[name, text]| format!("{name}: {text}")).collect();
        assert_eq!(
            said,
            [
                "Needs: v1 Pod\nv1 Node by spec.a",
                "Patches: apps/v1 Deployment: spec.replicas, spec.paused",
                "Evictions: Pods (wants status.pintle.evicting in the CRD)"
            ]
        );
        assert!(powers(&Manifest::default()).is_empty());
    }
}
