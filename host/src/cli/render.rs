//! The command `pintle render`: it prints what a guest answers, without a cluster.

mod views;

use std::{collections::BTreeMap, path::PathBuf};

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use pintle_engine::Module;
use pintle_offline as offline;
use pintle_offline::{
    case,
    documents::{self, Document},
    run,
    setting::{Setting, SettingError, with_crds},
};
use pintle_runtime::clock;
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
///
/// If the files contain objects behind a view of the guest instead, the output has what the view shows of them: as objects, or as
/// the table of `kubectl get` with `-o table`. The files can also contain Views, which name the views and have their configs.
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
    pintle render farm.wasm -f - -o table

  # Read the objects from a cluster
  kubectl get webserver,deployment -l app=web -o yaml |
    pintle render guest.wasm -f -")]
pub(super) struct Render {
    /// Module of the guest, the file that `pintle build` wrote
    module: PathBuf,

    /// File or directory with objects in YAML or JSON. Use - for the standard input. Can be repeated
    #[arg(short, long = "filename", value_name = "FILE", required = true, num_args = 1)]
    filenames: Vec<PathBuf>,

    /// Time of the call (RFC 3339) [default: 2000-01-01T00:00:00Z; for a table, the time of this machine]
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

    /// Output format. One of yaml or json, and for views also table or wide
    #[arg(
        short,
        long,
        value_name = "yaml|json|table|wide",
        default_value = "yaml",
        hide_possible_values = true
    )]
    output: Form,
}

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// YAML.
    Yaml,
    /// JSON, indented.
    Json,
    /// As `kubectl get` prints it.
    Table,
    /// With the columns of low priority.
    Wide,
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
        let documents = documents::read(&self.filenames)?;
        if views::are_backing(&module, &documents) {
            return self.views(&module, documents);
        }
        let guest = module::guest_of(&module, &self.module)?;
        let output = match self.output {
            Form::Yaml => Data::Yaml,
            Form::Json => Data::Json,
            Form::Table | Form::Wide => {
                return Err(Problem::new("the answer of a guest is no table")
                    .hint("a table is printed of what a view shows; use -o yaml or -o json"));
            }
        };
        let now = self.time()?;
        let beside = module::crds_beside(&self.module, self.no_crd)?;
        let documents = with_crds(guest.manifest(), documents, &beside);
        let setting = match Setting::new(&guest, documents, Vec::new(), now) {
            Ok(setting) => setting,
            Err(SettingError::Refused { source_name, failure }) => {
                return fail(&format!("{source_name}: {failure}"), &failure, output);
            }
            Err(error) => return Err(Problem::new(error.to_string())),
        };
        for unused in &setting.unused {
            eprintln!("warning: {unused}");
        }
        let report = run::run(&guest, &setting, false);
        let failed = match (&report.failure, &report.violation) {
            (Some((blame, failure)), _) => Some((format!("{}: {failure}", blame.what()), failure)),
            (None, Some(failure)) => Some((failure.to_string(), failure)),
            (None, None) => None,
        };
        if let Some((message, failure)) = failed {
            let native = Native::new(&self.module, !self.no_native);
            let said = report.trapped.as_ref().and_then(|at| native.says(at.function, &at.request));
            let said = said.map(|said| format!("\n{said}")).unwrap_or_default();
            return fail(&format!("{message}{said}"), failure, output);
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
        output::print(&output::text(&rendered, output)?)?;
        Ok(CommandStatus::Fine)
    }

    /// The time of the call.
    fn time(&self) -> Result<Timestamp, Problem> {
        case::time(self.now.as_deref()).map_err(|error| Problem::new(format!("--now: {error}")))
    }

    /// Prints what the views of a module show of objects.
    fn views(&self, module: &Module, documents: Vec<Document>) -> Result<CommandStatus, Problem> {
        let now = match (self.output, &self.now) {
            (Form::Table | Form::Wide, None) => clock::now(),
            _ => self.time()?,
        };
        let beside = module::crds_beside(&self.module, self.no_crd)?;
        let native = Native::new(&self.module, !self.no_native);
        views::render(module, documents, &beside, self.output, now, &native)
    }
}

fn fail(message: &str, failure: &pintle_wit::Failure, output: Data) -> Result<CommandStatus, Problem> {
    eprintln!("error: {message}");
    let mut failure = serde_json::to_value(failure)?;
    if let Some(fields) = failure.as_object_mut() {
        fields.remove("apiVersion");
    }
    output::print(&output::text(&serde_json::json!({ "failure": failure }), output)?)?;
    Ok(CommandStatus::Failed)
}
