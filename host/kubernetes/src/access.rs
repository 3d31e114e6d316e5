//! Whether an account may do something, as the API server says it.

use http::Method;
use pintle_core::{ApiError, account::Account, object};
use serde_json::{Value, json};

use super::{Call, Cluster, Hold, JSON, Resource};

/// The account of the host: the first that the ClusterRoleBinding of its role names.
pub fn host_account(binding: &Value) -> Option<Account> {
    binding["subjects"].as_array()?.iter().find_map(|subject| {
        Account::new(object::text(subject, &["namespace"])?, object::text(subject, &["name"])?).ok()
    })
}

/// The question whether an account may do something: with the object of a name or any, in a namespace or all. A subresource stands behind
/// its plural, as in roles: `pods/eviction`.
pub fn access_review(
    account: &Account,
    verb: &str,
    resource: &Resource,
    namespace: Option<&str>,
    name: Option<&str>,
) -> Value {
    let (plural, subresource) = resource.plural.split_once('/').unwrap_or((&resource.plural, ""));
    json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {
            "user": account.user(), "groups": account.groups(),
            "resourceAttributes": {
                "verb": verb, "group": resource.kind.group(), "resource": plural, "subresource": subresource,
                "namespace": namespace.unwrap_or_default(), "name": name.unwrap_or_default(),
            },
        },
    })
}

impl Cluster {
    /// Asks the API server whether an account may do something, and if not, why not; empty if the API server does not say. This changes
    /// nothing, so the host need not be the leader.
    ///
    /// # Errors
    /// When the API server did not answer.
    pub async fn review(&self, review: &Value) -> Result<Result<(), String>, ApiError> {
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews".to_owned();
        let anybody = self.with_hold(Hold::always());
        Ok(verdict(&anybody.send(Call::write(Method::POST, path, JSON, review)).await?.object))
    }
}

/// Allowed only if the API server explicitly says so.
fn verdict(review: &Value) -> Result<(), String> {
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
    fn the_host_is_the_first_account_that_is_bound_to_its_role() {
        let admins = json!({"kind": "Group", "name": "admins"});
        let host = json!({"kind": "ServiceAccount", "namespace": "tools", "name": "host"});
        let found = host_account(&json!({"subjects": [admins, host]}));
        assert_eq!(found, Account::new("tools", "host").ok());
        assert_eq!(host_account(&json!({"subjects": [admins]})), None);
    }

    #[test]
    fn a_subresource_is_asked_for_as_one() {
        let account = Account::new("tools", "host").unwrap();
        let of = |plural: &str| {
            let resource = crate::builtin("v1", "Pod", plural, true);
            let asked = access_review(&account, "create", &resource, None, None);
            ["resource", "subresource"].map(|field| asked["spec"]["resourceAttributes"][field].clone())
        };
        assert_eq!(of("pods/eviction"), ["pods", "eviction"]);
        assert_eq!(of("pods"), ["pods", ""]);
    }

    #[test]
    fn only_a_plain_yes_is_a_yes() {
        assert_eq!(verdict(&json!({"status": {"allowed": true}})), Ok(()));
        for status in [
            json!({}),
            json!({"allowed": false}),
            json!({"allowed": "true"}),
            json!({"allowed": true, "denied": true}),
        ] {
            assert_eq!(verdict(&json!({"status": status})), Err(String::new()), "{status}");
        }
        let because = json!({"status": {"allowed": false, "reason": "no"}});
        assert_eq!(verdict(&because), Err("no".into()));
    }
}
