//! Golden cases: objects, and what a guest is expected to answer to them.

use std::{collections::BTreeSet, path::Path};

use anyhow::Context;
use jiff::Timestamp;
use pintle_engine::{Guest, Module};
use pintle_wit::{Failure, Kind};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    ask::{Answer, Blame, Objects, Subject, Trapped, Write, ask},
    cluster::CaseRefusal,
    documents::{self, Document},
    setting::NOW,
    shown::Shown,
};

/// A case as it stands in its file. One with `view` is about a view, and any other about a root.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Case {
    /// The root, what is observed, and optionally a Reconciler and the CRD.
    pub objects: Vec<Value>,
    /// What the API server refuses.
    pub refusals: Vec<CaseRefusal>,
    /// The clock (RFC 3339).
    pub now: Option<String>,
    /// The view, by its name in the manifest.
    pub view: Option<String>,
    /// The View's config; the defaults of the guest if it is left out.
    pub config: Value,
    /// Objects of the backing kind.
    pub show: Vec<Value>,
    /// A write.
    pub store: Option<Write>,
    /// The answer after the gate; absent in a case that `--update` is to fill in.
    pub expect: Option<Shown>,
}

/// What came of a case.
#[derive(Clone, Debug)]
pub struct CaseResult {
    /// What the guest did, in the form of the case's `expect`.
    pub found: Shown,
    /// What the case expects; none when it expects nothing yet.
    pub expected: Option<Shown>,
    /// What is wrong besides a difference, each in one line.
    pub problems: Vec<String>,
    /// The message of a failure, for a person.
    pub message: Option<String>,
    /// Whether `found` may become what the case expects: it is an answer, or a failure in the guest's own words. That a guest breaks
    /// or is refused is nothing to record.
    pub is_recordable: bool,
    /// See [`Answer::warnings`].
    pub warnings: Vec<String>,
    /// See [`Answer::unchecked`].
    pub unchecked: BTreeSet<Kind>,
    /// See [`Answer::trapped`].
    pub trapped: Option<Trapped>,
}

impl CaseResult {
    /// Whether the case passed.
    pub fn passed(&self) -> bool {
        self.problems.is_empty() && self.expected.as_ref() == Some(&self.found)
    }
}

/// Reads a case.
///
/// # Errors
/// When the file cannot be read, or is no case.
pub fn read(path: &Path) -> anyhow::Result<Case> {
    let text = documents::read_text(path)?;
    let source = path.display().to_string();
    if documents::parse(&source, &text).is_ok_and(|objects| !objects.is_empty()) {
        anyhow::bail!(
            "{source}: this is a resource, and not a case; print the answer to it with: pintle render MODULE -f {source}"
        );
    }
    Ok(documents::parse_one(&source, &text)?)
}

/// The time that a case or a flag names.
///
/// # Errors
/// When it is no time of RFC 3339.
pub fn time(text: Option<&str>) -> anyhow::Result<Timestamp> {
    let text = text.unwrap_or(NOW);
    text.parse().map_err(|_| anyhow::anyhow!("{text:?} is no time: write it as {NOW}"))
}

impl Case {
    /// Whom the case is about.
    ///
    /// # Errors
    /// When the module has no such part.
    pub fn subject(&self, module: &Module) -> anyhow::Result<Subject> {
        let Some(name) = &self.view else {
            let guest = module.guest();
            let guest = guest.context("the module serves views alone: name the case's with `view`")?;
            return Ok(Subject::Reconciler(guest));
        };
        let views = module.views().context("the module serves no views")?;
        Ok(Subject::View { views, name: name.clone(), config: self.config.clone() })
    }

    /// The reason of the failure that the case expects.
    pub fn reason(&self) -> Option<&str> {
        Some(self.expect.as_ref()?.failure.as_ref()?.reason.as_str())
    }

    /// Asks about the objects of the case, twice and with children in other orders. The next pass must plan nothing, and the laws of views
    /// must hold. `beside` are the CRDs beside the module.
    ///
    /// # Errors
    /// When the case is about no root or several, or about objects that the view does not show.
    pub fn ask(&self, subject: &Subject, beside: &[Document]) -> anyhow::Result<Answer> {
        let (name, objects) = match subject {
            Subject::Reconciler(_) => ("objects", &self.objects),
            Subject::View { .. } => ("show", &self.show),
        };
        let is_empty = self.view.is_some() && objects.is_empty() && self.store.is_none();
        anyhow::ensure!(!is_empty, "a case of a view has `show` or `store`");
        let document = |(index, value): (usize, &Value)| {
            let source = format!("{name}[{index}]");
            Document { source, value: value.clone() }
        };
        let objects = Objects {
            documents: objects.iter().enumerate().map(document).collect(),
            beside,
            refusals: self.refusals.clone(),
            write: self.store.clone(),
            now: time(self.now.as_deref()).context("now")?,
            expected: self.reason(),
            strict: true,
        };
        ask(subject, objects)
    }
}

/// Runs a case: what the guest answers is compared with what the case expects. See [`Case::ask`].
///
/// # Errors
/// When there is nothing to compare.
pub fn judge(module: &Module, path: &Path, case: &Case, beside: &[Document]) -> anyhow::Result<CaseResult> {
    let judged = case.subject(module).and_then(|subject| judge_by(&subject, case, beside));
    judged.map_err(|error| anyhow::anyhow!("{}: {error:#}", path.display()))
}

fn judge_by(subject: &Subject, case: &Case, beside: &[Document]) -> anyhow::Result<CaseResult> {
    let answer = case.ask(subject, beside)?;
    let messages: Vec<&str> = answer.refused.iter().map(|refused| refused.message.as_str()).collect();
    let expected = case.expect.clone().map(|expected| expected.expected(case.view.is_none()));
    let violation = answer.violation.iter().map(ToString::to_string);
    Ok(CaseResult {
        message: (!messages.is_empty()).then(|| messages.join("\n")),
        is_recordable: answer.refused.iter().all(|refused| refused.blame == Blame::Guest),
        found: answer.shown.like(expected.as_ref().unwrap_or(&Shown::default())),
        problems: answer.unused.into_iter().chain(answer.problems).chain(violation).collect(),
        expected,
        warnings: answer.warnings,
        unchecked: answer.unchecked,
        trapped: answer.trapped,
    })
}

/// A case of what a guest is shown in a cluster: it expects what the guest answers to these objects now.
///
/// # Errors
/// When the objects are not about one root.
pub fn record(guest: &Guest, objects: Vec<Value>, now: &str) -> anyhow::Result<(Recording, CaseResult)> {
    let subject = Subject::Reconciler(guest.clone());
    let mut case = Case { objects, now: Some(now.to_owned()), ..Case::default() };
    let expect = judge_by(&subject, &case, &[])?.found;
    case.expect = Some(expect.clone());
    let result = judge_by(&subject, &case, &[])?;
    Ok((Recording { objects: case.objects, now: now.to_owned(), expect }, result))
}

/// A case as it is written.
#[derive(Clone, Debug, Serialize)]
pub struct Recording {
    /// The root, what is observed, and the Reconciler.
    pub objects: Vec<Value>,
    /// The clock.
    pub now: String,
    /// The answer.
    pub expect: Shown,
}

impl Recording {
    /// The reason for which the guest refuses these objects, where in the cluster it answered, or refused for another reason. Then the case
    /// is not about what happens there: something else stands in the place of what nobody is to read, and the guest does not take it.
    pub fn refuses_otherwise(&self, in_cluster: Option<&Failure>) -> Option<&str> {
        let reason = self.expect.failure.as_ref()?.reason.as_str();
        in_cluster.is_none_or(|failure| failure.reason != reason).then_some(reason)
    }
}

/// A case's text with another `expect`. What stands above and below it stays as it is, comments included.
pub fn updated(text: &str, expect: &str) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let is_key = |line: &&str| {
        line.starts_with(|first: char| first.is_ascii_alphabetic() || matches!(first, '"' | '\''))
    };
    let Some(start) = lines.iter().position(|line| line.starts_with("expect:")) else {
        let newline = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        return format!("{text}{newline}{expect}");
    };
    let after =
        lines.iter().skip(start + 1).position(is_key).map_or(lines.len(), |offset| start + 1 + offset);
    // Comments and empty lines right above the next key belong to it.
    let belongs = |line: &&&str| line.starts_with('#') || line.trim().is_empty();
    let above = lines.iter().take(after).skip(start + 1).rev().take_while(belongs).count();
    let end = if after == lines.len() { after } else { after - above };
    let part = |range: std::ops::Range<usize>| lines.get(range).unwrap_or_default().concat();
    format!("{}{expect}{}", part(0..start), part(end..lines.len()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_update_leaves_everything_but_expect_as_it_is() {
        let text = "# why\nobjects: # these\n- kind: A\n\nexpect:\n  children: []\n  # lost\n  status: {}\n\n# the clock\nnow: x\n";
        assert_eq!(
            updated(text, "expect:\n  children: [1]\n"),
            "# why\nobjects: # these\n- kind: A\n\nexpect:\n  children: [1]\n\n# the clock\nnow: x\n"
        );
        assert_eq!(updated("objects: []", "expect: {}\n"), "objects: []\nexpect: {}\n");
        assert_eq!(updated("objects: []\nexpect: {a: 1}\n", "expect: {}\n"), "objects: []\nexpect: {}\n");
    }

    #[test]
    fn a_misspelt_key_is_an_error() {
        for case in [json!({"objects": [], "expects": {}}), json!({"view": "a", "shows": []})] {
            assert!(serde_json::from_value::<Case>(case).is_err());
        }
    }
}
