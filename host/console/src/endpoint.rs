//! [`Endpoint`]: one line of the route table. The router and the OpenAPI document are built from the same lines, so they cannot differ.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use pintle_core::bulk::Bulk;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    app::App,
    caller::Caller,
    memory::Held,
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
pub type Handler = fn(Call) -> Pin<Box<dyn Future<Output = Result<Response, Problem>> + Send>>;

/// Writes the schema of a type.
pub type Shape = fn(&mut SchemaGenerator) -> Schema;

/// One line of the route table.
#[derive(Clone)]
pub struct Endpoint {
    /// The method.
    pub method: Method,
    /// The path, with its parameters in braces.
    pub path: &'static str,
    /// The name of the operation.
    pub id: &'static str,
    /// What it does.
    pub summary: &'static str,
    /// The parameters of its query.
    pub query: Vec<Param>,
    /// Its body.
    pub takes: Takes,
    /// What it answers when all goes well.
    pub answers: Answers,
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

/// An answer.
#[derive(Clone, Copy)]
pub struct Answers {
    /// The status code.
    pub status: u16,
    /// Its form.
    pub form: AnswerForm,
}

/// The form of an answer.
#[derive(Clone, Copy)]
pub enum AnswerForm {
    /// No body.
    Nothing,
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
    /// A line of the table, which takes no body and answers nothing.
    pub fn new(
        method: Method,
        path: &'static str,
        id: &'static str,
        summary: &'static str,
        handler: Handler,
    ) -> Self {
        Self {
            method,
            path,
            id,
            summary,
            query: Vec::new(),
            takes: Takes::Nothing,
            answers: Answers { status: 204, form: AnswerForm::Nothing },
            for_anyone: false,
            patience: Some(PATIENCE),
            handler,
        }
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

    /// With an answer of this form.
    #[must_use]
    pub fn answers(self, status: u16, form: AnswerForm) -> Self {
        Self { answers: Answers { status, form }, ..self }
    }

    /// With an answer of this type.
    #[must_use]
    pub fn gives<T: JsonSchema>(self) -> Self {
        self.answers(200, AnswerForm::Json(shape::<T>))
    }

    /// With an answer that goes on, as these events.
    #[must_use]
    pub fn streams(self, events: &'static [(&'static str, Shape)]) -> Self {
        Self { patience: None, ..self.answers(200, AnswerForm::Events(events)) }
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
    /// Its body.
    pub body: Unread,
    /// What its body takes as values, once it was read.
    pub memory: Option<Held>,
}

/// A body that is not read yet. Only its owner can reach it, so that a call can be looked at from several threads.
pub struct Unread(Mutex<Body>);

impl Unread {
    /// A body of a request.
    pub fn new(body: Body) -> Self {
        Self(Mutex::new(body))
    }

    /// The body; what is left is empty.
    pub fn take(&mut self) -> Body {
        let body = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(body, Body::empty())
    }
}

impl Call {
    /// Who asks.
    ///
    /// # Errors
    /// 401 when nobody is named.
    pub fn caller(&self) -> Result<&Caller, Problem> {
        self.caller.as_ref().ok_or_else(|| Problem::unauthorized("nobody is named"))
    }

    /// A parameter of the path; empty if the path has none of this name.
    pub fn param(&self, name: &str) -> &str {
        let found = self.path.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str()).unwrap_or_default()
    }

    /// The body as a JSON document. What was read cannot be read again.
    ///
    /// # Errors
    /// 400 where it is none, 413 where it is too large, 422 where it has another shape, 429 where there is no room for it.
    pub async fn json<T: DeserializeOwned>(&mut self) -> Result<T, Problem> {
        let bytes = self.bytes(JSON_BYTES_MAX).await?;
        if let Some(caller) = &self.caller {
            self.memory = self.app.memory.of_body(caller.name(), &Bulk::of(&bytes)).await?;
        }
        let value: serde_json::Value = serde_json::from_slice(&bytes)
            .map_err(|error| Problem::bad_request(format!("the body is no JSON: {error}")))?;
        serde_json::from_value(value).map_err(|error| {
            Problem::invalid(format!("the body is not what is asked for: {error}"), Vec::new())
        })
    }

    /// The body. What was read cannot be read again.
    ///
    /// # Errors
    /// 413 where it is larger, 400 where it ends too early.
    pub async fn bytes(&mut self, bytes_max: usize) -> Result<Bytes, Problem> {
        read(self.body.take(), bytes_max).await
    }

    /// Whether the body has the form that the endpoint takes.
    ///
    /// # Errors
    /// 415 where it has another.
    pub(crate) fn has_form(&self, takes: Takes) -> Result<(), Problem> {
        let form = self.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let form = form.map(|form| form.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
        let wanted = match takes {
            Takes::Nothing => return Ok(()),
            Takes::Json(_) => "application/json",
            Takes::MergePatch => MERGE_PATCH,
            Takes::Wasm => WASM,
        };
        match form.as_deref() == Some(wanted) {
            true => Ok(()),
            false => Err(unsupported(&format!("the body must be {wanted}"))),
        }
    }
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
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
