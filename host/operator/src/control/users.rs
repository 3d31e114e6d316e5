//! [`Users`]: who uses which Module.
//!
//! The operator calls no view, and the gateway compiles its modules itself. But a Module that a View uses must be there for the next gateway
//! that starts, so that it is kept as one that a Reconciler uses.

use std::collections::{BTreeMap, BTreeSet};

use pintle_api::{self as api, ModuleUser};

use crate::state::OwnObjects;

/// Who uses which Module.
#[derive(Debug)]
pub(super) struct Users {
    /// By the name of the Module, each with the places of its history that have the Module, if nothing else of it does.
    of: BTreeMap<String, BTreeMap<ModuleUser, Vec<usize>>>,
    /// The Modules that Reconcilers want or have in force: their guests are called here. Those of a history are not.
    current: BTreeSet<String>,
    /// Whether the Views are known. Until then, nobody stops to use anything.
    views_known: bool,
}

impl Users {
    /// The Reconcilers that want a Module, have it in force or in their history, and the Views. What is in force here may be ahead of the
    /// status that says so: until that is written, a host that starts still works with what the status names.
    pub(super) fn of(own: &OwnObjects, in_force: &BTreeMap<String, api::ActiveModule>) -> Self {
        let mut of: BTreeMap<String, BTreeMap<ModuleUser, Vec<usize>>> = BTreeMap::new();
        for (name, object) in &own.reconcilers {
            for (place, module) in object.modules_before().enumerate() {
                let users = of.entry(module.to_owned()).or_default();
                users.entry(ModuleUser::Reconciler(name.clone())).or_default().push(place);
            }
        }
        let said = own
            .reconcilers
            .iter()
            .flat_map(|(name, object)| object.modules().into_iter().map(move |module| (module, name)));
        let in_force = in_force.iter().map(|(name, active)| (active.module.as_str(), name));
        let mut current = BTreeSet::new();
        // These replace what a history says.
        for (module, name) in said.chain(in_force) {
            current.insert(module.to_owned());
            of.entry(module.to_owned()).or_default().insert(ModuleUser::Reconciler(name.clone()), Vec::new());
        }
        let views = own.views();
        let views_known = views.is_some();
        for (name, modules) in views.into_iter().flatten() {
            for module in modules {
                of.entry(module.clone()).or_default().insert(ModuleUser::View(name.clone()), Vec::new());
            }
        }
        Self { of, current, views_known }
    }

    /// Whether somebody uses a Module.
    pub(super) fn has(&self, module: &str) -> bool {
        self.of.contains_key(module)
    }

    /// Whether a Reconciler wants a Module or has it in force, so that its guest is called here.
    pub(super) fn calls(&self, module: &str) -> bool {
        self.current.contains(module)
    }

    /// Who uses a Module, each with the places of its history that have it, if nothing else does. While the Views are not known, those
    /// that its status names still do.
    pub(super) fn of_module(&self, name: &str, object: &api::Module) -> BTreeMap<ModuleUser, Vec<usize>> {
        let mut users = self.of.get(name).cloned().unwrap_or_default();
        if !self.views_known {
            let before = object.status.iter().flat_map(|status| &status.used_by);
            let before = before.map(|user| ModuleUser::from(user.as_str()));
            users.extend(
                before.filter(|user| matches!(user, ModuleUser::View(_))).map(|user| (user, Vec::new())),
            );
        }
        users
    }

    /// Whether a Module with these users is in use; none while that is not known.
    pub(super) fn is_in_use(&self, users: &BTreeMap<ModuleUser, Vec<usize>>) -> Option<bool> {
        match users.is_empty() {
            false => Some(true),
            true => self.views_known.then_some(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::state::{CrdInfo, Listed};

    fn module(used_by: &[&str]) -> api::Module {
        let object = json!({"apiVersion": "pintle.dev/v1alpha1", "kind": "Module", "metadata": {"name": "m"},
            "spec": {"digest": "", "source": {}}, "status": {"usedBy": used_by}});
        serde_json::from_value(object).expect("a Module")
    }

    /// A Reconciler `r` and a View `v`, both of which want `m`. The CRD of Views is there or not, and they are listed or not.
    fn own(crd: bool, listed: bool) -> OwnObjects {
        let reconciler = json!({"apiVersion": "pintle.dev/v1alpha1", "kind": "Reconciler", "metadata": {"name": "r"},
            "spec": {"for": {"apiVersion": "x/v1", "kind": "Toy"}, "module": "m"}});
        let info = CrdInfo {
            group: "pintle.dev".into(),
            kind: "View".into(),
            plural: "views".into(),
            namespaced: false,
            established: true,
            versions: BTreeMap::new(),
        };
        let views = listed.then(|| ("v".to_owned(), BTreeSet::from(["m".to_owned(), "old".to_owned()])));
        OwnObjects {
            reconcilers: BTreeMap::from([(
                "r".to_owned(),
                serde_json::from_value(reconciler).expect("a Reconciler"),
            )]),
            views: views.into_iter().collect(),
            crds: crd.then(|| ("views.pintle.dev".to_owned(), info)).into_iter().collect(),
            listed: Listed { crds: true, views: listed, ..Listed::default() },
            ..OwnObjects::default()
        }
    }

    fn names(users: &BTreeMap<ModuleUser, Vec<usize>>) -> Vec<String> {
        users.keys().map(ToString::to_string).collect()
    }

    #[test]
    fn a_view_uses_a_module_as_a_reconciler_does_but_does_not_have_it_called_here() {
        let active = api::ActiveModule { module: "in-force".into(), ..api::ActiveModule::default() };
        let users = Users::of(&own(true, true), &BTreeMap::from([("r".to_owned(), active)]));
        assert!(["in-force", "m", "old"].iter().all(|module| users.has(module)));
        assert_eq!(names(&users.of_module("m", &module(&[]))), ["r", "view/v"]);
        let of_the_view = users.of_module("old", &module(&["view/gone"]));
        assert_eq!(names(&of_the_view), ["view/v"]);
        assert_eq!(users.is_in_use(&of_the_view), Some(true));
        assert!(users.calls("m") && users.calls("in-force") && !users.calls("old"));
        let nobody = users.of_module("other", &module(&["r", "view/v"]));
        assert_eq!((users.is_in_use(&nobody), users.has("other")), (Some(false), false));
    }

    #[test]
    fn a_module_stays_in_use_until_no_status_of_a_reconciler_names_it() {
        let mut own = own(true, true);
        let active =
            |module: &str| api::ActiveModule { module: module.into(), ..api::ActiveModule::default() };
        let in_force = BTreeMap::from([("r".to_owned(), active("m"))]);
        let mut users = |said: &str| {
            let status = api::ReconcilerStatus { active: Some(active(said)), ..Default::default() };
            own.reconcilers.get_mut("r").expect("it is there").status = Some(status);
            names(&Users::of(&own, &in_force).of_module("before", &module(&[])))
        };
        assert_eq!(users("before"), ["r"], "its status is behind");
        assert!(users("m").is_empty());
    }

    #[test]
    fn a_module_of_a_history_is_in_use_and_is_not_called() {
        let mut own = own(true, true);
        let before = ["before", "m", "before"]
            .map(|module| api::ActiveModule { module: module.into(), ..api::ActiveModule::default() });
        let status = api::ReconcilerStatus { history: before.into(), ..Default::default() };
        own.reconcilers.get_mut("r").expect("it is there").status = Some(status);
        let users = Users::of(&own, &BTreeMap::new());
        let of_module = |name: &str| Vec::from_iter(users.of_module(name, &module(&[])));
        let [r, v] = [ModuleUser::Reconciler("r".into()), ModuleUser::View("v".into())];
        assert_eq!(of_module("before"), [(r.clone(), vec![0, 2])]);
        assert_eq!(of_module("m"), [(r, vec![]), (v, vec![])], "it is wanted");
        assert!(users.has("before") && !users.calls("before"));
    }

    #[test]
    fn while_the_views_are_not_known_none_stops_to_use_a_module() {
        let users = Users::of(&own(true, false), &BTreeMap::new());
        assert_eq!(names(&users.of_module("old", &module(&["gone", "view/v"]))), ["view/v"]);
        assert_eq!(users.is_in_use(&users.of_module("old", &module(&[]))), None);
        assert_eq!(users.is_in_use(&users.of_module("m", &module(&[]))), Some(true));
    }

    #[test]
    fn a_cluster_that_has_no_views_has_nothing_that_is_not_known() {
        let own = OwnObjects {
            errors: BTreeMap::from([("View".to_owned(), "the CRD of View is missing".to_owned())]),
            ..own(false, false)
        };
        let users = Users::of(&own, &BTreeMap::new());
        assert_eq!(users.is_in_use(&users.of_module("old", &module(&["view/v"]))), Some(false));
        assert_eq!((own.error(), own.unlisted()), (None, Some("Modules")));
    }

    #[test]
    fn views_that_cannot_be_watched_although_there_may_be_some_are_told() {
        let errors = BTreeMap::from([("View".to_owned(), "Views may not be listed".to_owned())]);
        let listed = Listed { modules: true, reconcilers: true, crds: true, views: false };
        let own = OwnObjects { errors, listed, ..own(true, false) };
        assert_eq!((own.error(), own.unlisted()), (Some("Views may not be listed"), Some("Views")));
    }
}
