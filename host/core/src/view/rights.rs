//! What it takes to serve a View: the rights of the gateway, those of the people who use it, and the APIService that sends requests to the
//! gateway. `pintle rbac` prints them.

use std::collections::{BTreeMap, BTreeSet};

use pintle_wit::{Failure, Kind, names};
use serde::Serialize;
use serde_json::{Value, json};

use super::served::{Access, Served, Verb};
use crate::reasons;

/// The label of the ClusterRoles that the gateway's own one gathers.
const LABEL_AGGREGATE: &str = "pintle.dev/aggregate-to-gateway";

/// As whom the gateway asks when it impersonates a caller: as a user, or as a ServiceAccount. There is no right to be a node.
const IMPERSONATED_AS: [&str; 2] = ["user-info", "serviceaccount"];

/// What a user has besides a name. Callers with a client certificate have this one key of `extra`; which ones others have, only the
/// identity provider of a cluster knows.
const USER_INFO: [&str; 4] =
    ["users", "groups", "uids", "userextras/authentication.kubernetes.io/credential-id"];

/// Where the group stands among all groups, and the version among those of the group, in clients that choose one themselves. Versions of
/// equal priority are in the order of their names, the newest first.
const GROUP_PRIORITY: u32 = 1000;
const VERSION_PRIORITY: u32 = 15;

/// A View, as far as rights go.
#[derive(Clone, Debug, PartialEq)]
pub struct Exposed {
    /// The name of the View.
    pub view: String,
    /// Who may use it.
    pub access: Access,
    /// What it serves: one thing; or two while another module comes into force, the wanted one first.
    pub served: Vec<Served>,
}

/// The Service that leads to the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its port.
    pub port: u16,
}

/// A rule of a ClusterRole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    /// The groups.
    pub api_groups: Vec<String>,
    /// The resources.
    pub resources: Vec<String>,
    /// The objects; none means any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
    /// The verbs.
    pub verbs: Vec<String>,
}

impl Rule {
    fn new<'a>(group: &str, resources: &[&str], verbs: impl IntoIterator<Item = &'a str>) -> Self {
        let owned = |text: &str| text.to_owned();
        Self {
            api_groups: vec![group.to_owned()],
            resources: resources.iter().copied().map(owned).collect(),
            resource_names: Vec::new(),
            verbs: verbs.into_iter().map(owned).collect(),
        }
    }
}

/// The objects that it takes to serve Views: the ClusterRoles of each, and an APIService for each group and version. The APIServices are
/// the last, since nothing should be sent to a gateway that may not answer yet.
pub fn objects(views: &[Exposed], gateway: Service<'_>) -> Vec<Value> {
    let mut objects = Vec::new();
    let mut api_services = BTreeMap::new();
    // Documents are read and written with the caller's own token: nobody needs rights for them but those on the backing kind.
    let of_objects = views.iter().filter(|exposed| !exposed.served.iter().any(Served::is_of_documents));
    for Exposed { view, access, served } in of_objects {
        let own = format!("pintle-gateway-view-{view}");
        objects.push(cluster_role(&own, LABEL_AGGREGATE, &of_gateway(*access, served)));
        for (who, role, rules) in
            [("viewer", "view", of_viewers(served)), ("editor", "edit", of_editors(served))]
        {
            if !rules.is_empty() {
                let label = format!("rbac.authorization.k8s.io/aggregate-to-{role}");
                objects.push(cluster_role(&format!("pintle-{who}-{view}"), &label, &rules));
            }
        }
        for served in served {
            api_services.insert(served.api_service(), api_service(served, gateway));
        }
    }
    objects.extend(api_services.into_values());
    objects
}

/// What the gateway may do for a View that serves these.
pub fn of_gateway(access: Access, served: &[Served]) -> Vec<Rule> {
    let names: BTreeSet<String> = served.iter().map(Served::api_service).collect();
    let mut rules = vec![Rule {
        resource_names: names.into_iter().collect(),
        ..Rule::new("apiregistration.k8s.io", &["apiservices"], ["get", "patch"])
    }];
    let mut backing: BTreeMap<(String, &str), BTreeSet<Verb>> = BTreeMap::new();
    for served in served {
        let key = (served.backing.kind().group().to_owned(), served.backing.plural.as_str());
        backing.entry(key).or_default().extend(backing_verbs(served));
    }
    for ((group, plural), verbs) in &backing {
        let own = verbs.iter().map(|verb| verb.name());
        match access {
            Access::View => rules.push(Rule::new(group, &[plural], own)),
            Access::ViewAndBacking => {
                let as_caller: Vec<String> = IMPERSONATED_AS
                    .iter()
                    .flat_map(|mode| verbs.iter().map(move |verb| format!("impersonate-on:{mode}:{verb}")))
                    .collect();
                rules.push(Rule::new(group, &[plural], as_caller.iter().map(String::as_str)));
                // For members of system:masters, who may do everything and cannot be impersonated.
                rules.push(Rule::new(group, &[plural], own));
            }
        }
    }
    if access == Access::ViewAndBacking {
        rules.push(Rule::new("authentication.k8s.io", &USER_INFO, ["impersonate:user-info"]));
        let accounts =
            Rule::new("authentication.k8s.io", &["serviceaccounts"], ["impersonate:serviceaccount"]);
        rules.push(accounts);
    }
    rules
}

/// What whoever may view a namespace may do with the objects of a View that serves these.
pub fn of_viewers(served: &[Served]) -> Vec<Rule> {
    of_people(served, |verbs| verbs.into_iter().filter(|verb| verb.is_read()).collect())
}

/// What whoever may edit a namespace may do with the objects of a View that serves these: everything, unless they are only read.
pub fn of_editors(served: &[Served]) -> Vec<Rule> {
    of_people(served, |verbs| match verbs.iter().all(|verb| verb.is_read()) {
        true => BTreeSet::new(),
        false => verbs,
    })
}

fn of_people(served: &[Served], choose: impl Fn(BTreeSet<Verb>) -> BTreeSet<Verb>) -> Vec<Rule> {
    let mut resources: BTreeMap<(&str, &str), BTreeSet<Verb>> = BTreeMap::new();
    for served in served {
        resources.entry((served.group(), &served.plural)).or_default().extend(&served.verbs);
    }
    let chosen = resources.into_iter().map(|(resource, verbs)| (resource, choose(verbs)));
    let chosen = chosen.filter(|(_, verbs)| !verbs.is_empty());
    chosen
        .map(|((group, plural), verbs)| Rule::new(group, &[plural], verbs.into_iter().map(Verb::name)))
        .collect()
}

/// What is done with the backing kind for what may be done with a view. A write through a view is a merge patch of what was read before.
fn backing_verbs(served: &Served) -> BTreeSet<Verb> {
    let below = |verb: &Verb| match verb {
        Verb::Update | Verb::Patch => vec![Verb::Get, Verb::Patch],
        // Whether it has the labels of the selector is looked at before: many are deleted one by one.
        Verb::DeleteCollection if !served.selector.is_empty() => vec![Verb::Get, Verb::List, Verb::Delete],
        Verb::Delete if !served.selector.is_empty() => vec![Verb::Get, Verb::Delete],
        other => vec![*other],
    };
    served.verbs.iter().flat_map(below).collect()
}

fn cluster_role(name: &str, label: &str, rules: &[Rule]) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name, "labels": {label: "true"}},
        "rules": rules,
    })
}

/// Without an authority to trust: the gateway sets it.
fn api_service(served: &Served, gateway: Service<'_>) -> Value {
    json!({
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": served.api_service()},
        "spec": {
            "group": served.group(),
            "version": served.version(),
            "groupPriorityMinimum": GROUP_PRIORITY,
            "versionPriority": VERSION_PRIORITY,
            "service": {"namespace": gateway.namespace, "name": gateway.name, "port": gateway.port},
        },
    })
}

/// Whether a view may show this kind, and write it if it is writable. Nobody is shown Secrets or rights by a view. Whoever writes a Pod's
/// template decides what runs, and what a guest stores there is not judged yet.
///
/// # Errors
/// `BackingForbidden`.
pub fn may_be_shown(backing: &Kind, is_writable: bool) -> Result<(), Failure> {
    const OF_THE_CORE: [&str; 5] =
        ["Pod", "PodTemplate", "ReplicationController", "Service", "PersistentVolumeClaim"];
    let why = match (backing.group(), backing.kind.as_str()) {
        ("", "Secret") => "a view does not show Secrets",
        ("rbac.authorization.k8s.io", _) => "a view does not show kinds that give rights",
        _ if !is_writable => return Ok(()),
        (names::DOMAIN, _) => "a view does not write kinds of Pintle itself",
        ("", name) if OF_THE_CORE.contains(&name) => "a view does not write kinds that make Pods or Services",
        ("apps" | "batch" | "networking.k8s.io", _) => {
            "a view does not write kinds that make Pods or Services"
        }
        _ => return Ok(()),
    };
    Err(Failure::terminal(reasons::BACKING_FORBIDDEN, format!("the backing kind is {backing}: {why}"))
        .at("spec.view"))
}

#[cfg(test)]
mod tests;
