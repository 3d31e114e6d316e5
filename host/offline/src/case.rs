//! Golden cases: a root, what is observed and refused, and the answer that is expected.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use jiff::Timestamp;
use pintle_core::request;
use pintle_engine::Guest;
use pintle_wit::{Event, Evictions, Failure, GuestCondition, Kind, Need};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{
    cluster::CaseRefusal,
    documents::{self, Document},
    run::{self, Blame, Report, Trapped},
    setting::{self, NOW, Setting, SettingError},
};

/// A case as it stands in its file.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Case {
    /// The root, what is observed, and optionally a Reconciler and the CRD.
    pub objects: Vec<Value>,
    /// What the API server refuses.
    #[serde(default)]
    pub refusals: Vec<CaseRefusal>,
    /// The clock (RFC 3339).
    #[serde(default)]
    pub now: Option<String>,
    /// The answer after the gate; absent in a case that `--update` is to fill in.
    #[serde(default)]
    pub expect: Option<Expect>,
}

/// The answer that a case expects. What it leaves out is expected to be empty.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Expect {
    /// The children, without what the host adds.
    #[serde(default)]
    pub children: Vec<Value>,
    /// The stages of the children that are not of the first one, as `Kind/name: stage`.
    #[serde(default)]
    pub stages: BTreeMap<String, u32>,
    /// The guest's status fields.
    #[serde(default)]
    pub status: Map<String, Value>,
    /// The guest's conditions.
    #[serde(default)]
    pub conditions: Vec<GuestCondition>,
    /// The guest's events.
    #[serde(default)]
    pub events: Vec<Event>,
    /// The patches of objects that the root does not own: `object`, `onRelease`.
    #[serde(default)]
    pub patches: Vec<Value>,
    /// The Pods that are to go.
    #[serde(default)]
    pub evictions: Option<Evictions>,
    /// What the guest asked to see in the end. Compared where it is given.
    #[serde(default)]
    pub needs: Option<Vec<Need>>,
    /// The root's condition `Ready` after the pass: status, reason, message. Compared as far as it is given.
    #[serde(default)]
    pub ready: Option<Map<String, Value>>,
    /// Instead of an answer: the reason and the path of a failure, and optionally its message.
    #[serde(default)]
    pub failure: Option<ExpectFailure>,
}

/// A failure that a case expects.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExpectFailure {
    /// The reason.
    pub reason: String,
    /// The field at fault.
    #[serde(default)]
    pub path: Option<String>,
    /// The message; compared when it is given.
    #[serde(default)]
    pub message: Option<String>,
}

/// An answer, or why there is none, in the form in which it is printed and expected.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Shown {
    /// The children.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub children: Option<Vec<Value>>,
    /// The stages of the children that are not of the first one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub stages: BTreeMap<String, u32>,
    /// The guest's status fields.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub status: Map<String, Value>,
    /// The guest's conditions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Value>,
    /// The guest's events.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Value>,
    /// The patches of objects that the root does not own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub patches: Vec<Value>,
    /// The Pods that are to go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evictions: Option<Value>,
    /// What the guest asked to see, where the case speaks of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs: Option<Vec<Value>>,
    /// The root's condition `Ready`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<Value>,
    /// The failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Value>,
}

fn values<T: Serialize>(items: &[T]) -> Vec<Value> {
    // Conditions and events are plain data, so that turning them into JSON cannot fail.
    items.iter().filter_map(|item| serde_json::to_value(item).ok()).collect()
}

impl Shown {
    /// What a run found: the answer, or the failure with its reason and path alone.
    pub fn of(report: &Report) -> Self {
        let failure = report.failure.as_ref().map(|(_, failure)| failure).or(report.violation.as_ref());
        if let Some(failure) = failure {
            return Self { failure: Some(short(failure, None)), ..Self::default() };
        }
        let answer = report.answer.clone().unwrap_or_default();
        Self {
            children: Some(answer.plain_children()),
            stages: answer.stages.clone(),
            status: answer.status.clone(),
            conditions: values(&answer.conditions),
            events: values(&answer.events),
            patches: answer.patches.clone(),
            evictions: answer.evictions.as_ref().and_then(|evictions| serde_json::to_value(evictions).ok()),
            ..Self::default()
        }
    }

    fn expected(expect: &Expect) -> Self {
        let ready = expect.ready.clone().map(Value::Object);
        if let Some(failure) = &expect.failure {
            return Self { failure: Some(failure.shown()), ready, ..Self::default() };
        }
        Self {
            children: Some(expect.children.clone()),
            stages: expect.stages.clone(),
            status: expect.status.clone(),
            conditions: values(&expect.conditions),
            events: values(&expect.events),
            patches: expect.patches.clone(),
            evictions: expect.evictions.as_ref().and_then(|evictions| serde_json::to_value(evictions).ok()),
            needs: expect.needs.as_deref().map(values),
            ready,
            failure: None,
        }
    }
}

impl ExpectFailure {
    /// The failure as it is printed.
    pub fn shown(&self) -> Value {
        let mut shown = json!({"reason": self.reason});
        if let Some(path) = &self.path {
            shown["path"] = path.as_str().into();
        }
        if let Some(message) = &self.message {
            shown["message"] = message.as_str().into();
        }
        shown
    }
}

/// A failure as it is printed and expected: its reason and path; and its message, where the case expects one.
pub(crate) fn short(failure: &Failure, expected: Option<&ExpectFailure>) -> Value {
    let message = expected.and_then(|expected| expected.message.as_ref()).map(|_| failure.message.clone());
    ExpectFailure { reason: failure.reason.clone(), path: failure.path.clone(), message }.shown()
}

/// What came of a case.
#[derive(Clone, Debug)]
pub struct CaseResult<Found = Shown> {
    /// What the guest did, in the form of the case's `expect`.
    pub found: Found,
    /// What the case expects; none when it expects nothing yet.
    pub expected: Option<Found>,
    /// What is wrong besides a difference, each in one line.
    pub problems: Vec<String>,
    /// The message of a failure, for a person.
    pub message: Option<String>,
    /// Whether `found` may become what the case expects: it is an answer, or a failure in the guest's own words. That a guest breaks
    /// or is refused is nothing to record.
    pub is_recordable: bool,
    /// See [`Report::unchecked`].
    pub unchecked: BTreeSet<Kind>,
    /// See [`Report::trapped`].
    pub trapped: Option<Trapped>,
}

impl<Found: PartialEq> CaseResult<Found> {
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
    let source = path.display();
    if documents::parse(&source.to_string(), &text).is_ok_and(|objects| !objects.is_empty()) {
        anyhow::bail!(
            "{source}: this is a resource, and not a case; print the answer to it with: pintle render MODULE -f {source}"
        );
    }
    Ok(documents::parse_one(&path.display().to_string(), &text)?)
}

/// The time that a case or a flag names.
///
/// # Errors
/// When it is no time of RFC 3339.
pub fn time(text: Option<&str>) -> anyhow::Result<Timestamp> {
    let text = text.unwrap_or(NOW);
    text.parse().map_err(|_| anyhow::anyhow!("{text:?} is no time: write it as {NOW}"))
}

/// Runs a case: the answer is compared, the guest is asked twice and with its children in other orders, and the next pass must
/// plan nothing.
/// `beside` are the CRDs beside the module.
///
/// # Errors
/// When the case is about no root, or about several.
pub fn judge(guest: &Guest, path: &Path, case: &Case, beside: &[Document]) -> anyhow::Result<CaseResult> {
    let documents: Vec<Document> = case
        .objects
        .iter()
        .enumerate()
        .map(|(index, value)| Document { source: format!("objects[{index}]"), value: value.clone() })
        .collect();
    let documents = setting::with_crds(guest.manifest(), documents, beside);
    let at = |error: String| anyhow::anyhow!("{}: {error}", path.display());
    let now = time(case.now.as_deref()).map_err(|error| at(format!("now: {error}")))?;
    let setting = match Setting::new(guest, documents, case.refusals.clone(), now) {
        Ok(setting) => setting,
        // What a host would refuse before any call is an outcome that a case may expect.
        Err(SettingError::Refused { source_name, failure }) => {
            // A case may be about what the guest says of a root that the CRD beside it would not let in: another CRD may, or have done so.
            if may_be_let_in(case, &failure) && !beside.is_empty() {
                return judge(guest, path, case, &[]);
            }
            let message = format!("{source_name}: {failure}");
            let found = Shown { failure: Some(short(&failure, None)), ..Shown::default() };
            let compared = compare(case, found, None, Some(message), Vec::new());
            return Ok(CaseResult { is_recordable: false, ..compared });
        }
        Err(error) => return Err(at(error.to_string())),
    };
    let report = run::run(guest, &setting, true);
    let mut problems = setting.unused.clone();
    problems.extend(unseen_status(&setting));
    problems.extend(report.unused_refusals.iter().cloned());
    problems.extend(report.violation.iter().map(ToString::to_string));
    let message = report.failure.as_ref().map(|(blame, failure)| format!("{}: {failure}", blame.what()));
    let ready = report.ready.as_ref().and_then(|ready| serde_json::to_value(ready).ok());
    let mut found = Shown::of(&Report { violation: None, ..report.clone() });
    if let (Some(answer), Some(_)) =
        (&report.answer, case.expect.as_ref().and_then(|expect| expect.needs.as_ref()))
    {
        found.needs = Some(values(&answer.needs));
    }
    if let (Some(failure), Some((_, full))) = (&mut found.failure, &report.failure)
        && wants_message(case)
    {
        failure["message"] = full.message.as_str().into();
    }
    let is_recordable = report.failure.as_ref().is_none_or(|(blame, _)| *blame == Blame::Guest);
    let (trapped, unchecked) = (report.trapped, report.unchecked);
    Ok(CaseResult { trapped, unchecked, is_recordable, ..compare(case, found, ready, message, problems) })
}

/// A case of what a guest is shown in a cluster: it expects what the guest answers to these objects now.
///
/// # Errors
/// When the objects are not about one root.
pub fn record(guest: &Guest, objects: Vec<Value>, now: &str) -> anyhow::Result<(Recording, CaseResult)> {
    let path = Path::new("the recorded case");
    let case = Case { objects, refusals: Vec::new(), now: Some(now.to_owned()), expect: None };
    let found = judge(guest, path, &case, &[])?.found;
    let expect: Expect = serde_json::from_value(serde_json::to_value(&found)?)?;
    let case = Case { expect: Some(expect), ..case };
    let result = judge(guest, path, &case, &[])?;
    Ok((Recording { objects: case.objects, now: now.to_owned(), expect: found }, result))
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
        let reason = self.expect.failure.as_ref()?.get("reason")?.as_str()?;
        in_cluster.is_none_or(|failure| failure.reason != reason).then_some(reason)
    }

    /// Whether the case expects this answer, as `pintle render` prints it: children, status, conditions, patches and evictions.
    pub fn expects(&self, answer: Option<&Value>) -> bool {
        // Plain data: it can be written as JSON.
        let expected = serde_json::to_value(&self.expect).unwrap_or_default();
        let is_same = |key: &str| match answer.map(|answer| answer.get(key)) {
            Some(value) => value == expected.get(key),
            None => expected.get("failure").is_some(),
        };
        ["children", "stages", "status", "conditions", "patches", "evictions"].into_iter().all(is_same)
    }
}

/// What is wrong with a case whose root has a status that its guest does not ask to see.
fn unseen_status(setting: &Setting) -> Option<String> {
    let manifest = &setting.binding.manifest;
    let own = request::own_status(setting.root.get("status")?).filter(|_| !manifest.observe_status)?;
    let fields: Vec<&str> = own.as_object()?.keys().map(String::as_str).collect();
    Some(format!(
        "the root's status has {}, which guest {} is not shown: leave it out of the case, or set observe_status in the manifest",
        fields.join(", "),
        manifest.name
    ))
}

/// Whether a case expects another failure than this one.
pub fn may_be_let_in(case: &Case, failure: &Failure) -> bool {
    let expected = case.expect.as_ref().and_then(|expect| expect.failure.as_ref());
    expected.is_some_and(|expected| expected.reason != failure.reason)
}

fn wants_message(case: &Case) -> bool {
    let failure = case.expect.as_ref().and_then(|expect| expect.failure.as_ref());
    failure.is_some_and(|failure| failure.message.is_some())
}

fn compare(
    case: &Case,
    mut found: Shown,
    ready: Option<Value>,
    message: Option<String>,
    problems: Vec<String>,
) -> CaseResult {
    if let (Some(wanted), Some(ready)) =
        (case.expect.as_ref().and_then(|expect| expect.ready.as_ref()), ready)
    {
        // Only what the case speaks of: the host's words may change without a change of the guest.
        let kept: Map<String, Value> =
            wanted.keys().filter_map(|key| Some((key.clone(), ready.get(key)?.clone()))).collect();
        found.ready = Some(Value::Object(kept));
    }
    let expected = case.expect.as_ref().map(Shown::expected);
    CaseResult {
        found,
        expected,
        problems,
        message,
        is_recordable: true,
        unchecked: BTreeSet::new(),
        trapped: None,
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
    fn what_a_case_leaves_out_is_expected_to_be_empty() {
        let expect: Expect = serde_json::from_value(json!({"children": []})).unwrap();
        let found = Shown { children: Some(Vec::new()), ..Shown::default() };
        assert_eq!(Shown::expected(&expect), found);
    }

    #[test]
    fn a_misspelt_key_is_an_error() {
        assert!(serde_json::from_value::<Case>(json!({"objects": [], "expects": {}})).is_err());
    }
}
