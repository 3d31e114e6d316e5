//! Checks whether an account may read the objects that its guest is shown. The watches are the host's own and shared between accounts,
//! so the host asks the API server about the account's rights.

use pintle_core::{account::Account, needs::LookUp, reasons};
use pintle_kubernetes::{Cluster, REQUEST_TIMEOUT, Resource, access_review};
use pintle_runtime::remembered::{Key, Remembered};
use pintle_wit::{Failure, Select};
use serde_json::Value;

/// The verbs that an account needs on a kind, so that its guest may observe it.
const VERBS: [&str; 2] = ["get", "list"];

/// How many answers are remembered. One takes some hundred bytes.
const REMEMBERED_MAX: usize = 10_000;

/// What the API server says about a right: why not, for people, if the account does not have it; empty if the API server does not say.
type Verdict = Result<(), String>;

/// Asks the API server about rights, and remembers its answers for a while. After a right is taken from an account, its guests see the
/// objects for at most that long. Asking each time for every root and kind would cost more than the reconciles themselves.
pub(crate) struct Access(Remembered<Verdict>);

impl Default for Access {
    fn default() -> Self {
        Self(Remembered::new(REMEMBERED_MAX))
    }
}

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
            self.may(cluster, &Question { account, verb, resource, namespace, name: None }).await?;
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
        let namespace = look.namespace();
        match look.select() {
            Select::Name(name) => {
                let question = Question { account, verb: "get", resource, namespace, name: Some(name) };
                self.may(cluster, &question).await
            }
            _ => self.may_read(cluster, account, resource, namespace).await,
        }
    }

    async fn may(&self, cluster: &Cluster, question: &Question<'_>) -> Result<(), Failure> {
        let review = question.review();
        let key = Key::of(review.to_string().as_bytes());
        let ask = async || cluster.review(&review).await;
        // With the wait for whoever asks the same. What was not answered is not remembered, because it says nothing about the account.
        let unknown = match tokio::time::timeout(REQUEST_TIMEOUT, self.0.get_or_ask(key, ask)).await {
            Ok(Ok(verdict)) => return verdict.map_err(|why| question.denied(&why)),
            Ok(Err(error)) => error.to_string(),
            Err(late) => late.to_string(),
        };
        Err(question.denied(&format!("the API server did not say that it may: {unknown}")))
    }
}

/// A question to the API server about an account's rights.
#[derive(Clone, Copy, Debug)]
struct Question<'a> {
    account: &'a Account,
    verb: &'a str,
    resource: &'a Resource,
    /// Nothing means all namespaces.
    namespace: Option<&'a str>,
    /// Nothing means any.
    name: Option<&'a str>,
}

impl Question<'_> {
    /// The namespace, if the kind has one.
    fn namespace(&self) -> Option<&str> {
        self.namespace.filter(|_| self.resource.namespaced)
    }

    fn review(&self) -> Value {
        access_review(self.account, self.verb, self.resource, self.namespace(), self.name)
    }

    /// The failure of a guest's root if the answer is no.
    fn denied(&self, why: &str) -> Failure {
        let group = match self.resource.kind.group() {
            "" => String::new(),
            group => format!(" in API group {group}"),
        };
        let place = match self.namespace() {
            Some(namespace) => format!("in namespace {namespace}"),
            None => "at cluster scope".into(),
        };
        let name = self.name.map_or_else(String::new, |name| format!(" {name:?}"));
        let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
        let message = format!(
            "{} cannot {} {}{name}{group} {place}{why}; the guest is shown nothing that the account could not read",
            self.account.user(),
            self.verb,
            self.resource.plural
        );
        // Rights are given and taken without a change of the root.
        Failure::transient(reasons::ACCESS_DENIED, message)
    }
}

#[cfg(test)]
mod tests {
    use pintle_kubernetes::builtin;

    use super::*;

    #[test]
    fn a_refusal_says_who_cannot_do_what_where() {
        let account = Account::new("team", "writer").unwrap();
        let resource = builtin("apps/v1", "Deployment", "deployments", true);
        let (account, resource) = (&account, &resource);
        let list = Question { account, verb: "list", resource, namespace: Some("team"), name: None };
        let failure = list.denied("");
        assert_eq!(failure.reason, "AccessDenied");
        let said =
            "system:serviceaccount:team:writer cannot list deployments in API group apps in namespace team;";
        assert!(failure.message.starts_with(said), "{}", failure.message);
        let named = Question { verb: "get", name: Some("web"), ..list }.denied("no role");
        let said = "cannot get deployments \"web\" in API group apps in namespace team (no role);";
        assert!(named.message.contains(said), "{}", named.message);
    }
}
