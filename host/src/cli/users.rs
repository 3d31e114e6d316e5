//! Which Reconcilers use a Module, and what is said of one that does not exist.

use std::collections::{BTreeMap, BTreeSet};

use kube::ResourceExt;
use pintle_api::Reconciler;
use pintle_schema::nearest::did_you_mean;

use super::problem::Problem;

/// What is said where there is no Reconciler of a name: the names that are like it, and how to see all of them.
pub(super) fn no_reconciler(name: &str, reconcilers: &[Reconciler]) -> Problem {
    let names: Vec<String> = reconcilers.iter().map(ResourceExt::name_any).collect();
    let meant = did_you_mean(name, names.iter().map(String::as_str));
    Problem::new(format!("there is no Reconciler {name}{meant}"))
        .hint("see which there are with: pintle get reconcilers")
}

/// The Reconcilers that use a Module, by its name: they want it, have it in force, or it is their candidate. As long as there is one, the
/// host keeps the Module from being deleted.
pub(super) fn users(reconcilers: &[Reconciler]) -> BTreeMap<String, BTreeSet<String>> {
    let mut users: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for reconciler in reconcilers {
        let status = reconciler.status.as_ref();
        let active = status.and_then(|status| status.active.as_ref()).map(|active| &active.module);
        let candidate =
            status.and_then(|status| status.candidate.as_ref()).map(|candidate| &candidate.module);
        for module in [Some(&reconciler.spec.module), active, candidate].into_iter().flatten() {
            users.entry(module.clone()).or_default().insert(reconciler.name_any());
        }
    }
    users
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_reconciler_that_does_not_exist_is_told_with_the_names_that_are_like_it() {
        let all = super::super::fixture::read::<Reconciler>(&[json!({
            "apiVersion": "pintle.dev/v1alpha1", "kind": "Reconciler", "metadata": {"name": "darkroom"},
            "spec": {"for": {"apiVersion": "a.io/v1", "kind": "A"}, "module": "m"}
        })]);
        assert_eq!(
            no_reconciler("darkrom", &all).to_string(),
            "error: there is no Reconciler darkrom; did you mean darkroom?\n\
             hint: see which there are with: pintle get reconcilers\n"
        );
        assert!(no_reconciler("x", &all).to_string().starts_with("error: there is no Reconciler x\n"));
    }

    #[test]
    fn a_module_is_used_by_who_wants_it_has_it_in_force_or_loads_it() {
        let read = |value| serde_json::from_value::<Reconciler>(value).unwrap();
        let all = [read(
            json!({"apiVersion": "pintle.dev/v1alpha1", "kind": "Reconciler", "metadata": {"name": "r"},
            "spec": {"for": {"apiVersion": "a.io/v1", "kind": "A"}, "module": "new"},
            "status": {"active": {"module": "old", "digest": "d", "since": ""},
                "candidate": {"module": "middle", "reason": "Loading", "message": ""}}}),
        )];
        let found = users(&all);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["middle", "new", "old"]);
        assert!(found.values().all(|by| by.iter().eq(["r"])));
    }
}
