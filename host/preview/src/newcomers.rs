//! What a module uses that the one in force does not: the rights that a host needs for it, and which of them it lacks.

use futures::{StreamExt, stream};
use pintle_core::{
    account::Account,
    object,
    plan::KindRights,
    reconciler::{self, Grants},
};
use pintle_kubernetes::{access_review, builtin};
use pintle_wit::{Kind, Manifest};

use crate::{
    children::KINDS_AT_ONCE,
    reader::{Reader, reference},
};

/// The kinds that a manifest uses and the one before does not, or uses for less, with what is new.
pub(crate) fn newcomers(manifest: &Manifest, before: Option<&Manifest>, grants: &Grants) -> Vec<KindRights> {
    let rights = |manifest: &Manifest| reconciler::rights(manifest, grants.pod_deletions);
    let known = before.map(rights).unwrap_or_default();
    let mut new = Vec::new();
    for (kind, mut verbs) in rights(manifest) {
        verbs.retain(|verb| known.get(&kind).is_none_or(|had| !had.contains(verb)));
        if !verbs.is_empty() {
            let granted = kind == manifest.reconciles
                || grants.allows_child(&kind)
                || grants.allows_need(&kind)
                || grants.allows_patch(&kind)
                || grants.allows_evictions() && kind == Kind::new("v1", "Pod");
            new.push(KindRights::of(&kind, &verbs, granted));
        }
    }
    new
}

/// Asks the API server, as the user, which of these rights the host lacks. That is not known where the user may not ask.
pub(crate) async fn review(reader: &Reader, new: Vec<KindRights>) -> Vec<KindRights> {
    let host = host(reader).await;
    let Some(account) = &host else { return new };
    let reviews = stream::iter(new).map(|rights| async move {
        let missing = missing(reader, account, &rights).await;
        KindRights { missing, ..rights }
    });
    reviews.buffered(KINDS_AT_ONCE).collect().await
}

/// The account of the host: the one that is bound to its role.
async fn host(reader: &Reader) -> Option<Account> {
    let bindings =
        builtin("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", false);
    let binding = reader.get(&bindings, &reference(&bindings.kind, None, "pintle")).await.ok()??;
    let subject = binding.get("subjects")?.get(0)?;
    Account::new(object::text(subject, &["namespace"])?, object::text(subject, &["name"])?).ok()
}

/// The verbs of these that the account may not use, in all namespaces: the host watches all of them.
async fn missing(reader: &Reader, account: &Account, rights: &KindRights) -> Option<Vec<String>> {
    let resource = reader.resource(&Kind::new(&rights.api_version, &rights.kind)).await.ok()??;
    let mut missing = Vec::new();
    for verb in &rights.verbs {
        let review = access_review(account, verb, &resource, None, None);
        if reader.cluster().review(&review).await.ok()?.is_err() {
            missing.push(verb.clone());
        }
    }
    Some(missing)
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
        assert_eq!(new[1].verbs, ["create", "patch", "delete"], "it is read already");
        assert_eq!(newcomers(&before, None, &grants).len(), 3);
        after = Manifest { finalizer: true, evictions: true, ..before.clone() };
        let new = newcomers(&after, Some(&before), &Grants::as_declared(&after));
        let found = new.iter().map(|new| format!("{} {} {}", new.kind, new.verbs.join(" "), new.granted));
        assert_eq!(found.collect::<Vec<_>>(), ["Thing patch true", "Pod get list watch delete true"]);
    }

    fn child(api_version: &str, kind: &str) -> ChildKind {
        ChildKind { api_version: api_version.into(), kind: kind.into(), ..ChildKind::default() }
    }
}
