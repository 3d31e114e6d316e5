//! What `pintle check` finds of the views of a module.

use std::time::Duration;

use pintle_core::object;
use pintle_engine::Views;
use pintle_offline::{
    ask::Subject,
    case::Case,
    documents::Document,
    views::{
        laws::{Broken, Law},
        search::{self, Searched},
        subject::ViewGuest,
    },
};
use pintle_wit::Failure;
use serde_json::Value;

use crate::cli::{output, problem::Problem};

/// How often the objects are shown to say how long it takes.
const TIMED_ROUNDS: usize = 20;

/// What is known of a view.
#[derive(Default)]
pub(super) struct ViewTrial {
    name: String,
    seed: u64,
    searched: Searched,
    /// What showing an object costs: microseconds, and fuel.
    cost: Option<(f64, u64)>,
    /// What speaks against it.
    pub(super) failure: Option<Failure>,
}

/// Tries the laws of every view of a module, on the objects of its backing kind among those given and on as many as are to be made of a seed.
pub(super) fn tried(
    views: &Views,
    crds: &[Document],
    given: &[Document],
    (seed, count): (u64, usize),
) -> Vec<ViewTrial> {
    let tried = views.manifest().views.iter().map(|view| {
        let trial = ViewTrial { name: view.name.clone(), seed, ..ViewTrial::default() };
        let guest = match ViewGuest::new(views, &view.name, Value::Null, crds) {
            Ok(guest) => guest,
            Err(failure) => return ViewTrial { failure: Some(failure), ..trial },
        };
        let given = given.iter().map(|document| &document.value);
        let given: Vec<Value> = given.filter(|value| object::kind(value) == view.backing).cloned().collect();
        let searched = search::search(&guest.view, &guest, &given, seed, count);
        let sample = if given.is_empty() { &searched.sample } else { &given };
        let cost = cost(&guest, sample);
        let failure = searched.broken.as_ref().map(Broken::failure);
        ViewTrial { searched, cost, failure, ..trial }
    });
    tried.collect()
}

/// What showing an object costs: microseconds, and fuel.
fn cost(guest: &ViewGuest<'_>, sample: &[Value]) -> Option<(f64, u64)> {
    let rounds = (0..TIMED_ROUNDS).filter_map(|_| guest.cost(sample).ok());
    let mut rounds: Vec<(Duration, u64)> = rounds.collect();
    rounds.sort();
    let (middle, fuel) = rounds.get(rounds.len() / 2)?;
    let count = sample.len();
    Some((middle.as_secs_f64() * 1e6 / count as f64, fuel.checked_div(count as u64)?))
}

/// The laws that the objects of a golden case show to be broken. What a case expects is the matter of `pintle test`.
pub(super) fn broken(views: &Views, case: &Case, crds: &[Document]) -> anyhow::Result<Vec<Failure>> {
    let name = case.view.clone().unwrap_or_default();
    let subject = Subject::View { views: views.clone(), name, config: case.config.clone() };
    let problems = case.ask(&subject, crds)?.problems.into_iter();
    Ok(problems.map(|problem| Failure::terminal(Law::Kept.reason(), problem)).collect())
}

impl ViewTrial {
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
        let mut line = if parts.is_empty() {
            format!("{name}: not tried")
        } else {
            format!("{name}: hold on {} (seed {})", parts.join(" and "), self.seed)
        };
        if *refused > 0 {
            line.push_str(&format!(", {refused} writes were refused"));
        }
        unmade.iter().for_each(|reason| line.push_str(&format!("; {reason}")));
        line
    }

    /// What showing an object costs, for the row `Cost`.
    pub(super) fn cost_line(&self) -> Option<String> {
        let (microseconds, fuel) = self.cost?;
        Some(format!("{}: {microseconds:.1} us and {fuel} fuel an object", self.name))
    }

    /// The objects that show that a law is broken, if one is, as YAML with the law in words.
    pub(super) fn counterexample(&self) -> Result<String, Problem> {
        let Some(broken) = &self.searched.broken else { return Ok(String::new()) };
        let head = format!(
            "\nCounterexample: view {} (seed {})\nLaw: {}\nBroken: {}\n\n",
            self.name,
            self.seed,
            broken.law.words(),
            broken.message
        );
        Ok(head + &output::yaml(&broken.example)?)
    }
}
