//! The command `pintle render`: it prints what a guest answers, without a cluster.

use std::{collections::BTreeMap, path::PathBuf};

use clap::Args;
use pintle_offline as offline;
use pintle_offline::{
    case, documents, run,
    setting::{NOW, Setting, SettingError},
};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    output::{self, Data},
    problem::{CommandStatus, Problem},
};

/// Print what a guest answers, without a cluster
///
/// The files hold one custom resource of the kind that the guest reconciles, and whatever else the guest is to know: a Reconciler
/// (config, grants, limits), the kind's CustomResourceDefinition (then the resource and the status are checked against it), and
/// children as they are in the cluster. A child counts as the resource's own, unless it has ownerReferences. What the guest asks to
/// see (needs) is answered from the same files, as far as its manifest and the grants allow.
///
/// What is printed came through the same checks as in a cluster: the children, without what the host adds to them, the stages of
/// those that wait for others, the guest's status, conditions and events, its needs, and what it patches and evicts. The exit code is 1
/// when there is no answer, and `failure:` is printed instead; an empty answer is printed as `children: []`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # What would come of a custom resource?
  pintle render guest.wasm -f webserver.yaml

  # With the config and the grants of a Reconciler, checked against the CRD
  pintle render guest.wasm -f webserver.yaml -f reconciler.yaml -f crd.yaml

  # Only the names of the children
  pintle render guest.wasm -f webserver.yaml -o json | jq -r '.children[].metadata.name'

  # Ask about what is in a cluster
  kubectl get webserver,deployment,service -l app=web -o yaml | pintle render guest.wasm -f -")]
pub(super) struct Render {
    /// The guest: a module that `pintle build` made
    module: PathBuf,

    /// Files or directories with objects in YAML or JSON; `-` for the standard input
    #[arg(short, long = "filename", value_name = "FILE", required = true, num_args = 1)]
    filenames: Vec<PathBuf>,

    /// The time that the guest is asked at
    #[arg(long, value_name = "TIME", default_value = NOW)]
    now: String,

    /// Print the children with what the host adds: owner reference, labels and hash
    #[arg(long)]
    full: bool,

    /// The form of the output
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
        let module = offline::load(&engine, &self.module)?
            .map_err(|failure| Problem::of_module(&self.module, &failure))?;
        let now = case::time(Some(&self.now)).map_err(|error| Problem::new(format!("--now: {error}")))?;
        let setting = match Setting::new(&module, documents::read(&self.filenames)?, Vec::new(), now) {
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
        if let Some((blame, failure)) = &report.failure {
            return self.fail(&format!("{}: {failure}", blame.what()), failure);
        }
        if let Some(failure) = &report.violation {
            return self.fail(&failure.to_string(), failure);
        }
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
