//! The command `pintle operator`: it runs the operator.

use clap::Args;
use pintle_operator as operator;

use super::{
    live,
    problem::{CommandStatus, Problem, in_one_line},
};

/// Run the operator
///
/// Watches Modules and Reconcilers, and keeps every custom resource that a Reconciler is for as its guest wants it. Runs in a Pod,
/// or outside of the cluster with a kubeconfig, until it is asked to stop (SIGTERM or Ctrl-C).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # In a Pod: deploy/install.yaml does it
  pintle operator

  # Against the cluster of the kubeconfig, with logs for people
  pintle operator --log-format text")]
pub(super) struct Operator {
    #[command(flatten)]
    flags: operator::Flags,
}

impl Operator {
    pub(super) fn run(self) -> Result<CommandStatus, Problem> {
        live::block_on(async {
            operator::run(self.flags).await.map_err(|error| Problem::failed(in_one_line(&error)))?;
            Ok(CommandStatus::Fine)
        })
    }
}
