//! Answers to clients.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::TryStreamExt;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use jiff::Timestamp;
use pintle_core::view::{Status, accept::JSON};
use pintle_runtime::paced::{Arriving, BrokenOff};
use serde_json::Value;

/// The body of an answer. If it fails, its stream is reset, so that nobody takes the part for the whole.
pub type ReplyBody = UnsyncBoxBody<Bytes, BrokenOff>;

/// An answer.
pub type Reply = Response<ReplyBody>;

/// How long clients should wait before they ask again for what cannot be answered at present, in seconds.
pub const RETRY_SECONDS: u32 = 2;

/// How long clients should wait before they ask again when they found no place, in seconds. They have waited for a moment already.
pub const CROWDED_SECONDS: u32 = 1;

/// An answer in JSON.
pub fn json(code: StatusCode, body: impl Into<Bytes>) -> Reply {
    text(code, JSON, body)
}

/// An answer in a form of its own.
pub fn text(code: StatusCode, content_type: &str, body: impl Into<Bytes>) -> Reply {
    with_body(code, content_type, whole(body))
}

/// A body that is there.
pub(crate) fn whole(body: impl Into<Bytes>) -> ReplyBody {
    Full::new(body.into()).map_err(|never| match never {}).boxed_unsync()
}

/// An answer with this body.
pub fn with_body(code: StatusCode, content_type: &str, body: ReplyBody) -> Reply {
    let mut reply = Response::new(body);
    *reply.status_mut() = code;
    let headers = reply.headers_mut();
    if let Ok(content_type) = HeaderValue::from_str(content_type) {
        headers.insert(header::CONTENT_TYPE, content_type);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    reply
}

/// An answer of which the parts arrive.
pub(crate) fn arriving(code: StatusCode, content_type: &str, arriving: Arriving) -> Reply {
    with_body(code, content_type, body_of(arriving))
}

/// The body of which the parts arrive.
pub(crate) fn body_of(arriving: Arriving) -> ReplyBody {
    StreamBody::new(arriving.map_ok(Frame::data)).boxed_unsync()
}

/// An answer that keeps something until it is sent or nobody waits for it any more.
pub(crate) fn keeping<T: Send + Unpin + 'static>(reply: Reply, kept: T) -> Reply {
    reply.map(|body| Keeping { body, _kept: kept }.boxed_unsync())
}

/// A body that keeps something.
struct Keeping<T> {
    body: ReplyBody,
    _kept: T,
}

impl<T: Unpin> Body for Keeping<T> {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A Status, with the header that says when to ask again.
pub fn status(status: &Status) -> Reply {
    let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut reply = json(code, status.to_value().to_string());
    if let Some(seconds) = status.details.retry_after_seconds {
        reply.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    reply
}

/// An answer that will never be another one, and that clients may keep for a year, which means forever.
pub(crate) fn may_be_kept(reply: &mut Reply, now: Timestamp) {
    let headers = reply.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
    let printer = jiff::fmt::rfc2822::DateTimePrinter::new();
    let expires = now.checked_add(jiff::SignedDuration::from_hours(365 * 24)).ok();
    let expires = expires.and_then(|until| printer.timestamp_to_rfc9110_string(&until).ok());
    if let Some(expires) = expires.and_then(|expires| HeaderValue::from_str(&expires).ok()) {
        headers.insert(header::EXPIRES, expires);
    }
}

/// Adds warnings: those of the API server, and texts of ours.
pub fn warn(reply: &mut Reply, theirs: Vec<HeaderValue>, ours: &[String]) {
    let ours = ours
        .iter()
        .filter_map(|text| HeaderValue::from_str(&format!("299 - {}", Value::from(text.as_str()))).ok());
    for warning in theirs.into_iter().chain(ours) {
        reply.headers_mut().append(header::WARNING, warning);
    }
}
