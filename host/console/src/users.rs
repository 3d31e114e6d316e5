//! [`Users`]: who callers are and what they may do, as the API server says it.
//!
//! It is found out before a guest works for anybody, a module is loaded or a body is read. What the API server says holds for ten seconds,
//! as at the gateway's other door. That it knows nobody by a token is not remembered, so that made-up tokens take no room.

use std::time::Duration;

use http::Method;
use pintle_runtime::remembered::{Key, Remembered};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::{sync::Semaphore, time::timeout};

use crate::{
    caller::{Ask, Caller},
    problem::Problem,
};

/// Whoever the API server takes for nobody.
const ANONYMOUS: &str = "system:anonymous";

/// How many answers of a sort are remembered. One takes some hundred bytes.
const REMEMBERED_MAX: usize = 10_000;

/// How many callers of whom nothing is remembered are asked about at once. The API server judges a made-up token within milliseconds.
const ASKED_AT_ONCE: usize = 32;

/// How long one of them waits for its turn.
const TURN_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the API server may take to say who somebody is, with the wait for whoever asks the same.
const REVIEW_TIMEOUT: Duration = Duration::from_secs(10);

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

/// One question.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
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

/// What the API server has said of callers.
pub struct Users {
    known: Remembered<User>,
    allowed: Remembered<bool>,
    turns: Semaphore,
}

impl Default for Users {
    fn default() -> Self {
        Self {
            known: Remembered::new(REMEMBERED_MAX),
            allowed: Remembered::new(REMEMBERED_MAX),
            turns: Semaphore::new(ASKED_AT_ONCE),
        }
    }
}

impl Users {
    /// Who the caller is.
    ///
    /// # Errors
    /// 401 when the API server does not know, 429 when too many others are asked about, 504 when it does not say.
    pub async fn user(&self, caller: &Caller) -> Result<User, Problem> {
        let ask = async || {
            let busy = || Problem::busy("the server is busy finding out who others are", 2);
            let turn = timeout(TURN_TIMEOUT, self.turns.acquire()).await;
            let Ok(Ok(_turn)) = turn else { return Err(busy()) };
            whoami(caller).await
        };
        within(self.known.get_or_ask(Key::of(&caller.key()), ask)).await
    }

    /// Has been told a moment ago who this caller is.
    #[cfg(test)]
    pub(crate) fn knowing(caller: &Caller, user: User) -> Self {
        use futures::FutureExt;

        let users = Self::default();
        let told = users.known.get_or_ask(Key::of(&caller.key()), async || Ok::<_, Problem>(user));
        told.now_or_never().unwrap().unwrap();
        users
    }

    /// Whether the caller may do something, as it was said a moment ago at the latest.
    ///
    /// # Errors
    /// When the API server does not say.
    pub(crate) async fn may(&self, caller: &Caller, check: &Check) -> Result<bool, Problem> {
        // Plain data with string keys: writing it as JSON cannot fail.
        let question = serde_json::to_vec(&(caller.key(), check)).unwrap_or_default();
        within(self.allowed.get_or_ask(Key::of(&question), async || may(caller, check).await)).await
    }
}

async fn within<T>(asked: impl Future<Output = Result<T, Problem>>) -> Result<T, Problem> {
    let late =
        |_| Err(Problem::too_late("the API server took too long to say who asks and what they may do"));
    timeout(REVIEW_TIMEOUT, asked).await.unwrap_or_else(late)
}

/// Asks the API server who the caller is.
async fn whoami(caller: &Caller) -> Result<User, Problem> {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews".to_owned();
    let answer = caller.ask(Ask::json(Method::POST, path, &review)).await?.json()?;
    let user = answer.pointer("/status/userInfo").cloned().unwrap_or_default();
    let user: User = serde_json::from_value(user)
        .map_err(|_| Problem::bad_gateway("the API server does not say who the caller is"))?;
    if user.name.is_empty() || user.name == ANONYMOUS {
        return Err(Problem::unauthorized("the API server takes the caller for nobody"));
    }
    Ok(user)
}

/// Asks the API server whether the caller may do something.
///
/// # Errors
/// When it does not answer.
pub(crate) async fn may(caller: &Caller, check: &Check) -> Result<bool, Problem> {
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": check}});
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews".to_owned();
    let answer = caller.ask(Ask::json(Method::POST, path, &review)).await?.json()?;
    Ok(answer.pointer("/status/allowed").and_then(Value::as_bool).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use axum::body::Body;
    use http::HeaderMap;
    use pintle_runtime::remembered::HOLDS;

    use super::*;
    use crate::{
        fake::{knows_ann, memory, raw_upstream, refused, upstream},
        token::Token,
    };

    fn caller(client: &kube::Client, token: &str) -> Caller {
        let mut headers = HeaderMap::new();
        headers.insert("authorization", format!("Bearer {token}").parse().unwrap());
        Caller::with_token(client.clone(), Token::of(&headers).unwrap(), memory())
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_is_asked_about_once_in_ten_seconds_and_each_token_by_itself() {
        let (client, log) = upstream(knows_ann);
        let users = Users::default();
        let asked = || log.lock().unwrap().len();
        let ann = caller(&client, "ann");
        let together = futures::future::join_all((0..5).map(|_| users.user(&ann))).await;
        assert!(together.iter().all(|user| user.as_ref().is_ok_and(|user| user.name == "ann")));
        assert_eq!(asked(), 1, "whoever asks meanwhile waits for the answer");
        users.user(&caller(&client, "ann-2")).await.unwrap();
        assert_eq!(asked(), 2);
        tokio::time::advance(HOLDS).await;
        users.user(&ann).await.unwrap();
        assert_eq!(asked(), 3);
    }

    #[tokio::test]
    async fn a_token_that_nobody_has_takes_no_room() {
        let (client, log) = upstream(|_| refused(401, "Unauthorized", "no"));
        let users = Users::default();
        for number in 0..3 {
            let found = users.user(&caller(&client, &format!("made-up-{number}"))).await;
            assert_eq!(found.unwrap_err().status, 401);
        }
        assert!(users.known.is_empty());
        assert_eq!(log.lock().unwrap().len(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn strangers_are_asked_about_in_turn_and_do_not_hold_up_who_is_known() {
        // An API server that knows Ann, and never ends its answer about anybody else.
        let open = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&open);
        let (client, _) = raw_upstream(move |asked| {
            if asked.header("authorization") == Some("Bearer ann") {
                return (201, Body::from(knows_ann(asked).1.to_string()));
            }
            let (line, told) = futures::channel::mpsc::unbounded::<Result<bytes::Bytes, std::io::Error>>();
            kept.lock().unwrap().push(line);
            (201, Body::from_stream(told))
        });
        let users = Users::default();
        users.user(&caller(&client, "ann")).await.unwrap();
        let strangers: Vec<Caller> =
            (0..40).map(|number| caller(&client, &format!("made-up-{number}"))).collect();
        let all = futures::future::join_all(strangers.iter().map(|stranger| users.user(stranger)));
        let (found, ann) = futures::join!(all, async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            users.user(&caller(&client, "ann")).await
        });
        assert_eq!(ann.unwrap().name, "ann");
        let count = |status: u16| {
            found
                .iter()
                .flat_map(|user| user.as_ref().err())
                .filter(|problem| problem.status == status)
                .count()
        };
        assert_eq!((count(504), count(429), open.lock().unwrap().len()), (ASKED_AT_ONCE, 8, ASKED_AT_ONCE));
    }
}
