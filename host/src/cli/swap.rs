//! The command `pintle swap`: it puts another module in force for a Reconciler.

use std::time::Duration;

use clap::Args;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use pintle_api::{Module, Reconciler};
use pintle_kubernetes::connect::Connect;
use serde_json::json;

use super::{
    live::{self, FIELD_MANAGER, Progress},
    output,
    problem::{CommandStatus, Problem},
};

/// Switch a Reconciler to another Module
///
/// The operator loads the new module while the old one keeps working. When the new module is ready, every custom resource is
/// reconciled with it. If the new module is refused, the old one stays.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Switch to a module
  pintle swap webserver webserver-0.2.0

  # Wait for it; exit with 1 if it is refused
  pintle swap webserver webserver-0.2.0 --wait

  # Switch back
  pintle swap webserver webserver-0.1.0")]
pub(super) struct Swap {
    /// Name of the Reconciler
    reconciler: String,

    /// Name of the Module
    module: String,

    /// Wait until the operator works with the module
    #[arg(long)]
    wait: bool,

    /// How long to wait before giving up
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = live::duration)]
    timeout: Duration,

    #[command(flatten)]
    connect: Connect,
}

impl Swap {
    pub(super) fn run(self) -> Result<CommandStatus, Problem> {
        live::block_on(self.swap())
    }

    async fn swap(&self) -> Result<CommandStatus, Problem> {
        let client = live::client(&self.connect).await?;
        let modules: Api<Module> = Api::all(client.clone());
        let reconcilers: Api<Reconciler> = Api::all(client);
        let found =
            modules.get_opt(&self.module).await.map_err(|error| live::problem("the Module", &error))?;
        if found.is_none() {
            return Err(Problem::new(format!("there is no Module {}", self.module))
                .hint(format!("upload it with: pintle push {} FILE", self.module)));
        }
        let patch = Patch::Merge(json!({"spec": {"module": self.module}}));
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
        let patched = match reconcilers.patch(&self.reconciler, &params, &patch).await {
            Ok(patched) => patched,
            Err(error) if live::is(&error, 404) => {
                return Err(Problem::new(format!("there is no Reconciler {}", self.reconciler))
                    .hint("see which there are with: kubectl get reconcilers.pintle.dev"));
            }
            Err(error) => return Err(live::problem(format!("Reconciler {}", self.reconciler), &error)),
        };
        output::print(&format!(
            "reconciler.pintle.dev/{}: module {} is wanted\n",
            self.reconciler, self.module
        ))?;
        if self.wait {
            let generation = patched.metadata.generation;
            live::wait(self.timeout, || self.look(&reconcilers, generation)).await?;
            output::print(&format!(
                "reconciler.pintle.dev/{}: module {} is in force\n",
                self.reconciler, self.module
            ))?;
        }
        Ok(CommandStatus::Fine)
    }

    async fn look(
        &self,
        reconcilers: &Api<Reconciler>,
        generation: Option<i64>,
    ) -> Result<Progress, Problem> {
        let about = format!("Reconciler {}", self.reconciler);
        let found = reconcilers.get(&self.reconciler).await.map_err(|error| live::problem(about, &error))?;
        if found.spec.module != self.module {
            return Ok(Progress::Failed(format!("somebody has set module {} meanwhile", found.spec.module)));
        }
        let status = found.status.unwrap_or_default();
        let is_active = status.active.as_ref().is_some_and(|active| active.module == self.module);
        if status.observed_generation >= generation && is_active && status.candidate.is_none() {
            // Whether the roots are well is another question.
            return Ok(Progress::Done);
        }
        Ok(match live::progress(&status.conditions, status.observed_generation, generation) {
            // It may be ready with the module before.
            Progress::Done => Progress::Waiting("the module is being loaded".into()),
            other => other,
        })
    }
}
