//! What a module uses that the one in force does not: the rights that a host needs for it, and which of them it lacks.

use futures::{StreamExt, TryStreamExt, stream};
use pintle_core::{
    ApiError,
    account::Account,
    plan::KindRights,
    reconciler::{self, Grants},
};
use pintle_kubernetes::{access_review, builtin, host_account};
use pintle_wit::{Kind, Manifest};

use crate::{
    PreviewError,
    children::KINDS_AT_ONCE,
    reader::{Reader, patiently, reference},
};

/// What is created to evict a Pod.
fn eviction() -> Kind {
    Kind::new("policy/v1", "Eviction")
}

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
    if manifest.evictions && before.is_none_or(|before| !before.evictions) {
        new.push(KindRights::of(&eviction(), &["create"], grants.allows_evictions()));
    }
    new
}

/// Asks the API server, as the user, which of these rights the host lacks. That is not known where the user may not ask, nor of a kind that
/// is not served.
pub(crate) async fn review(reader: &Reader, new: Vec<KindRights>) -> Result<Vec<KindRights>, PreviewError> {
    let host = host(reader).await?;
    let Some(account) = &host else { return Ok(new) };
    let reviews = stream::iter(new).map(|rights| async move {
        let missing = missing(reader, account, &rights).await;
        missing.map(|missing| KindRights { missing, ..rights })
    });
    reviews.buffered(KINDS_AT_ONCE).try_collect().await
}

/// What the API server answers; nothing where the user may not ask.
fn unless_forbidden<T>(answer: Result<T, ApiError>) -> Result<Option<T>, PreviewError> {
    match answer {
        Err(error) if error.code == 403 => Ok(None),
        answer => answer.map(Some).map_err(|error| PreviewError::of("what the host may do", &error)),
    }
}

async fn host(reader: &Reader) -> Result<Option<Account>, PreviewError> {
    let bindings =
        builtin("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", false);
    let binding = unless_forbidden(reader.get(&bindings, &reference(&bindings.kind, None, "pintle")).await)?;
    Ok(binding.flatten().as_ref().and_then(host_account))
}

/// The verbs of these that the account may not use, in all namespaces: the host watches all of them.
async fn missing(
    reader: &Reader,
    account: &Account,
    rights: &KindRights,
) -> Result<Option<Vec<String>>, PreviewError> {
    let kind = Kind::new(&rights.api_version, &rights.kind);
    let resource = if kind == eviction() {
        Some(builtin("v1", "Pod", "pods/eviction", true))
    } else {
        unless_forbidden(reader.resource(&kind).await)?.flatten()
    };
    let Some(resource) = resource else { return Ok(None) };
    let mut missing = Vec::new();
    for verb in &rights.verbs {
        let review = access_review(account, verb, &resource, None, None);
        let answer = patiently(|| reader.cluster().review(&review)).await;
        let Some(verdict) = unless_forbidden(answer)? else { return Ok(None) };
        if verdict.is_err() {
            missing.push(verb.clone());
        }
    }
    Ok(Some(missing))
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
        assert_eq!(
            found.collect::<Vec<_>>(),
            ["Thing patch true", "Pod get list watch delete true", "Eviction create true"]
        );
        let seen = vec![NeedKind { api_version: "v1".into(), kind: "Pod".into(), ..NeedKind::default() }];
        before = Manifest { needs: seen, ..before };
        after = Manifest { evictions: true, ..before.clone() };
        let new = newcomers(&after, Some(&before), &Grants::as_declared(&before));
        let told: Vec<_> = new.iter().map(|new| (new.kind.as_str(), new.granted)).collect();
        assert_eq!(told, [("Eviction", false)], "Pods are read already");
        assert!(newcomers(&after, Some(&after), &grants).is_empty());
    }

    #[test]
    fn only_who_may_not_ask_leaves_open_what_the_host_may_do() {
        let answer = |code| unless_forbidden::<()>(Err(ApiError { code, ..ApiError::default() }));
        assert!(matches!(answer(403), Ok(None)));
        for code in [0, 401, 429, 500, 503] {
            assert!(answer(code).is_err(), "{code}");
        }
        assert!(matches!(unless_forbidden(Ok(1)), Ok(Some(1))));
    }

    fn child(api_version: &str, kind: &str) -> ChildKind {
        ChildKind { api_version: api_version.into(), kind: kind.into(), ..ChildKind::default() }
    }
}
