//! The command `pintle render`: it prints what a guest answers, without a cluster.

use std::{collections::BTreeMap, path::PathBuf};

use clap::Args;
use pintle_offline as offline;
use pintle_offline::{
    case, documents, run,
    setting::{NOW, Setting, SettingError, with_crds},
};
use serde::Serialize;
use serde_json::{Map, Value};

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

  # Read the objects from a cluster
  kubectl get webserver,deployment -l app=web -o yaml |
    pintle render guest.wasm -f -")]
pub(super) struct Render {
    /// Module of the guest, the file that `pintle build` wrote
    module: PathBuf,

    /// File or directory with objects in YAML or JSON. Use - for the standard input. Can be repeated
    #[arg(short, long = "filename", value_name = "FILE", required = true, num_args = 1)]
    filenames: Vec<PathBuf>,

    /// Time of the call (RFC 3339)
    #[arg(long, value_name = "TIME", default_value = NOW)]
    now: String,

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

/// The answer as it is printed.
#[derive(Serialize)]
struct Rendered {
    children: Vec<Value>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    stages: BTreeMap<String, u32>,
    status: Map<String, Value>,
    conditions: Vec<pintle_wit::GuestCondition>,
    events: Vec<pintle_wit::Event>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    patches: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    evictions: Option<pintle_wit::Evictions>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    needs: Vec<pintle_wit::Need>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ready: Option<Value>,
}

impl Render {
    pub(super) fn run(self) -> Result<CommandStatus, Problem> {
        let engine = offline::engine()?;
        let module = module::load(&engine, &self.module)?;
        let now = case::time(Some(&self.now)).map_err(|error| Problem::new(format!("--now: {error}")))?;
        let beside = module::crds_beside(&self.module, self.no_crd)?;
        let documents = with_crds(module.manifest(), documents::read(&self.filenames)?, &beside);
        let setting = match Setting::new(&module, documents, Vec::new(), now) {
            Ok(setting) => setting,
            Err(SettingError::Refused { source_name, failure }) => {
                return self.fail(&format!("{source_name}: {failure}"), &failure);
            }
            Err(error) => return Err(Problem::new(error.to_string())),
        };
        for unused in &setting.unused {
            eprintln!("warning: {unused}");
        }
        let report = run::run(&module, &setting, false);
        let failed = match (&report.failure, &report.violation) {
            (Some((blame, failure)), _) => Some((format!("{}: {failure}", blame.what()), failure)),
            (None, Some(failure)) => Some((failure.to_string(), failure)),
            (None, None) => None,
        };
        if let Some((message, failure)) = failed {
            let native = Native::new(&self.module, !self.no_native);
            let said = report.trapped.as_deref().and_then(|request| native.says(request));
            let said = said.map(|said| format!("\n{said}")).unwrap_or_default();
            return self.fail(&format!("{message}{said}"), failure);
        }
        module::warn_unchecked(&report.unchecked);
        for refused in &report.refused {
            eprintln!("warning: {refused}");
        }
        let answer = report.answer.unwrap_or_default();
        let ready = report.ready.map(|ready| {
            serde_json::json!({"status": ready.status, "reason": ready.reason, "message": ready.message})
        });
        let rendered = Rendered {
            children: if self.full { answer.children } else { answer.plain_children() },
            stages: answer.stages,
            status: answer.status,
            conditions: answer.conditions,
            events: answer.events,
            patches: answer.patches,
            evictions: answer.evictions,
            needs: answer.needs,
            ready,
        };
        output::print(&output::text(&rendered, self.output)?)?;
        Ok(CommandStatus::Fine)
    }

    fn fail(&self, message: &str, failure: &pintle_wit::Failure) -> Result<CommandStatus, Problem> {
        eprintln!("error: {message}");
        let mut failure = serde_json::to_value(failure)?;
        if let Some(fields) = failure.as_object_mut() {
            fields.remove("apiVersion");
        }
        output::print(&output::text(&serde_json::json!({ "failure": failure }), self.output)?)?;
        Ok(CommandStatus::Failed)
    }
}
