//! Which Reconcilers use a Module.

use std::collections::{BTreeMap, BTreeSet};

use kube::ResourceExt;
use pintle_api::Reconciler;

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
