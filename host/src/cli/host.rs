//! The commands `pintle operator` and `pintle gateway`, which run the programs of the host.

use clap::Args;
use pintle_gateway as gateway;
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

/// Run the gateway
///
/// The gateway serves Views as an aggregated API: kinds whose objects a module computes from objects of another kind. It runs in a Pod,
/// as deploy/gateway.yaml says, or outside of the cluster with a kubeconfig. SIGTERM and Ctrl-C stop it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Run in a Pod, as deploy/gateway.yaml does
  pintle gateway --health-bind 0.0.0.0:8080

  # Run outside of the cluster, for development: the
  # Service of the APIService must lead to this address
  pintle gateway --aggregated-bind 127.0.0.1:8443 \\
    --log-format text")]
pub(super) struct Gateway {
    #[command(flatten)]
    flags: gateway::Flags,
}

impl Operator {
    pub(super) fn run(self) -> Result<CommandStatus, Problem> {
        until_stopped(operator::run(self.flags))
    }
}

impl Gateway {
    pub(super) fn run(self) -> Result<CommandStatus, Problem> {
        until_stopped(gateway::run(self.flags))
    }
}

fn until_stopped(program: impl Future<Output = anyhow::Result<()>>) -> Result<CommandStatus, Problem> {
    live::block_on(async {
        program.await.map_err(|error| Problem::failed(in_one_line(&error)))?;
        Ok(CommandStatus::Fine)
    })
}
