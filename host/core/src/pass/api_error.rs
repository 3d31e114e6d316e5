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

/// What the API server says of a field that a kind does not have.
const FIELD_NOT_DECLARED: &str = "field not declared in schema";

/// What admission says of a request that it forbids, and the reason for which that stands. The code is that of a missing right, and no role
/// helps.
const ADMISSION: [(&str, &str); 8] = [
    ("being terminated", reasons::NAMESPACE_TERMINATING),
    ("exceeded quota: ", reasons::QUOTA_EXCEEDED),
    ("failed quota: ", reasons::QUOTA_EXCEEDED),
    ("insufficient quota to ", reasons::QUOTA_EXCEEDED),
    ("status unknown for quota: ", reasons::QUOTA_EXCEEDED),
    (" usage per ", reasons::LIMIT_RANGE),
    (" limit to request ratio per ", reasons::LIMIT_RANGE),
    ("violates PodSecurity ", reasons::POD_SECURITY),
];

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

    /// The same error without the objects that the API server prints within its words. They are longer than a message may be, what is
    /// wrong stands behind them, and values of env stand in them.
    pub fn without_objects(mut self) -> Self {
        for cause in &mut self.causes {
            let plain = without_object(&cause.message);
            if plain != cause.message {
                // The message lists the causes word by word.
                self.message = self.message.replace(&cause.message, &plain);
                cause.message = plain;
            }
        }
        self.message = if self.is_misfit() {
            let lines = self.message.lines().map(|line| line.split(", got ").next().unwrap_or_default());
            lines.collect::<Vec<&str>>().join("\n")
        } else {
            without_object(&self.message)
        };
        self
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
            || self.is_misfit()
            || self.is_allocation()
            || self.is_too_large()
    }

    /// The API server or etcd takes no object of this size. Server-side apply reports what etcd says with a 500, which no retry ends.
    pub(crate) fn is_too_large(&self) -> bool {
        const WORDS: [&str; 2] =
            ["etcdserver: request is too large", "trying to send message larger than max"];
        self.code == 413 || self.code == 500 && WORDS.iter().any(|words| self.message.contains(words))
    }

    /// The object does not fit its kind. Server-side apply reports that with a 500, which no retry ends.
    fn is_misfit(&self) -> bool {
        const WORDS: [&str; 3] =
            ["failed to create typed patch object", "failed to convert new ", FIELD_NOT_DECLARED];
        self.code == 500 && self.says(&WORDS)
    }

    /// Whether the message or a cause has any of these words.
    fn says(&self, words: &[&str]) -> bool {
        let mut messages = self.causes.iter().map(|cause| &cause.message).chain([&self.message]);
        messages.any(|message| words.iter().any(|word| message.contains(word)))
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
        const WORDS: [&str; 6] = [
            "immutable",
            "may not change once set",
            "cannot be modified once set",
            "may not be changed",
            "fields other than",
            "cannot change roleRef",
        ];
        self.code == 422 && !self.is_uid_mismatch() && self.says(&WORDS)
    }

    /// The API server does not serve the object's kind. The operator found that out before it sent the request.
    pub(crate) fn is_kind_missing(&self) -> bool {
        self.code == 0 && self.reason == reasons::KIND_MISSING
    }

    /// Another object holds the port or address. No watch reports when it is freed. For the port of health checks the code is 500.
    fn is_allocation(&self) -> bool {
        matches!(self.code, 422 | 500) && self.says(&["already allocated"])
    }

    /// The refusal may end when another object of the kind is gone, which has the port, the address or the room in a quota, or what a
    /// policy allows only once.
    pub(crate) fn is_contention(&self) -> bool {
        self.is_allocation()
            || self.reason_word() == reasons::QUOTA_EXCEEDED
            || self.is_denial() && self.says(&["already "])
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
        let mut known = ADMISSION.iter();
        let admission = known.find(|(words, _)| self.message.contains(words)).map(|(_, reason)| *reason);
        match self.code {
            _ if self.is_misfit() && self.says(&[FIELD_NOT_DECLARED]) => reasons::FIELD_UNDECLARED.into(),
            _ if self.is_misfit() || self.code == 500 && self.is_allocation() => reasons::INVALID.into(),
            403 if admission.is_some() => admission.unwrap_or_default().into(),
            _ if self.is_denial() => reasons::ADMISSION_DENIED.into(),
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

/// A text of the API server without the object, the list or the difference that it prints: `Invalid value: core.PodSpec{..}: field is
/// immutable`. What is wrong stands behind the object, whose end is the last that can be one.
fn without_object(text: &str) -> String {
    // A change of a Pod or of a claim that is forbidden is followed by the difference of the specs.
    if let Some((said, _)) = text.split_once('\n').filter(|(said, _)| said.contains("Forbidden: ")) {
        return said.into();
    }
    let mut values = text.match_indices(" value: ").map(|(at, mark)| text.split_at(at + mark.len()));
    let Some((before, value)) = values.find(|(_, value)| is_object(value)) else { return text.into() };
    let ends = ["}: ", "]: ", "\": "].into_iter().filter_map(|end| value.rfind(end).map(|at| at + end.len()));
    match ends.max().filter(|_| !value.ends_with(['}', ']'])) {
        Some(end) => format!("{before}{}", value.get(end..).unwrap_or_default()),
        None => before.trim_end_matches(": ").into(),
    }
}

/// Whether a printed value is an object or a list, in Go or in JSON, or a text of a whole object.
fn is_object(value: &str) -> bool {
    let word = value.split(' ').next().unwrap_or_default();
    value.starts_with("\"{") || !value.starts_with('"') && word.contains(['{', '['])
}
