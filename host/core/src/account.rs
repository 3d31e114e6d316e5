//! As whom a Reconciler's children are read and written, and what is known of that account's rights.

use std::{collections::BTreeMap, time::Duration};

use pintle_wit::Failure;
use serde_json::Value;

use crate::object;

/// A ServiceAccount.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Account {
    namespace: String,
    name: String,
}

/// How a Reconciler names the account that it works as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccountRule {
    /// One for all roots.
    Named(Account),
    /// The one that a field of the root names, in the root's namespace.
    FromRoot(String),
}

/// The reason of a root whose account is not named, or not by a name.
const INVALID: &str = "ServiceAccountInvalid";

impl Account {
    /// An account, if these can be the names of a namespace and of an account in it. What is empty is nobody's name: it is refused
    /// here, so that it can never stand for the host itself.
    ///
    /// # Errors
    /// What is wrong with the names.
    pub fn new(namespace: &str, name: &str) -> Result<Self, String> {
        for (what, text) in [("namespace", namespace), ("name", name)] {
            if !object::is_name(text) {
                return Err(format!("{text:?} is no {what} of a ServiceAccount"));
            }
        }
        Ok(Self { namespace: namespace.into(), name: name.into() })
    }

    /// The account as a user of the API server.
    pub fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }

    /// The groups that the API server takes every such user to be in.
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
    /// `ServiceAccountInvalid`, when the root names none. A change of the root ends it.
    pub fn account_for(&self, root: &Value) -> Result<Account, Failure> {
        let path = match self {
            Self::Named(account) => return Ok(account.clone()),
            Self::FromRoot(path) => path,
        };
        let refused = |message: String| {
            let message = format!("{message}; nothing is written for this root, not as the host either");
            Err(Failure::terminal(INVALID, message).at(path.as_str()))
        };
        let Some(namespace) = object::namespace(root) else {
            return refused("a root of cluster scope has no namespace with accounts to choose from".into());
        };
        match object::strings_at(root, path)[..] {
            [] => {
                refused("the root does not name the ServiceAccount that its children are written as".into())
            }
            [name] => Account::new(namespace, name).or_else(refused),
            _ => refused("the root names more than one ServiceAccount".into()),
        }
    }
}

/// What is asked about an account's rights.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Question {
    /// Whose rights.
    pub account: Account,
    /// To do what: `get`, `list`.
    pub verb: String,
    /// With objects of this group; the core group's is empty.
    pub group: String,
    /// And of this resource, in plural.
    pub resource: String,
    /// In this namespace, or in all and in cluster scope.
    pub namespace: Option<String>,
    /// Of this name, or of any.
    pub name: Option<String>,
}

impl Question {
    /// What a guest's root is told when the answer is no.
    pub fn denied(&self, why: &str) -> Failure {
        let group =
            if self.group.is_empty() { String::new() } else { format!(" in API group {}", self.group) };
        let place = match &self.namespace {
            Some(namespace) => format!("in namespace {namespace}"),
            None => "at cluster scope".into(),
        };
        let name = self.name.as_ref().map_or_else(String::new, |name| format!(" {name:?}"));
        let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
        let message = format!(
            "{} cannot {} {}{name}{group} {place}{why}; the guest is shown nothing that the account could not read",
            self.account.user(),
            self.verb,
            self.resource
        );
        // Rights come and go without the root being changed.
        Failure::transient("AccessDenied", message)
    }
}

/// Answers of the API server about rights, for as long as they are taken to hold.
#[derive(Debug, Default)]
pub struct Answers(BTreeMap<Question, (Result<(), String>, Duration)>);

impl Answers {
    /// How long an answer is taken to hold: what is taken from an account is shown to its guests for at most this long. Asking about
    /// every root and kind each time would cost more than the roots do.
    pub const HOLD: Duration = Duration::from_secs(30);

    /// What is known: allowed, or not and why. Nothing is known of what was never answered, or too long ago.
    pub fn get(&self, question: &Question, now: Duration) -> Option<&Result<(), String>> {
        self.0.get(question).filter(|(_, until)| *until > now).map(|(answer, _)| answer)
    }

    /// Takes an answer in, and forgets those that no longer hold.
    pub fn put(&mut self, question: Question, answer: Result<(), String>, now: Duration) {
        self.0.retain(|_, (_, until)| *until > now);
        self.0.insert(question, (answer, now + Self::HOLD));
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

    fn question(verb: &str) -> Question {
        Question {
            account: Account::new("team", "writer").unwrap(),
            verb: verb.into(),
            group: "apps".into(),
            resource: "deployments".into(),
            namespace: Some("team".into()),
            name: None,
        }
    }

    #[test]
    fn a_refusal_says_who_cannot_do_what_where() {
        let failure = question("list").denied("");
        assert_eq!(failure.reason, "AccessDenied");
        let said =
            "system:serviceaccount:team:writer cannot list deployments in API group apps in namespace team;";
        assert!(failure.message.starts_with(said), "{}", failure.message);
        let named = Question { name: Some("web".into()), ..question("get") }.denied("no role");
        let said = "cannot get deployments \"web\" in API group apps in namespace team (no role);";
        assert!(named.message.contains(said), "{}", named.message);
    }

    #[test]
    fn an_answer_holds_for_thirty_seconds_and_for_that_question_alone() {
        let mut answers = Answers::default();
        let at = Duration::from_secs;
        assert_eq!(answers.get(&question("get"), at(0)), None, "what nobody answered is not allowed");
        answers.put(question("get"), Ok(()), at(100));
        assert_eq!(answers.get(&question("get"), at(129)), Some(&Ok(())));
        assert_eq!(answers.get(&question("list"), at(129)), None);
        assert_eq!(answers.get(&question("get"), at(130)), None);
        answers.put(question("list"), Err("no".into()), at(200));
        assert_eq!(answers.0.len(), 1, "what no longer holds is forgotten");
    }
}
