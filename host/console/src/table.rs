//! The route table: every endpoint. The router is built from it, and so is the OpenAPI document.

use std::sync::LazyLock;

use http::{Method, StatusCode};

use axum::response::{IntoResponse, Response};
use serde_json::Value;

use crate::{
    children,
    endpoint::{self, AnswerForm, Call, Endpoint, any_object},
    events, host, kinds, objects, openapi, plan,
    problem::Problem,
    schema, session, stream, upload,
};

/// Every endpoint.
pub fn endpoints() -> Vec<Endpoint> {
    let health = "Whether the server runs";
    let ready = "Whether the server takes requests";
    let mut all = vec![
        Endpoint::new(Method::GET, "/healthz", "getHealth", health, |call| Box::pin(healthz(call)))
            .answers(200, AnswerForm::Text)
            .for_anyone(),
        Endpoint::new(Method::GET, "/readyz", "getReadiness", ready, |call| Box::pin(readyz(call)))
            .answers(200, AnswerForm::Text)
            .for_anyone(),
    ];
    all.push(
        Endpoint::new(
            Method::GET,
            "/openapi.json",
            "getDescription",
            "This description; with the documents of views, for those who show who they are",
            |call| Box::pin(description(call)),
        )
        .answers(200, AnswerForm::Json(any_object))
        .for_anyone(),
    );
    all.extend(session::endpoints());
    all.extend(kinds::endpoints());
    all.extend(schema::endpoints());
    all.extend(objects::endpoints());
    all.extend(children::endpoints());
    all.extend(events::endpoints());
    all.extend(stream::endpoints());
    all.extend(host::endpoints());
    all.extend(upload::endpoints());
    all.extend(plan::endpoints());
    all
}

async fn healthz(_: Call) -> Result<Response, Problem> {
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
                let views = paths.iter().map(|found| call.app.documents.view(&found.path, &caller));
                // One that cannot be called now is left out: nothing can be done with its documents.
                let views = futures::future::join_all(views).await.into_iter().flatten().flatten();
                views.for_each(|view| openapi::describe(&mut document, &view.lens));
            }
            Err(why) => openapi::leave_views_out(&mut document, &why.details),
        }
    }
    endpoint::json(StatusCode::OK, &document)
}

async fn readyz(call: Call) -> Result<Response, Problem> {
    match call.app.is_stopping() {
        false => Ok("ok".into_response()),
        true => Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the server stops")),
    }
}
