//! The command `pintle crds`: it prints CRDs.

use std::path::PathBuf;

use clap::Args;
use pintle_api as api;
use pintle_offline::documents;

use super::{
    output,
    problem::{CommandStatus, Problem},
};

/// Print the CRDs of Pintle or of a guest
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Install the CRDs of Module, Reconciler and View
  pintle crds | kubectl apply --server-side -f -

  # Install the CRD of a guest
  pintle crds guests/webserver | kubectl apply -f -")]
pub(super) struct Crds {
    /// Directory of a guest. If omitted, the CRDs of Module, Reconciler and View are printed
    dir: Option<PathBuf>,
}

impl Crds {
    pub(super) fn run(self) -> Result<CommandStatus, Problem> {
        let text = match &self.dir {
            None => output::documents(&api::crds())?,
            Some(dir) => {
                let hint = format!("generate it with: pintle build {}", dir.display());
                let text = documents::read_text(&dir.join("crd.yaml"));
                text.map_err(|error| Problem::from(error).hint(hint))?
            }
        };
        output::print(&text)?;
        Ok(CommandStatus::Fine)
    }
}
