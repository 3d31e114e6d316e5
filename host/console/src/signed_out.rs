//! [`until`]: an answer that goes on ends with the session of whoever reads it.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use axum::{
    body::{Body, HttpBody},
    response::Response,
};
use bytes::Bytes;
use hyper::body::Frame;

use crate::door::local::SignedIn;

/// Everybody was signed out.
#[derive(Debug, thiserror::Error)]
#[error("everybody was signed out")]
struct SignedOut;

/// A body that fails once everybody is signed out: cut short, and not as if that had been all.
struct While {
    body: Body,
    ended: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl HttpBody for While {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        match self.ended.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Some(Err(axum::Error::new(SignedOut)))),
            Poll::Pending => Pin::new(&mut self.body).poll_frame(context),
        }
    }
}

/// The same answer, for as long as its reader is signed in. What is there as a whole is not taken back.
pub(crate) fn until(response: Response, signed_in: Option<SignedIn>) -> Response {
    match signed_in {
        Some(signed_in) if response.body().size_hint().exact().is_none() => {
            response.map(|body| Body::new(While { body, ended: Box::pin(signed_in.ended()) }))
        }
        _ => response,
    }
}
