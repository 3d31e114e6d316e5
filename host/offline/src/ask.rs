//! Asking a guest about objects, through the gate: what `pintle render`, `test` and `check` do.

use std::collections::BTreeSet;

use jiff::Timestamp;
use pintle_core::{object, reasons, request};
use pintle_engine::{CallError, CallLimits, CallStats, Guest, Module, Origin, Views};
use pintle_wit::{
    Failure, Kind, Request, names,
    views::{ShowItem, ViewManifest},
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    cluster::CaseRefusal,
    documents::Document,
    elsewhere, run,
    setting::{self, Setting, SettingError},
    shown::{Shown, ShownItem},
    views::{
        laws::{self, Broken, Functions, Unanswered},
        subject::ViewGuest,
    },
};

/// Who is asked.
#[derive(Clone, Debug)]
pub enum Subject {
    /// The guest that reconciles, about a root.
    Reconciler(Guest),
    /// A view, about objects of its backing kind.
    View {
        /// The part of the module that serves views.
        views: Views,
        /// The name in its manifest.
        name: String,
        /// The config of the View; null has the guest take its defaults.
        config: Value,
    },
}

/// What is asked about.
#[derive(Clone, Debug, Default)]
pub struct Objects<'a> {
    /// The root with everything that a run on files may have ([`Setting`]), or the objects behind a view.
    pub documents: Vec<Document>,
    /// The CRDs beside the module. Their rules compile: [`setting::check_rules`] is for who reads them.
    pub beside: &'a [Document],
    /// What the API server refuses.
    pub refusals: Vec<CaseRefusal>,
    /// What somebody writes through the view.
    pub write: Option<Write>,
    /// The clock.
    pub now: Timestamp,
    /// The reason of the failure that is expected. The guest is asked about a root that the CRDs beside the module refuse for another one.
    pub expected: Option<&'a str>,
    /// Ask more often than needed, and compare.
    pub strict: bool,
}

/// What somebody writes through a view.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Write {
    /// The object of the view, as somebody writes it.
    pub object: Value,
    /// The object of the backing kind as it is before; absent when it is created.
    pub current: Option<Value>,
}

/// Who says that there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The guest, in its own words.
    Guest,
    /// The engine: the guest broke a limit, the contract or itself.
    Engine,
    /// The gate, the pass or the gateway: the answer may not be carried out.
    Gate,
    /// The schema of a child's kind, or of a patched object's: the API server would refuse it.
    Kind,
}

impl Blame {
    /// Who says that a call has no answer.
    pub(crate) fn of(error: &CallError) -> Self {
        match error.origin {
            Origin::Guest => Self::Guest,
            Origin::Engine => Self::Engine,
        }
    }

    /// What happened, for a person.
    pub fn what(self) -> &'static str {
        match self {
            Self::Guest => "the guest cannot decide",
            Self::Engine => "the guest broke",
            Self::Gate => "the gate refuses the guest's answer",
            Self::Kind => "the API server would refuse what the guest answers",
        }
    }
}

/// Why there is no answer, or none about an object.
#[derive(Clone, Debug)]
pub struct Refused {
    /// Who says so.
    pub blame: Blame,
    /// The failure.
    pub failure: Failure,
    /// What happened, for a person.
    pub message: String,
}

/// A request at which a guest trapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trapped {
    /// The function that was called, by the word for it of the guest's own program: `call`, `show` or `store`.
    pub function: &'static str,
    /// The text of its JSON.
    pub request: String,
}

impl Trapped {
    /// Takes note of the first request at which a guest trapped.
    pub(crate) fn note(kept: &mut Option<Self>, error: &CallError, function: &'static str, request: &str) {
        if error.origin == Origin::Engine && error.failure.reason == reasons::TRAP {
            kept.get_or_insert_with(|| Self { function, request: request.to_owned() });
        }
    }
}

/// What a guest answers after the gate, and what is to be said of it.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The answer, or why there is none.
    pub shown: Shown,
    /// The children with what the host adds, or the objects of the view with the parts that are the host's.
    pub objects: Vec<Value>,
    /// Why there is no answer, or none about an object.
    pub refused: Vec<Refused>,
    /// What is wrong with a guest although it answered: it is not deterministic, or not idempotent.
    pub violation: Option<Failure>,
    /// What is wrong with what was asked, or breaks a law of views.
    pub problems: Vec<String>,
    /// Names by which children mean each other and that none of them has.
    pub warnings: Vec<String>,
    /// Documents that play no part.
    pub unused: Vec<String>,
    /// What stands in the way of children, as the guest was told.
    pub refusals: Vec<String>,
    /// The kinds of children that nothing has a schema of, so that their fields were not checked.
    pub unchecked: BTreeSet<Kind>,
    /// The first request at which the guest trapped.
    pub trapped: Option<Trapped>,
    /// About a root: the first request, and the one whose answer counts, which has everything that the guest asked to see.
    pub requests: Option<(Request, Request)>,
    /// About a root: what the calls of the first pass cost.
    pub calls: Vec<CallStats>,
    /// About a root: what each call may use.
    pub limits: CallLimits,
    /// About a root: the schema of its kind, if its CRD is known.
    pub schema: Option<Value>,
}

/// Asks a guest that reconciles about a root, or a view about objects of its backing kind. The answer has passed the gate. That a host would
/// refuse what is asked about is an answer too.
///
/// # Errors
/// When the documents are not what can be asked about.
pub fn ask(subject: &Subject, objects: Objects<'_>) -> anyhow::Result<Answer> {
    let asked = match subject {
        Subject::Reconciler(guest) => about_root(guest, objects),
        Subject::View { views, name, config } => through_view(views, name, config, objects),
    };
    match asked {
        Err(SettingError::Refused { source_name, failure }) => {
            let mut answer = Answer::default();
            answer.refuse(&source_name, Blame::Gate, failure);
            Ok(answer)
        }
        asked => Ok(asked?),
    }
}

/// Whom documents are for, each with those that it is asked about: the guest that reconciles, or the views of a module. Views among the
/// documents name the views, with their configs. What plays no part is told beside.
pub fn subjects(module: &Module, documents: Vec<Document>) -> (Vec<(Subject, Vec<Document>)>, Vec<String>) {
    match (module.guest(), module.views()) {
        (Some(guest), _) if !are_for_views(module, &documents) => {
            (vec![(Subject::Reconciler(guest), documents)], Vec::new())
        }
        (_, Some(views)) => of_views(&views, documents),
        (_, None) => (Vec::new(), Vec::new()),
    }
}

/// Whether documents are for the views of a module, and not for its guest that reconciles.
pub fn are_for_views(module: &Module, documents: &[Document]) -> bool {
    let has = |kind: &Kind| documents.iter().any(|document| object::kind(&document.value) == *kind);
    let is_reconciled = module.guest().is_some_and(|guest| has(&guest.manifest().reconciles));
    let views = module.views();
    let is_shown = views.is_some_and(|views| views.manifest().views.iter().any(|view| has(&view.backing)));
    !is_reconciled && (is_shown || module.guest().is_none())
}

fn of_views(views: &Views, documents: Vec<Document>) -> (Vec<(Subject, Vec<Document>)>, Vec<String>) {
    let (named, documents): (Vec<_>, Vec<_>) = documents.into_iter().partition(is_view);
    let all = &views.manifest().views;
    let is_backing =
        |document: &Document| all.iter().any(|view| view.backing == object::kind(&document.value));
    let (crds, objects): (Vec<_>, Vec<_>) =
        documents.into_iter().partition(|document| document.is_crd() && !is_backing(document));
    let config_of = |document: &Document| {
        let view = views.manifest().view(object::text(&document.value, &["spec", "view"])?)?;
        Some((view, object::at(&document.value, &["spec", "config"]).cloned().unwrap_or_default()))
    };
    let wanted: Vec<(&ViewManifest, Value)> = if named.is_empty() {
        all.iter().map(|view| (view, Value::Null)).collect()
    } else {
        named.iter().filter_map(config_of).collect()
    };
    let asked = wanted.into_iter().map(|(view, config)| {
        let shown = objects.iter().filter(|document| is_shown(view, &document.value));
        let subject = Subject::View { views: views.clone(), name: view.name.clone(), config };
        (subject, shown.chain(&crds).cloned().collect::<Vec<Document>>())
    });
    let asked = asked.filter(|(_, documents)| documents.len() > crds.len()).collect();
    (asked, objects.iter().filter_map(|document| unused(all, document)).collect())
}

/// Whether a document is a View.
pub fn is_view(document: &Document) -> bool {
    let kind = object::kind(&document.value);
    kind.group() == names::DOMAIN && kind.kind == "View"
}

/// Whether a view shows an object: it is of the backing kind, and has the labels of the view's selector.
fn is_shown(view: &ViewManifest, value: &Value) -> bool {
    let label = |name: &str| object::text(value, &["metadata", "labels", name]);
    object::kind(value) == view.backing
        && view.selector.iter().all(|(name, wanted)| label(name) == Some(wanted))
}

/// Why no view shows a document.
fn unused(views: &[ViewManifest], Document { source, value }: &Document) -> Option<String> {
    let at = object::reference(value);
    let kind = object::kind(value);
    if !views.iter().any(|view| view.backing == kind) {
        return Some(format!("{source}: {at} plays no part: no view shows its kind"));
    }
    let is_any = views.iter().any(|view| is_shown(view, value));
    (!is_any).then(|| format!("{source}: {at} is not shown: it lacks the labels of the view"))
}

fn about_root(guest: &Guest, objects: Objects<'_>) -> Result<Answer, SettingError> {
    let Objects { documents, beside, refusals, now, expected, strict, .. } = objects;
    setting::check_rules(&documents)?;
    let with_crds = setting::with_crds(guest.manifest(), documents.clone(), beside);
    let again = (with_crds.clone(), refusals.clone());
    let setting = match Setting::new(guest, with_crds, refusals.clone(), now) {
        // Another CRD may let the root in, or have done so.
        Err(SettingError::Refused { failure, .. })
            if expected.is_some_and(|known| known != failure.reason) =>
        {
            Setting::new(guest, documents, refusals, now)?
        }
        setting => setting?,
    };
    let mut answer = run::run(guest, &setting, strict);
    answer.problems.extend(unseen_status(&setting));
    if strict && answer.refused.is_empty() && answer.violation.is_none() {
        let (documents, refusals) = again;
        answer.violation = elsewhere::differs(guest, &setting, documents, refusals, &answer.objects);
    }
    Ok(Answer { unused: setting.unused, limits: setting.call_limits, schema: setting.schema, ..answer })
}

/// What is wrong with a root that has a status that its guest does not ask to see.
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

fn through_view(
    views: &Views,
    name: &str,
    config: &Value,
    objects: Objects<'_>,
) -> Result<Answer, SettingError> {
    let backing = views.manifest().view(name).map(|view| &view.backing);
    let is_backing = |document: &Document| backing == Some(&object::kind(&document.value));
    let (crds, documents): (Vec<_>, Vec<_>) =
        objects.documents.into_iter().partition(|document| document.is_crd() && !is_backing(document));
    setting::check_rules(&crds)?;
    let crds: Vec<Document> = crds.iter().chain(objects.beside).cloned().collect();
    let guest = ViewGuest::new(views, name, config.clone(), &crds)
        .map_err(|failure| SettingError::Refused { source_name: format!("view {name}"), failure })?;
    let backing =
        documents.iter().map(|document| guest.view.backing_object(&document.value, &document.source));
    let backing: Vec<Value> = backing.collect::<Result<_, _>>().map_err(SettingError::Documents)?;
    let mut answer = Answer::default();
    answer.show(&guest, &backing, objects.strict);
    if let Some(write) = &objects.write {
        answer.store(&guest, write).map_err(SettingError::Documents)?;
    }
    answer.trapped = guest.trapped();
    Ok(answer)
}

impl Answer {
    /// That there is none.
    pub(crate) fn refuse(&mut self, what: &str, blame: Blame, failure: Failure) {
        self.shown.failure = Some((&failure).into());
        self.refused.push(Refused { blame, message: format!("{what}: {failure}"), failure });
    }

    /// What speaks against the guest, for a person.
    pub fn errors(&self) -> Vec<String> {
        let violation = self.violation.iter().map(ToString::to_string).filter(|_| self.refused.is_empty());
        self.refused.iter().map(|refused| refused.message.clone()).chain(violation).collect()
    }

    /// What is printed of it: the answer about a root, the objects of a view, or why there is no answer. `full` has the children as they
    /// would be applied.
    pub fn documents(self, full: bool) -> Vec<Value> {
        let Self { mut shown, objects, violation, .. } = self;
        let failure = shown.failure.take().or_else(|| violation.as_ref().map(Into::into));
        if let Some(failure) = failure {
            return vec![json!({"failure": failure})];
        }
        if shown.children.is_none() {
            return objects;
        }
        shown.needs.take_if(|needs| needs.is_empty());
        if full {
            shown.children = Some(objects);
        }
        vec![json!(shown)]
    }

    /// What is shown of objects of the backing kind.
    fn show(&mut self, guest: &ViewGuest<'_>, objects: &[Value], strict: bool) {
        if objects.is_empty() {
            return;
        }
        let shown = match guest.show(objects) {
            Ok(shown) => shown,
            Err(Unanswered { blame, failure }) => return self.refuse(blame.what(), blame, failure),
        };
        if strict {
            self.law(laws::answers(guest, objects));
        }
        for (index, (object, item)) in objects.iter().zip(shown.items).enumerate() {
            let item = match item {
                ShowItem::Object(fields) => {
                    if strict {
                        self.law(laws::kept(&guest.view, guest, object, &fields));
                    }
                    self.objects.push(guest.view.rendered(object, &fields));
                    ShownItem::Object(fields)
                }
                ShowItem::Failure(failure) => {
                    let which = match object::name(object) {
                        "" => format!("object {}", index + 1),
                        _ => guest.view.reference(object),
                    };
                    let message = format!("{which} cannot be shown: {failure}");
                    let item = ShownItem::Failure((&failure).into());
                    self.refused.push(Refused { blame: Blame::Guest, failure, message });
                    item
                }
            };
            self.shown.shown.push(item);
        }
    }

    /// What is stored of what somebody writes.
    fn store(&mut self, guest: &ViewGuest<'_>, write: &Write) -> Result<(), String> {
        let view = &guest.view;
        if !view.manifest.is_writable() {
            return Err(format!(
                "view {} is read-only: its manifest declares no `writes`",
                view.manifest.name
            ));
        }
        let current = write.current.as_ref().map(|current| view.backing_object(current, "store.current"));
        let current = current.transpose()?;
        let mut written = view.written_object(&write.object)?;
        let refused = |failure| Unanswered { blame: Blame::Gate, failure };
        let fits = view
            .admit(&mut written)
            .map_err(|cause| refused(Failure::terminal(reasons::INVALID, cause.message).at(cause.field)));
        let stored = fits.and_then(|()| guest.store(&written, current.as_ref())).and_then(|stored| {
            let taken = view.after(&written, current.as_ref(), &stored).and_then(|_| view.taken(&stored));
            taken.map_err(|refusal| refused(Failure::terminal(reasons::INVALID, laws::said(&refusal))))
        });
        match stored {
            Ok(taken) => {
                self.shown.stored = Some(taken);
                self.law(laws::written(view, guest, &written, current.as_ref()));
            }
            Err(Unanswered { blame: Blame::Gate, failure }) => {
                self.refuse("the gateway refuses the write", Blame::Gate, failure);
            }
            Err(Unanswered { blame, failure }) => self.refuse(blame.what(), blame, failure),
        }
        Ok(())
    }

    fn law<T>(&mut self, tried: Result<T, Broken>) {
        let broken = tried.err().map(|broken| format!("not so: {}: {}", broken.law.words(), broken.message));
        self.problems.extend(broken);
    }
}
