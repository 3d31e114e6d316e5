//! Who somebody is, and what they may do: what reviews answer, and what requests are refused with 403.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// A user, as a token review or the headers of an impersonation name one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// The uid, empty for most users.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// What else is known of the user.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// A user with a name alone.
    pub fn named(name: &str) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// The user in a document that calls the name so, `user` or `username`.
    pub(crate) fn read(document: &Value, name: &str) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let list = |value: &Value| value.as_array().into_iter().flatten().map(text).collect();
        let extra = document["extra"].as_object().into_iter().flatten();
        Self {
            name: text(&document[name]),
            uid: text(&document["uid"]),
            groups: list(&document["groups"]),
            extra: extra.map(|(key, values)| (key.clone(), list(values))).collect(),
        }
    }

    /// The `user` in the status of a token review.
    pub(crate) fn to_json(&self) -> Value {
        let mut user = json!({"username": self.name});
        if !self.uid.is_empty() {
            user["uid"] = self.uid.as_str().into();
        }
        if !self.groups.is_empty() {
            user["groups"] = self.groups.clone().into();
        }
        if !self.extra.is_empty() {
            user["extra"] = json!(self.extra);
        }
        user
    }
}

/// Something that somebody wants to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Action {
    /// The verb as roles name it, for instance `deletecollection`.
    pub verb: String,
    /// The group; empty for the core group.
    pub group: String,
    /// The version; `*` for any.
    pub version: String,
    /// The plural name of the kind in paths; empty for a path that is not that of a kind.
    pub resource: String,
    /// The subresource, or empty.
    pub subresource: String,
    /// The namespace; empty for all, and for objects that are in none.
    pub namespace: String,
    /// The object; empty for all.
    pub name: String,
    /// The path, if it is not that of a kind: `/healthz`.
    pub path: String,
}

impl Action {
    pub(crate) fn read(spec: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (on, at) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
        match at.is_object() {
            true => Self { verb: text(&at["verb"]), path: text(&at["path"]), ..Self::default() },
            false => Self {
                verb: text(&on["verb"]),
                group: text(&on["group"]),
                version: text(&on["version"]),
                resource: text(&on["resource"]),
                subresource: text(&on["subresource"]),
                namespace: text(&on["namespace"]),
                name: text(&on["name"]),
                path: String::new(),
            },
        }
    }

    /// What the API server says to a user who may not do it.
    pub(crate) fn refusal(&self, user: &User, why: &str) -> String {
        let (verb, group) = (&self.verb, &self.group);
        let resource = match self.subresource.as_str() {
            "" => self.resource.clone(),
            subresource => format!("{}/{subresource}", self.resource),
        };
        let place = match self.namespace.as_str() {
            "" => "at the cluster scope".to_owned(),
            namespace => format!("in the namespace {namespace:?}"),
        };
        let of = match group.as_str() {
            "" => self.resource.clone(),
            group => format!("{}.{group}", self.resource),
        };
        let named = if self.name.is_empty() { of } else { format!("{of} {:?}", self.name) };
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        format!(
            "{named} is forbidden: User {:?} cannot {verb} resource {resource:?} in API group {group:?} {place}{why}",
            user.name
        )
    }
}

/// Whether somebody may do something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// They may.
    Allowed,
    /// Nothing allows it. The text says why, and may be empty.
    NotAllowed(String),
}

/// Decides who may do what. It is called while the server is locked, so it must not call the server.
pub trait Access: Send {
    /// The user whose token this is, for token reviews. By default nobody's.
    fn owner(&mut self, token: &str) -> Option<User> {
        let _ = token;
        None
    }

    /// Whether a user may do something. It is asked for each review of access, and for each request of a client, as the user that the
    /// client impersonates or else as the client itself.
    fn may(&mut self, user: &User, action: &Action) -> Verdict;
}

/// Everybody may do everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unrestricted;

impl Access for Unrestricted {
    fn may(&mut self, _: &User, _: &Action) -> Verdict {
        Verdict::Allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_user_the_verb_and_the_place() {
        let action = Action {
            verb: "update".into(),
            group: "example.com".into(),
            resource: "widgets".into(),
            subresource: "status".into(),
            namespace: "n".into(),
            name: "a".into(),
            ..Action::default()
        };
        assert_eq!(
            action.refusal(&User::named("jane"), ""),
            r#"widgets.example.com "a" is forbidden: User "jane" cannot update resource "widgets/status" in API group "example.com" in the namespace "n""#
        );
        let action = Action { verb: "list".into(), resource: "pods".into(), ..Action::default() };
        assert_eq!(
            action.refusal(&User::named("jane"), "no role"),
            r#"pods is forbidden: User "jane" cannot list resource "pods" in API group "" at the cluster scope: no role"#
        );
    }
}
