//! Whether an account could read what a guest is to be shown. Watches are the host's own and shared, so that this is asked instead.

use std::sync::{Mutex, PoisonError};

use pintle_core::{
    account::{Account, Answers, Question},
    needs::LookUp,
};
use pintle_kubernetes::{Cluster, Resource};
use pintle_runtime::clock;
use pintle_wit::{Failure, Select};
use serde_json::{Value, json};

/// What a guest that observes a kind is shown, its account must have been able to get by these.
const VERBS: [&str; 2] = ["get", "list"];

/// Asks the API server about rights, and remembers its answers for a while.
#[derive(Debug, Default)]
pub(crate) struct Access(Mutex<Answers>);

impl Access {
    /// Whether an account may read the objects of a kind in a namespace, or everywhere.
    ///
    /// # Errors
    /// `AccessDenied`, and also when nobody says that it may.
    pub(crate) async fn may_read(
        &self,
        cluster: &Cluster,
        account: &Account,
        resource: &Resource,
        namespace: Option<&str>,
    ) -> Result<(), Failure> {
        for verb in VERBS {
            self.may(cluster, account, verb, resource, namespace, None).await?;
        }
        Ok(())
    }

    /// Whether an account may see what a need means: the object of this name, or any of a kind in a namespace or everywhere.
    ///
    /// # Errors
    /// As [`Access::may_read`].
    pub(crate) async fn may_see(
        &self,
        cluster: &Cluster,
        account: &Account,
        resource: &Resource,
        look: &LookUp,
    ) -> Result<(), Failure> {
        match look.select() {
            Select::Name(name) => {
                self.may(cluster, account, "get", resource, look.namespace(), Some(name)).await
            }
            _ => self.may_read(cluster, account, resource, look.namespace()).await,
        }
    }

    async fn may(
        &self,
        cluster: &Cluster,
        account: &Account,
        verb: &str,
        resource: &Resource,
        namespace: Option<&str>,
        name: Option<&str>,
    ) -> Result<(), Failure> {
        let question = Question {
            account: account.clone(),
            verb: verb.into(),
            group: resource.kind.group().into(),
            resource: resource.plural.clone(),
            namespace: namespace.filter(|_| resource.namespaced).map(Into::into),
            name: name.map(Into::into),
        };
        self.ask(cluster, &question).await.map_err(|why| question.denied(&why))
    }

    async fn ask(&self, cluster: &Cluster, question: &Question) -> Result<(), String> {
        let answers = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = answers().get(question, clock::monotonic()) {
            return known.clone();
        }
        let review = cluster.review(&review(question)).await.map_err(|error| {
            // Not remembered: it says nothing of the account.
            format!("the API server did not say that it may: {error}")
        })?;
        let answer = answer(&review);
        answers().put(question.clone(), answer.clone(), clock::monotonic());
        answer
    }
}

fn review(question: &Question) -> Value {
    json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {
            "user": question.account.user(), "groups": question.account.groups(),
            "resourceAttributes": {
                "verb": question.verb, "group": question.group, "resource": question.resource,
                "namespace": question.namespace.as_deref().unwrap_or_default(),
                "name": question.name.as_deref().unwrap_or_default(),
            },
        },
    })
}

/// Allowed only when the API server says so in so many words.
fn answer(review: &Value) -> Result<(), String> {
    let is = |field: &str| review["status"][field] == Value::Bool(true);
    if is("allowed") && !is("denied") {
        return Ok(());
    }
    let text = |field: &str| review["status"][field].as_str().filter(|text| !text.is_empty());
    Err(text("reason").or_else(|| text("evaluationError")).unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_yes_is_a_yes() {
        assert_eq!(answer(&json!({"status": {"allowed": true}})), Ok(()));
        for status in [
            json!({}),
            json!({"allowed": false}),
            json!({"allowed": "true"}),
            json!({"allowed": true, "denied": true}),
        ] {
            assert_eq!(answer(&json!({"status": status})), Err(String::new()), "{status}");
        }
        assert_eq!(answer(&json!({"status": {"allowed": false, "reason": "no"}})), Err("no".into()));
    }
}
