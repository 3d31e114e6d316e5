//! [`ModuleUser`]: who uses a Module.

use std::{collections::BTreeSet, fmt};

use crate::{Reconciler, View};

/// What stands before the name of a View where it is told apart from a Reconciler.
const VIEW: &str = "view/";

/// Who uses a Module. Reconcilers come before Views.
///
/// Its text is the name of the Reconciler, or `view/` and the name of the View. No name of a Reconciler has a slash, so that nobody is
/// taken for somebody else. `status.usedBy` has these texts, and commands take them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ModuleUser {
    /// The Reconciler with this name.
    Reconciler(String),
    /// The View with this name.
    View(String),
}

impl ModuleUser {
    /// Its kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Reconciler(_) => "Reconciler",
            Self::View(_) => "View",
        }
    }

    /// Its name, without what tells kinds apart.
    pub fn name(&self) -> &str {
        match self {
            Self::Reconciler(name) | Self::View(name) => name,
        }
    }

    /// Kinds and names, for a sentence: `Reconciler shop, View llamas`.
    pub fn listed<'a>(users: impl IntoIterator<Item = &'a Self>) -> String {
        let users = users.into_iter().map(|user| format!("{} {}", user.kind(), user.name()));
        users.collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for ModuleUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reconciler(name) => f.write_str(name),
            Self::View(name) => write!(f, "{VIEW}{name}"),
        }
    }
}

impl From<&str> for ModuleUser {
    fn from(text: &str) -> Self {
        match text.strip_prefix(VIEW) {
            Some(name) => Self::View(name.into()),
            None => Self::Reconciler(text.into()),
        }
    }
}

impl Reconciler {
    /// The Modules that it uses: the one that it wants, the one in force, and its candidate.
    pub fn modules(&self) -> BTreeSet<&str> {
        let status = self.status.as_ref();
        let active = status.and_then(|status| status.active.as_ref()).map(|active| &active.module);
        let candidate =
            status.and_then(|status| status.candidate.as_ref()).map(|candidate| &candidate.module);
        names([Some(&self.spec.module), active, candidate])
    }

    /// The command that lets the host do what the guests of its Modules need, and of a new one before them.
    pub fn role_command(&self, new: Option<&str>) -> String {
        let others = self.modules().into_iter().filter(|name| Some(*name) != new);
        let modules: Vec<&str> = new.into_iter().chain(others).collect();
        let deletions = if self.spec.grants.pod_deletions { " --pod-deletions" } else { "" };
        format!("pintle rbac {}{deletions} | kubectl apply -f -", modules.join(" "))
    }

    /// What helps where the host lacks a right that the guest needs. Messages of the host end with it, and `pintle status` knows it by that.
    pub fn role_hint(&self) -> String {
        format!("apply the guest's role: {}", self.role_command(None))
    }

    /// The Modules of its history, to which it may be swapped back.
    pub fn modules_before(&self) -> impl Iterator<Item = &str> {
        self.status.iter().flat_map(|status| &status.history).map(|before| before.module.as_str())
    }
}

impl View {
    /// The Modules that it uses: the one that it wants, the one in force, and its candidate.
    pub fn modules(&self) -> BTreeSet<&str> {
        let status = self.status.as_ref();
        let active = status.and_then(|status| status.active.as_ref()).map(|active| &active.module);
        let candidate =
            status.and_then(|status| status.candidate.as_ref()).map(|candidate| &candidate.module);
        names([Some(&self.spec.module), active, candidate])
    }
}

fn names(modules: [Option<&String>; 3]) -> BTreeSet<&str> {
    modules.into_iter().flatten().map(String::as_str).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_view_and_a_reconciler_of_one_name_are_told_apart() {
        let users = [ModuleUser::Reconciler("farm".into()), ModuleUser::View("farm".into())];
        assert_eq!(users.each_ref().map(ToString::to_string), ["farm", "view/farm"]);
        for user in &users {
            assert_eq!(ModuleUser::from(user.to_string().as_str()), *user);
        }
        assert_eq!(ModuleUser::listed(&users), "Reconciler farm, View farm");
        assert!(users[0] < users[1]);
    }

    #[test]
    fn a_module_is_used_by_who_wants_it_has_it_in_force_or_waits_for_it() {
        let status = json!({"active": {"module": "old", "digest": "d", "since": "", "epoch": 1},
            "candidate": {"module": "middle", "reason": "Loading", "message": ""}});
        let object = |kind: &str, spec| {
            json!({"apiVersion": "pintle.dev/v1alpha1", "kind": kind, "metadata": {"name": "a"}, "spec": spec,
                "status": status.clone()})
        };
        let spec = json!({"for": {"apiVersion": "a.io/v1", "kind": "A"}, "module": "new"});
        let reconciler: Reconciler = serde_json::from_value(object("Reconciler", spec)).unwrap();
        let spec = json!({"module": "new", "view": "things", "serve": {"aggregated": {}}});
        let view: View = serde_json::from_value(object("View", spec)).unwrap();
        let expected = BTreeSet::from(["middle", "new", "old"]);
        assert_eq!((reconciler.modules(), view.modules()), (expected.clone(), expected));
    }
}
