//! Documents of views as plain JSON: `/darkrooms`, as [`pintle_core::view::document`] decides it.
//!
//! A request is mapped to one about the backing kind, which the API server is asked as whoever asks us, and its answer is mapped back. Which
//! views there are, and how their guests are called, a [`Provider`](crate::documents::Provider) knows.
//!
//! No guest works for strangers. Who asks is known first. Objects are shown once the API server has given them to the caller, and whoever
//! wants to write is asked about with a review before anything is stored.
//!
//! What is written here may be a key. Bodies are never logged, and refusals never repeat what stands at a field that is only written.

mod read;
mod request;
mod watch;
mod write;

use std::sync::Arc;

use axum::{extract::Request, response::Response};
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use pintle_core::{
    bulk::Bulk,
    view::{
        Verb,
        document::{problem::Refusal, target::Target},
    },
};

use crate::{
    app::App,
    endpoint::{self, JSON_BYTES_MAX, PATIENCE},
    problem::Problem,
    sending,
};
use request::Asked;

/// The parameters of all requests. `operations.json` describes them.
pub(crate) const PARAMETERS: [&str; 11] = [
    "continue",
    "dryRun",
    "fieldManager",
    "fieldValidation",
    "labelSelector",
    "limit",
    "namespace",
    "propagationPolicy",
    "resourceVersion",
    "search",
    "watch",
];

/// What a method does to one document, or to all of them. A HEAD is a GET whose body is left out.
pub(crate) fn verb(method: &str, is_one: bool) -> Option<Verb> {
    match (method, is_one) {
        ("GET" | "HEAD", false) => Some(Verb::List),
        ("GET" | "HEAD", true) => Some(Verb::Get),
        ("POST", false) => Some(Verb::Create),
        ("PUT", true) => Some(Verb::Update),
        ("PATCH", true) => Some(Verb::Patch),
        ("DELETE", true) => Some(Verb::Delete),
        _ => None,
    }
}

/// Whether a path can be one of documents. Whether there is such a view, only its provider knows.
pub fn is_path(path: &str) -> bool {
    Target::read(path, None).is_some()
}

/// Answers a request for documents.
///
/// # Errors
/// Why it is not carried out.
pub async fn answer(app: &Arc<App>, request: Request) -> Result<Response, Problem> {
    // A watch begins within this time too; its events come later.
    let answered = tokio::time::timeout(PATIENCE, begun(app, request)).await;
    answered.unwrap_or_else(|_| Err(Problem::too_late("the request took too long")))
}

async fn begun(app: &Arc<App>, request: Request) -> Result<Response, Problem> {
    let caller = app.known(request.headers()).await?;
    let (head, body) = request.into_parts();
    let query = request::query(&head.uri)?;
    let not_here = || Problem::not_found("there is nothing at this path");
    let target = Target::read(head.uri.path(), query.first("namespace")).ok_or_else(not_here)??;
    let view = app.documents.view(&target.path, &caller).await?.ok_or_else(not_here)?;
    let asked =
        Asked { app, caller: &caller, view: &view, target: &target, query: &query, headers: &head.headers };
    let verb = match verb(head.method.as_str(), target.name.is_some()) {
        Some(Verb::List) if query.is_watch() => Verb::Watch,
        Some(verb) => verb,
        None => return Err(Refusal::not_allowed("this method here").into()),
    };
    asked.allows(verb)?;
    let _place = app.requests.acquire().await;
    let body = match verb {
        Verb::Create | Verb::Update | Verb::Patch => endpoint::read(body, JSON_BYTES_MAX).await?,
        _ => Bytes::new(),
    };
    let _memory = app.memory.of_body(&Bulk::of(&body)).await?;
    let answer = match verb {
        Verb::List => read::list(&asked).await,
        Verb::Watch => watch::watch(&asked).await,
        Verb::Get => read::get(&asked).await,
        Verb::Create => write::create(&asked, &body).await,
        Verb::Update => write::replace(&asked, &body).await,
        Verb::Patch => write::patch(&asked, &body).await,
        Verb::Delete => write::delete(&asked).await,
        // No operation of the table is it.
        Verb::DeleteCollection => Err(Refusal::not_allowed(verb.name()).into()),
    }?;
    sending::sent(app, answer).await
}

/// An answer with a document.
fn document(status: StatusCode, text: String, version: &str) -> Response {
    let mut response = endpoint::written(status, text);
    if let Ok(etag) = HeaderValue::from_str(&format!("\"{version}\"")) {
        response.headers_mut().insert(header::ETAG, etag);
    }
    response
}

#[cfg(test)]
mod tests;
