//! The laws of a lens, as functions over what a guest shows and stores.
//!
//! Nothing is read or called here but the two functions, so that a law is tried on objects from files and on generated ones alike.

use pintle_core::{reasons, view::write::Refusal};
use pintle_wit::{Failure, views::ShowItem};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    fields,
    view::{View, without_host_parts},
};
use crate::{ask::Blame, difference::differences, numbers};

/// How many differences a message lists.
const LISTED: usize = 5;

/// The two functions of a view.
pub trait Functions {
    /// What is shown of objects of the backing kind.
    ///
    /// # Errors
    /// When there is no answer about any of them.
    fn show(&self, objects: &[Value]) -> Result<Shown, Unanswered>;

    /// What becomes of an object of the backing kind when somebody writes this.
    ///
    /// # Errors
    /// When the write is refused, or the guest breaks.
    fn store(&self, written: &Value, current: Option<&Value>) -> Result<Map<String, Value>, Unanswered>;
}

/// What a guest shows of some objects.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// An item for each object.
    pub items: Vec<ShowItem>,
    /// The same as the guest wrote it.
    pub text: String,
}

/// Why a guest gave no answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Unanswered {
    /// Who says so: the guest, or the engine.
    pub blame: Blame,
    /// The reason.
    pub failure: Failure,
}

/// A law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// Every call has an answer.
    Answered,
    /// `show` is total.
    Total,
    /// What is shown has the schema that the view declares.
    Fitting,
    /// Equal calls give equal answers.
    Deterministic,
    /// What is shown of an object is its own matter.
    Independent,
    /// Numbers go through as they are.
    Exact,
    /// Storing what was shown changes nothing.
    Kept,
    /// Showing what was stored gives what was written.
    Written,
}

impl Law {
    /// The law in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Answered => "every call is answered",
            Self::Total => "every object that the schema of the backing kind allows is shown",
            Self::Fitting => "what is shown fits the schema of the view",
            Self::Deterministic => "equal calls give byte-equal answers",
            Self::Independent => "what is shown of an object does not depend on the other objects",
            Self::Exact => "a number that goes through the guest stays the same integer or the same double",
            Self::Kept => "storing what was shown changes nothing",
            Self::Written => "showing what was stored gives what was written",
        }
    }

    /// The reason of a failure that says that the law is broken.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Deterministic | Self::Independent => reasons::NOT_DETERMINISTIC,
            Self::Exact => reasons::NUMBER_CHANGED,
            Self::Answered | Self::Total | Self::Fitting | Self::Kept | Self::Written => reasons::NOT_A_LENS,
        }
    }
}

/// A law that a view breaks.
#[derive(Clone, Debug, PartialEq)]
pub struct Broken {
    /// The law.
    pub law: Law,
    /// How it is broken.
    pub message: String,
    /// The objects that show it. They are boxed to keep this type small, since nearly everything holds.
    pub example: Box<Example>,
}

/// What shows that a law is broken.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Example {
    /// Objects of the backing kind, as the guest sees them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub backing: Vec<Value>,
    /// What somebody writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written: Option<Value>,
    /// What the guest stores of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored: Option<Value>,
    /// What the guest shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shown: Option<Value>,
}

impl Broken {
    fn new(law: Law, message: impl Into<String>, backing: &[Value]) -> Self {
        let example = Example { backing: backing.to_vec(), ..Example::default() };
        Self { law, message: message.into(), example: Box::new(example) }
    }

    /// The same as a failure.
    pub fn failure(&self) -> Failure {
        Failure::terminal(self.law.reason(), format!("not so: {}: {}", self.law.words(), self.message))
    }

    /// With what was shown.
    fn shown(mut self, shown: &Value) -> Self {
        self.example.shown = Some(shown.clone());
        self
    }

    /// With what was written.
    fn written(mut self, written: &Value) -> Self {
        self.example.written = Some(written.clone());
        self
    }

    /// With what was stored.
    fn stored(mut self, stored: &Map<String, Value>) -> Self {
        self.example.stored = Some(stored.clone().into());
        self
    }
}

/// What is shown of objects; the answer must be the same when the guest is asked again, and one by one.
///
/// # Errors
/// [`Law::Answered`], [`Law::Deterministic`] or [`Law::Independent`].
pub fn answers(guest: &impl Functions, objects: &[Value]) -> Result<Vec<ShowItem>, Broken> {
    let show = |objects: &[Value]| {
        guest
            .show(objects)
            .map_err(|unanswered| Broken::new(Law::Answered, unanswered.failure.to_string(), objects))
    };
    let first = show(objects)?;
    if show(objects)?.text != first.text {
        let message = "asked the same again, the guest shows something else";
        return Err(Broken::new(Law::Deterministic, message, objects));
    }
    for (index, (object, item)) in objects.iter().zip(&first.items).enumerate() {
        let alone = show(std::slice::from_ref(object))?.items.into_iter().next();
        if alone.as_ref() != Some(item) {
            let message = format!("alone, object {} of {} is shown otherwise", index + 1, objects.len());
            let both =
                [Some(item), alone.as_ref()].map(|item| serde_json::to_value(item).unwrap_or_default());
            return Err(Broken::new(Law::Independent, message, objects).shown(&both.to_vec().into()));
        }
    }
    Ok(first.items)
}

/// The fields that are shown of an object: every object is shown.
///
/// # Errors
/// [`Law::Total`].
pub fn total<'i>(object: &Value, item: &'i ShowItem) -> Result<&'i Map<String, Value>, Broken> {
    match item {
        ShowItem::Object(fields) => Ok(fields),
        ShowItem::Failure(failure) => {
            Err(Broken::new(Law::Total, failure.to_string(), std::slice::from_ref(object)))
        }
    }
}

/// What is shown of an object has the schema of the view and the object's numbers, and changes nothing when it is stored.
///
/// # Errors
/// [`Law::Exact`], [`Law::Fitting`], [`Law::Answered`], [`Law::Deterministic`] or [`Law::Kept`].
pub fn kept(
    view: &View<'_>,
    guest: &impl Functions,
    object: &Value,
    shown: &Map<String, Value>,
) -> Result<(), Broken> {
    let mut written = view.whole(object, shown);
    let broken = |law, message: String| Broken::new(law, message, std::slice::from_ref(object));
    if let Some(changed) = numbers::changed(object, &shown.clone().into()) {
        return Err(broken(Law::Exact, changed.to_string()).shown(&written));
    }
    view.admit(&mut written).map_err(|cause| {
        broken(Law::Fitting, format!("{}: {}", cause.field, cause.message)).shown(&written)
    })?;
    if !view.manifest.is_writable() {
        return Ok(());
    }
    let stored = match store(guest, &written, Some(object))? {
        Ok(stored) => stored,
        Err(failure) => {
            let message = format!("the guest refuses to store what it shows: {failure}");
            return Err(broken(Law::Kept, message).written(&written));
        }
    };
    let after = view.after(&written, Some(object), &stored);
    let after = after.map_err(|refusal| broken(Law::Kept, said(&refusal)).written(&written))?;
    let of = |object: &Value| {
        let mut object = object.clone();
        view.fill_in_backing(&mut object);
        without_host_parts(&mut object);
        fields::normal(&object)
    };
    let changed = differences(&of(object), &of(&after), LISTED);
    if changed.is_empty() {
        return Ok(());
    }
    Err(broken(Law::Kept, changed.join("; ")).written(&written).stored(&stored))
}

/// What somebody writes is shown as it was written. `status` is apart: it is shown, and not written. False where the guest refuses the write,
/// or the schema of the backing kind does not allow what it stores.
///
/// # Errors
/// [`Law::Exact`], [`Law::Answered`], [`Law::Deterministic`] or [`Law::Written`].
pub fn written(
    view: &View<'_>,
    guest: &impl Functions,
    written: &Value,
    current: Option<&Value>,
) -> Result<bool, Broken> {
    let Ok(stored) = store(guest, written, current)? else { return Ok(false) };
    if let Some(changed) = numbers::changed(&json!([written, current]), &stored.clone().into()) {
        let current = current.map_or(&[][..], std::slice::from_ref);
        return Err(Broken::new(Law::Exact, changed.to_string(), current).written(written).stored(&stored));
    }
    let broken = |message: String, object: &Value| {
        Broken::new(Law::Written, message, std::slice::from_ref(object)).written(written).stored(&stored)
    };
    let Ok(object) = view.after(written, current, &stored) else { return Ok(false) };
    if !view.is_backing(&object) {
        return Ok(false);
    }
    let shown = guest.show(std::slice::from_ref(&object)).map_err(|unanswered| {
        Broken::new(Law::Answered, unanswered.failure.to_string(), std::slice::from_ref(&object))
    })?;
    let shown = match shown.items.first() {
        Some(ShowItem::Object(shown)) => Value::Object(shown.clone()),
        Some(ShowItem::Failure(failure)) => {
            return Err(broken(format!("the guest does not show what it stored: {failure}"), &object));
        }
        None => Value::Null,
    };
    let changed = differences(&view.comparable(written), &view.comparable(&shown), LISTED);
    if changed.is_empty() {
        return Ok(true);
    }
    Err(broken(changed.join("; "), &object).shown(&shown))
}

/// What the guest stores, or why the guest refuses; it must be the same when the guest is asked again.
fn store(
    guest: &impl Functions,
    written: &Value,
    current: Option<&Value>,
) -> Result<Result<Map<String, Value>, Failure>, Broken> {
    let broken = |law, message: String| {
        Broken::new(law, message, current.map_or(&[], std::slice::from_ref)).written(written)
    };
    let first = guest.store(written, current);
    if guest.store(written, current) != first {
        let message = "asked the same again, the guest stores something else".to_owned();
        return Err(broken(Law::Deterministic, message));
    }
    match first {
        Ok(stored) => Ok(Ok(stored)),
        Err(Unanswered { blame: Blame::Guest, failure }) => Ok(Err(failure)),
        Err(Unanswered { failure, .. }) => Err(broken(Law::Answered, failure.to_string())),
    }
}

/// Why a gateway refuses a write.
pub(crate) fn said(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Invalid(causes) => {
            let causes: Vec<String> =
                causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
            causes.join("; ")
        }
        Refusal::Conflict(message) => message.clone(),
    }
}

#[cfg(test)]
mod tests;
