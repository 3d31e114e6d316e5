//! Who the caller is, and what it may do.

use axum::response::Response;
use futures::{StreamExt, TryStreamExt, stream};
use http::{Method, StatusCode, header};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    caller::{AT_ONCE, Ask, Caller, METADATA_OF_ALL},
    door::Mode,
    endpoint::{self, Call, Endpoint, Takes, shape},
    problem::{ModeName, Problem},
};

/// How many questions one request may ask.
const CHECKS_MAX: usize = 64;

/// Whoever the API server takes for nobody.
const ANONYMOUS: &str = "system:anonymous";

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
    /// When the token ends, if it says so.
    expires: Option<String>,
}

/// A user, as the API server knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct User {
    /// Its name.
    #[serde(alias = "username")]
    pub name: String,
    /// Its groups.
    #[serde(default)]
    pub groups: Vec<String>,
}

/// The secret in the page's URL.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Shown {
    /// What stands after `#`.
    secret: String,
}

/// What a caller wants to know whether it may do.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Checks {
    /// At most 64.
    checks: Vec<Check>,
}

/// One question.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Check {
    /// The verb.
    pub(crate) verb: String,
    /// The group; empty for the core group.
    #[serde(default)]
    pub(crate) group: String,
    /// The plural.
    pub(crate) resource: String,
    /// The subresource.
    #[serde(default)]
    pub(crate) subresource: Option<String>,
    /// The namespace; all of them without one.
    #[serde(default)]
    pub(crate) namespace: Option<String>,
    /// The object; all of them without one.
    #[serde(default)]
    pub(crate) name: Option<String>,
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
    let session = "/api/v1/session";
    vec![
        Endpoint::new(Method::GET, session, "getSession", "Who the caller is", |call| Box::pin(get(call)))
            .gives::<Session>(),
        Endpoint::new(
            Method::POST,
            session,
            "openSession",
            "Give a cookie for the secret in the page's URL",
            |call| Box::pin(open(call)),
        )
        .takes(Takes::Json(shape::<Shown>))
        .for_anyone(),
        Endpoint::new(Method::POST, "/api/v1/can", "can", "What the caller may do", |call| {
            Box::pin(can(call))
        })
        .takes(Takes::Json(shape::<Checks>))
        .gives::<Checked>(),
        Endpoint::new(
            Method::GET,
            "/api/v1/namespaces",
            "listNamespaces",
            "The namespaces, for who may list them",
            |call| Box::pin(namespaces(call)),
        )
        .gives::<Namespaces>(),
    ]
}

/// Asks the API server who the caller is.
///
/// # Errors
/// 401 when it does not know.
pub async fn whoami(caller: &Caller) -> Result<User, Problem> {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews".to_owned();
    let answer = caller.ask(Ask::json(Method::POST, path, &review)).await?.json()?;
    let user = answer.pointer("/status/userInfo").cloned().unwrap_or_default();
    let user: User = serde_json::from_value(user)
        .map_err(|_| Problem::bad_gateway("the API server does not say who the caller is"))?;
    match user.name.is_empty() || user.name == ANONYMOUS {
        true => Err(Problem::unauthorized("the API server takes the caller for nobody")),
        false => Ok(user),
    }
}

/// Asks the API server whether the caller may do something.
///
/// # Errors
/// When it does not answer.
pub(crate) async fn may(caller: &Caller, check: &Check) -> Result<bool, Problem> {
    let Check { verb, group, resource, subresource, namespace, name } = check;
    let attributes = json!({
        "verb": verb, "group": group, "resource": resource, "subresource": subresource.as_deref().unwrap_or_default(),
        "namespace": namespace.as_deref().unwrap_or_default(), "name": name.as_deref().unwrap_or_default(),
    });
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes}});
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews".to_owned();
    let answer = caller.ask(Ask::json(Method::POST, path, &review)).await?.json()?;
    Ok(answer.pointer("/status/allowed").and_then(Value::as_bool).unwrap_or_default())
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
    let user = whoami(caller).await?;
    let about = call.app.about.clone();
    let session = Session {
        mode: call.app.door.mode_name(),
        user,
        version: about.version,
        cluster: about.cluster,
        context: about.context,
        expires: caller.expires().map(|time| time.to_string()),
    };
    endpoint::json(StatusCode::OK, &session)
}

async fn open(mut call: Call) -> Result<Response, Problem> {
    let Shown { secret } = call.json().await?;
    let Mode::Local(local) = &call.app.door.mode else {
        return Err(Problem::not_found("here a bearer token says who the caller is"));
    };
    let cookie = local.admit(&secret)?;
    let mut response = endpoint::written(StatusCode::NO_CONTENT, "");
    response.headers_mut().remove(header::CONTENT_TYPE);
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(response)
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
    let caller = call.caller()?;
    let mut items = Vec::new();
    let mut next = None;
    loop {
        let ask = Ask::get("/api/v1/namespaces".into()).accepting(METADATA_OF_ALL).with("limit", "1000");
        let page = caller.ask(ask.with_some("continue", next)).await?.json()?;
        let names = page["items"].as_array().into_iter().flatten().map(pintle_core::object::name);
        items.extend(names.map(str::to_owned));
        match page.pointer("/metadata/continue").and_then(Value::as_str).filter(|token| !token.is_empty()) {
            Some(token) => next = Some(token.to_owned()),
            None => break,
        }
    }
    items.sort();
    endpoint::json(StatusCode::OK, &Namespaces { items })
}
