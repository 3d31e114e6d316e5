//! The account as which a Reconciler's children are read and written.

use std::fmt;

use pintle_wit::Failure;
use serde_json::Value;

use crate::{object, reasons};

/// A ServiceAccount.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Account {
    namespace: String,
    name: String,
}

/// How a Reconciler names the account that it uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccountRule {
    /// One for all roots.
    Named(Account),
    /// The account that a field of the root names, in the root's namespace.
    FromRoot(String),
}

/// A text that can be no name of an account, or of its namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAName {
    /// What it was to be the name of.
    what: &'static str,
    text: String,
}

impl fmt::Display for NotAName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no {} of a ServiceAccount", self.text, self.what)
    }
}

impl std::error::Error for NotAName {}

impl Account {
    /// An account, if these can be the names of a namespace and of an account in it. An empty name is refused here, so that it can never
    /// stand for the host itself.
    ///
    /// # Errors
    /// The first of the two that is no name.
    pub fn new(namespace: &str, name: &str) -> Result<Self, NotAName> {
        for (what, text) in [("namespace", namespace), ("name", name)] {
            if !object::is_name(text) {
                return Err(NotAName { what, text: text.into() });
            }
        }
        Ok(Self { namespace: namespace.into(), name: name.into() })
    }

    /// The namespace that it is in.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The account as a user of the API server.
    pub fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }

    /// The groups of which every such user is a member for the API server.
    pub fn groups(&self) -> [String; 3] {
        [
            "system:serviceaccounts".into(),
            format!("system:serviceaccounts:{}", self.namespace),
            "system:authenticated".into(),
        ]
    }
}

impl AccountRule {
    /// The account for a root.
    ///
    /// # Errors
    /// `ServiceAccountInvalid`, if the root names none. A change of the root ends this.
    pub fn account_for(&self, root: &Value) -> Result<Account, Failure> {
        let path = match self {
            Self::Named(account) => return Ok(account.clone()),
            Self::FromRoot(path) => path,
        };
        let refused = |message: String| {
            let message = format!("{message}; nothing is written for this root, not as the host either");
            Err(Failure::terminal(reasons::SERVICE_ACCOUNT_INVALID, message).at(path.as_str()))
        };
        let Some(namespace) = object::namespace(root) else {
            return refused("a root of cluster scope has no namespace with accounts to choose from".into());
        };
        match object::strings_at(root, path)[..] {
            [] => {
                refused("the root does not name the ServiceAccount that its children are written as".into())
            }
            [name] => Account::new(namespace, name).or_else(|wrong| refused(wrong.to_string())),
            _ => refused("the root names more than one ServiceAccount".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn root(spec: Value) -> Value {
        json!({"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "r", "namespace": "team"}, "spec": spec})
    }

    #[test]
    fn an_account_is_a_user_in_the_groups_of_its_namespace() {
        let account = Account::new("team", "writer").unwrap();
        assert_eq!(account.user(), "system:serviceaccount:team:writer");
        assert_eq!(
            account.groups(),
            ["system:serviceaccounts", "system:serviceaccounts:team", "system:authenticated"]
        );
    }

    #[test]
    fn a_root_names_its_account_in_its_own_namespace() {
        let rule = AccountRule::FromRoot("spec.account".into());
        let account = rule.account_for(&root(json!({"account": "writer"}))).unwrap();
        assert_eq!(account.user(), "system:serviceaccount:team:writer");
    }

    #[test]
    fn no_account_is_refused_and_never_replaced() {
        let rule = AccountRule::FromRoot("spec.account".into());
        for spec in [
            json!({}),
            json!({"account": ""}),
            json!({"account": null}),
            json!({"account": ["writer"]}),
            json!({"account": "other:writer"}),
            json!({"account": "Writer"}),
            json!({"account": "../writer"}),
            json!({"account": "writer\r\nImpersonate-Group: system:masters"}),
        ] {
            let failure = rule.account_for(&root(spec.clone())).expect_err("refused");
            assert_eq!((failure.reason.as_str(), failure.retry), ("ServiceAccountInvalid", false), "{spec}");
            assert_eq!(failure.path.as_deref(), Some("spec.account"));
        }
        let mut of_cluster_scope = root(json!({"account": "writer"}));
        of_cluster_scope["metadata"]["namespace"] = Value::Null;
        assert!(rule.account_for(&of_cluster_scope).is_err());
        assert!(Account::new("", "writer").is_err() && Account::new("team", "").is_err());
    }
}
