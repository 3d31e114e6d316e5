//! Decides which of several Darkrooms and Ingresses that ask for one host name gets it: the oldest.

use pintle_guest::{GuestCondition, Metadata, Needs, ObjectsNeed, Value};

use crate::{API_VERSION, KIND, config::Config, resource::Root};

/// The index of Darkrooms by the labels that they claim.
pub(crate) const DARKROOMS_BY: &str = "spec.subDomains[]";
/// The index of Ingresses by the hosts that they claim.
pub(crate) const INGRESSES_BY: &str = "spec.rules[].host";

/// The host names that the root asks for.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    /// Those that it serves, in its own order.
    pub(crate) won: Vec<String>,
    /// Those that somebody claimed before it: the name, and what has it, for a message.
    lost: Vec<(String, String)>,
}

impl Claims {
    /// Asks who else claims the root's names, in any namespace. The older claim wins: what was created first, then the lower uid.
    pub(crate) fn of(root: &Root, config: &Config, needs: &mut Needs<'_>) -> Self {
        let mut claims = Self::default();
        for label in &root.spec.sub_domains {
            let host = format!("{label}.{}", config.domain_suffix);
            let darkrooms = ObjectsNeed::indexed(API_VERSION, KIND, DARKROOMS_BY, label.as_str());
            let ingresses =
                ObjectsNeed::indexed("networking.k8s.io/v1", "Ingress", INGRESSES_BY, host.as_str())
                    .with_fields(&["metadata.ownerReferences"]);
            let darkrooms = needs.objects(darkrooms.in_all_namespaces());
            let ingresses = needs.objects(ingresses.in_all_namespaces());
            // An Ingress of a Darkroom is as old as its Darkroom's claim, and that is judged already.
            let ingresses = ingresses.iter().filter(|ingress| !is_of_a_darkroom(ingress));
            let rival = darkrooms.iter().chain(ingresses).min_by_key(|&rival| age(rival));
            match rival.filter(|rival| age(rival) < own_age(&root.metadata)) {
                Some(rival) => claims.lost.push((host, said(rival, &root.metadata))),
                None => claims.won.push(host),
            }
        }
        claims
    }

    /// Says which names are somebody else's. An object of another namespace is not named: who may read this Darkroom need not
    /// be allowed to know of it.
    pub(crate) fn conflict(&self) -> Option<GuestCondition> {
        let lost: Vec<String> =
            self.lost.iter().map(|(host, rival)| format!("{host} is claimed by {rival}")).collect();
        (!lost.is_empty())
            .then(|| GuestCondition::new("DomainConflict", true, "DomainTaken", lost.join("; ")).blocking())
    }
}

fn is_of_a_darkroom(ingress: &Value) -> bool {
    let owners = ingress["metadata"]["ownerReferences"].as_array();
    owners.into_iter().flatten().any(|owner| {
        owner["controller"] == true && owner["kind"] == KIND && owner["apiVersion"] == API_VERSION
    })
}

/// What claims are compared by. An object that was never created, in a file, is younger than all that were.
type Age<'a> = (bool, &'a str, &'a str);

fn age(object: &Value) -> Age<'_> {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    let created = text("creationTimestamp");
    (created.is_empty(), created, text("uid"))
}

fn own_age(root: &Metadata) -> Age<'_> {
    let created = root.creation_timestamp.as_deref().unwrap_or_default();
    (created.is_empty(), created, &root.uid)
}

fn said(rival: &Value, root: &Metadata) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kind = text(&rival["kind"]);
    if rival["metadata"]["namespace"].as_str() == root.namespace.as_deref() {
        format!("the older {kind} {}", text(&rival["metadata"]["name"]))
    } else {
        format!("an older {kind} of another namespace")
    }
}
