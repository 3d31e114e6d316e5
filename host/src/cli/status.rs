//! The command `pintle status`: how the host, the gateway, the Reconcilers, the Views, the Modules and the roots are, and what blocks.

mod screen;
#[cfg(test)]
mod tests;

use clap::Args;
use kube::{Client, ResourceExt};
use pintle_api::{self as api, Module, ModuleUser, Reconciler};
use pintle_kubernetes::connect::Connect;
use pintle_runtime::clock;

use super::{
    completion,
    host::{Gateway, Host},
    live, missing, output,
    problem::{CommandStatus, Problem},
    roots::{self, Root},
    table,
    users::Users,
};
use screen::{Seen, What};

/// Show what is not ready, and why
///
/// The command shows on one screen: the host that leads, the Reconcilers, the Views with their gateway, the Modules, and the first ten
/// roots that are not ready, with what to do about them. Roots that need a change come before roots that the host still works on. With
/// the name of a Reconciler, the command shows that Reconciler, and all of its roots that are not ready. With view/NAME, it shows that
/// View.
///
/// The exit code is 0 if everything is ready, and 1 if the host, the gateway, a Reconciler, a View, a Module or a root is not. The gateway
/// counts if there are Views.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Show everything on one screen
  pintle status

  # Show a Reconciler and all that blocks its roots
  pintle status webserver

  # Show a View
  pintle status view/llamas

  # Wait until everything is ready
  until pintle status; do sleep 5; done")]
pub(super) struct Status {
    /// Name of a Reconciler, or view/NAME
    #[arg(value_name = "RECONCILER|view/VIEW", add = completion::reconcilers())]
    only: Option<String>,

    /// Namespace of the host and the gateway
    #[arg(short, long, default_value = api::NAMESPACE)]
    namespace: String,

    #[command(flatten)]
    connect: Connect,
}

impl Status {
    pub(super) fn run(self) -> Result<CommandStatus, Problem> {
        live::block_on(async {
            let client = live::client(&self.connect).await?;
            let only = self.only.as_deref().map(ModuleUser::from);
            let seen = look(&client, &self.namespace, only.as_ref()).await?;
            let what = if only.is_some() { What::One } else { What::Everything };
            let screen = screen::of(&seen, what, clock::now());
            output::print(&screen.text(table::width()))?;
            Ok(if screen.is_well { CommandStatus::Fine } else { CommandStatus::Failed })
        })
    }
}

/// Reads what is shown. With a Reconciler or a View, only that and what belongs to it.
async fn look(client: &Client, namespace: &str, only: Option<&ModuleUser>) -> Result<Seen, Problem> {
    let mut reconcilers: Vec<Reconciler> = live::list(client, "Reconcilers").await?;
    let mut views = live::list_if_served::<api::View>(client, "Views").await?;
    let mut modules: Vec<Module> = live::list(client, "Modules").await?;
    let users = Users::of(&reconcilers, &views);
    if let Some(only) = only {
        match only {
            ModuleUser::Reconciler(name) => {
                views.clear();
                reconcilers = the(name, reconcilers)?;
            }
            ModuleUser::View(name) => {
                reconcilers.clear();
                views = the(name, views)?;
            }
        }
        modules.retain(|module| users.of_module(&module.name_any()).any(|user| user == only));
    }
    let kinds = roots::kinds(&reconcilers);
    let roots::Roots { mut found, unread } =
        roots::read(client, &kinds, |value, resource| Root::of(&value, resource)).await;
    found.retain(|root| reconcilers.iter().any(|reconciler| roots::is_of(root, reconciler)));
    let host = Host::read(client, namespace).await;
    let gateway = match views.is_empty() {
        true => None,
        false => Some(Gateway::read(client, namespace).await),
    };
    Ok(Seen { host, gateway, reconcilers, views, modules, users, roots: found, unread })
}

/// The one object of this name.
fn the<K: kube::Resource<DynamicType = ()>>(name: &str, all: Vec<K>) -> Result<Vec<K>, Problem> {
    if !all.iter().any(|object| object.name_any() == name) {
        return Err(missing::missing(name, &all));
    }
    Ok(all.into_iter().filter(|object| object.name_any() == name).collect())
}
