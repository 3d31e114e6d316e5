//! [`ApiError`]: how a request to the API server failed, and whether a retry can help.

use std::{fmt, time::Duration};

use pintle_wit::{Cause, ObjectRef};

/// The reason of an error about a kind that the API server does not serve.
pub const KIND_MISSING: &str = "KindMissing";

/// What the API server, or the way to it, said instead of yes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiError {
    /// The HTTP status code; 0 when there was no reply, so that nobody knows whether the request was carried out.
    pub code: u16,
    /// The reason in the API server's words.
    pub reason: String,
    /// The message in the API server's words.
    pub message: String,
    /// What was wrong, field by field.
    pub causes: Vec<Cause>,
    /// How long the API server asked to be left alone.
    pub retry_after: Option<Duration>,
}

/// The reason of a write that was not sent, since another host leads.
const NOT_LEADING: &str = "NotLeading";

/// The longest that an API server is left alone because it asked for it. Its own load shedding asks for a second or a few; a proxy
/// that asks for a day would be no reason to leave a root broken for one.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(300);

impl ApiError {
    /// A write that was not sent, since this host does not hold the lease. A retry helps: by whichever host leads.
    pub fn not_leading() -> Self {
        Self {
            reason: NOT_LEADING.into(),
            message: "not sent: this host does not hold the lease".into(),
            ..Self::default()
        }
    }

    /// The same error, naming the object that it is about.
    pub(crate) fn about(self, object: &ObjectRef) -> Self {
        Self { message: format!("{object}: {}", self.message), ..self }
    }

    /// How long the API server asked to be left alone, as far as it is heard.
    pub(crate) fn leave_alone(&self) -> Option<Duration> {
        self.retry_after.map(|asked| asked.min(RETRY_AFTER_MAX))
    }

    /// Whether the request was judged and refused. Otherwise it may or may not have been carried out, and only a retry tells.
    pub(crate) fn is_refusal(&self) -> bool {
        (400..500).contains(&self.code) && !matches!(self.code, 401 | 408 | 429) || self.is_undeclared_field()
    }

    /// The object has a field that its kind does not. Server-side apply says so with a 500, which no retry ends.
    fn is_undeclared_field(&self) -> bool {
        self.code == 500 && self.message.contains("field not declared in schema")
    }

    /// Whether a refusal may end without any change of the object: it depends on rights, quota, policies, or other objects.
    pub(crate) fn depends_on_others(&self) -> bool {
        matches!(self.code, 403 | 404 | 409)
            || self.is_allocation()
            || self.is_uid_mismatch()
            || self.is_denial()
    }

    /// An admission policy or webhook said no, whatever code it chose. Nothing wakes anyone when it thinks otherwise.
    fn is_denial(&self) -> bool {
        self.message.contains("denied request") || self.message.contains("denied the request")
    }

    /// What is there cannot become what is wanted: a field is set once and for all.
    pub(crate) fn is_immutable(&self) -> bool {
        const WORDS: [&str; 4] =
            ["immutable", "may not change once set", "may not be changed", "for fields other than"];
        let says_so = |message: &str| WORDS.iter().any(|word| message.contains(word));
        self.code == 422
            && !self.is_uid_mismatch()
            && (says_so(&self.message) || self.causes.iter().any(|cause| says_so(&cause.message)))
    }

    /// The API server does not serve the object's kind, as the operator found out before it asked.
    pub(crate) fn is_kind_missing(&self) -> bool {
        self.code == 0 && self.reason == KIND_MISSING
    }

    /// A port or address that another object holds; nothing wakes anyone when it is freed.
    fn is_allocation(&self) -> bool {
        let says_so = |message: &str| message.contains("already allocated");
        self.code == 422
            && (says_so(&self.message) || self.causes.iter().any(|cause| says_so(&cause.message)))
    }

    /// The object has another uid than the one that was sent, or is not there at all.
    pub(crate) fn is_uid_mismatch(&self) -> bool {
        (self.code == 422 && self.causes.iter().any(|cause| cause.field == "metadata.uid"))
            || (self.code == 409 && self.message.contains("uid mismatch"))
    }

    /// What was asked was asked of an object in another state, or of another object.
    pub(crate) fn is_precondition(&self) -> bool {
        self.code == 409 && self.message.contains("Precondition failed")
    }

    /// One CamelCase word for a condition. A proxy's error page has no such reason.
    pub(crate) fn reason_word(&self) -> String {
        match self.code {
            _ if self.is_undeclared_field() => "FieldUndeclared".into(),
            _ if is_word(&self.reason) => self.reason.clone(),
            0 => "NoReply".into(),
            429 => "TooManyRequests".into(),
            _ => "ApiError".into(),
        }
    }
}

/// Whether the API takes this as a reason: one CamelCase word.
pub(super) fn is_word(reason: &str) -> bool {
    reason.len() <= 128
        && reason.starts_with(|first: char| first.is_ascii_alphabetic())
        && reason.chars().all(|letter| letter.is_ascii_alphanumeric())
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            // The host's own word: nothing was sent.
            0 if !self.reason.is_empty() => f.write_str(&self.message),
            0 => write!(f, "no reply from the API server: {}", self.message),
            code => write!(f, "{} ({code} {})", self.message, self.reason_word()),
        }
    }
}
