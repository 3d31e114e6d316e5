//! Checks whether an account may read the objects that its guest is shown. The watches are the host's own and shared between accounts,
//! so the host asks the API server about the account's rights.

use std::sync::{Mutex, PoisonError};

use pintle_core::{
    account::{Account, Answer, Answers, Question},
    needs::LookUp,
};
use pintle_kubernetes::{Cluster, Resource};
use pintle_runtime::clock;
use pintle_wit::{Failure, Select};
use serde_json::{Value, json};

/// The verbs that an account needs on a kind, so that its guest may observe it.
const VERBS: [&str; 2] = ["get", "list"];

/// Asks the API server about rights, and remembers its answers for a while.
#[derive(Debug, Default)]
pub(crate) struct Access(Mutex<Answers>);

impl Access {
    /// Whether an account may read the objects of a kind in a namespace, or everywhere.
    ///
    /// # Errors
    /// `AccessDenied`, also if the API server does not answer.
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

    /// Whether an account may see the objects that a need asks for: the object of this name, or all of a kind in a namespace or
    /// everywhere.
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
        match self.ask(cluster, &question).await {
            Answer::Allowed => Ok(()),
            Answer::Denied(why) => Err(question.denied(&why)),
        }
    }

    async fn ask(&self, cluster: &Cluster, question: &Question) -> Answer {
        let answers = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = answers().get(question, clock::monotonic()) {
            return known.clone();
        }
        let answer = match cluster.review(&review(question)).await {
            Ok(review) => answer(&review),
            // This is not remembered, because it says nothing about the account.
            Err(error) => return Answer::Denied(format!("the API server did not say that it may: {error}")),
        };
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

/// Allowed only if the API server explicitly says so.
fn answer(review: &Value) -> Answer {
    let is = |field: &str| review["status"][field] == Value::Bool(true);
    if is("allowed") && !is("denied") {
        return Answer::Allowed;
    }
    let text = |field: &str| review["status"][field].as_str().filter(|text| !text.is_empty());
    Answer::Denied(text("reason").or_else(|| text("evaluationError")).unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_yes_is_a_yes() {
        assert_eq!(answer(&json!({"status": {"allowed": true}})), Answer::Allowed);
        for status in [
            json!({}),
            json!({"allowed": false}),
            json!({"allowed": "true"}),
            json!({"allowed": true, "denied": true}),
        ] {
            assert_eq!(answer(&json!({"status": status})), Answer::Denied(String::new()), "{status}");
        }
        let because = json!({"status": {"allowed": false, "reason": "no"}});
        assert_eq!(answer(&because), Answer::Denied("no".into()));
    }
}
