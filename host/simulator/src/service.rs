//! The server as a `tower::Service`, for use by a real client.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Response, header};
use http_body_util::BodyExt;

use crate::{ApiServer, Body, Fate, request::Request, server::Answer};

/// A connection to the server.
#[derive(Clone, Debug)]
pub struct Service {
    server: ApiServer,
    client: String,
}

/// The connection broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost;

impl std::fmt::Display for Lost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("connection reset by peer")
    }
}

impl std::error::Error for Lost {}

impl Service {
    pub(crate) fn new(server: ApiServer, client: &str) -> Self {
        Self { server, client: client.into() }
    }

    async fn answer(self, head: http::request::Parts, body: Bytes) -> Result<Response<Body>, Lost> {
        let request = match Request::read(&head.method, &head.uri, &head.headers, &body) {
            Ok(request) => request,
            Err(failure) => return Ok(reply(failure.code, &failure.to_status())),
        };
        let (seen, fate) = self.server.decide(&self.client, &request);
        match &fate {
            Fate::Fail(failure) => {
                self.server.failed(seen, failure.code);
                let mut response = reply(failure.code, &failure.to_status());
                if let Some(seconds) = failure.retry_after_seconds {
                    response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
                }
                return Ok(response);
            }
            Fate::LoseBefore => {
                self.server.failed(seen, 0);
                return Err(Lost);
            }
            Fate::SilenceBefore => {
                self.server.failed(seen, 0);
                return silence().await;
            }
            Fate::Delay(delay) => tokio::time::sleep(*delay).await,
            Fate::Pass | Fate::LoseAfter | Fate::DelayReply(_) | Fate::SilenceAfter | Fate::AsOf(_) => {}
        }
        let answer = self.server.carry_out(seen, &request, &fate);
        match fate {
            Fate::LoseAfter => return Err(Lost),
            Fate::SilenceAfter => return silence().await,
            Fate::DelayReply(delay) => tokio::time::sleep(delay).await,
            _ => {}
        }
        let (code, body, warnings) = match answer {
            Answer::Reply { code, body, warnings } => (code, body, warnings),
            Answer::Refused { failure, warnings } => (failure.code, failure.to_status(), warnings),
            Answer::Watch(stream) => return Ok(response(200, Body::watch(stream))),
        };
        let mut response = reply(code, &body);
        for text in warnings {
            let warning = format!("299 - {}", serde_json::Value::from(text));
            if let Ok(value) = header::HeaderValue::from_str(&warning) {
                response.headers_mut().append(header::WARNING, value);
            }
        }
        Ok(response)
    }
}

async fn silence() -> Result<Response<Body>, Lost> {
    let nothing: Infallible = std::future::pending().await;
    match nothing {}
}

fn reply(code: u16, body: &serde_json::Value) -> Response<Body> {
    response(code, Body::full(body.to_string().into()))
}

fn response(code: u16, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() =
        http::StatusCode::from_u16(code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}

impl<B> tower::Service<http::Request<B>> for Service
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
{
    type Response = Response<Body>;
    type Error = Lost;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Lost>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Lost>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.map_err(|_| Lost)?.to_bytes();
            service.answer(head, body).await
        })
    }
}
