//! Who uses a Module.

use std::collections::{BTreeMap, BTreeSet};

use kube::{Client, ResourceExt};
use pintle_api::{ModuleUser, Reconciler, View};

use super::{live, problem::Problem};

/// Who uses each Module, by its name. A Module that is not named is used by nobody.
#[derive(Clone, Debug, Default)]
pub(super) struct Users(BTreeMap<String, BTreeSet<ModuleUser>>);

impl Users {
    /// The Reconcilers and Views that use Modules: they want one, have it in force, or it is their candidate. As long as there is one, the
    /// host keeps the Module from being deleted.
    pub(super) fn of(reconcilers: &[Reconciler], views: &[View]) -> Self {
        let mut users = Self::default();
        for reconciler in reconcilers {
            users.add(reconciler.modules(), &ModuleUser::Reconciler(reconciler.name_any()));
        }
        for view in views {
            users.add(view.modules(), &ModuleUser::View(view.name_any()));
        }
        users
    }

    /// Asks the cluster who uses Modules.
    ///
    /// # Errors
    /// When Reconcilers or Views cannot be listed: then it is not known who uses a Module.
    pub(super) async fn read(client: &Client) -> Result<Self, Problem> {
        let reconcilers: Vec<Reconciler> = live::list(client, "Reconcilers").await?;
        Ok(Self::of(&reconcilers, &live::list_if_served::<View>(client, "Views").await?))
    }

    fn add(&mut self, modules: BTreeSet<&str>, user: &ModuleUser) {
        for module in modules {
            self.0.entry(module.to_owned()).or_default().insert(user.clone());
        }
    }

    /// Who uses a Module: Reconcilers first.
    pub(super) fn of_module(&self, module: &str) -> impl Iterator<Item = &ModuleUser> {
        self.0.get(module).into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::fixture::{self, cluster, read, reconciler, view},
        *,
    };

    #[test]
    fn reconcilers_and_views_use_what_they_want_and_what_they_have_in_force() {
        let reconcilers: Vec<Reconciler> = read(&[reconciler("new", Some("old"), &[])]);
        let views: Vec<View> = read(&[view("r", "new", Some("other"), &[])]);
        let users = Users::of(&reconcilers, &views);
        let of = |module: &str| users.of_module(module).map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!([of("new"), of("old"), of("other")], [vec!["r", "view/r"], vec!["r"], vec!["view/r"]]);
    }

    #[tokio::test]
    async fn a_cluster_without_the_kind_view_has_no_views() {
        let (server, client) = cluster(&[reconciler("m", None, &[])]);
        let uses = async || Users::read(&client).await.unwrap().of_module("m").count();
        assert_eq!(uses().await, 1);
        let crd = fixture::crd_named("views.pintle.dev");
        let cascade = pintle_simulator::Cascade::Background;
        server.act("test", &pintle_simulator::Act::Delete { target: crd, cascade }).unwrap();
        assert!(live::list_if_served::<View>(&client, "Views").await.unwrap().is_empty());
        assert_eq!(uses().await, 1);
    }
}
