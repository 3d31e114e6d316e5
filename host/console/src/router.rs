//! The way of a request: the name it calls us by, the page it comes from, who sends it, and then its endpoint.
//!
//! Every answer, whatever becomes of the request, has the headers of [`headers`](crate::headers).

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    RequestExt, Router,
    extract::{RawPathParams, Request, State},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{MethodFilter, MethodRouter, on},
};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use tower_http::cors::CorsLayer;

use crate::{
    app::App,
    assets::PREFIX,
    caller::JSON,
    door::origin,
    endpoint::{Call, Endpoint, MERGE_PATCH, WASM, form_of, unsupported},
    headers,
    problem::{PROBLEM_JSON, Problem},
    query::Query,
    rest, sending, table,
};

/// What answers requests.
pub fn router(app: Arc<App>) -> Router {
    let mut router = Router::new();
    for endpoint in table::endpoints() {
        router = router.route(&endpoint.path.clone(), method(endpoint));
    }
    router = router
        .method_not_allowed_fallback(|| async {
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "there is no such method here")
        })
        .fallback(elsewhere);
    if !app.door.cors.is_empty() {
        router = router.layer(cors(&app.door.cors));
    }
    router.layer(middleware::from_fn_with_state(Arc::clone(&app), guard)).with_state(app)
}

/// What pages of these origins may send, and see of the answers.
fn cors(origins: &[HeaderValue]) -> CorsLayer {
    CorsLayer::new()
        .allow_origin(origins.to_vec())
        .allow_methods([Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE])
        .allow_headers([header::AUTHORIZATION, header::CONTENT_TYPE, header::IF_MATCH])
        .expose_headers([header::ETAG, header::LOCATION, header::RETRY_AFTER])
        .max_age(Duration::from_secs(600))
}

/// One line of the table as axum wants it. A HEAD request is answered as a GET without its body.
fn method(endpoint: Endpoint) -> MethodRouter<Arc<App>> {
    // The table has no methods besides these.
    let filter = match endpoint.method {
        Method::POST => MethodFilter::POST,
        Method::PUT => MethodFilter::PUT,
        Method::PATCH => MethodFilter::PATCH,
        Method::DELETE => MethodFilter::DELETE,
        _ => MethodFilter::GET,
    };
    on(filter, move |State(app): State<Arc<App>>, request: Request| run(app, endpoint, request))
}

async fn run(app: Arc<App>, endpoint: Endpoint, mut request: Request) -> Result<Response, Problem> {
    let caller = if endpoint.for_anyone { None } else { Some(app.known(request.headers()).await?) };
    let is_known = caller.is_some();
    let params = request
        .extract_parts::<RawPathParams>()
        .await
        .map_err(|_| Problem::bad_request("the path is not UTF-8"))?;
    let path = params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let query = Query::read(request.uri().query(), &endpoint.query)?;
    let (head, body) = request.into_parts();
    let call = Call {
        app: Arc::clone(&app),
        caller,
        path,
        query,
        headers: head.headers,
        body: Mutex::new(body),
        memory: None,
    };
    call.has_form(endpoint.takes)?;
    let answer = async {
        let _place = if is_known { app.requests.acquire().await.ok() } else { None };
        (endpoint.handler)(call).await
    };
    let answer = if let Some(patience) = endpoint.patience {
        let late = |_| Err(Problem::too_late("the request took too long"));
        tokio::time::timeout(patience, answer).await.unwrap_or_else(late)
    } else {
        answer.await
    };
    sending::sent(&app, answer?).await
}

/// What is no endpoint: documents, pages, and nothing.
async fn elsewhere(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let (method, path) = (request.method(), request.uri().path());
    if rest::is_path(path) {
        return rest::answer(&app, request).await;
    }
    let is_read = method == Method::GET || method == Method::HEAD;
    if is_read && (path == "/" || path == PREFIX.trim_end_matches('/')) {
        return Ok((StatusCode::FOUND, [(header::LOCATION, PREFIX)]).into_response());
    }
    if !path.starts_with(PREFIX) {
        return Err(Problem::not_found("there is nothing at this path"));
    }
    app.assets.serve(method, path, request.headers())
}

/// Judges a request before anything else does, and sets the headers of its answer.
async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let takes_json_alone = takes_json_alone(request.headers());
    let mut response = match admit(&app, &request) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    let headers = response.headers_mut();
    if takes_json_alone && headers.get(header::CONTENT_TYPE).is_some_and(|form| form == PROBLEM_JSON) {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
    }
    headers::secure(headers, app.serves_tls);
    response
}

/// Whether a client names JSON, and neither the form of a problem nor everything.
fn takes_json_alone(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    accept.contains(JSON) && !accept.contains(PROBLEM_JSON) && !accept.contains("*/*")
}

fn admit(app: &App, request: &Request) -> Result<(), Problem> {
    let path = request.uri().path();
    // A probe calls a Pod by its address. It is told nothing but `ok`.
    if matches!(path, "/healthz" | "/readyz") {
        return Ok(());
    }
    let host = app.door.hosts.judge(request.uri(), request.headers())?;
    let is_page = path == "/" || path.starts_with(PREFIX.trim_end_matches('/'));
    origin::judge(request.method(), request.headers(), &host, &app.door.cors, is_page)?;
    has_known_form(request)
}

/// A form of another site can send three content types without being asked for leave: none of ours is one of them.
fn has_known_form(request: &Request) -> Result<(), Problem> {
    let headers = request.headers();
    let may_have_none = !matches!(*request.method(), Method::POST | Method::PUT | Method::PATCH);
    let has_none = !headers.contains_key(header::CONTENT_TYPE);
    if (may_have_none && has_none) || [JSON, MERGE_PATCH, WASM].contains(&form_of(headers).as_str()) {
        return Ok(());
    }
    Err(unsupported(&format!("the body must be application/json, {MERGE_PATCH} or {WASM}")))
}

#[cfg(test)]
mod tests;
