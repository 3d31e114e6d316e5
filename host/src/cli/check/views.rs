//! What `pintle check` finds of the views of a module.

use std::{path::Path, time::Duration};

use pintle_core::object;
use pintle_engine::Views;
use pintle_offline::{
    documents::{self, Document},
    views::{
        case::{self as view_case, AnyCase},
        laws::{Broken, Law},
        search::{self, Searched},
        subject::Subject,
    },
};
use pintle_wit::Failure;
use serde_json::{Value, json};

use crate::cli::{output, problem::Problem};

/// How often the objects are shown to say how long it takes.
const TIMED_ROUNDS: usize = 20;

/// What the laws of views are tried on, besides golden cases.
pub(super) struct Trials<'a> {
    /// The seed of the generated objects.
    pub(super) seed: u64,
    /// How many objects are generated for each view.
    pub(super) count: usize,
    /// The CRDs of backing kinds.
    pub(super) crds: &'a [Document],
    /// Objects from files. Those of other kinds play no part.
    pub(super) given: &'a [Document],
}

/// What is known of a view.
pub(super) struct ViewFindings {
    name: String,
    seed: u64,
    searched: Searched,
    /// What showing an object costs: microseconds, and fuel.
    cost: Option<(f64, u64)>,
    /// What speaks against it.
    pub(super) failure: Option<Failure>,
}

/// Tries the laws of every view of a module.
pub(super) fn tried(by_time: &Views, by_fuel: &Views, trials: &Trials<'_>) -> Vec<ViewFindings> {
    let views = by_fuel.manifest().views.iter();
    views.map(|view| tried_view(by_time, by_fuel, &view.name, trials)).collect()
}

fn tried_view(by_time: &Views, by_fuel: &Views, name: &str, trials: &Trials<'_>) -> ViewFindings {
    let mut findings = ViewFindings {
        name: name.to_owned(),
        seed: trials.seed,
        searched: Searched::default(),
        cost: None,
        failure: None,
    };
    let subject = match Subject::new(by_fuel, name, Value::Null, trials.crds) {
        Ok(subject) => subject,
        Err(failure) => {
            findings.failure = Some(failure);
            return findings;
        }
    };
    let backing = &subject.view.manifest.backing;
    let is_shown = |document: &&Document| object::kind(&document.value) == *backing;
    let given: Vec<Value> =
        trials.given.iter().filter(is_shown).map(|document| document.value.clone()).collect();
    findings.searched = match search::hold(&subject.view, &subject, &given) {
        Ok(()) => search::search(&subject.view, &subject, trials.seed, trials.count),
        Err(broken) => Searched { broken: Some(broken), ..Searched::default() },
    };
    let sample = if given.is_empty() { &findings.searched.sample } else { &given };
    findings.cost = cost(&subject, by_time, by_fuel, sample);
    findings.failure = findings.searched.broken.as_ref().map(Broken::failure);
    findings
}

/// What showing an object costs: microseconds as in a cluster, where nobody counts instructions, and fuel.
fn cost(subject: &Subject<'_>, by_time: &Views, by_fuel: &Views, sample: &[Value]) -> Option<(f64, u64)> {
    let count = sample.len();
    let fuel = subject.cost(by_fuel, sample).ok()?.fuel.checked_div(count as u64)?;
    // A round that the machine held up until its deadline says nothing.
    let rounds = (0..TIMED_ROUNDS).filter_map(|_| Some(subject.cost(by_time, sample).ok()?.duration));
    let mut durations: Vec<Duration> = rounds.collect();
    durations.sort();
    let middle = durations.get(durations.len() / 2)?;
    Some((middle.as_secs_f64() * 1e6 / count as f64, fuel))
}

/// Tries the laws on the objects of the golden cases in a directory. What a case expects is the matter of `pintle test`.
pub(super) fn tried_cases(
    module: &Views,
    cases: &Path,
    crds: &[Document],
) -> Result<Vec<(String, Failure)>, Problem> {
    let mut broken = Vec::new();
    for file in documents::files(cases)? {
        let AnyCase::View(case) = view_case::read(&file)? else { continue };
        let judged = view_case::judge(module, &file, &case, crds)?;
        broken.extend(
            judged
                .problems
                .into_iter()
                .map(|problem| (file.display().to_string(), Failure::terminal(Law::Kept.reason(), problem))),
        );
    }
    Ok(broken)
}

impl ViewFindings {
    /// What came of it in a line, for the row `Laws`.
    pub(super) fn line(&self) -> String {
        let name = &self.name;
        if let Some(failure) = &self.failure {
            return format!("{name}: no: {failure}");
        }
        let Searched { objects, writes, refused, unmade, .. } = &self.searched;
        let mut parts = Vec::new();
        if *objects > 0 {
            parts.push(format!("{objects} objects"));
        }
        if writes + refused > 0 {
            parts.push(format!("{writes} writes"));
        }
        let mut line = match parts.is_empty() {
            true => format!("{name}: not tried"),
            false => format!("{name}: hold on {} (seed {})", parts.join(" and "), self.seed),
        };
        if *refused > 0 {
            line.push_str(&format!(", {refused} writes were refused"));
        }
        for reason in unmade {
            line.push_str(&format!("; {reason}"));
        }
        line
    }

    /// What showing an object costs, for the row `Cost`.
    pub(super) fn cost_line(&self) -> Option<String> {
        let (microseconds, fuel) = self.cost?;
        Some(format!("{}: {microseconds:.1} us and {fuel} fuel an object", self.name))
    }

    /// The objects that show that a law is broken, as YAML with the law in words.
    pub(super) fn counterexample(&self) -> Result<Option<String>, Problem> {
        let Some(broken) = &self.searched.broken else { return Ok(None) };
        let head = format!(
            "\nCounterexample: view {} (seed {})\nLaw: {}\nBroken: {}\n\n",
            self.name,
            self.seed,
            broken.law.words(),
            broken.message
        );
        Ok(Some(head + &output::yaml(&broken.example)?))
    }

    pub(super) fn data(&self) -> Value {
        let searched = &self.searched;
        let mut data = json!({
            "name": self.name, "seed": self.seed, "objects": searched.objects, "writes": searched.writes,
            "refusedWrites": searched.refused,
        });
        if let Some((microseconds, fuel)) = self.cost {
            data["microsecondsPerObject"] = json!(microseconds);
            data["fuelPerObject"] = fuel.into();
        }
        if !searched.unmade.is_empty() {
            data["notes"] = json!(searched.unmade);
        }
        if let Some(broken) = &searched.broken {
            data["broken"] =
                json!({"law": broken.law.words(), "message": broken.message, "example": broken.example});
        }
        data
    }
}
