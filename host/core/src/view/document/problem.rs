//! [`Refusal`]: why a request for documents is not carried out, in the words of the seed's REST API, and of Kubernetes behind them.

use pintle_wit::{Cause, Failure};
use serde_json::Value;

use crate::view::{Status, write};

/// How many causes are passed on.
const CAUSES_MAX: usize = 100;

/// How many characters of a message are passed on.
const MESSAGE_CHARS_MAX: usize = 8 << 10;

/// What kind of thing happened, as the seed's REST API titled it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Title {
    /// The request cannot be read.
    BadRequest,
    /// It can be read and is not valid.
    ValidationError,
    /// Everything else.
    #[default]
    Error,
}

impl Title {
    /// The words.
    pub fn words(self) -> &'static str {
        match self {
            Self::BadRequest => "Bad Request",
            Self::ValidationError => "Validation error",
            Self::Error => "Error",
        }
    }
}

/// What a request was about to do. Its words stand before those of Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// Reading a document.
    Get,
    /// Reading all.
    List,
    /// Following changes.
    Watch,
    /// Creating a document.
    Create,
    /// Replacing or changing one.
    Update,
    /// Deleting one.
    Delete,
}

/// Why a request is not carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status code.
    pub status: u16,
    /// What kind of thing happened.
    pub title: Title,
    /// What happened.
    pub details: String,
    /// The fields that are at fault, with the paths that Kubernetes has for them.
    pub causes: Vec<Cause>,
    /// One CamelCase word for programs.
    pub reason: String,
    /// The seconds after which it may be tried again.
    pub retry_after: Option<u32>,
}

impl Doing {
    fn words(self) -> &'static str {
        match self {
            Self::Get => "Could not retrieve object",
            Self::List => "Could not retrieve list",
            Self::Watch => "Could not follow list",
            Self::Create => "Could not create object",
            Self::Update => "Could not update object",
            Self::Delete => "Could not delete object",
        }
    }
}

impl Refusal {
    fn new(status: u16, title: Title, reason: &str, details: impl Into<String>) -> Self {
        Self { status, title, reason: reason.to_owned(), details: details.into(), ..Self::default() }
    }

    /// 400: a part of the request cannot be read.
    pub fn bad_request(details: impl Into<String>) -> Self {
        Self::new(400, Title::BadRequest, "BadRequest", details)
    }

    /// 400: the body is no JSON object.
    pub fn unreadable() -> Self {
        Self::bad_request("Could not read entity")
    }

    /// 422: these fields are not valid.
    pub fn invalid(causes: Vec<Cause>) -> Self {
        let said = |cause: &Cause| format!("{}: {}", cause.field, cause.message);
        let details = causes.iter().map(said).collect::<Vec<_>>().join("; ");
        Self { causes, ..Self::new(422, Title::ValidationError, "Invalid", details) }
    }

    /// 422: what the guest says of a document, in its words.
    pub fn of_guest(failure: &Failure) -> Self {
        let cause = Cause {
            field: failure.path.clone().unwrap_or_default(),
            message: failure.message.clone(),
            reason: failure.reason.clone(),
        };
        Self {
            causes: vec![cause],
            ..Self::new(422, Title::ValidationError, &failure.reason, &failure.message)
        }
    }

    /// 428: whoever replaces a document must say which version of it is known.
    pub fn version_needed() -> Self {
        let details = "resourceVersion is missing: send the document as it was read, or the header If-Match";
        Self::new(428, Title::Error, "PreconditionRequired", details)
    }

    /// 409: somebody else has written the document since.
    pub fn modified(doing: Doing) -> Self {
        let details = format!("{}: {}", doing.words(), crate::view::status::MODIFIED);
        Self::new(409, Title::Error, "Conflict", details)
    }

    /// 405: nothing of the view can be written, or not in this way.
    pub fn not_allowed(verb: &str) -> Self {
        Self::new(405, Title::Error, "MethodNotAllowed", format!("the View does not allow {verb}"))
    }

    /// 415: the body is in a form that is not read.
    pub fn unsupported(forms: &str) -> Self {
        Self::new(415, Title::Error, "UnsupportedMediaType", format!("the body must be {forms}"))
    }

    /// 503: nothing is served at the moment.
    pub fn unavailable(why: impl Into<String>, seconds: u32) -> Self {
        let refusal = Self::new(503, Title::Error, "ServiceUnavailable", why);
        Self { retry_after: Some(seconds), ..refusal }
    }

    /// 500: the guest of the view failed.
    pub fn guest_failed(why: &str) -> Self {
        Self::new(500, Title::Error, "InternalError", format!("the guest of the view failed: {why}"))
    }

    /// 504: the API server took too long. What is written may have been carried out.
    pub fn too_late(doing: Doing) -> Self {
        let details = format!("{}: the API server took too long to answer", doing.words());
        Self::new(504, Title::Error, "Timeout", details)
    }

    /// 502: the API server cannot be reached, or its answer cannot be read.
    pub fn bad_gateway(doing: Doing, why: &str) -> Self {
        Self::new(502, Title::Error, "BadGateway", format!("{}: {why}", doing.words()))
    }

    /// What the API server answered instead of what was asked for. Its code passes; of a 422 its causes too.
    pub fn of_answer(doing: Doing, code: u16, retry_after: Option<u32>, body: &Value) -> Self {
        let text =
            |value: &Value, key: &str| bounded(value.get(key).and_then(Value::as_str).unwrap_or_default());
        let (message, reason) = (text(body, "message"), text(body, "reason"));
        let message = if message.is_empty() { format!("the API server answered {code}") } else { message };
        let causes = body.pointer("/details/causes").and_then(Value::as_array);
        let causes = causes.into_iter().flatten().take(CAUSES_MAX).map(|cause| Cause {
            field: text(cause, "field"),
            message: text(cause, "message"),
            reason: text(cause, "reason"),
        });
        let in_body = || body.pointer("/details/retryAfterSeconds").and_then(Value::as_u64);
        let retry_after = retry_after.or_else(|| in_body().and_then(|seconds| u32::try_from(seconds).ok()));
        // A redirect is no answer for whoever asked for a document.
        let status = if (400..600).contains(&code) { code } else { 502 };
        let (title, details) = match status {
            422 => (Title::ValidationError, message),
            _ => (Title::Error, format!("{}: {message}", doing.words())),
        };
        Self { causes: causes.collect(), retry_after, ..Self::new(status, title, &reason, details) }
    }

    /// What an option, a version or a page is refused for, in the words that the API server has for it.
    pub fn of_status(doing: Doing, status: &Status) -> Self {
        let (title, details) = match status.code {
            400 => (Title::BadRequest, status.message.clone()),
            422 => (Title::ValidationError, status.message.clone()),
            _ => (Title::Error, format!("{}: {}", doing.words(), status.message)),
        };
        Self {
            causes: status.details.causes.clone(),
            retry_after: status.details.retry_after_seconds,
            ..Self::new(status.code, title, status.reason, details)
        }
    }

    /// What a backing object cannot become.
    pub fn of_write(refusal: write::Refusal) -> Self {
        match refusal {
            write::Refusal::Invalid(causes) => Self::invalid(causes),
            write::Refusal::Conflict(why) => {
                Self::new(409, Title::Error, "Conflict", format!("{}: {why}", Doing::Update.words()))
            }
        }
    }
}

fn bounded(text: &str) -> String {
    text.chars().take(MESSAGE_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_refusal_of_kubernetes_keeps_its_code_behind_the_seeds_words() {
        let body = json!({"kind": "Status", "code": 409, "reason": "AlreadyExists", "message": "darkrooms \"a\" already exists"});
        let refusal = Refusal::of_answer(Doing::Create, 409, None, &body);
        assert_eq!(
            (refusal.status, refusal.title.words(), refusal.details.as_str(), refusal.reason.as_str()),
            (409, "Error", "Could not create object: darkrooms \"a\" already exists", "AlreadyExists")
        );
        let busy = json!({"message": "later", "details": {"retryAfterSeconds": 3}});
        let refusal = Refusal::of_answer(Doing::List, 429, None, &busy);
        assert_eq!((refusal.status, refusal.retry_after), (429, Some(3)));
        assert_eq!(refusal.details, "Could not retrieve list: later");
        let redirect = Refusal::of_answer(Doing::Get, 302, None, &Value::Null);
        assert_eq!(
            (redirect.status, redirect.details.as_str()),
            (502, "Could not retrieve object: the API server answered 302")
        );
    }

    #[test]
    fn what_is_not_valid_has_its_fields_whoever_says_it() {
        let guest = Failure::terminal("InvalidSpec", "baseUrl can't be empty").at("spec.source.baseUrl");
        let refusal = Refusal::of_guest(&guest);
        assert_eq!(
            (refusal.status, refusal.title.words(), refusal.details.as_str()),
            (422, "Validation error", "baseUrl can't be empty")
        );
        assert_eq!(refusal.causes[0].field, "spec.source.baseUrl");
        let body = json!({"code": 422, "reason": "Invalid", "message": "is invalid: spec.subDomains: Required value",
            "details": {"causes": [{"field": "spec.subDomains", "message": "Required value", "reason": "FieldValueRequired"}]}});
        let refusal = Refusal::of_answer(Doing::Create, 422, None, &body);
        assert_eq!(
            (refusal.title.words(), refusal.details.as_str()),
            ("Validation error", "is invalid: spec.subDomains: Required value")
        );
        assert_eq!(refusal.causes[0].reason, "FieldValueRequired");
    }
}
