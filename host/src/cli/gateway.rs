//! The command `pintle gateway`: it runs the gateway.

use clap::Args;
use pintle_gateway as gateway;

use super::{
    live,
    problem::{CommandStatus, Problem, in_one_line},
};

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

impl Gateway {
    pub(super) fn run(self) -> Result<CommandStatus, Problem> {
        live::block_on(async {
            gateway::run(self.flags).await.map_err(|error| Problem::failed(in_one_line(&error)))?;
            Ok(CommandStatus::Fine)
        })
    }
}
