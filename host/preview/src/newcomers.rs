//! What a module uses that the one in force does not: the rights that a host would need for it.

use std::collections::BTreeMap;

use pintle_core::{plan::KindRights, reconciler::Grants};
use pintle_wit::{Kind, Manifest};

/// The verbs of what a host does with children, with what guests ask to see, and with what they patch.
const OF_CHILDREN: [&str; 6] = ["get", "list", "watch", "create", "patch", "delete"];
const OF_NEEDS: [&str; 3] = ["get", "list", "watch"];
const OF_PATCHES: [&str; 4] = ["get", "list", "watch", "patch"];

/// The kinds that a manifest uses and the one before does not, or uses for less.
pub(crate) fn newcomers(manifest: &Manifest, before: Option<&Manifest>, grants: &Grants) -> Vec<KindRights> {
    let known = before.map(rights).unwrap_or_default();
    let mut new = Vec::new();
    for (kind, verbs) in rights(manifest) {
        let had = known.get(&kind).map_or(&[][..], Vec::as_slice);
        if verbs.iter().any(|verb| !had.contains(verb)) {
            let granted =
                grants.allows_child(&kind) || grants.allows_need(&kind) || grants.allows_patch(&kind);
            new.push(KindRights::of(&kind, &verbs, granted));
        }
    }
    new
}

fn rights(manifest: &Manifest) -> BTreeMap<Kind, Vec<&'static str>> {
    let mut rights: BTreeMap<Kind, Vec<&'static str>> = BTreeMap::new();
    let mut add = |kind: Kind, verbs: &[&'static str]| {
        let known = rights.entry(kind).or_default();
        known.extend(verbs.iter().filter(|verb| !known.contains(verb)).copied().collect::<Vec<_>>());
    };
    for child in &manifest.children {
        add(child.kind(), &OF_CHILDREN);
    }
    for need in &manifest.needs {
        add(Kind::new(&need.api_version, &need.kind), &OF_NEEDS);
    }
    for patch in &manifest.patches {
        add(Kind::new(&patch.api_version, &patch.kind), &OF_PATCHES);
    }
    rights
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_wit::{ChildKind, NeedKind};

    #[test]
    fn only_what_the_module_in_force_does_not_use_is_new() {
        let root = Kind::new("g.example.com/v1", "Thing");
        let mut before = Manifest::new("m", "1.0.0", root.clone());
        before.children = vec![child("v1", "ConfigMap")];
        before.needs =
            vec![NeedKind { api_version: "v1".into(), kind: "Service".into(), ..NeedKind::default() }];
        let mut after = before.clone();
        after.children.extend([child("v1", "Service"), child("batch/v1", "Job")]);
        let grants = Grants::as_declared(&before);
        let new = newcomers(&after, Some(&before), &grants);
        let found: Vec<(&str, bool)> = new.iter().map(|kind| (kind.kind.as_str(), kind.granted)).collect();
        assert_eq!(found, [("Job", false), ("Service", true)]);
        assert!(newcomers(&before, Some(&before), &grants).is_empty());
        assert_eq!(newcomers(&before, None, &grants).len(), 2);
    }

    fn child(api_version: &str, kind: &str) -> ChildKind {
        ChildKind { api_version: api_version.into(), kind: kind.into(), ..ChildKind::default() }
    }
}
