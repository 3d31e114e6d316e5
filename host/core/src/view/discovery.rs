//! Discovery: which groups, versions and resources there are.
//!
//! The aggregator reads it from every server behind an APIService and passes it on to every client, so that a wrong group would disturb
//! APIs of others: everything comes from [`Served`] alone. The order is that of names, whatever order the Views are read in.

use std::{cmp::Reverse, collections::BTreeMap};

use serde_json::{Map, Value, json};

use super::served::Served;

/// `GET /apis`, aggregated: all groups with all their resources.
pub fn aggregated(served: &[&Served]) -> Value {
    let items: Vec<Value> = groups(served)
        .iter()
        .map(|(group, versions)| {
            let versions = versions.iter().map(|(version, resources)| {
                let resources: Vec<Value> = resources.iter().map(|served| aggregated_resource(served)).collect();
                json!({"version": version.0, "resources": resources, "freshness": "Current"})
            });
            json!({"metadata": {"name": group, "creationTimestamp": null}, "versions": versions.collect::<Vec<_>>()})
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items,
    })
}

/// `GET /apis`, plain: all groups.
pub fn group_list(served: &[&Served]) -> Value {
    let groups: Vec<Value> =
        groups(served).iter().map(|(group, versions)| api_group(group, versions).into()).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `GET /apis/<group>`. None: there is no such group.
pub fn group(served: &[&Served], group: &str) -> Option<Value> {
    let groups = groups(served);
    let mut fields = api_group(group, groups.get(group)?);
    fields.insert("kind".into(), "APIGroup".into());
    fields.insert("apiVersion".into(), "v1".into());
    Some(fields.into())
}

/// `GET /apis/<group>/<version>`: its resources. None: there is no such version.
pub fn resource_list(served: &[&Served], api_version: &str) -> Option<Value> {
    let resources: Vec<Value> = of_version(served, api_version)?
        .iter()
        .map(|served| {
            let resource = json!({
                "name": served.plural, "singularName": served.singular, "namespaced": served.backing.namespaced,
                "kind": served.kind, "verbs": verbs(served),
            });
            with_names(resource, served)
        })
        .collect();
    Some(json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": resources,
    }))
}

/// What is served in a version, in the order of its names. None: there is no such version.
pub(super) fn of_version<'a>(served: &[&'a Served], api_version: &str) -> Option<Vec<&'a Served>> {
    let mut resources: Vec<&Served> =
        served.iter().copied().filter(|served| served.api_version == api_version).collect();
    resources.sort_by_key(|served| &served.plural);
    (!resources.is_empty()).then_some(resources)
}

fn aggregated_resource(served: &Served) -> Value {
    let kind = json!({"group": served.group(), "version": served.version(), "kind": served.kind});
    let resource = json!({
        "resource": served.plural, "responseKind": kind,
        "scope": if served.backing.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": served.singular, "verbs": verbs(served),
    });
    with_names(resource, served)
}

/// With short names and categories, if there are any.
fn with_names(mut resource: Value, served: &Served) -> Value {
    for (field, names) in [("shortNames", &served.short_names), ("categories", &served.categories)] {
        if !names.is_empty() {
            resource[field] = names.as_slice().into();
        }
    }
    resource
}

fn verbs(served: &Served) -> Vec<&'static str> {
    let mut verbs = served.verbs.clone();
    verbs.sort();
    verbs.dedup();
    verbs.iter().map(|verb| verb.name()).collect()
}

/// A version, ordered as clients prefer versions.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Version<'a>(&'a str);

type Versions<'a> = BTreeMap<Version<'a>, Vec<&'a Served>>;

/// What is served, by group and version, each in its order.
fn groups<'a>(served: &[&'a Served]) -> BTreeMap<&'a str, Versions<'a>> {
    let mut groups: BTreeMap<&str, Versions<'_>> = BTreeMap::new();
    for served in served {
        let versions = groups.entry(served.group()).or_default();
        versions.entry(Version(served.version())).or_default().push(served);
    }
    for resources in groups.values_mut().flat_map(BTreeMap::values_mut) {
        resources.sort_by_key(|served| &served.plural);
    }
    groups
}

fn api_group(group: &str, versions: &Versions<'_>) -> Map<String, Value> {
    let versions: Vec<Value> = versions
        .keys()
        .map(|version| json!({"groupVersion": format!("{group}/{}", version.0), "version": version.0}))
        .collect();
    let mut fields = Map::new();
    fields.insert("name".into(), group.into());
    fields.insert("preferredVersion".into(), versions.first().cloned().unwrap_or_default());
    fields.insert("versions".into(), versions.into());
    fields
}

impl Version<'_> {
    /// How stable it is, its number, and that before it was as stable: `v1beta2` is 1, 1, 2. None for what is called
    /// otherwise, as `v1alpha` is: that stands last.
    fn parts(&self) -> Option<(u8, u32, u32)> {
        let rest = self.0.strip_prefix('v')?;
        let (number, rest) =
            rest.split_at(rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len()));
        let number = number.parse().ok()?;
        let (stability, before) = match (rest.strip_prefix("alpha"), rest.strip_prefix("beta")) {
            (Some(before), _) => (0, before),
            (_, Some(before)) => (1, before),
            _ if rest.is_empty() => return Some((2, number, 0)),
            _ => return None,
        };
        Some((stability, number, before.parse().ok()?))
    }
}

impl Ord for Version<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (Reverse(self.parts()), self.0).cmp(&(Reverse(other.parts()), other.0))
    }
}

impl PartialOrd for Version<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::served::{Backing, Verb};

    fn served(api_version: &str, kind: &str, plural: &str) -> Served {
        Served {
            api_version: api_version.into(),
            kind: kind.into(),
            plural: plural.into(),
            singular: kind.to_lowercase(),
            verbs: vec![Verb::Watch, Verb::List, Verb::Get],
            backing: Backing { namespaced: true, ..Backing::default() },
            ..Served::default()
        }
    }

    fn farm() -> [Served; 4] {
        let llamas = Served {
            short_names: vec!["ll".into()],
            categories: vec!["animals".into()],
            verbs: Verb::ALL.into(),
            ..served("farm.example.com/v1alpha", "Llama", "llamas")
        };
        [
            llamas,
            served("farm.example.com/v1alpha", "FarmPod", "farmpods"),
            served("farm.example.com/v1", "Llama", "llamas"),
            Served { backing: Backing::default(), ..served("barn.example.com/v2", "Barn", "barns") },
        ]
    }

    #[test]
    fn aggregated_discovery_has_every_resource_of_every_group() {
        let farm = farm();
        let served = [&farm[0], &farm[1]];
        let kind = |kind: &str| json!({"group": "farm.example.com", "version": "v1alpha", "kind": kind});
        assert_eq!(
            aggregated(&served),
            json!({
                "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {},
                "items": [{
                    "metadata": {"name": "farm.example.com", "creationTimestamp": null},
                    "versions": [{
                        "version": "v1alpha", "freshness": "Current", "resources": [
                            {
                                "resource": "farmpods", "responseKind": kind("FarmPod"), "scope": "Namespaced",
                                "singularResource": "farmpod", "verbs": ["get", "list", "watch"],
                            },
                            {
                                "resource": "llamas", "responseKind": kind("Llama"), "scope": "Namespaced",
                                "singularResource": "llama", "shortNames": ["ll"], "categories": ["animals"],
                                "verbs": [
                                    "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch",
                                ],
                            },
                        ],
                    }],
                }],
            })
        );
        let cluster = aggregated(&[&farm[3]]);
        assert_eq!(cluster["items"][0]["versions"][0]["resources"][0]["scope"], "Cluster");
        assert_eq!(aggregated(&[])["items"], json!([]));
    }

    #[test]
    fn what_is_not_served_is_not_there() {
        let farm = farm();
        let all: Vec<&Served> = farm.iter().collect();
        assert_eq!(group(&all, "apps"), None);
        assert_eq!(resource_list(&all, "farm.example.com/v2"), None);
        assert_eq!(group_list(&[])["groups"], json!([]));
    }

    #[test]
    fn the_order_in_which_views_are_read_changes_nothing() {
        let farm = farm();
        let forth: Vec<&Served> = farm.iter().collect();
        let back: Vec<&Served> = farm.iter().rev().collect();
        assert_eq!(aggregated(&forth), aggregated(&back));
        assert_eq!(group_list(&forth), group_list(&back));
    }

    #[test]
    fn stable_versions_stand_before_beta_before_alpha_and_later_before_earlier() {
        let mut versions =
            ["foo", "v1alpha", "v1", "v11alpha2", "v2beta1", "v10", "v2", "v2beta10", "v11beta2"]
                .map(Version);
        versions.sort();
        assert_eq!(
            versions.map(|version| version.0),
            ["v10", "v2", "v1", "v11beta2", "v2beta10", "v2beta1", "v11alpha2", "foo", "v1alpha"]
        );
    }
}
