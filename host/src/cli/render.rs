//! The command `pintle render`: it prints what a guest answers, without a cluster.

use std::path::PathBuf;

use clap::Args;
use pintle_offline as offline;
use pintle_offline::{
    ask::{self, Blame, Objects, ask},
    case, documents,
};

use super::{
    module,
    native::Native,
    output::{self, Data},
    problem::{CommandStatus, Problem},
};

/// Print the answer of a guest
///
/// The files contain one custom resource of the kind that the guest reconciles. They can also contain a Reconciler (config, grants
/// and limits), the CRD of the kind, children as they are in the cluster, and objects that answer the needs of the guest. A child
/// belongs to the custom resource unless it has ownerReferences. If there is a `crd.yaml` beside the module, the custom resource
/// and the status are checked against it.
///
/// The answer passes the same checks as in a cluster. Children of built-in kinds are checked against the schemas of Kubernetes. The
/// output has the children without the fields that the host adds, and what else the answer has: stages, status, conditions, events,
/// needs, patches and evictions.
///
/// If there is no answer, `failure` is printed instead and the exit code is 1.
///
/// If the files contain objects behind a view of the guest instead, the output has the objects that the view shows of them. The files can
/// also contain Views, which name the views and have their configs.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Print the answer to a custom resource
  pintle render guest.wasm -f webserver.yaml

  # Use the config and the grants of a Reconciler
  pintle render guest.wasm -f webserver.yaml \\
    -f reconciler.yaml

  # Print only the names of the children
  pintle render guest.wasm -f webserver.yaml -o json |
    jq -r '.children[].metadata.name'

  # Print what a view shows of some Pods
  kubectl get pods -o yaml |
    pintle render farm.wasm -f -

  # Read the objects from a cluster
  kubectl get webserver,deployment -l app=web -o yaml |
    pintle render guest.wasm -f -")]
pub(super) struct Render {
    /// Module of the guest, the file that `pintle build` wrote
    module: PathBuf,

    /// File or directory with objects in YAML or JSON. Use - for the standard input. Can be repeated
    #[arg(short, long = "filename", value_name = "FILE", required = true, num_args = 1)]
    filenames: Vec<PathBuf>,

    /// Time of the call (RFC 3339) [default: 2000-01-01T00:00:00Z]
    #[arg(long, value_name = "TIME")]
    now: Option<String>,

    /// Print the children with the fields that the host adds: owner reference, labels and hash
    #[arg(long)]
    full: bool,

    /// Do not use `crd.yaml` beside the module
    #[arg(long)]
    no_crd: bool,

    /// Do not run the guest natively to get the message of a panic
    #[arg(long)]
    no_native: bool,

    /// Output format. One of yaml or json
    #[arg(short, long, value_name = "yaml|json", default_value = "yaml", hide_possible_values = true)]
    output: Data,
}

impl Render {
    pub(super) fn run(self) -> Result<CommandStatus, Problem> {
        let module = module::load(&offline::engine()?, &self.module)?;
        let (subjects, unused) = ask::subjects(&module, documents::read(&self.filenames)?);
        unused.iter().for_each(|unused| eprintln!("warning: {unused}"));
        if subjects.is_empty() {
            let views: Vec<String> = module.views().iter().flat_map(module::views).collect();
            return Err(Problem::new("no object in the files is one that a view shows")
                .hint(format!("the views of the module: {}", views.join("; "))));
        }
        let now = case::time(self.now.as_deref()).map_err(|error| Problem::new(format!("--now: {error}")))?;
        let beside = module::crds_beside(&self.module, self.no_crd)?;
        module::check_rules(&beside)?;
        let native = Native::new(&self.module, !self.no_native);
        let (mut errors, mut printed) = (Vec::new(), Vec::new());
        for (subject, documents) in subjects {
            let objects = Objects { documents, beside: &beside, now, ..Objects::default() };
            let answer = ask(&subject, objects)?;
            let said = answer.trapped.as_ref().and_then(|at| native.says(at.function, &at.request));
            // What the API server would refuse by the schema of its kind is an error below.
            let is_error = answer.refused.iter().any(|refused| refused.blame == Blame::Kind);
            let refusals = answer.refusals.iter().filter(|_| !is_error);
            let warnings = answer.unused.iter().chain(refusals).chain(&answer.warnings);
            warnings.for_each(|warning| eprintln!("warning: {warning}"));
            module::warn_unchecked(&answer.unchecked);
            errors.extend(
                answer.errors().iter().map(|error| format!("error: {}", error.replace('\n', "\n  "))),
            );
            errors.extend(said);
            printed.extend(answer.documents(self.full));
        }
        output::print(&output::objects(&printed, self.output)?)?;
        // What helps most comes last.
        errors.iter().for_each(|error| eprintln!("{error}"));
        Ok(if errors.is_empty() { CommandStatus::Fine } else { CommandStatus::Failed })
    }
}
