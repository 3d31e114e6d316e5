//! The command `pintle version`: it prints the versions of this program and of the contract.

use clap::Args;
use pintle_core::POLICY_VERSION;
use pintle_schema::builtin;
use pintle_wit::worlds;
use serde_json::json;

use super::{
    output::{self, Data},
    problem::{CommandStatus, Problem},
};

/// The releases of Kubernetes that the tests run on. `xtask test` has the older one in its step `versions`.
const TESTED_WITH: [&str; 2] = [builtin::KUBERNETES, "1.35"];

/// Print the versions of pintle and the contract
///
/// The contract is between the host and its guests: the version of the JSON documents, and the WIT interface that a module exports.
/// The policy is the set of rules that the gate checks answers by. A host with another policy asks every guest again.
///
/// With kubectl, `kubectl version` prints the version of the cluster, and `kubectl get deployment,lease -n pintle-system -o wide` the image
/// of the host and who leads.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Print the versions
  pintle version

  # Print the version of this program for a script
  pintle version -o json | jq -r .version")]
pub(super) struct Version {
    /// Output format. One of yaml or json [default: text]
    #[arg(short, long, value_name = "yaml|json", hide_possible_values = true)]
    output: Option<Data>,
}

impl Version {
    pub(super) fn run(self) -> Result<CommandStatus, Problem> {
        let (version, documents) = (env!("CARGO_PKG_VERSION"), pintle_wit::API_VERSION);
        let interfaces = [worlds::reconciler::INTERFACE, worlds::viewer::INTERFACE];
        let data = json!({
            "version": version, "contract": {"apiVersion": documents, "interfaces": interfaces},
            "policyVersion": POLICY_VERSION, "kubernetes": TESTED_WITH,
        });
        output::print(&match self.output {
            Some(form) => output::text(&data, form)?,
            None => output::columns(&[
                ["Version".into(), version.into()],
                ["Documents".into(), documents.into()],
                ["Interfaces".into(), interfaces.join("\n")],
                ["Policy".into(), POLICY_VERSION.to_string()],
                ["Tested with".into(), format!("Kubernetes {}", TESTED_WITH.join(" and "))],
            ]),
        })?;
        Ok(CommandStatus::Fine)
    }
}
