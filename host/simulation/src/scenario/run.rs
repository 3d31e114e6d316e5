//! The runner.

mod planned;

use std::{collections::BTreeSet, fmt, time::Duration};

use anyhow::Context;
use pintle_core::object::{self, uid};
use pintle_wit::ObjectRef;
use serde_json::{Value, json};

use super::{
    Backend, Call, Calls, Cascade, ConditionIs, Expectation, Mark, ModuleFile, Scenario, ScenarioStep, UidIs,
    custom_kind, differences, short,
};
use crate::acts::reference;

/// How often an expectation is checked.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How long after a reply the host's calls have certainly been counted.
const COUNTED_AFTER: Duration = Duration::from_millis(600);
/// How many lines of the host's log a failure shows.
const LOG_LINES: usize = 12;

/// The names in a run.
#[derive(Clone, Debug)]
pub struct Names {
    /// `$NS`
    pub namespace: String,
    /// `$RUN`
    pub run: String,
}

impl Names {
    /// A scenario's text with these names.
    pub fn fill(&self, text: &str) -> String {
        text.replace("$NS", &self.namespace).replace("$RUN", &self.run)
    }
}

/// Why a scenario failed.
#[derive(Debug)]
pub struct Failed {
    /// The number and the name of the step that failed; none before the first step.
    pub step: Option<(usize, String)>,
    /// What was expected, and what was found.
    pub found: Vec<String>,
    /// The last lines that the host logged.
    pub log: Vec<String>,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.step {
            Some((index, name)) => writeln!(f, "step {}, {name}:", index + 1)?,
            None => writeln!(f, "before the first step:")?,
        }
        for line in &self.found {
            writeln!(f, "  {line}")?;
        }
        if !self.log.is_empty() {
            writeln!(f, "  the host's log:")?;
        }
        for line in &self.log {
            writeln!(f, "    {line}")?;
        }
        Ok(())
    }
}

/// Runs a scenario on a backend.
pub struct Runner<'a, B> {
    backend: &'a B,
    scenario: &'a Scenario,
    names: Names,
    resolve: &'a dyn Fn(&ModuleFile) -> anyhow::Result<Vec<u8>>,
    /// How long each step may take in a run with faults.
    patience: Option<Duration>,
}

impl<'a, B: Backend> Runner<'a, B> {
    /// A run. `resolve` makes the bytes of a module.
    pub fn new(
        backend: &'a B,
        scenario: &'a Scenario,
        names: Names,
        resolve: &'a dyn Fn(&ModuleFile) -> anyhow::Result<Vec<u8>>,
    ) -> Self {
        Self { backend, scenario, names, resolve, patience: None }
    }

    /// A run with faults that the scenario does not mention. Each step may take this long to reach what it expects. The way there is not
    /// checked: neither the number of calls, nor Events, nor for how long something holds, nor whether an object is still the same, nor how
    /// often it was changed, nor plans.
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience: Some(patience), ..self }
    }

    /// Runs it to its end, and removes what it created.
    ///
    /// # Errors
    /// If a step fails, or if what it created cannot be removed.
    pub async fn run(&self) -> Result<(), Failed> {
        let outcome = self.run_steps().await;
        let cleaned = self.clean_up().await;
        outcome?;
        cleaned.map_err(|error| self.failed(None, vec![format!("cleaning up: {error:#}")]))
    }

    fn failed(&self, step: Option<(usize, String)>, found: Vec<String>) -> Failed {
        let log = self.backend.host_log(&[&self.names.namespace, &self.names.run], LOG_LINES);
        Failed { step, found, log }
    }

    /// Runs it to its end.
    ///
    /// # Errors
    /// When a step fails.
    pub async fn run_steps(&self) -> Result<(), Failed> {
        self.set_up().await.map_err(|error| self.failed(None, vec![format!("{error:#}")]))?;
        for (index, step) in self.scenario.steps.iter().enumerate() {
            self.run_step(step)
                .await
                .map_err(|found| self.failed(Some((index, step.name.clone())), found))?;
        }
        Ok(())
    }

    async fn set_up(&self) -> anyhow::Result<()> {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.names.namespace}});
        self.backend.apply(&namespace).await?;
        for (kind, declares) in &self.scenario.kinds {
            let crd = custom_kind::crd(kind, *declares);
            self.backend.apply(&crd).await.with_context(|| format!("kind {kind}"))?;
        }
        let later: Vec<&String> = self.scenario.steps.iter().filter_map(|step| step.push.as_ref()).collect();
        for name in self.scenario.modules.keys().filter(|name| !later.contains(name)) {
            self.push(name).await?;
        }
        for object in &self.scenario.objects {
            self.apply(object).await?;
        }
        Ok(())
    }

    async fn apply(&self, object: &Value) -> anyhow::Result<()> {
        let mut object = self.with_uids(object).await?;
        if object.pointer("/metadata/namespace").is_none() {
            object["metadata"]["namespace"] = self.names.namespace.as_str().into();
        }
        let applied = self.backend.apply(&object).await;
        applied.with_context(|| format!("applying {} {}", object::kind(&object).kind, object::name(&object)))
    }

    async fn push(&self, name: &str) -> anyhow::Result<()> {
        let module = self.scenario.modules.get(name).context("no such module")?;
        let bytes = (self.resolve)(module).with_context(|| format!("module {name}"))?;
        let digest = module.digest.clone().unwrap_or_else(|| pintle_engine::Digest::of(&bytes).to_string());
        for object in pintle_api::module_objects(name, &bytes, &digest) {
            self.backend.apply(&object).await.with_context(|| format!("pushing {name}"))?;
        }
        Ok(())
    }

    /// Puts uids where `$UID(apiVersion/Kind/name)` stands.
    async fn with_uids(&self, value: &Value) -> anyhow::Result<Value> {
        let mut text = value.to_string();
        while let Some(start) = text.find("$UID(") {
            let rest = text.get(start + 5..).unwrap_or_default();
            let named = rest.split(')').next().unwrap_or_default().to_owned();
            let object = short::named(&named);
            let object = object.with_context(|| format!("$UID({named}): apiVersion/Kind/name is needed"))?;
            let live = self.backend.get(&self.placed(&object)).await?;
            let live = live.with_context(|| format!("$UID({named}): there is none"))?;
            text = text.replace(&format!("$UID({named})"), uid(&live));
        }
        Ok(serde_json::from_str(&text)?)
    }

    async fn run_step(&self, step: &ScenarioStep) -> Result<(), Vec<String>> {
        let mut uids = Vec::new();
        for expected in &step.expect {
            let before = match expected.uid {
                Some(_) => self.backend.get(&self.placed(&expected.object)).await.map_err(said)?,
                None => None,
            };
            uids.push(before.map(|live| uid(&live).to_owned()));
        }
        let planned = match &step.plan {
            Some(expected) if self.patience.is_none() => Some(self.plan(step, expected).await.map_err(said)?),
            _ => None,
        };
        let mark = self.backend.mark();
        match (self.act(step).await.map_err(|error| format!("{error:#}")), &step.refused) {
            (Ok(()), None) => {}
            (Err(error), None) => return Err(vec![error]),
            (Err(error), Some(text)) if error.contains(text) => {}
            (Err(error), Some(text)) => {
                return Err(vec![format!("expected to be refused with {text:?}"), format!("found: {error}")]);
            }
            (Ok(()), Some(text)) => {
                return Err(vec![format!("expected to be refused with {text:?}, and was accepted")]);
            }
        }
        self.wait_for(step, &uids).await?;
        if self.patience.is_some() {
            return Ok(());
        }
        if let Some(planned) = &planned {
            self.compare(planned).await.map_err(said)?;
        }
        if let Some(time) = step.holds_for {
            let until = self.backend.mark().0 + time;
            loop {
                let unmet = self.unmet(step, &uids).await;
                if !unmet.is_empty() {
                    return Err([vec!["it did not stay so:".to_owned()], unmet].concat());
                }
                if self.backend.mark().0 >= until {
                    break;
                }
                self.backend.advance(LOOK_EVERY).await;
            }
        }
        let wrong = self.miscounted(step, mark).await.map_err(said)?;
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }

    /// What is wrong with the host's calls since a moment.
    async fn miscounted(&self, step: &ScenarioStep, mark: Mark) -> anyhow::Result<Vec<String>> {
        let mut wrong = Vec::new();
        if step.made_as.is_empty() && step.mutating_calls.is_none() {
            return Ok(wrong);
        }
        self.backend.advance(COUNTED_AFTER).await;
        let Some(calls) = self.backend.calls_since(mark).await? else { return Ok(wrong) };
        let namespace = &self.names.namespace;
        for (resource, users) in &step.made_as {
            let is_of_run =
                |call: &&Call| call.namespace.as_ref().is_some_and(|name| name.starts_with(namespace));
            let made = calls.iter().filter(|call| call.resource == *resource && call.code < 400);
            let by = made.filter(is_of_run).map(|call| call.acting_as.clone());
            let found: BTreeSet<String> = by.map(|user| user.unwrap_or_else(|| "host".into())).collect();
            if found != *users {
                wrong.push(format!("expected changing calls of {resource} as {users:?}, found {found:?}"));
            }
        }
        let is_counted =
            |call: &&Call| self.scenario.is_alone() || call.namespace.as_ref() == Some(namespace);
        let calls: Vec<&Call> = calls.iter().filter(is_counted).collect();
        let mut count = |what: String, number: usize, found: Vec<&Call>| {
            if found.len() != number {
                wrong.push(format!("expected {number} {what}, found {}:", found.len()));
                wrong.extend(found.iter().map(|call| format!("  {call}")));
            }
        };
        match &step.mutating_calls {
            None => {}
            Some(Calls::All(number)) => count("changing calls".into(), *number, calls),
            Some(Calls::Of(resources)) => {
                for (resource, number) in resources {
                    let of = calls.iter().copied().filter(|call| call.resource == *resource).collect();
                    count(format!("changing calls of {resource}"), *number, of);
                }
            }
        }
        Ok(wrong)
    }

    async fn act(&self, step: &ScenarioStep) -> anyhow::Result<()> {
        for object in &step.apply {
            self.apply(object).await?;
        }
        if let Some(edit) = step.patch.as_ref().or(step.edit_child.as_ref()) {
            let patch = self.with_uids(&edit.patch).await?;
            self.backend.patch(&self.placed(&edit.object), &patch).await?;
        }
        if let Some(deletion) = &step.delete {
            self.backend.delete(&self.placed(&deletion.object), deletion.cascade).await?;
        }
        if let Some(name) = &step.push {
            self.push(name).await?;
        }
        if let Some(swap) = &step.swap {
            let patch = json!({"spec": {"module": swap.module}});
            self.backend.patch(&self.own("Reconciler", &swap.reconciler), &patch).await?;
        }
        if let Some(how) = step.stop_host {
            self.backend.stop_host(how).await?;
        }
        if step.start_host == Some(true) {
            self.backend.start_host().await?;
        }
        if let Some(time) = step.advance {
            self.backend.advance(time).await;
        }
        Ok(())
    }

    fn own(&self, kind: &str, name: &str) -> ObjectRef {
        reference("pintle.dev/v1alpha1", kind, Some(&self.names.namespace), name)
    }

    /// An object that is in the run's namespace unless it names another.
    fn placed(&self, object: &ObjectRef) -> ObjectRef {
        let namespace = object.namespace.as_ref().unwrap_or(&self.names.namespace);
        ObjectRef { namespace: Some(namespace.clone()), ..object.clone() }
    }

    async fn wait_for(&self, step: &ScenarioStep, uids: &[Option<String>]) -> Result<(), Vec<String>> {
        let within =
            self.patience.map_or(step.within, |patience| patience.max(step.within)) + self.backend.slack();
        let until = self.backend.mark().0 + within;
        loop {
            // The last look begins after the deadline: what a look that took long has found may be as old as the look.
            let is_late = self.backend.mark().0 >= until;
            let unmet = self.unmet(step, uids).await;
            if unmet.is_empty() {
                return Ok(());
            }
            if is_late {
                return Err([vec![format!("not within {within:?}:")], unmet].concat());
            }
            self.backend.advance(LOOK_EVERY).await;
        }
    }

    /// The expectations that are not met.
    async fn unmet(&self, step: &ScenarioStep, uids: &[Option<String>]) -> Vec<String> {
        let mut unmet = Vec::new();
        for (index, expected) in step.expect.iter().enumerate() {
            let before = uids.get(index).cloned().flatten();
            match self.unmet_of(expected, before.as_deref()).await {
                Ok(lines) => {
                    let ObjectRef { kind, name, .. } = &expected.object;
                    unmet.extend(lines.into_iter().map(|line| format!("{kind} {name}: {line}")));
                }
                Err(error) => unmet.push(format!("{error:#}")),
            }
        }
        if let Some(expected) = step.plan.as_ref().filter(|_| unmet.is_empty() && self.patience.is_none()) {
            let left = self.left_to_do(step, expected).await;
            unmet.extend(left.unwrap_or_else(|error| Some(format!("{error:#}"))));
        }
        unmet
    }

    async fn unmet_of(&self, expected: &Expectation, before: Option<&str>) -> anyhow::Result<Vec<String>> {
        let object = self.placed(&expected.object);
        let mut unmet = Vec::new();
        if let Some(reason) = expected.event.as_ref().filter(|_| self.patience.is_none()) {
            let reasons = self.backend.events(&object).await?;
            if !reasons.contains(reason) {
                unmet.push(format!("expected an Event {reason}, found {reasons:?}"));
            }
        }
        let live = self.backend.get(&object).await?;
        let Some(live) = live else {
            let asked = expected.matches.is_some() || expected.condition.is_some() || expected.uid.is_some();
            if asked && !expected.absent {
                unmet.push("it is not there".into());
            }
            return Ok(unmet);
        };
        if expected.absent {
            unmet.push("it is still there".into());
        }
        if let Some(matches) = &expected.matches {
            let mut matches = self.with_uids(matches).await?;
            if self.patience.is_some() {
                without_generations(&mut matches);
            }
            unmet.extend(differences(&matches, &live));
        }
        if let Some(condition) = &expected.condition {
            let mut condition = condition.clone();
            if let Some(message) = &mut condition.message {
                *message =
                    self.with_uids(&message.as_str().into()).await?.as_str().unwrap_or_default().into();
            }
            unmet.extend(unlike(&condition, &live));
        }
        match expected.uid {
            // In a run with faults, somebody may have deleted it.
            Some(UidIs::Same) if self.patience.is_none() && before != Some(uid(&live)) => {
                unmet.push("it is another object than before".into())
            }
            Some(UidIs::New) if before == Some(uid(&live)) => {
                unmet.push("it is still the object that it was".into())
            }
            _ => {}
        }
        Ok(unmet)
    }

    /// Removes what the scenario created: Reconcilers before their objects, so that nobody repairs what is deleted.
    ///
    /// # Errors
    /// If the API server refuses it.
    pub async fn clean_up(&self) -> anyhow::Result<()> {
        let Names { namespace, run } = &self.names;
        let applied = self.scenario.steps.iter().flat_map(|step| &step.apply);
        let made =
            self.scenario.objects.iter().chain(applied).filter(|made| object::name(made).contains(run));
        let mut own: Vec<ObjectRef> = made.map(|made| self.placed(&object::reference(made))).collect();
        own.sort_by_key(|object| object.kind != "Reconciler");
        own.push(reference("v1", "Namespace", None, namespace));
        let modules = self.scenario.modules.keys().filter(|name| name.contains(run));
        own.extend(modules.map(|name| self.own("Module", name)));
        own.extend(self.scenario.kinds.keys().map(|kind| {
            let name = format!("{}s.acceptance.pintle.dev", kind.to_lowercase());
            reference("apiextensions.k8s.io/v1", "CustomResourceDefinition", None, &name)
        }));
        for object in own {
            if self.backend.get(&object).await?.is_some() {
                // An object that went by itself in the meantime is gone as well.
                if let Err(error) = self.backend.delete(&object, Cascade::Background).await
                    && self.backend.get(&object).await?.is_some()
                {
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

/// Removes the fields that say how often something was changed.
fn without_generations(expected: &mut Value) {
    match expected {
        Value::Object(map) => {
            map.retain(|key, _| !matches!(key.as_str(), "generation" | "observedGeneration"));
            map.values_mut().for_each(without_generations);
        }
        Value::Array(items) => items.iter_mut().for_each(without_generations),
        _ => {}
    }
}

fn said(error: anyhow::Error) -> Vec<String> {
    vec![format!("{error:#}")]
}

/// How a condition differs from the expected one.
fn unlike(expected: &ConditionIs, live: &Value) -> Option<String> {
    fn text<'a>(condition: &'a Value, key: &str) -> &'a str {
        condition[key].as_str().unwrap_or_default()
    }
    let name = &expected.r#type;
    let conditions = live.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    let Some(found) = conditions.clone().find(|condition| text(condition, "type") == name) else {
        let there: Vec<&str> = conditions.map(|condition| text(condition, "type")).collect();
        return Some(format!("expected a condition {name}, found {there:?}"));
    };
    let (status, reason, message) = (text(found, "status"), text(found, "reason"), text(found, "message"));
    let is = status == expected.status
        && expected.reason.as_ref().is_none_or(|wanted| reason == wanted)
        && expected.message.as_ref().is_none_or(|wanted| message.contains(wanted));
    let wanted = expected.reason.as_deref().unwrap_or("*");
    let with = expected.message.as_ref().map(|text| format!(", with {text:?} in its message"));
    (!is).then(|| {
        format!(
            "expected condition {name}={} ({wanted}){}\n      found {name}={status} ({reason}): {message}",
            expected.status,
            with.unwrap_or_default()
        )
    })
}
