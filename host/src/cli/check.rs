//! The command `pintle check`: it says whether a module is a sound guest.

mod views;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use clap::Args;
use pintle_core::{object, reasons};
use pintle_engine::{CallStats, Engine, EngineConfig, Guest, Meter, Module};
use pintle_modules::upload;
use pintle_offline as offline;
use pintle_offline::{
    case,
    documents::{self, Document},
    numbers::{self, Numbers},
    run::{self, Blame, Report},
    setting::{Setting, SettingError, with_crds},
    views::case::{self as view_case, AnyCase},
};
use pintle_runtime::clock;
use pintle_wit::{Failure, Kind, Manifest};
use serde_json::{Value, json};

use super::{
    module,
    output::{self, Format},
    problem::{CommandStatus, Problem},
};
use views::{Trials, ViewFindings};

/// Check a module and show what it declares
///
/// The command loads the module as the operator does and calls it. The input is the objects in the files of -f. Without -f, it is
/// every case in the directory `cases` beside the module. Without cases, it is a custom resource with an empty spec. Every call is
/// made several times and with the observed children in another order. The answers must be the same.
///
/// Of each number of a resource, also of those that only its CRD declares, the command makes others that are easily lost: integers
/// beyond 2^53, and doubles of 17 digits. The guest must hand them on as they are, or refuse them.
///
/// The laws of views are tried on the cases, and on objects that the command generates from the schemas of the kinds. The first object
/// that breaks a law is reduced to what is needed to break it, and printed. The schema of a custom kind comes from its CRD.
///
/// The exit code is 1 if a host would refuse the module, if a call fails and its case does not expect that, if the answers differ,
/// if a number comes out as another one, or if a view breaks a law.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Check a module before you upload it
  pintle check guest.wasm

  # Show what a call with this resource costs
  pintle check guest.wasm -f webserver.yaml

  # Try the laws of views on other objects
  pintle check farm.wasm --crd llamarecords.yaml --seed 7

  # Print only the digest
  pintle check guest.wasm -o json | jq -r .digest")]
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

    /// Output format. One of table, yaml or json
    #[arg(short, long, value_name = "table|yaml|json", default_value = "table", hide_possible_values = true)]
    output: Format,
}

/// How often a call is made to say how long it takes.
const TIMED_CALLS: usize = 50;

/// Something to ask the guest about.
struct Input {
    name: String,
    setting: Setting,
    /// Which failures are nothing to speak against the module.
    excused: Excused,
}

/// What came of an input.
struct Tried {
    name: String,
    microseconds: Option<u64>,
    stats: CallStats,
    outcome: String,
    failure: Option<Failure>,
    numbers: Numbers,
    unchecked: BTreeSet<Kind>,
}

/// What is known of a module.
struct Findings<'a> {
    path: &'a Path,
    by_time: Module,
    tried: Vec<Tried>,
    views: Vec<ViewFindings>,
    /// The laws that the cases of views show to be broken, each with the file.
    view_cases: Vec<(String, Failure)>,
    supported: Result<(), Failure>,
}

impl Check {
    pub(super) fn run(self) -> Result<CommandStatus, Problem> {
        let bytes = module::read(&self.module)?;
        // Time is measured as in a cluster, where nobody counts instructions.
        let timed = Engine::new(EngineConfig::new(Meter::Deadline, clock::monotonic))?;
        let counted = offline::engine()?;
        let loaded = timed.load(&bytes, None).and_then(|module| Ok((module, counted.load(&bytes, None)?)));
        let (by_time, by_fuel) = match loaded {
            Ok(modules) => modules,
            Err(failure) => return self.refuse(&failure),
        };
        let supported = upload::supports(&by_time);
        let crds = self.crds()?;
        let given = if self.filenames.is_empty() { Vec::new() } else { documents::read(&self.filenames)? };
        let (mut tried, mut views, mut view_cases) = (Vec::new(), Vec::new(), Vec::new());
        let is_asked = !are_backing(&by_fuel, &given);
        if let (Ok(()), true, Some(by_time), Some(by_fuel)) =
            (&supported, is_asked, by_time.guest(), by_fuel.guest())
        {
            for input in self.inputs(&by_fuel, &given, &crds)? {
                tried.push(attempt(&by_time, &by_fuel, input));
            }
        }
        if let (Ok(()), Some(by_time), Some(by_fuel)) = (&supported, by_time.views(), by_fuel.views()) {
            let trials = Trials { seed: self.seed, count: self.objects, crds: &crds, given: &given };
            views = views::tried(&by_time, &by_fuel, &trials);
            if self.filenames.is_empty() && has_cases(&self.cases()) {
                view_cases = views::tried_cases(&by_fuel, &self.cases(), &crds)?;
            }
        }
        module::warn_unchecked(&tried.iter().flat_map(|tried| tried.unchecked.clone()).collect());
        let findings = Findings { path: &self.module, by_time, tried, views, view_cases, supported };
        let text = match self.output.data() {
            Some(form) => output::text(&findings.data(), form)?,
            None => findings.table() + &findings.counterexamples()?,
        };
        output::print(&text)?;
        match findings.failure() {
            None => Ok(CommandStatus::Fine),
            Some(failure) => {
                eprintln!("error: {}: {failure}", self.module.display());
                Ok(CommandStatus::Failed)
            }
        }
    }

    /// A module that cannot be loaded.
    fn refuse(&self, failure: &Failure) -> Result<CommandStatus, Problem> {
        if let Some(form) = self.output.data() {
            let data = json!({"file": self.module.display().to_string(), "failure": shown(failure)});
            output::print(&output::text(&data, form)?)?;
        }
        Err(module::refused(&self.module, failure))
    }

    /// The CRDs of kinds that are not Kubernetes' own.
    fn crds(&self) -> Result<Vec<Document>, Problem> {
        match self.crds.is_empty() {
            true => module::crds_beside(&self.module, self.no_crd),
            false => Ok(documents::read(&self.crds)?),
        }
    }

    /// The golden cases beside the module.
    fn cases(&self) -> PathBuf {
        self.module.parent().unwrap_or(Path::new("")).join("cases")
    }

    /// What to ask a guest that reconciles.
    fn inputs(&self, guest: &Guest, given: &[Document], beside: &[Document]) -> Result<Vec<Input>, Problem> {
        let now = case::time(None)?;
        let setting = |documents: Vec<Document>, refusals| {
            Setting::new(guest, with_crds(guest.manifest(), documents, beside), refusals, now)
        };
        if !given.is_empty() {
            let names: Vec<String> = self.filenames.iter().map(|file| file.display().to_string()).collect();
            let setting =
                setting(given.to_vec(), Vec::new()).map_err(|error| Problem::new(error.to_string()))?;
            return Ok(vec![Input { name: names.join(", "), setting, excused: Excused::None }]);
        }
        let mut cases = Vec::new();
        if has_cases(&self.cases()) {
            for file in documents::files(&self.cases())? {
                if let AnyCase::Root(case) = view_case::read(&file)? {
                    cases.push((file, case));
                }
            }
        }
        if cases.is_empty() {
            let document = Document { source: "an empty root".into(), value: empty_root(guest.manifest()) };
            // Where the CRD does not take an empty spec, the guest is asked all the same: it should say what it lacks, and not break.
            let setting = setting(vec![document.clone()], Vec::new())
                .or_else(|_| Setting::new(guest, vec![document], Vec::new(), now))
                .map_err(|error| Problem::new(error.to_string()))?;
            return Ok(vec![Input { name: "an empty spec".into(), setting, excused: Excused::OfTheRoot }]);
        }
        let mut inputs = Vec::new();
        for (file, case) in cases {
            let source = file.display().to_string();
            let documents: Vec<Document> = case
                .objects
                .iter()
                .map(|value| Document { source: source.clone(), value: value.clone() })
                .collect();
            let tried = match setting(documents.clone(), case.refusals.clone()) {
                Err(SettingError::Refused { failure, .. }) if case::may_be_let_in(&case, &failure) => {
                    Setting::new(guest, documents, case.refusals.clone(), now)
                }
                tried => tried,
            };
            let expected = case.expect.and_then(|expect| expect.failure).map(|failure| failure.reason);
            let excused = expected.map_or(Excused::None, Excused::Expected);
            match tried {
                Ok(setting) => inputs.push(Input { name: source, setting, excused }),
                // The guest is not asked about what a host refuses before.
                Err(SettingError::Refused { failure, .. }) if excused.has(Blame::Gate, &failure) => {}
                Err(error @ SettingError::Refused { .. }) => return Err(Problem::failed(error.to_string())),
                Err(error) => return Err(Problem::new(format!("{source}: {error}"))),
            }
        }
        Ok(inputs)
    }
}

fn has_cases(folder: &Path) -> bool {
    folder.read_dir().is_ok_and(|mut entries| entries.next().is_some())
}

/// Whether objects from files are for the views of a module alone.
fn are_backing(module: &Module, given: &[Document]) -> bool {
    let has = |kind: &Kind| given.iter().any(|document| object::kind(&document.value) == *kind);
    let reconciled = module.guest().is_some_and(|guest| has(&guest.manifest().reconciles));
    !reconciled
        && module.views().is_some_and(|views| views.manifest().views.iter().any(|view| has(&view.backing)))
}

fn empty_root(manifest: &Manifest) -> Value {
    let kind = &manifest.reconciles;
    json!({"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "check"}, "spec": {}})
}

fn attempt(by_time: &Guest, by_fuel: &Guest, input: Input) -> Tried {
    let report = run::run(by_fuel, &input.setting, true);
    let microseconds = report.request.as_ref().map(|request| {
        // A request is plain data with string keys, so that writing it as JSON cannot fail.
        let text = serde_json::to_string(request).unwrap_or_default();
        let call = || match by_time.reconcile(&text, &input.setting.call_limits) {
            Ok(answer) => answer.stats.duration,
            Err(error) => error.stats.duration,
        };
        let first = call();
        // A guest that is slow is not called often.
        let calls = if first.as_millis() > 10 { 1 } else { TIMED_CALLS };
        let mut durations: Vec<_> = (0..calls).map(|_| call()).collect();
        durations.sort();
        let middle = durations.get(durations.len() / 2).copied().unwrap_or(first);
        u64::try_from(middle.as_micros()).unwrap_or(u64::MAX)
    });
    let numbers = match (&report.answer, &report.last_request) {
        (Some(_), Some(request)) => {
            let schema = input.setting.schema.as_ref();
            numbers::tried(by_fuel, &input.setting.call_limits, request, schema)
                .unwrap_or_else(|why| Numbers { untried: Some(why), ..Numbers::default() })
        }
        _ => Numbers::default(),
    };
    let failure = bad(&report, &input.excused).or_else(|| numbers.failure.clone());
    Tried {
        name: input.name,
        microseconds,
        stats: report.calls.first().copied().unwrap_or_default(),
        outcome: outcome(&report),
        failure,
        numbers,
        unchecked: report.unchecked,
    }
}

/// The failures that an input excuses.
enum Excused {
    /// None: what is asked about should get an answer.
    None,
    /// One that a case expects, by its reason.
    Expected(String),
    /// What a guest, or the gate, says of a root that nobody meant: one with an empty spec. That the guest breaks, or answers what
    /// no kind has, is its own fault.
    OfTheRoot,
}

impl Excused {
    fn has(&self, blame: Blame, failure: &Failure) -> bool {
        match self {
            Self::None => false,
            Self::Expected(reason) => failure.reason == *reason && blame != Blame::Engine,
            Self::OfTheRoot => matches!(blame, Blame::Guest | Blame::Gate),
        }
    }
}

/// What speaks against the module.
fn bad(report: &Report, excused: &Excused) -> Option<Failure> {
    let failure = report.failure.as_ref().filter(|(blame, failure)| !excused.has(*blame, failure));
    failure.map(|(_, failure)| failure).or(report.violation.as_ref()).cloned()
}

fn outcome(report: &Report) -> String {
    match (&report.failure, &report.answer) {
        (Some((_, failure)), _) => failure.reason.clone(),
        (None, Some(answer)) => match answer.children.len() {
            1 => "1 child".into(),
            count => format!("{count} children"),
        },
        (None, None) => "not asked".into(),
    }
}

fn shown(failure: &Failure) -> Value {
    let mut shown = serde_json::to_value(failure).unwrap_or_default();
    if let Some(fields) = shown.as_object_mut() {
        fields.remove("apiVersion");
    }
    shown
}

impl Findings<'_> {
    fn failure(&self) -> Option<Failure> {
        let tried = self.tried.iter().find_map(|tried| {
            let failure = tried.failure.as_ref()?;
            Some(Failure { message: format!("{} ({})", failure.message, tried.name), ..failure.clone() })
        });
        let view = self.views.iter().find_map(|view| view.failure.clone());
        let case = self.view_cases.first().map(|(file, failure)| Failure {
            message: format!("{} ({file})", failure.message),
            ..failure.clone()
        });
        self.supported.clone().err().or(tried).or(case).or(view)
    }

    fn data(&self) -> Value {
        let module = &self.by_time;
        let calls: Vec<Value> = self
            .tried
            .iter()
            .map(|tried| {
                json!({
                    "input": tried.name,
                    "outcome": tried.outcome,
                    "microseconds": tried.microseconds,
                    "fuel": tried.stats.fuel,
                    "peakMemoryBytes": tried.stats.peak_memory_bytes,
                    "responseBytes": tried.stats.response_bytes,
                    "numbers": tried.numbers.tried,
                    "refusedNumbers": tried.numbers.refused,
                })
            })
            .collect();
        let mut data = json!({
            "file": self.path.display().to_string(),
            "digest": module.digest().to_string(),
            "sizeBytes": module.size_bytes(),
            "exports": module.interfaces(),
            "compileMilliseconds": module.compile_duration().as_millis(),
            "calls": calls,
            "supported": self.supported.is_ok(),
        });
        if let Some(guest) = module.guest() {
            data["manifest"] = json!(guest.manifest());
        }
        if let Some(views) = module.views() {
            data["viewsManifest"] = json!(views.manifest());
            data["views"] = self.views.iter().map(ViewFindings::data).collect();
        }
        if let Some(failure) = self.failure() {
            data["failure"] = shown(&failure);
        }
        data
    }

    fn table(&self) -> String {
        let module = &self.by_time;
        let mut rows = vec![
            ["Guest".into(), format!("{} {}", module.name(), module.version())],
            ["Digest".into(), module.digest().to_string()],
            ["Size".into(), format!("{} bytes", module.size_bytes())],
            ["Exports".into(), module.interfaces().join("\n")],
        ];
        if let Some(guest) = module.guest() {
            let manifest = guest.manifest();
            rows.push(["Reconciles".into(), manifest.reconciles.to_string()]);
            rows.push(["Children".into(), children(manifest)]);
            rows.push(["Config".into(), config(manifest.config_schema.as_ref())]);
            rows.extend(powers(manifest));
        }
        if let Some(views) = module.views() {
            rows.push(["Views".into(), module::views(&views).join("\n")]);
            rows.push(["Views config".into(), config(views.manifest().config_schema.as_ref())]);
        }
        rows.push(["Compiled in".into(), format!("{} ms", module.compile_duration().as_millis())]);
        for (index, tried) in self.tried.iter().enumerate() {
            let name = if index == 0 { "Calls" } else { "" };
            rows.push([name.into(), call(tried)]);
        }
        let yes_or = |failure: Option<&Failure>, yes: &str| {
            failure.map_or(yes.to_owned(), |failure| format!("no: {failure}"))
        };
        let impure = self.tried.iter().filter_map(|tried| tried.failure.as_ref());
        let of_reason = |reason: &'static str| impure.clone().find(move |failure| failure.reason == reason);
        if !self.tried.is_empty() {
            rows.push(["Deterministic".into(), yes_or(of_reason(reasons::NOT_DETERMINISTIC), "yes")]);
            // What a failed call would have answered the second time, nobody knows.
            let is_known = impure.clone().all(|failure| failure.reason == reasons::NUMBER_CHANGED);
            let idempotent = if is_known { "yes" } else { "not known, since a call failed" };
            rows.push(["Idempotent".into(), yes_or(of_reason(reasons::NOT_IDEMPOTENT), idempotent)]);
            rows.push([
                "Numbers".into(),
                yes_or(of_reason(reasons::NUMBER_CHANGED), &numbers_line(&self.tried)),
            ]);
        }
        let rows_of = |name: &str, lines: Vec<String>| {
            let name = (!lines.is_empty()).then(|| name.to_owned());
            name.map(|name| [name, lines.join("\n")])
        };
        let of_cases =
            self.view_cases.iter().map(|(file, failure)| format!("no: {file}: {}", failure.message));
        rows.extend(rows_of("Laws", self.views.iter().map(ViewFindings::line).chain(of_cases).collect()));
        rows.extend(rows_of("Cost", self.views.iter().filter_map(ViewFindings::cost_line).collect()));
        rows.push(["Supported".into(), yes_or(self.supported.as_ref().err(), "yes")]);
        output::columns(&rows)
    }

    /// What shows that views break laws, as YAML.
    fn counterexamples(&self) -> Result<String, Problem> {
        let all: Vec<Option<String>> =
            self.views.iter().map(ViewFindings::counterexample).collect::<Result<_, _>>()?;
        Ok(all.into_iter().flatten().collect())
    }
}

/// How many numbers went through a guest as they are.
fn numbers_line(tried: &[Tried]) -> String {
    let sum = |count: fn(&Numbers) -> usize| tried.iter().map(|tried| count(&tried.numbers)).sum::<usize>();
    let untried = tried.iter().find_map(|tried| tried.numbers.untried.as_ref());
    match (sum(|numbers| numbers.tried), sum(|numbers| numbers.refused)) {
        (0, 0) => untried.map_or("none were tried".into(), |why| format!("none were tried: {why}")),
        (tried, 0) => format!("{tried} stay the same"),
        (tried, refused) => format!("{tried} stay the same, {refused} were refused"),
    }
}

fn call(tried: &Tried) -> String {
    let time = tried.microseconds.map_or_else(String::new, |time| format!("{time} us, "));
    let stats = &tried.stats;
    let fuel = stats.fuel.unwrap_or_default();
    let memory = stats.peak_memory_bytes / 1024;
    format!(
        "{}: {}; {time}{fuel} fuel, {memory} KiB memory, {} bytes answer",
        tried.name, tried.outcome, stats.response_bytes
    )
}

fn children(manifest: &Manifest) -> String {
    let each = manifest.children.iter().map(|child| {
        let observed = if child.observe { " (observed)" } else { "" };
        format!("{}{observed}", child.kind())
    });
    let lines: Vec<String> = each.collect();
    if lines.is_empty() { "none".into() } else { lines.join("\n") }
}

/// What the guest looks at, patches and has go besides its children, and what that asks of the CRD of its roots.
fn powers(manifest: &Manifest) -> Vec<[String; 2]> {
    let row =
        |name: &str, lines: Vec<String>| (!lines.is_empty()).then(|| [name.to_owned(), lines.join("\n")]);
    let needs = manifest.needs.iter().map(|need| {
        let indexes = if need.indexes.is_empty() { "" } else { " by " };
        format!("{} {}{indexes}{}", need.api_version, need.kind, need.indexes.join(", "))
    });
    let patches = manifest
        .patches
        .iter()
        .map(|patch| format!("{} {}: {}", patch.api_version, patch.kind, patch.fields.join(", ")));
    let mut patches: Vec<String> = patches.collect();
    if !patches.is_empty() {
        patches.push("(onRelease: Remove wants status.pintle.patched in the CRD)".into());
    }
    let evictions = manifest.evictions.then(|| "Pods (wants status.pintle.evicting in the CRD)".to_owned());
    [
        row("Needs", needs.collect()),
        row("Patches", patches),
        row("Evictions", evictions.into_iter().collect()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn config(schema: Option<&Value>) -> String {
    let Some(schema) = schema else { return "none".into() };
    let fields = object::at(schema, &["properties"]).and_then(Value::as_object);
    let names: Vec<&str> = fields.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    if names.is_empty() { "none".into() } else { names.join(", ") }
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
                "Patches: apps/v1 Deployment: spec.replicas, spec.paused\n(onRelease: Remove wants status.pintle.patched in the CRD)",
                "Evictions: Pods (wants status.pintle.evicting in the CRD)"
            ]
        );
        assert!(powers(&Manifest::default()).is_empty());
    }
}
