//! The command `pintle version`: it prints the versions of the command line, of the contract, and of the host in the cluster.

mod host;

use clap::Args;
use pintle_api as api;
use pintle_core::POLICY_VERSION;
use pintle_kubernetes::connect::Connect;
use pintle_schema::builtin;
use pintle_wit::worlds;
use serde::Serialize;

use super::{
    live,
    output::{self, Format},
    problem::{CommandStatus, Problem},
};
use host::Cluster;

/// Print the versions of the client, the contract and the host
///
/// The contract is between the host and its guests: the version of the JSON documents, and the WIT interface that a module exports.
/// The policy is the set of rules that the gate checks answers by. A host with another policy asks every guest again.
///
/// The version of the host is the tag of the image in its Deployment. If the cluster does not answer, the command says why, and ends
/// with exit code 0.
///
/// With kubectl, `kubectl get deployment,lease -n pintle-system -o wide` shows the image of the host and who leads.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Print the versions of the client and the host
  pintle version

  # Print only what this program knows, without a cluster
  pintle version --client

  # Print the version of the host for a script
  pintle version -o json | jq -r .cluster.host.version")]
pub(super) struct Version {
    /// Do not ask the cluster
    #[arg(long)]
    client: bool,

    /// Namespace of the host
    #[arg(short, long, default_value = api::NAMESPACE)]
    namespace: String,

    /// Output format. One of table, yaml or json
    #[arg(short, long, value_name = "table|yaml|json", default_value = "table", hide_possible_values = true)]
    output: Format,

    #[command(flatten)]
    connect: Connect,
}

/// What is printed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Versions {
    client: Client,
    /// The cluster, unless it was not to be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<Cluster>,
}

/// What this program knows of itself.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Client {
    version: &'static str,
    contract: Contract,
    /// The version of the rules of the gate and the pass.
    policy_version: u32,
    /// The minor version of Kubernetes that this version is tested with, and whose schemas it has.
    kubernetes: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Contract {
    /// The apiVersion of the documents that cross it.
    api_version: &'static str,
    /// The interfaces of WIT that a module may export.
    interfaces: Vec<&'static str>,
}

impl Client {
    fn this() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            contract: Contract {
                api_version: pintle_wit::API_VERSION,
                interfaces: vec![worlds::reconciler::INTERFACE, worlds::viewer::INTERFACE],
            },
            policy_version: POLICY_VERSION,
            kubernetes: builtin::KUBERNETES,
        }
    }
}

impl Version {
    pub(super) fn run(self) -> Result<CommandStatus, Problem> {
        let cluster = match self.client {
            true => None,
            false => Some(live::block_on(async { Ok(Cluster::ask(&self.connect, &self.namespace).await) })?),
        };
        let versions = Versions { client: Client::this(), cluster };
        let text = match self.output.data() {
            Some(form) => output::text(&versions, form)?,
            None => versions.table(),
        };
        output::print(&text)?;
        Ok(CommandStatus::Fine)
    }
}

impl Versions {
    fn table(&self) -> String {
        let client = &self.client;
        let mut rows = vec![
            ["Client".into(), client.version.into()],
            ["Documents".into(), client.contract.api_version.into()],
            ["Interfaces".into(), client.contract.interfaces.join("\n")],
            ["Policy".into(), client.policy_version.to_string()],
            ["Tested with".into(), format!("Kubernetes {}", client.kubernetes)],
        ];
        rows.extend(self.cluster.iter().flat_map(Cluster::rows));
        output::columns(&rows)
    }
}
