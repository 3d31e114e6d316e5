//! The command `pintle status`: how the host, the Reconcilers, the Modules and the roots are, and what blocks.

mod screen;
#[cfg(test)]
mod tests;

use clap::Args;
use kube::{Client, ResourceExt};
use pintle_api::{self as api, Module, Reconciler};
use pintle_kubernetes::connect::Connect;
use pintle_runtime::clock;

use super::{
    completion,
    host::Host,
    live, output,
    problem::{CommandStatus, Problem},
    roots::{self, Root},
    table, users,
};
use screen::{Seen, What};

/// Show what is not ready, and why
///
/// The command shows on one screen: the host that leads, the Reconcilers, the Modules, and the first ten roots that are not ready, with
/// what to do about them. Roots that need a change come before roots that the host still works on. With the name of a Reconciler, the
/// command shows that Reconciler, and all of its roots that are not ready.
///
/// The exit code is 0 if everything is ready, and 1 if the host, a Reconciler, a Module or a root is not.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Show everything on one screen
  pintle status

  # Show a Reconciler and all that blocks its roots
  pintle status webserver

  # Wait until everything is ready
  until pintle status; do sleep 5; done")]
pub(super) struct Status {
    /// Name of a Reconciler
    #[arg(add = completion::reconcilers())]
    reconciler: Option<String>,

    /// Namespace of the host
    #[arg(short, long, default_value = api::NAMESPACE)]
    namespace: String,

    #[command(flatten)]
    connect: Connect,
}

impl Status {
    pub(super) fn run(self) -> Result<CommandStatus, Problem> {
        live::block_on(async {
            let client = live::client(&self.connect).await?;
            let seen = look(&client, &self.namespace, self.reconciler.as_deref()).await?;
            let what = if self.reconciler.is_some() { What::Reconciler } else { What::Everything };
            let screen = screen::of(&seen, what, clock::now());
            output::print(&screen.text(table::width()))?;
            Ok(if screen.is_well { CommandStatus::Fine } else { CommandStatus::Failed })
        })
    }
}

/// Reads what is shown. With the name of a Reconciler, only that and what belongs to it.
async fn look(client: &Client, namespace: &str, only: Option<&str>) -> Result<Seen, Problem> {
    let mut reconcilers: Vec<Reconciler> = live::list(client, "Reconcilers").await?;
    let mut modules: Vec<Module> = live::list(client, "Modules").await?;
    let users = users::users(&reconcilers);
    if let Some(only) = only {
        if !reconcilers.iter().any(|reconciler| reconciler.name_any() == only) {
            return Err(users::no_reconciler(only, &reconcilers));
        }
        reconcilers.retain(|reconciler| reconciler.name_any() == only);
        modules.retain(|module| users.get(&module.name_any()).is_some_and(|users| users.contains(only)));
    }
    let kinds = roots::kinds(&reconcilers, None);
    let roots::Roots { mut found, unread } =
        roots::read(client, &kinds, |value, resource| Root::of(&value, resource)).await;
    found.retain(|root| reconcilers.iter().any(|reconciler| roots::is_of(root, reconciler)));
    let host = Host::read(client, namespace).await;
    Ok(Seen { host, reconcilers, modules, users, roots: found, unread })
}
