//! [`Problem`]: every answer that is not what was asked for, as `application/problem+json` (RFC 9457).

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use kube::core::Status;
use pintle_core::view::document::problem::Title;
use pintle_wit::Failure;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// The form of a problem.
pub const PROBLEM_JSON: &str = "application/problem+json";

/// How many causes a problem names.
const CAUSES_MAX: usize = 100;

/// How many characters of a message are passed on.
const MESSAGE_CHARS_MAX: usize = 8 << 10;

/// Why a request was not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The status code.
    pub status: StatusCode,
    /// What happened, for a person.
    pub detail: String,
    /// The fields that are at fault.
    pub causes: Vec<Cause>,
    /// One CamelCase word for programs.
    pub reason: Option<String>,
    /// When it may be tried again.
    pub retry_after: Option<Duration>,
    /// How callers show who they are, where nobody did.
    pub mode: Option<ModeName>,
    /// The title, where it is not that of the status code.
    pub title: Option<Title>,
}

/// How callers show who they are, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ModeName {
    /// By the secret in the address that `pintle console` prints.
    Local,
    /// By a bearer token that the API server accepts.
    Token,
}

/// One field that is at fault.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Cause {
    /// Its path, as Kubernetes writes it: `spec.source.baseUrl`. Empty where the whole object is meant.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
    /// One word for it.
    pub reason: String,
}

/// A problem as it is written.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub struct Written<'a> {
    /// Always `about:blank`: the status code says which kind of problem it is.
    r#type: &'static str,
    /// The name of the status code.
    title: &'a str,
    /// The status code.
    status: u16,
    /// What happened, for a person.
    detail: &'a str,
    /// The same as `detail`.
    details: &'a str,
    /// The fields that are at fault.
    causes: &'a [Cause],
    /// One CamelCase word for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    reason: Option<&'a str>,
    /// How callers show who they are; only with status 401.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ModeName")]
    mode: Option<ModeName>,
}

/// The path of a field as a client is told it: the API server says `<nil>` of a rule about the whole object, and a client nothing.
pub(crate) fn field_of(said: String) -> String {
    if said == "<nil>" { String::new() } else { said }
}

impl Problem {
    /// A problem with this status code.
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            status,
            detail: detail.into(),
            causes: Vec::new(),
            reason: None,
            retry_after: None,
            mode: None,
            title: None,
        }
    }

    /// 400: the request cannot be read.
    pub fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// 401: nobody is named, or in a way that is not accepted.
    pub fn unauthorized(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, detail).because("Unauthorized")
    }

    /// 403.
    pub fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, detail).because("Forbidden")
    }

    /// 404.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail).because("NotFound")
    }

    /// 409.
    pub fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, detail).because("Conflict")
    }

    /// 413.
    pub fn too_large(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, detail).because("TooLarge")
    }

    /// 429, to be tried again after so many seconds.
    pub fn busy(detail: impl Into<String>, seconds: u64) -> Self {
        let retry_after = Some(Duration::from_secs(seconds));
        Self { retry_after, ..Self::new(StatusCode::TOO_MANY_REQUESTS, detail) }.because("TooManyRequests")
    }

    /// 422: it can be read, and is not what may be done.
    pub fn invalid(detail: impl Into<String>, causes: Vec<Cause>) -> Self {
        Self { causes, ..Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail) }.because("Invalid")
    }

    /// 502: the API server cannot be reached, or what it says cannot be read.
    pub fn bad_gateway(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, detail)
    }

    /// 504: nothing came in time.
    pub fn too_late(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::GATEWAY_TIMEOUT, detail)
    }

    /// What the engine or the gate says of a module or an answer: 422, with its reason and its words; 503 where a retry can help.
    pub fn of_failure(failure: &Failure) -> Self {
        let status =
            if failure.retry { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::UNPROCESSABLE_ENTITY };
        let cause = failure.path.as_ref().map(|path| Cause {
            field: path.clone(),
            message: failure.message.clone(),
            reason: failure.reason.clone(),
        });
        let causes = cause.into_iter().collect();
        Self { causes, ..Self::new(status, failure.message.clone()) }.because(failure.reason.clone())
    }

    /// What the API server answered instead of what was asked for. Its code, its words and its causes are passed on.
    pub fn of_answer(code: StatusCode, headers: &HeaderMap, body: &[u8]) -> Self {
        let in_words = |_| Status::failure(String::from_utf8_lossy(body).trim(), "");
        let status: Status = serde_json::from_slice(body).unwrap_or_else(in_words);
        let problem = Self::of_status(&status.with_code(code.as_u16()));
        let in_header = headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        Self { retry_after: in_header.map(Duration::from_secs).or(problem.retry_after), ..problem }
    }

    /// What the API server says in a Status.
    pub fn of_status(status: &Status) -> Self {
        let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::BAD_GATEWAY);
        // A redirect or such is no answer for a browser.
        let is_refusal = code.is_client_error() || code.is_server_error();
        let code = if is_refusal { code } else { StatusCode::BAD_GATEWAY };
        let message = Some(status.message.as_str()).filter(|message| !message.is_empty());
        let detail = message.or(code.canonical_reason()).unwrap_or_default();
        let details = status.details.as_ref();
        let causes = details.map(|details| details.causes.as_slice()).unwrap_or_default().iter();
        let causes = causes.take(CAUSES_MAX).map(|cause| Cause {
            field: field_of(bounded(&cause.field)),
            message: bounded(&cause.message),
            reason: bounded(&cause.reason),
        });
        let seconds = details.map(|details| details.retry_after_seconds).filter(|seconds| *seconds > 0);
        Self {
            causes: causes.collect(),
            reason: Some(bounded(&status.reason)).filter(|reason| !reason.is_empty()),
            retry_after: seconds.map(|seconds| Duration::from_secs(seconds.into())),
            ..Self::new(code, bounded(detail))
        }
    }

    /// The same, with one word for programs.
    #[must_use]
    pub fn because(self, reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..self }
    }

    fn title(&self) -> &'static str {
        match self.status {
            _ if let Some(title) = self.title => title.words(),
            StatusCode::UNPROCESSABLE_ENTITY => "Validation error",
            status => status.canonical_reason().unwrap_or("Error"),
        }
    }

    /// The problem as a JSON document.
    pub fn document(&self) -> Value {
        let written = Written {
            r#type: "about:blank",
            title: self.title(),
            status: self.status.as_u16(),
            detail: &self.detail,
            details: &self.detail,
            causes: &self.causes,
            reason: self.reason.as_deref(),
            mode: self.mode,
        };
        // Plain data with string keys: writing it as JSON cannot fail.
        serde_json::to_value(written).unwrap_or_default()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status, self.document().to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        if let Some(after) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(after.as_secs()));
        }
        response
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
    fn a_refusal_of_the_api_server_keeps_its_code_words_causes_and_time() {
        let body = json!({"kind": "Status", "code": 422, "reason": "Invalid", "message": "no",
            "details": {"retryAfterSeconds": 3, "causes": [{"field": "spec.type", "message": "m", "reason": "FieldValueInvalid"}]}});
        let problem = Problem::of_answer(
            StatusCode::UNPROCESSABLE_ENTITY,
            &HeaderMap::new(),
            body.to_string().as_bytes(),
        );
        assert_eq!(
            problem.document(),
            json!({"type": "about:blank", "title": "Validation error", "status": 422, "detail": "no", "details": "no",
                "causes": [{"field": "spec.type", "message": "m", "reason": "FieldValueInvalid"}], "reason": "Invalid"})
        );
        assert_eq!(problem.into_response().headers()["retry-after"], "3");
    }

    #[test]
    fn what_is_no_status_is_told_in_its_own_words_and_a_redirect_is_none() {
        let problem = Problem::of_answer(StatusCode::FOUND, &HeaderMap::new(), b"<html>");
        assert_eq!((problem.status, problem.detail.as_str()), (StatusCode::BAD_GATEWAY, "<html>"));
    }
}
