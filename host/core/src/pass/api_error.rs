//! [`ApiError`]: how a request to the API server failed, and whether a retry can help.

use std::{fmt, time::Duration};

use pintle_wit::{Cause, ObjectRef};

use crate::{gate::is_word, reasons};

/// How a request failed: the error of the API server, or of the connection to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiError {
    /// The HTTP status code; 0 if there was no reply, so that it is unknown whether the request was carried out.
    pub code: u16,
    /// The reason in the API server's words.
    pub reason: String,
    /// The message in the API server's words.
    pub message: String,
    /// What was wrong, field by field.
    pub causes: Vec<Cause>,
    /// How long the API server asked clients to wait (`Retry-After`).
    pub retry_after: Option<Duration>,
}

/// The longest wait that a `Retry-After` is honoured for. The API server's own load shedding asks for one second or a few. If a proxy
/// asks for a day, that is no reason to leave a root broken for a day.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(300);

impl ApiError {
    /// A write that was not sent because this host does not hold the lease. A retry by the host that leads helps.
    pub fn not_leading() -> Self {
        Self {
            reason: reasons::NOT_LEADING.into(),
            message: "not sent: this host does not hold the lease".into(),
            ..Self::default()
        }
    }

    /// The same error, naming the object that it is about.
    pub(crate) fn about(self, object: &ObjectRef) -> Self {
        Self { message: format!("{object}: {}", self.message), ..self }
    }

    /// How long the API server asked clients to wait, as far as the host honours it.
    pub(crate) fn leave_alone(&self) -> Option<Duration> {
        self.retry_after.map(|asked| asked.min(RETRY_AFTER_MAX))
    }

    /// Whether the API server judged the request and refused it. Otherwise the request may or may not have been carried out, and only a
    /// retry shows which.
    pub(crate) fn is_refusal(&self) -> bool {
        (400..500).contains(&self.code) && !matches!(self.code, 401 | 408 | 429)
            || self.is_undeclared_field()
            || self.is_too_large()
    }

    /// The API server or etcd takes no object of this size. Server-side apply reports what etcd says with a 500, which no retry ends.
    pub(crate) fn is_too_large(&self) -> bool {
        const WORDS: [&str; 2] =
            ["etcdserver: request is too large", "trying to send message larger than max"];
        self.code == 413 || self.code == 500 && WORDS.iter().any(|words| self.message.contains(words))
    }

    /// The object has a field that its kind does not have. Server-side apply reports that with a 500, which no retry ends.
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

    /// An admission policy or webhook refused the request, with whatever code it chose. No watch reports when it would allow it.
    fn is_denial(&self) -> bool {
        self.message.contains("denied request") || self.message.contains("denied the request")
    }

    /// The object cannot be changed to the wanted form, because a field is immutable.
    pub(crate) fn is_immutable(&self) -> bool {
        const WORDS: [&str; 4] =
            ["immutable", "may not change once set", "may not be changed", "for fields other than"];
        let says_so = |message: &str| WORDS.iter().any(|word| message.contains(word));
        self.code == 422
            && !self.is_uid_mismatch()
            && (says_so(&self.message) || self.causes.iter().any(|cause| says_so(&cause.message)))
    }

    /// The API server does not serve the object's kind. The operator found that out before it sent the request.
    pub(crate) fn is_kind_missing(&self) -> bool {
        self.code == 0 && self.reason == reasons::KIND_MISSING
    }

    /// Another object holds the port or address. No watch reports when it is freed.
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

    /// The request was about another state of the object, or about another object.
    pub(crate) fn is_precondition(&self) -> bool {
        self.code == 409 && self.message.contains("Precondition failed")
    }

    /// One CamelCase word for a condition. A proxy's error page has no such reason.
    pub fn reason_word(&self) -> String {
        match self.code {
            _ if self.is_undeclared_field() => reasons::FIELD_UNDECLARED.into(),
            _ if self.is_too_large() => reasons::OBJECT_TOO_LARGE.into(),
            _ if is_word(&self.reason) => self.reason.clone(),
            0 => reasons::NO_REPLY.into(),
            429 => reasons::TOO_MANY_REQUESTS.into(),
            _ => reasons::API_ERROR.into(),
        }
    }
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
