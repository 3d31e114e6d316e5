//! [`Caller`]: asks the API server as whoever asks us.
//!
//! On loopback that is the user of a kubeconfig. In a cluster it is whoever the token belongs to: it is sent over a connection that knows the
//! cluster's CA and shows nothing of its own, because the API server looks at a client certificate before it looks at a token.

use std::{borrow::Cow, sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use jiff::Timestamp;
use kube::client::Body;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use pintle_core::bulk::Bulk;
use pintle_modules::Reservation;
use serde_json::Value;
use tracing::warn;

use crate::{
    memory::{Memory, UNRESERVED_BYTES, of_text, step_of},
    problem::Problem,
    token::Token,
};

/// How long the API server may take until it begins to answer: its own limit for a request, and a little more.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(61);

/// The largest answer that is read whole, in bytes: an object, or the schemas of a group. Lists are taken apart while they arrive.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// What has no meaning in a query, besides letters and digits.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The form of an object.
pub const JSON: &str = "application/json";

/// The form of a list of which the metadata are enough.
pub const METADATA_OF_ALL: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// The form of an object of which the metadata are enough.
pub const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// The form of a list as kubectl prints it.
pub const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";

/// How many objects the API server is asked for at once.
pub(crate) const PAGE: u64 = 500;

/// How many requests are made at the same time for one of a caller's.
pub(crate) const AT_ONCE: usize = 8;

/// Who asks, and the way to the API server.
#[derive(Clone)]
pub struct Caller {
    client: kube::Client,
    token: Option<Token>,
    name: Arc<str>,
    memory: Memory,
}

impl std::fmt::Debug for Caller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Caller").field("token", &self.token).field("name", &self.name).finish_non_exhaustive()
    }
}

/// A request to the API server: every part of it is ours, or was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The method.
    pub method: Method,
    /// The path, of a [`Place`](crate::place::Place) or written out.
    pub path: String,
    /// The query, not encoded yet.
    pub query: Vec<(Cow<'static, str>, String)>,
    /// The form of the answer.
    pub accept: &'static str,
    /// The body and its form.
    pub body: Option<(&'static str, Vec<u8>)>,
}

impl Ask {
    /// A request to read something.
    pub fn get(path: String) -> Self {
        Self { method: Method::GET, path, query: Vec::new(), accept: JSON, body: None }
    }

    /// A request with a JSON body.
    pub fn json(method: Method, path: String, body: &Value) -> Self {
        // Plain data with string keys: writing it as JSON cannot fail.
        let body = serde_json::to_vec(body).unwrap_or_default();
        Self { method, path, query: Vec::new(), accept: JSON, body: Some((JSON, body)) }
    }

    /// The same, with a parameter.
    #[must_use]
    pub fn with(mut self, key: &'static str, value: impl Into<String>) -> Self {
        self.query.push((key.into(), value.into()));
        self
    }

    /// The same, with a parameter if there is a value for it.
    #[must_use]
    pub fn with_some(self, key: &'static str, value: Option<impl Into<String>>) -> Self {
        if let Some(value) = value { self.with(key, value) } else { self }
    }

    /// The same, in another form.
    #[must_use]
    pub fn accepting(self, accept: &'static str) -> Self {
        Self { accept, ..self }
    }

    fn into_request(self, authorization: Option<HeaderValue>) -> Result<Request<Body>, http::Error> {
        let mut uri = self.path;
        for (index, (key, value)) in self.query.iter().enumerate() {
            uri.push(if index == 0 { '?' } else { '&' });
            uri.push_str(key);
            uri.push('=');
            uri.extend(utf8_percent_encode(value, PLAIN));
        }
        let mut request = Request::builder().method(self.method).uri(uri).header(header::ACCEPT, self.accept);
        if let Some(authorization) = authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        match self.body {
            Some((form, body)) => request.header(header::CONTENT_TYPE, form).body(Body::from(body)),
            None => request.body(Body::empty()),
        }
    }
}

/// An answer of the API server that was read whole, whatever it is.
pub struct Answer {
    /// The status code.
    pub code: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// What a large body was given.
    _memory: Option<Reservation>,
}

impl Answer {
    /// The body as JSON.
    ///
    /// # Errors
    /// 502 when it is none.
    pub fn json(&self) -> Result<Value, Problem> {
        self.parse()
    }

    /// The body as a document of this form.
    ///
    /// # Errors
    /// 502 when it is none.
    pub fn parse<'a, T: serde::Deserialize<'a>>(&'a self) -> Result<T, Problem> {
        serde_json::from_slice(&self.body).map_err(|error| {
            warn!(%error, "An answer of the API server cannot be read");
            Problem::bad_gateway("an answer of the API server cannot be read")
        })
    }
}

impl Caller {
    /// The user of a kubeconfig, whose client this is. Answers take this memory.
    pub fn of_kubeconfig(client: kube::Client, memory: Memory) -> Self {
        Self { client, token: None, name: Arc::default(), memory }
    }

    /// Whoever has this token. The client must have no certificate and no token of its own. Answers take this memory.
    pub fn with_token(client: kube::Client, token: Token, memory: Memory) -> Self {
        Self { client, token: Some(token), name: Arc::default(), memory }
    }

    /// The same, known by this name.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        Self { name: name.into(), ..self }
    }

    /// The name of the user, as the API server says it. It is empty on this machine, where there is one user.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The memory that answers take.
    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// What tells callers apart who must not share what they read.
    pub fn key(&self) -> [u8; 32] {
        self.token.as_ref().map(Token::fingerprint).unwrap_or_default()
    }

    /// When the caller's right to ask ends, as far as that is known.
    pub fn expires(&self) -> Option<Timestamp> {
        self.token.as_ref().and_then(Token::expires)
    }

    /// A client that acts as the caller, for code that wants one.
    pub fn client(&self) -> kube::Client {
        let Some(token) = &self.token else { return self.client.clone() };
        let (client, token) = (self.client.clone(), token.clone());
        let service = tower::service_fn(move |mut request: Request<Body>| {
            let (client, token) = (client.clone(), token.clone());
            async move {
                // Whatever made the request knows of nobody else.
                match token.header() {
                    Some(header) => request.headers_mut().insert(header::AUTHORIZATION, header),
                    None => return Err(kube::Error::Service("the token fits into no header".into())),
                };
                client.send(request).await
            }
        });
        kube::Client::new(service, self.client.default_namespace())
    }

    /// Sends a request, and returns the answer as soon as it begins, whatever it is.
    ///
    /// # Errors
    /// 502 or 504 when there is no answer.
    pub async fn begin(&self, ask: Ask) -> Result<Response<Body>, Problem> {
        let is_read = ask.method == Method::GET;
        let no_header = || Problem::unauthorized("this is no bearer token");
        let authorization =
            self.token.as_ref().map(|token| token.header().ok_or_else(no_header)).transpose()?;
        let request = ask
            .into_request(authorization)
            .map_err(|error| Problem::bad_request(format!("the request cannot be sent on: {error}")))?;
        match tokio::time::timeout(REQUEST_TIMEOUT, self.client.send(request)).await {
            Ok(Ok(response)) => Ok(response),
            // A client that gets a token or certificate by a program of the kubeconfig fails before it asks.
            Ok(Err(kube::Error::Auth(error))) => {
                Err(Problem::unauthorized(format!("the kubeconfig gives no credentials: {error}")))
            }
            Ok(Err(error)) => {
                warn!(%error, "The API server did not answer");
                let unknown = if is_read { "" } else { ": the request may have been carried out" };
                Err(Problem::bad_gateway(format!("the API server did not answer{unknown}")))
            }
            Err(_) => Err(Problem::too_late("the API server took too long to answer")),
        }
    }

    /// Sends a request, and returns the answer as soon as it begins, if the API server does what was asked.
    ///
    /// # Errors
    /// Why it does not, in its own words; 502 or 504 when there is no answer.
    pub(crate) async fn succeed(&self, ask: Ask) -> Result<Response<Body>, Problem> {
        let response = self.begin(ask).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        let refused = self.whole(response).await?;
        Err(Problem::of_answer(refused.code, &refused.headers, &refused.body))
    }

    /// Sends a request, and reads the answer whole if the API server did what was asked.
    ///
    /// # Errors
    /// Why it did not, in its own words; 502 or 504 when there is no answer; 429 when there is no memory for it.
    pub async fn ask(&self, ask: Ask) -> Result<Answer, Problem> {
        self.whole(self.succeed(ask).await?).await
    }

    /// Reads an answer whole.
    ///
    /// # Errors
    /// 502 or 504 when it ends too early, or is too large; 429 when there is no memory for it.
    pub async fn whole(&self, response: Response<Body>) -> Result<Answer, Problem> {
        let read = tokio::time::timeout(REQUEST_TIMEOUT, self.read(response)).await;
        read.unwrap_or_else(|_| Err(Problem::too_late("the API server took too long to answer")))
    }

    async fn read(&self, response: Response<Body>) -> Result<Answer, Problem> {
        let (head, mut body) = response.into_parts();
        let (mut read, mut bulk) = (BytesMut::new(), Bulk::default());
        let (mut memory, mut reserved) = (None, UNRESERVED_BYTES);
        while let Some(frame) = body.frame().await {
            let frame =
                frame.map_err(|_| Problem::bad_gateway("the answer of the API server is not complete"))?;
            let Ok(data) = frame.into_data() else { continue };
            let bytes = read.len() + data.len();
            if bytes > ANSWER_BYTES_MAX {
                return Err(Problem::bad_gateway("the answer of the API server is too large")
                    .because("AnswerTooLarge"));
            }
            bulk.add(&data);
            if of_text(&bulk) > reserved {
                // Nobody waits while it holds, so that no two answers wait for each other.
                drop(memory.take());
                reserved = step_of(of_text(&bulk));
                memory = Some(self.memory.of_answer(&self.name, reserved).await?);
            }
            read.extend_from_slice(&data);
        }
        Ok(Answer { code: head.status, headers: head.headers, body: read.freeze(), _memory: memory })
    }
}
