//! [`Endpoint`]: one line of the route table. The router and the OpenAPI document are built from the same lines, so they cannot differ.

use std::{
    mem,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use pintle_core::bulk::Bulk;
use pintle_modules::Reservation;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    app::App,
    caller::{Caller, JSON},
    problem::Problem,
    query::{Form, Param, Query},
};

/// The largest JSON body, in bytes.
pub const JSON_BYTES_MAX: usize = 1 << 20;

/// How long a request may take: a little more than the API server takes at most.
pub const PATIENCE: Duration = Duration::from_secs(65);

/// The form of a merge patch.
pub const MERGE_PATCH: &str = "application/merge-patch+json";

/// The form of a module.
pub const WASM: &str = "application/wasm";

/// What carries out a request.
pub type Handler = Arc<dyn Fn(Call) -> BoxFuture<'static, Result<Response, Problem>> + Send + Sync>;

/// Writes the schema of a type.
pub type Shape = fn(&mut SchemaGenerator) -> Schema;

/// One line of the route table.
#[derive(Clone)]
pub struct Endpoint {
    /// The method.
    pub method: Method,
    /// The path, with its parameters in braces.
    pub path: String,
    /// The name of the operation.
    pub id: &'static str,
    /// What it does.
    pub summary: &'static str,
    /// The parameters of its query.
    pub query: Vec<Param>,
    /// Its body.
    pub takes: Takes,
    /// The status code when all goes well.
    pub status: u16,
    /// The answer then.
    pub answer: AnswerForm,
    /// Whether it is for those too who did not show who they are.
    pub for_anyone: bool,
    /// How long it may take; for ever where its answer goes on.
    pub patience: Option<Duration>,
    /// What carries it out.
    pub handler: Handler,
}

/// The body of a request.
#[derive(Clone, Copy)]
pub enum Takes {
    /// There is none.
    Nothing,
    /// JSON of this shape.
    Json(Shape),
    /// A merge patch of an object.
    MergePatch,
    /// A module, which the handler reads with its own limit.
    Wasm,
}

/// The form of an answer.
#[derive(Clone, Copy)]
pub enum AnswerForm {
    /// JSON of this shape.
    Json(Shape),
    /// Server-sent events of these names, each with JSON of a shape.
    Events(&'static [(&'static str, Shape)]),
    /// Text.
    Text,
}

/// The shape of a type.
pub fn shape<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// The shape of an object of any kind.
pub fn any_object(_: &mut SchemaGenerator) -> Schema {
    schemars::json_schema!({"type": "object", "additionalProperties": true})
}

impl Endpoint {
    /// A line of the table, which takes no body and answers text.
    pub fn new<F>(
        method: Method,
        path: impl Into<String>,
        id: &'static str,
        summary: &'static str,
        handler: impl Fn(Call) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Response, Problem>> + Send + 'static,
    {
        Self {
            method,
            path: path.into(),
            id,
            summary,
            query: Vec::new(),
            takes: Takes::Nothing,
            status: 200,
            answer: AnswerForm::Text,
            for_anyone: false,
            patience: Some(PATIENCE),
            handler: Arc::new(move |call| handler(call).boxed()),
        }
    }

    /// A line that reads.
    pub fn get<F>(
        path: impl Into<String>,
        id: &'static str,
        summary: &'static str,
        handler: impl Fn(Call) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Response, Problem>> + Send + 'static,
    {
        Self::new(Method::GET, path, id, summary, handler)
    }

    /// With these parameters.
    #[must_use]
    pub fn query(mut self, params: &[(&'static str, Form, &'static str)]) -> Self {
        self.query.extend(params.iter().map(|(name, form, summary)| Param { name, form: *form, summary }));
        self
    }

    /// With a body.
    #[must_use]
    pub fn takes(self, takes: Takes) -> Self {
        Self { takes, ..self }
    }

    /// With an answer in JSON of this shape.
    #[must_use]
    pub fn answers(self, status: u16, shape: Shape) -> Self {
        Self { status, answer: AnswerForm::Json(shape), ..self }
    }

    /// With an answer of this type.
    #[must_use]
    pub fn gives<T: JsonSchema>(self) -> Self {
        self.answers(200, shape::<T>)
    }

    /// With an answer that goes on, as these events.
    #[must_use]
    pub fn streams(self, events: &'static [(&'static str, Shape)]) -> Self {
        Self { patience: None, answer: AnswerForm::Events(events), ..self }
    }

    /// With so much time.
    #[must_use]
    pub fn within(self, patience: Duration) -> Self {
        Self { patience: Some(patience), ..self }
    }

    /// For those too who did not show who they are.
    #[must_use]
    pub fn for_anyone(self) -> Self {
        Self { for_anyone: true, ..self }
    }
}

/// One request.
pub struct Call {
    /// What serves it.
    pub app: Arc<App>,
    /// Who asks; nobody only where the endpoint is for anyone.
    pub caller: Option<Caller>,
    /// The parameters of its path, decoded.
    pub path: Vec<(String, String)>,
    /// The parameters of its query.
    pub query: Query,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, until it is read. Only its owner can reach it, so that a call can be looked at from several threads.
    pub body: Mutex<Body>,
    /// What its body takes as values, once it was read.
    pub memory: Option<Reservation>,
}

impl Call {
    /// Who asks.
    ///
    /// # Errors
    /// 401 when nobody is named.
    pub fn caller(&self) -> Result<&Caller, Problem> {
        self.caller.as_ref().ok_or_else(|| Problem::unauthorized("nobody is named"))
    }

    /// A parameter of the path, if the path has one of this name.
    pub fn param(&self, name: &str) -> Option<&str> {
        self.path.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The body as a JSON document. What was read cannot be read again.
    ///
    /// # Errors
    /// 400 where it is none, 413 where it is too large, 422 where it has another shape, 429 where there is no room for it.
    pub async fn json<T: DeserializeOwned>(&mut self) -> Result<T, Problem> {
        let bytes = self.bytes(JSON_BYTES_MAX).await?;
        if self.caller.is_some() {
            self.memory = self.app.memory.of_body(&Bulk::of(&bytes)).await?;
        }
        serde_json::from_slice(&bytes).map_err(|error| {
            if error.is_data() {
                return Problem::invalid(format!("the body is not what is asked for: {error}"), Vec::new());
            }
            Problem::bad_request(format!("the body is no JSON: {error}"))
        })
    }

    /// The body. What was read cannot be read again.
    ///
    /// # Errors
    /// 413 where it is larger, 400 where it ends too early.
    pub async fn bytes(&mut self, bytes_max: usize) -> Result<Bytes, Problem> {
        let body = mem::take(self.body.get_mut().unwrap_or_else(PoisonError::into_inner));
        read(body, bytes_max).await
    }

    /// Whether the body has the form that the endpoint takes.
    ///
    /// # Errors
    /// 415 where it has another.
    pub(crate) fn has_form(&self, takes: Takes) -> Result<(), Problem> {
        let wanted = match takes {
            Takes::Nothing => return Ok(()),
            Takes::Json(_) => JSON,
            Takes::MergePatch => MERGE_PATCH,
            Takes::Wasm => WASM,
        };
        if form_of(&self.headers) != wanted {
            return Err(unsupported(&format!("the body must be {wanted}")));
        }
        Ok(())
    }
}

/// The form of a body, as its header names it; empty if none does.
pub(crate) fn form_of(headers: &HeaderMap) -> String {
    let named = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    named.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Reads a body of so many bytes at most.
///
/// # Errors
/// 413 where it is larger, 400 where it ends too early.
pub(crate) async fn read(body: Body, bytes_max: usize) -> Result<Bytes, Problem> {
    match Limited::new(body, bytes_max).collect().await {
        Ok(read) => Ok(read.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            Err(Problem::too_large(format!("the body has more than {bytes_max} bytes")))
        }
        Err(_) => Err(Problem::bad_request("the body ended too early")),
    }
}

/// 415.
pub(crate) fn unsupported(detail: &str) -> Problem {
    Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail).because("UnsupportedMediaType")
}

/// An answer in JSON.
pub fn json(status: StatusCode, document: &impl Serialize) -> Result<Response, Problem> {
    let bytes = serde_json::to_vec(document)
        .map_err(|_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the answer cannot be written"))?;
    Ok(written(status, bytes))
}

/// An answer whose JSON is written already.
pub fn written(status: StatusCode, bytes: impl Into<Body>) -> Response {
    let mut response = Response::new(bytes.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
    response
}
