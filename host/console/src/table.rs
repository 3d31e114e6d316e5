//! The route table: every endpoint. The router is built from it, and so is the OpenAPI document.

use std::sync::LazyLock;

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde_json::Value;

use crate::{
    children,
    endpoint::{self, Call, Endpoint, any_object},
    events, host, kinds, objects, openapi, plan,
    problem::Problem,
    schema, session, stream, upload,
};

/// Every endpoint.
pub fn endpoints() -> Vec<Endpoint> {
    let described = "This description; with the documents of views, for those who show who they are";
    let of_the_process = vec![
        Endpoint::get("/healthz", "getHealth", "Whether the server runs", healthz).for_anyone(),
        Endpoint::get("/readyz", "getReadiness", "Whether the server takes requests", readyz).for_anyone(),
        Endpoint::get("/openapi.json", "getDescription", described, description)
            .answers(200, any_object)
            .for_anyone(),
    ];
    [
        of_the_process,
        session::endpoints(),
        kinds::endpoints(),
        schema::endpoints(),
        objects::endpoints(),
        children::endpoints(),
        events::endpoints(),
        stream::endpoints(),
        host::endpoints(),
        upload::endpoints(),
        plan::endpoints(),
    ]
    .concat()
}

async fn healthz(_: Call) -> Result<Response, Problem> {
    Ok("ok".into_response())
}

async fn readyz(call: Call) -> Result<Response, Problem> {
    if call.app.is_stopping() {
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the server stops"));
    }
    Ok("ok".into_response())
}

async fn description(call: Call) -> Result<Response, Problem> {
    static DOCUMENT: LazyLock<Value> = LazyLock::new(|| openapi::document(&endpoints()));
    let mut document = DOCUMENT.clone();
    // The views are described to whoever may use them; everybody may know the rest.
    if call.app.shows_who(&call.headers) {
        let caller = call.app.known(&call.headers).await?;
        match call.app.documents.paths(&caller).await {
            Ok(paths) => {
                let views = paths.iter().map(|path| call.app.documents.view(path, &caller));
                // One that cannot be called now is left out: nothing can be done with its documents.
                let views = futures::future::join_all(views).await.into_iter().flatten().flatten();
                views.for_each(|view| openapi::describe(&mut document, &view.lens));
            }
            Err(why) => openapi::leave_views_out(&mut document, &why.details),
        }
    }
    endpoint::json(StatusCode::OK, &document)
}
