//! The command `pintle operator`: it runs the operator.

use clap::Args;
use pintle_operator as operator;

use super::{
    live,
    problem::{CommandStatus, Problem, in_one_line},
};

/// Run the operator
///
/// The operator watches Modules and Reconcilers, and reconciles the custom resources that the Reconcilers are for. It runs in a Pod,
/// or outside of the cluster with a kubeconfig. SIGTERM and Ctrl-C stop it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Run in a Pod, as deploy/install.yaml does
  pintle operator

  # Run outside of the cluster, with readable logs
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
