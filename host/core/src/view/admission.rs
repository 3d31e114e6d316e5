//! Which policies, webhooks and quotas name the resource of a view, and so see no write of it.
//!
//! The API server asks admission about what it stores. It sends a write of a viewed object on to the gateway without asking, and asks about
//! what the gateway writes, which is the backing object. So a rule that is meant for the resource of the view does nothing, and who wrote it
//! cannot know.
//!
//! A rule is taken to be meant for the resource if it names the resource or its group, and covers no write of the backing kind. One for
//! everything (`*` of `*`, as policy engines have it) is not: it sees the backing object. Neither is one that names the backing kind too.
//!
//! Only rules are looked at. Conditions, selectors of namespaces and objects, and names may narrow what a rule covers, and a policy without a
//! binding does nothing in any case; there may be a warning of such a one all the same.

use std::collections::BTreeSet;

use pintle_wit::Kind;
use serde_json::Value;

use super::served::{Served, Verb};
use crate::{conditions, object};

/// How many objects a message names.
const NAMED: usize = 3;

/// A kind whose objects say what may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AdmissionKind {
    /// Expressions that allow or deny.
    ValidatingAdmissionPolicy,
    /// Expressions that change what is written. Kubernetes 1.36 or newer serves it.
    MutatingAdmissionPolicy,
    /// Webhooks that allow or deny.
    ValidatingWebhookConfiguration,
    /// Webhooks that change what is written.
    MutatingWebhookConfiguration,
    /// How many objects there may be in a namespace.
    ResourceQuota,
}

/// A resource that can be written through a view, and what it is stored as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    shown: Resource,
    backing: Resource,
    /// Whether its objects live in namespaces.
    namespaced: bool,
    /// What can be done with its objects, as rules name it.
    operations: Vec<&'static str>,
}

/// A resource, as rules name it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Resource {
    group: String,
    version: String,
    plural: String,
}

/// What sees no write of a resource. Of any number of objects it keeps a few names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bypassed {
    /// The first of them, with the kinds in their order.
    first: BTreeSet<(AdmissionKind, String)>,
    count: usize,
}

/// The rules of a policy or a webhook.
struct Rules<'a> {
    rules: &'a Value,
    /// What they do not cover.
    excluded: &'a Value,
    /// Whether a rule for one version covers no other.
    is_exact: bool,
}

impl AdmissionKind {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::ValidatingAdmissionPolicy,
        Self::MutatingAdmissionPolicy,
        Self::ValidatingWebhookConfiguration,
        Self::MutatingWebhookConfiguration,
        Self::ResourceQuota,
    ];

    /// The kind.
    pub fn kind(self) -> Kind {
        let api_version = if self.namespaced() { "v1" } else { "admissionregistration.k8s.io/v1" };
        Kind::new(api_version, self.name())
    }

    /// The resource.
    pub fn plural(self) -> &'static str {
        match self {
            Self::ValidatingAdmissionPolicy => "validatingadmissionpolicies",
            Self::MutatingAdmissionPolicy => "mutatingadmissionpolicies",
            Self::ValidatingWebhookConfiguration => "validatingwebhookconfigurations",
            Self::MutatingWebhookConfiguration => "mutatingwebhookconfigurations",
            Self::ResourceQuota => "resourcequotas",
        }
    }

    /// Whether its objects live in namespaces.
    pub fn namespaced(self) -> bool {
        self == Self::ResourceQuota
    }

    fn name(self) -> &'static str {
        match self {
            Self::ValidatingAdmissionPolicy => "ValidatingAdmissionPolicy",
            Self::MutatingAdmissionPolicy => "MutatingAdmissionPolicy",
            Self::ValidatingWebhookConfiguration => "ValidatingWebhookConfiguration",
            Self::MutatingWebhookConfiguration => "MutatingWebhookConfiguration",
            Self::ResourceQuota => "ResourceQuota",
        }
    }
}

impl Target {
    /// What a View serves, if anything of it can be written. Documents are none: the backing object is written in the caller's name, and
    /// they have no resource that a rule could name.
    pub fn of(served: &Served) -> Option<Self> {
        let may = |verbs: [Verb; 2]| verbs.into_iter().any(|verb| served.allows(verb));
        let operations = [
            ("CREATE", [Verb::Create, Verb::Create]),
            ("UPDATE", [Verb::Update, Verb::Patch]),
            ("DELETE", [Verb::Delete, Verb::DeleteCollection]),
        ];
        let operations: Vec<&str> =
            operations.into_iter().filter(|(_, verbs)| may(*verbs)).map(|(operation, _)| operation).collect();
        (!served.is_of_documents() && !operations.is_empty()).then(|| Self {
            shown: Resource::new(&served.api_version, &served.plural),
            backing: Resource::new(&served.backing.api_version, &served.backing.plural),
            namespaced: served.backing.namespaced,
            operations,
        })
    }

    /// Whether an object of this kind names the resource, and sees no write of it.
    pub fn is_missed_by(&self, kind: AdmissionKind, object: &Value) -> bool {
        match kind {
            AdmissionKind::ValidatingAdmissionPolicy | AdmissionKind::MutatingAdmissionPolicy => {
                let constraints = &object["spec"]["matchConstraints"];
                self.is_missed_by_rules(&Rules::new(constraints, "resourceRules"))
            }
            // Each webhook of a configuration is called by itself.
            AdmissionKind::ValidatingWebhookConfiguration | AdmissionKind::MutatingWebhookConfiguration => {
                let mut webhooks = object["webhooks"].as_array().into_iter().flatten();
                webhooks.any(|webhook| self.is_missed_by_rules(&Rules::new(webhook, "rules")))
            }
            AdmissionKind::ResourceQuota => {
                let can_be_counted = self.namespaced && self.operations.contains(&"CREATE");
                can_be_counted && self.shown.is_counted_by(object) && !self.backing.is_counted_by(object)
            }
        }
    }

    fn is_missed_by_rules(&self, rules: &Rules<'_>) -> bool {
        self.operations.iter().any(|operation| {
            let covers = |resource| rules.cover(resource, operation, self.namespaced);
            covers(&self.shown)
                && !covers(&self.backing)
                && rules.name(&self.shown, operation, self.namespaced)
        })
    }

    /// What to say of what sees no write; nothing if there is no such object. The same objects have the same message.
    pub fn message(&self, bypassed: &Bypassed) -> Option<String> {
        let mut named: Vec<String> =
            bypassed.first.iter().map(|(kind, name)| format!("{} {name}", kind.name())).collect();
        match bypassed.count.saturating_sub(named.len()) {
            0 => {}
            more => named.push(format!("{more} more")),
        }
        let last = named.pop()?;
        let (who, verbs) = match named.is_empty() {
            true => (last, ["names", "sees", "it"]),
            false => (format!("{} and {last}", named.join(", ")), ["name", "see", "them"]),
        };
        let ([name, see, them], shown, backing) = (verbs, self.shown.qualified(), self.backing.qualified());
        Some(conditions::message(&format!(
            "{who} {name} {shown}, and {see} no write: write {them} for {backing}"
        )))
    }
}

impl Bypassed {
    /// Takes in an object that sees no write.
    pub fn add(&mut self, kind: AdmissionKind, object: &Value) {
        let name = match object::namespace(object) {
            Some(namespace) => format!("{namespace}/{}", object::name(object)),
            None => object::name(object).to_owned(),
        };
        self.first.insert((kind, name));
        self.count += 1;
        if self.first.len() > NAMED {
            self.first.pop_last();
        }
    }
}

impl Resource {
    fn new(api_version: &str, plural: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self { group: group.to_owned(), version: version.to_owned(), plural: plural.to_owned() }
    }

    fn qualified(&self) -> String {
        match self.group.as_str() {
            "" => self.plural.clone(),
            group => format!("{}.{group}", self.plural),
        }
    }

    /// Whether a ResourceQuota counts its objects. Some resources of the core group are counted by their plain name too.
    fn is_counted_by(&self, quota: &Value) -> bool {
        let counts = |key: &str| match key.strip_prefix("count/") {
            Some(counted) => counted == self.qualified(),
            None => self.group.is_empty() && key == self.plural,
        };
        quota["spec"]["hard"].as_object().is_some_and(|hard| hard.keys().any(|key| counts(key)))
    }
}

impl<'a> Rules<'a> {
    fn new(of: &'a Value, rules: &str) -> Self {
        Self {
            rules: &of[rules],
            excluded: &of["excludeResourceRules"],
            // The API server fills in Equivalent: it looks at another version of the resource as if it were the one that is named.
            is_exact: of["matchPolicy"] == "Exact",
        }
    }

    /// Whether such a write of objects of a resource is covered.
    fn cover(&self, resource: &Resource, operation: &str, namespaced: bool) -> bool {
        let covers = |rule: &Value| self.covers(rule, resource, operation, namespaced);
        // What is excluded by name leaves other objects.
        let is_whole = |rule: &Value| texts(rule, "resourceNames").next().is_none();
        list(self.rules).any(covers) && !list(self.excluded).any(|rule| covers(rule) && is_whole(rule))
    }

    /// Whether a rule that covers such a write names the resource or its group.
    fn name(&self, resource: &Resource, operation: &str, namespaced: bool) -> bool {
        list(self.rules).any(|rule| {
            let names_group = texts(rule, "apiGroups").any(|group| group == resource.group);
            let names_resource = || texts(rule, "resources").any(|named| split(named).0 == resource.plural);
            self.covers(rule, resource, operation, namespaced) && (names_group || names_resource())
        })
    }

    /// As the API server matches rules: `llamas/*` covers llamas too, and `llamas/status`, which no view serves, does not.
    fn covers(&self, rule: &Value, resource: &Resource, operation: &str, namespaced: bool) -> bool {
        let has = |field: &str, text: &str| texts(rule, field).any(|named| named == "*" || named == text);
        let is_of_resource = |named: &str| {
            let (named, subresource) = split(named);
            (named == "*" || named == resource.plural) && matches!(subresource, None | Some("*"))
        };
        let scope = rule["scope"].as_str().unwrap_or("*");
        (scope == "*" || (scope == "Namespaced") == namespaced)
            && has("operations", operation)
            && has("apiGroups", &resource.group)
            && (!self.is_exact || has("apiVersions", &resource.version))
            && texts(rule, "resources").any(is_of_resource)
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn texts<'a>(rule: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    list(&rule[field]).filter_map(Value::as_str)
}

/// A resource and its subresource.
fn split(named: &str) -> (&str, Option<&str>) {
    match named.split_once('/') {
        Some((resource, subresource)) => (resource, Some(subresource)),
        None => (named, None),
    }
}

#[cfg(test)]
mod tests;
