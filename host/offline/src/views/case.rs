//! Golden cases of views: objects of the backing kind and what is shown of them, or what somebody writes and what is stored of it.

use std::path::Path;

use pintle_core::{object, reasons};
use pintle_engine::Views;
use pintle_wit::{Failure, views::ShowItem};
use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::{Map, Value, json};

use super::{
    laws::{self, Broken, Functions, Unanswered},
    subject::Subject,
};
use crate::{
    case::{self, Case, CaseResult, ExpectFailure},
    documents::{self, Document},
    run::Blame,
};

/// A case as it stands in its file.
#[derive(Clone, Debug)]
pub enum AnyCase {
    /// A case of a guest that reconciles: it is about a root.
    Root(Box<Case>),
    /// A case of a view.
    View(Box<ViewCase>),
}

/// A case of a view. It shows, or stores, or does both.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ViewCase {
    /// The view, by its name in the manifest.
    pub view: String,
    /// The View's config; the defaults of the guest if it is left out.
    #[serde(default)]
    pub config: Value,
    /// Objects of the backing kind.
    #[serde(default)]
    pub show: Vec<Value>,
    /// A write.
    #[serde(default)]
    pub store: Option<StoreCase>,
    /// What is shown and stored; absent in a case that `--update` is to fill in.
    #[serde(default)]
    pub expect: Option<Expect>,
}

/// What somebody writes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StoreCase {
    /// The object of the view, as somebody writes it.
    pub object: Value,
    /// The object of the backing kind as it is before; absent when it is created.
    #[serde(default)]
    pub current: Option<Value>,
}

/// What a case expects.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Expect {
    /// For each object of `show`, what is shown of it.
    #[serde(default)]
    pub shown: Vec<ExpectItem>,
    /// The fields that `store` sets, at the paths that the view declares.
    #[serde(default)]
    pub stored: Option<Map<String, Value>>,
    /// Why nothing is stored.
    #[serde(default)]
    pub failure: Option<ExpectFailure>,
}

/// What a case expects to be shown of an object.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ExpectItem {
    /// The fields of the shown object, besides `apiVersion`, `kind` and `metadata`.
    Object(Map<String, Value>),
    /// Why it cannot be shown: reason and path, and optionally the message.
    Failure(ExpectFailure),
}

/// What a view shows and stores, in the form in which it is printed and expected.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// For each object, `object` or `failure`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<Value>,
    /// The stored fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored: Option<Value>,
    /// Why nothing is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Value>,
}

impl Found {
    fn expected(expect: &Expect) -> Self {
        let item = |item: &ExpectItem| match item {
            ExpectItem::Object(fields) => json!({"object": fields}),
            ExpectItem::Failure(failure) => json!({"failure": failure.shown()}),
        };
        Self {
            shown: expect.shown.iter().map(item).collect(),
            stored: expect.stored.clone().map(Value::Object),
            failure: expect.failure.as_ref().map(ExpectFailure::shown),
        }
    }
}

/// Reads a case. One with a `view` is about a view.
///
/// # Errors
/// When the file cannot be read, or is no case.
pub fn read(path: &Path) -> anyhow::Result<AnyCase> {
    #[derive(Deserialize)]
    struct Peek {
        view: Option<IgnoredAny>,
    }
    let text = documents::read_text(path)?;
    let peek: Result<Peek, _> = documents::parse_one(&path.display().to_string(), &text);
    match peek {
        Ok(Peek { view: Some(_) }) => {
            Ok(AnyCase::View(Box::new(documents::parse_one(&path.display().to_string(), &text)?)))
        }
        _ => Ok(AnyCase::Root(Box::new(case::read(path)?))),
    }
}

/// Runs a case: what is shown and stored is compared, and the laws are tried on the objects of the case. `beside` are the CRDs beside the
/// module.
///
/// # Errors
/// When the case is about no view of the module, or about objects of another kind.
pub fn judge(
    module: &Views,
    path: &Path,
    case: &ViewCase,
    beside: &[Document],
) -> anyhow::Result<CaseResult<Found>> {
    let at = |error: String| anyhow::anyhow!("{}: {error}", path.display());
    let subject = Subject::new(module, &case.view, case.config.clone(), beside);
    let subject = subject.map_err(|failure| at(failure.to_string()))?;
    if case.show.is_empty() && case.store.is_none() {
        return Err(at("a case of a view has `show` or `store`".into()));
    }
    let expect = case.expect.clone().unwrap_or_default();
    let mut judged = Judged::default();
    judged.show(&subject, &case.show, &expect).map_err(at)?;
    if let Some(store) = &case.store {
        judged.store(&subject, store, &expect).map_err(at)?;
    }
    Ok(CaseResult {
        found: judged.found,
        expected: case.expect.as_ref().map(Found::expected),
        problems: judged.problems,
        message: (!judged.messages.is_empty()).then(|| judged.messages.join("; ")),
        is_recordable: !judged.is_unfit,
        unchecked: std::collections::BTreeSet::new(),
        trapped: subject.trapped(),
    })
}

/// What is known of a case so far.
#[derive(Default)]
struct Judged {
    found: Found,
    problems: Vec<String>,
    /// The messages of failures, for a person.
    messages: Vec<String>,
    /// Whether something is nothing to record: the guest broke, or was not asked.
    is_unfit: bool,
}

impl Judged {
    fn show(&mut self, subject: &Subject<'_>, objects: &[Value], expect: &Expect) -> Result<(), String> {
        let objects: Vec<Value> = objects
            .iter()
            .enumerate()
            .map(|(index, object)| backing(subject, object, &format!("show[{index}]")))
            .collect::<Result<_, _>>()?;
        if objects.is_empty() {
            return Ok(());
        }
        let items = match subject.show(&objects) {
            Ok(shown) => shown.items,
            Err(unanswered) => {
                self.found.failure = Some(self.failed(&unanswered, expect.failure.as_ref()));
                return Ok(());
            }
        };
        self.law(laws::answers(subject, &objects));
        for (index, (object, item)) in objects.iter().zip(&items).enumerate() {
            let expected = match expect.shown.get(index) {
                Some(ExpectItem::Failure(failure)) => Some(failure),
                _ => None,
            };
            let found = match item {
                ShowItem::Object(shown) => {
                    self.law(laws::kept(&subject.view, subject, object, shown));
                    json!({"object": shown})
                }
                ShowItem::Failure(failure) => {
                    self.messages.push(format!("show[{index}]: {failure}"));
                    json!({"failure": case::short(failure, expected)})
                }
            };
            self.found.shown.push(found);
        }
        Ok(())
    }

    fn store(&mut self, subject: &Subject<'_>, store: &StoreCase, expect: &Expect) -> Result<(), String> {
        let view = &subject.view;
        if !view.manifest.is_writable() {
            return Err(format!(
                "view {} is read-only: its manifest declares no `writes`",
                view.manifest.name
            ));
        }
        let current =
            store.current.as_ref().map(|current| backing(subject, current, "store.current")).transpose()?;
        let mut written = match &view.manifest.shown {
            Some(shown) => of_kind(&store.object, &shown.kind(), "store.object")?,
            None => store.object.clone(),
        };
        // What the gateway does before a guest is asked.
        view.shown.default(&mut written);
        if let Err(cause) = view.fits(&written) {
            let failure = Failure::terminal(reasons::INVALID, cause.message).at(cause.field);
            let refused = Unanswered { blame: Blame::Gate, failure };
            self.found.failure = Some(self.failed(&refused, expect.failure.as_ref()));
            return Ok(());
        }
        match subject.store(&written, current.as_ref()) {
            Ok(stored) => match view.after(&written, current.as_ref(), &stored) {
                Ok(_) => {
                    self.found.stored = view.taken(&stored).ok();
                    self.law(laws::written(view, subject, &written, current.as_ref()));
                }
                Err(refusal) => {
                    let failure = Failure::terminal(reasons::INVALID, laws::said(&refusal));
                    let refused = Unanswered { blame: Blame::Gate, failure };
                    self.found.failure = Some(self.failed(&refused, expect.failure.as_ref()));
                }
            },
            Err(unanswered) => {
                self.found.failure = Some(self.failed(&unanswered, expect.failure.as_ref()));
            }
        }
        Ok(())
    }

    /// Takes note of a failure, and gives it in the form of an expectation.
    fn failed(&mut self, unanswered: &Unanswered, expected: Option<&ExpectFailure>) -> Value {
        self.is_unfit |= unanswered.blame != Blame::Guest;
        let what = match unanswered.blame {
            Blame::Gate => "the gateway refuses the write",
            blame => blame.what(),
        };
        self.messages.push(format!("{what}: {}", unanswered.failure));
        case::short(&unanswered.failure, expected)
    }

    fn law<T>(&mut self, tried: Result<T, Broken>) {
        let broken = tried.err().map(|broken| format!("not so: {}: {}", broken.law.words(), broken.message));
        self.problems.extend(broken);
    }
}

/// An object of the backing kind, as an API server hands it out.
fn backing(subject: &Subject<'_>, object: &Value, at: &str) -> Result<Value, String> {
    let mut object = of_kind(object, &subject.view.manifest.backing, at)?;
    subject.view.fill_in_backing(&mut object);
    Ok(object)
}

/// The object with its kind, which it may leave out.
fn of_kind(object: &Value, kind: &pintle_wit::Kind, at: &str) -> Result<Value, String> {
    let mut object = object.clone();
    let Some(fields) = object.as_object_mut() else { return Err(format!("{at} is no object")) };
    fields.entry("apiVersion").or_insert_with(|| kind.api_version.as_str().into());
    fields.entry("kind").or_insert_with(|| kind.kind.as_str().into());
    fields.entry("metadata").or_insert_with(|| json!({}));
    let found = object::kind(&object);
    match found == *kind {
        true => Ok(object),
        false => Err(format!("{at} is a {found}, and should be a {kind}")),
    }
}

#[cfg(test)]
mod tests;
