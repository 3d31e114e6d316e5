//! Who the caller is, and what it may do.

use axum::response::Response;
use futures::{StreamExt, TryStreamExt, stream};
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    caller::{AT_ONCE, Ask, METADATA_OF_ALL},
    endpoint::{self, Call, Endpoint, Takes, shape},
    problem::{ModeName, Problem},
    reading,
    users::{Check, User, may},
};

/// How many questions one request may ask.
const CHECKS_MAX: usize = 64;

/// Who the caller is, and where it is.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Session {
    /// How callers show who they are.
    mode: ModeName,
    /// Who the API server takes the caller for.
    user: User,
    /// The version of this server.
    version: String,
    /// The cluster.
    cluster: String,
    /// The context of the kubeconfig.
    context: Option<String>,
    /// The namespace that the context names: where to begin, and perhaps the only one in which the caller may do anything.
    namespace: Option<String>,
    /// When the token ends, if it says so.
    expires: Option<String>,
}

/// What a caller wants to know whether it may do.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Checks {
    /// At most 64.
    checks: Vec<Check>,
}

/// The answers.
#[derive(Debug, Serialize, JsonSchema)]
struct Checked {
    /// In the order of the questions.
    allowed: Vec<bool>,
}

/// The names of namespaces.
#[derive(Debug, Serialize, JsonSchema)]
struct Namespaces {
    /// Sorted.
    items: Vec<String>,
}

/// The endpoints of this file.
pub(crate) fn endpoints() -> Vec<Endpoint> {
    let listed = "The namespaces, for who may list them";
    vec![
        Endpoint::get("/api/v1/session", "getSession", "Who the caller is", get).gives::<Session>(),
        Endpoint::new(Method::POST, "/api/v1/can", "can", "What the caller may do", can)
            .takes(Takes::Json(shape::<Checks>))
            .gives::<Checked>(),
        Endpoint::get("/api/v1/namespaces", "listNamespaces", listed, namespaces).gives::<Namespaces>(),
    ]
}

/// Who may not list all namespaces is told what else there is.
pub(crate) fn hint(mut problem: Problem) -> Problem {
    if problem.status == StatusCode::FORBIDDEN {
        problem.detail.push_str("; name a namespace with ?namespace=");
    }
    problem
}

async fn get(call: Call) -> Result<Response, Problem> {
    let caller = call.caller()?;
    let user = call.app.user(caller).await?;
    let about = call.app.about.clone();
    let session = Session {
        mode: call.app.door.mode_name(),
        user,
        version: about.version,
        cluster: about.cluster,
        context: about.context,
        namespace: about.namespace,
        expires: caller.expires().map(|time| time.to_string()),
    };
    endpoint::json(StatusCode::OK, &session)
}

async fn can(mut call: Call) -> Result<Response, Problem> {
    let Checks { checks } = call.json().await?;
    if checks.len() > CHECKS_MAX {
        return Err(Problem::invalid(format!("there are more than {CHECKS_MAX} questions"), Vec::new()));
    }
    let caller = call.caller()?;
    let asked = stream::iter(checks).map(|check| async move { may(caller, &check).await });
    let allowed: Vec<bool> = asked.buffered(AT_ONCE).try_collect().await?;
    endpoint::json(StatusCode::OK, &Checked { allowed })
}

async fn namespaces(call: Call) -> Result<Response, Problem> {
    let ask = Ask::get("/api/v1/namespaces".into()).accepting(METADATA_OF_ALL);
    let name = |namespace| Some(pintle_core::object::name(&namespace).to_owned());
    let mut items = reading::all(call.caller()?, &ask, name).await?;
    items.sort();
    endpoint::json(StatusCode::OK, &Namespaces { items })
}
