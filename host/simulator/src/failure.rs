//! The errors of the API server, as Status objects.

use pintle_core::view::status::{Details, MODIFIED, Status, fault};
use pintle_wit::Cause;
use serde_json::Value;

/// A request that was refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// The HTTP status code, 400 to 599.
    pub code: u16,
    /// The machine-readable reason, for instance `NotFound`. Empty for an unexpected error of the API server.
    pub reason: &'static str,
    /// What happened, in words.
    pub message: String,
    /// What it is about: the group, the plural of the kind (for an invalid object, the kind), and the name.
    pub about: Option<Box<[String; 3]>>,
    /// The fields that are at fault.
    pub causes: Vec<Cause>,
    /// The number of seconds after which the client should ask again.
    pub retry_after_seconds: Option<u32>,
}

impl Failure {
    /// A failure without causes.
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), ..Self::default() }
    }

    /// The failure for a status code, in the API server's own words. [`Faults`](crate::Faults) use it.
    pub fn of(code: u16) -> Self {
        let (reason, message) = match code {
            400 => ("BadRequest", "the server could not understand the request"),
            401 => ("Unauthorized", "Unauthorized"),
            403 => ("Forbidden", "the request is forbidden"),
            404 => ("NotFound", "the server could not find the requested resource"),
            409 => ("Conflict", MODIFIED),
            410 => ("Expired", "The resourceVersion for the provided watch is too old."),
            413 => ("RequestEntityTooLarge", "etcdserver: request is too large"),
            422 => ("Invalid", "the object is invalid"),
            429 => ("TooManyRequests", "too many requests, please try again later"),
            503 => ("ServiceUnavailable", "the server is currently unable to handle the request"),
            504 => ("Timeout", "request did not complete within the allotted timeout"),
            _ => ("InternalError", "an internal error occurred"),
        };
        let retry_after_seconds = (code == 429).then_some(1);
        Self { retry_after_seconds, ..Self::new(code, reason, message) }
    }

    /// The same with what it is about: a resource with its group behind a dot, and a name.
    pub(crate) fn about(self, resource: &str, name: &str) -> Self {
        let (kind, group) = resource.split_once('.').unwrap_or((resource, ""));
        Self { about: Some(Box::new([group, kind, name].map(Into::into))), ..self }
    }

    pub(crate) fn not_found(resource: &str, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{resource} {name:?} not found")).about(resource, name)
    }

    pub(crate) fn unknown_path() -> Self {
        Self::of(404)
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(crate) fn conflict(resource: &str, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {resource} {name:?}: {why}");
        Self::new(409, "Conflict", message).about(resource, name)
    }

    pub(crate) fn modified(resource: &str, name: &str) -> Self {
        Self::conflict(resource, name, MODIFIED)
    }

    pub(crate) fn invalid(kind: &str, name: &str, causes: Vec<Cause>) -> Self {
        let message = fault::listed(&causes).unwrap_or_default();
        let failure = Self::new(422, "Invalid", format!("{kind} {name:?} is invalid: {message}"));
        Self { causes, ..failure.about(kind, name) }
    }

    /// The simulator does not model what was asked.
    pub(crate) fn not_modelled(what: &str) -> Self {
        Self::new(501, "NotModelled", format!("the simulator does not model {what}"))
    }

    /// The Status in the body of a reply, or in an `ERROR` event.
    pub fn to_status(&self) -> Value {
        let [group, kind, name] = self.about.as_deref().cloned().unwrap_or_default();
        let causes = self.causes.clone();
        let retry_after_seconds = self.retry_after_seconds;
        let details = Details { group, kind, name, causes, retry_after_seconds, ..Details::default() };
        let (reason, message) = (self.reason, self.message.clone());
        Status { code: self.code, reason, message, details: Box::new(details) }.to_value()
    }
}

pub(crate) fn cause(field: &str, reason: &str, message: impl Into<String>) -> Cause {
    Cause { field: field.into(), reason: reason.into(), message: message.into() }
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        let Status { code, reason, message, details } = status;
        let Details { group, kind, name, causes, retry_after_seconds, .. } = *details;
        let about = (!kind.is_empty()).then(|| Box::new([group, kind, name]));
        Self { code, reason, message, about, causes, retry_after_seconds }
    }
}
