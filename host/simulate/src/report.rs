//! What a search tells, for people and as data.

use std::{collections::BTreeMap, path::Path};

use pintle::cli::{native::Native, output, problem::Problem, simulate::Simulate};
use pintle_simulation::{
    Class, Differing, Failure, Property, RECORDING, Replay, RunOutcome, Tally, TraceEntry,
};
use serde_json::{Value, json};

/// How many of the steps before a failure are shown.
const STEPS_SHOWN: usize = 10;

/// What came of a search.
pub(crate) struct Found {
    pub(crate) failures: Vec<Failure>,
    /// How many scenarios broke a property with nothing going wrong, so that no plan was run with them.
    pub(crate) unsearched: usize,
    pub(crate) tally: Tally,
    pub(crate) left_out: LeftOut,
    pub(crate) seconds: f64,
}

/// What a quick search leaves out.
pub(crate) struct LeftOut {
    pub(crate) plans: usize,
    /// The classes of which it leaves out all.
    pub(crate) classes: Vec<Class>,
}

/// What tells of the runs of a guest.
pub(crate) struct Report<'a> {
    pub(crate) arguments: &'a Simulate,
    native: Native<'a>,
}

impl<'a> Report<'a> {
    pub(crate) fn new(arguments: &'a Simulate) -> Self {
        Self { arguments, native: Native::new(&arguments.module, !arguments.no_native) }
    }

    pub(crate) fn told(&self, found: &Found) -> Result<String, Problem> {
        let mut text = String::new();
        for failure in &found.failures {
            text.push_str(&self.told_of(failure, STEPS_SHOWN)?);
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
        let LeftOut { plans, classes } = &found.left_out;
        if *plans > 0 {
            let classes: Vec<&str> = classes.iter().map(|class| class.plural()).collect();
            let classes = if classes.is_empty() {
                String::new()
            } else {
                format!(", and with them all {}", classes.join(", "))
            };
            text.push_str(&format!("--quick leaves out {plans} plans{classes}\n"));
        }
        Ok(text)
    }

    /// A failure for a person: what should hold, what went wrong, what was found, what happened before it, what to do.
    pub(crate) fn told_of(&self, failure: &Failure, steps: usize) -> Result<String, Problem> {
        let Failure { replay, outcome } = failure;
        let Some(broken) = &outcome.broken else { return Ok(String::new()) };
        let said = outcome.evidence.trapped.as_deref().and_then(|request| self.native.says("call", request));
        let said = said.map(|said| format!("  {said}\n")).unwrap_or_default();
        if matches!(broken.property, Property::Ready | Property::Fits) {
            return Ok(format!(
                "FAILED  {}: {}\n{said}  what to do: {}\n",
                replay.scenario,
                indented(&without_commands(&broken.what), "    "),
                broken.property.advice()
            ));
        }
        let letter = broken.property.letter();
        let mut text = format!(
            "FAILED  {}: it does not hold that {} ({letter})\n",
            replay.scenario,
            broken.property.in_words()
        );
        let faults = in_words(failure);
        match faults.is_empty() {
            true => text.push_str("  what goes wrong: nothing; this is the guest alone\n"),
            false => text.push_str(&format!("  what goes wrong: {}\n", faults.join("; "))),
        }
        text.push_str(&format!(
            "  what was found: {}\n{said}",
            indented(&without_commands(&broken.what), "    ")
        ));
        if let Some(differing) = &outcome.evidence.differing {
            let Differing { about, before, after } = differing;
            text.push_str(&format!("  {about}\n"));
            text.push_str(&format!("        - {}\n        + {}\n", before.0, after.0));
            text.push_str(&output::difference(&output::yaml(&before.1)?, &output::yaml(&after.1)?));
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

    pub(crate) fn data(&self, found: &Found) -> Value {
        let classes: BTreeMap<&str, usize> =
            found.tally.by_class.iter().map(|(class, count)| (class.code(), count.hit)).collect();
        json!({
            "plans": found.tally.plans, "failed": found.tally.failed, "unsearched": found.unsearched, "leftOut": found.left_out.plans,
            "seconds": found.seconds, "classes": classes,
            "failures": found.failures.iter().map(|failure| self.data_of(failure, STEPS_SHOWN)).collect::<Vec<_>>(),
        })
    }

    pub(crate) fn data_of(&self, failure: &Failure, steps: usize) -> Value {
        let Failure { replay, outcome } = failure;
        let mut data = json!({
            "scenario": replay.scenario, "replay": replay.to_string(), "command": self.command(replay),
            "faults": in_words(failure),
            "steps": last_steps(outcome, steps).iter().map(ToString::to_string).collect::<Vec<_>>(),
        });
        if let Some(broken) = &outcome.broken {
            data["property"] = broken.property.letter().into();
            data["shouldHold"] = broken.property.in_words().into();
            data["found"] = without_commands(&broken.what).into();
            data["advice"] = broken.property.advice().into();
        }
        if let Some(said) =
            outcome.evidence.trapped.as_deref().and_then(|request| self.native.says("call", request))
        {
            data["native"] = said.into();
        }
        if let Some(Differing { about, before, after }) = &outcome.evidence.differing {
            data["difference"] = json!({
                "about": about, "before": {"is": before.0, "value": before.1}, "after": {"is": after.0, "value": after.1},
            });
        }
        data
    }

    /// The command that repeats a run, to be pasted into a shell.
    fn command(&self, replay: &Replay) -> String {
        let shown = |path: &Path| path.display().to_string();
        let mut words = vec!["pintle".to_owned(), "simulate".into(), shown(&self.arguments.module)];
        words.extend(["--scenario".into(), replay.scenario.clone()]);
        words.extend(self.arguments.crds.iter().flat_map(|file| ["--crd".into(), shown(file)]));
        words.extend(self.arguments.no_crd.then(|| "--no-crd".into()));
        words.extend(self.arguments.reconciler.iter().flat_map(|file| ["--reconciler".into(), shown(file)]));
        words.extend(["--replay".into(), replay.to_string()]);
        words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
    }
}

/// The faults of a run, each as a sentence, in the order of the plan.
fn in_words(failure: &Failure) -> Vec<String> {
    failure.replay.plan.0.iter().map(|fault| fault.in_words(&failure.outcome.steps)).collect()
}

/// The last steps up to the one at which a property broke.
fn last_steps(outcome: &RunOutcome, shown: usize) -> &[TraceEntry] {
    let steps = outcome.until_broken();
    &steps[steps.len().saturating_sub(shown)..]
}

/// What was found, without the commands that are for a cluster.
fn without_commands(what: &str) -> String {
    let lines = what.trim_end().lines().map(|line| line.split(RECORDING).next().unwrap_or(line));
    lines.collect::<Vec<&str>>().join("\n")
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
}
