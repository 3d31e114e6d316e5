//! The command `pintle push`: it uploads a guest to a cluster as a Module.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use kube::{Api, ResourceExt};
use pintle_api::{self as api, Module, ModuleObjects, ModuleUser};
use pintle_engine as engine;
use pintle_kubernetes::connect::Connect;
use pintle_modules::upload::{self, Manner, UploadError, Uploaded};
use pintle_offline as offline;

use super::{
    live::{self, FIELD_MANAGER, Progress},
    module, output,
    problem::{CommandStatus, Problem},
};

/// What helps when the namespace for the ConfigMaps is not there.
const NO_NAMESPACE: &str = "install Pintle with: kubectl apply --server-side -f deploy/install.yaml; or name the host's \
                            namespace with --namespace";

/// Upload a guest as a Module
///
/// The command checks the module as the operator does. It stores the bytes in ConfigMaps in the namespace of the host and creates a
/// Module that names them. A Module never changes. If the Module exists with the same bytes, the command does nothing. Other bytes
/// need another name.
///
/// With -o, the command needs no cluster: it prints these objects, for a folder that a GitOps controller applies (docs/gitops.md).
///
/// With kubectl, `kubectl create configmap --from-file` stores a module of less than 1 MiB, and `kubectl apply` creates a Module that names
/// it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Upload a module
  pintle push webserver-0.2.0 webserver.wasm

  # Upload a module and wait until it is loaded
  pintle push webserver-0.2.0 webserver.wasm --wait

  # Then switch to it
  pintle swap webserver webserver-0.2.0

  # Print the objects instead, for a file in git
  pintle push webserver-0.2.0 webserver.wasm -o yaml")]
pub(super) struct Push {
    /// Name of the Module. Usually the name and version of the guest
    name: String,

    /// Module to upload, the file that `pintle build` wrote
    file: PathBuf,

    /// Namespace for the ConfigMaps, in which the host may read them: its own [default: pintle-system]
    #[arg(short, long)]
    namespace: Option<String>,

    /// Wait until the operator has loaded the module
    #[arg(long)]
    wait: bool,

    /// How long to wait before giving up
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = live::duration)]
    timeout: Duration,

    /// Print the objects instead of uploading them. One of yaml or json
    #[arg(short, long, value_name = "yaml|json", hide_possible_values = true, conflicts_with = "wait")]
    output: Option<output::Data>,

    #[command(flatten)]
    connect: Connect,
}

impl Push {
    pub(super) fn run(self) -> Result<CommandStatus, Problem> {
        let bytes = module::read(&self.file)?;
        let refused = |failure| module::refused(&self.file, &failure);
        let guest = offline::engine()?.load(&bytes, None).map_err(refused)?;
        upload::supports(&guest).map_err(refused)?;
        if !upload::is_module_name(&self.name) {
            return Err(Problem::new(format!("{:?} is no name for a Module", self.name))
                .hint("it has lower-case letters, digits, '-' and '.', as in webserver-0.2.0"));
        }
        let namespace = self.namespace.as_deref().unwrap_or(api::NAMESPACE);
        let wanted = ModuleObjects::new(namespace, &self.name, &bytes, &guest.digest().to_string());
        if let Some(form) = self.output {
            output::print(&output::objects(&wanted.to_values(), form)?)?;
            return Ok(CommandStatus::Fine);
        }
        live::block_on(self.push(&wanted, &guest))
    }

    async fn push(&self, wanted: &ModuleObjects, guest: &engine::Module) -> Result<CommandStatus, Problem> {
        let client = live::client(&self.connect).await?;
        if self.namespace.is_none() {
            // In a namespace that is named, the host may have a role of its own. If its place cannot be read, the upload goes on.
            let host = live::host_namespace(&client).await.unwrap_or_default();
            live::refuse_elsewhere(host.as_deref(), api::NAMESPACE)?;
        }
        let modules: Api<Module> = Api::all(client.clone());
        let digest = &wanted.module.spec.digest;
        // Who may not list Modules is not warned of them.
        let others: Vec<Module> = live::list(&client).await.unwrap_or_default();
        let manner = Manner { manager: FIELD_MANAGER, dry_run: false };
        let (uploaded, module) = upload::upload(&client, wanted, manner).await.map_err(refused)?;
        refuse_other_namespace(&module, &wanted.module)?;
        let said = match uploaded {
            Uploaded::Created => "created",
            Uploaded::Unchanged => "unchanged",
        };
        output::print(&format!("module.pintle.dev/{} {said}\n", self.name))?;
        let warnings = upload::warnings(&self.name, digest, guest.version(), &others);
        warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
        if self.wait {
            live::wait(self.timeout, live::PODS, || self.look(&modules)).await?;
            output::print(&format!("module.pintle.dev/{} ready\n", self.name))?;
        }
        Ok(CommandStatus::Fine)
    }

    async fn look(&self, modules: &Api<Module>) -> Result<Progress, Problem> {
        let module = modules.get(&self.name).await.map_err(|error| live::problem("the Module", &error))?;
        if module.metadata.deletion_timestamp.is_some() {
            return Ok(Progress::Failed("somebody has deleted the Module meanwhile".into()));
        }
        let status = module.status.unwrap_or_default();
        Ok(live::progress(&status.conditions, status.observed_generation, module.metadata.generation))
    }
}

fn refused(error: UploadError) -> Problem {
    match &error {
        UploadError::Going(module) => going(module),
        UploadError::Taken { .. } => Problem::new(error.to_string())
            .hint("push under another name, for instance that of the next version, and then: pintle swap"),
        UploadError::NoNamespace(_) => Problem::new(error.to_string()).hint(NO_NAMESPACE),
        UploadError::Occupied { namespace, name } => Problem::new(error.to_string())
            .hint(format!("push under another name, or: kubectl -n {namespace} delete configmap {name}")),
        UploadError::Api { about, error } => live::problem(about, error),
    }
}

/// Refuses a Module with the same bytes in another namespace than the wanted one, where the host may not read them.
fn refuse_other_namespace(found: &Module, wanted: &Module) -> Result<(), Problem> {
    let namespace = |module: &Module| Some(module.spec.source.config_map.as_ref()?.namespace.clone());
    match (namespace(found), namespace(wanted)) {
        (Some(has), Some(asked)) if has != asked => {
            let name = found.name_any();
            let message = format!(
                "Module {name} exists with these bytes in namespace {has}, not in {asked}, and a Module never changes"
            );
            Err(Problem::new(message).hint(format!(
                "push under another name, and then: pintle swap; or, if nothing uses it, before you push again: \
                 kubectl delete module {name}"
            )))
        }
        _ => Ok(()),
    }
}

/// What is said of a Module that is being deleted. Its condition `InUse` says until when it is there.
fn going(module: &Module) -> Problem {
    let name = module.name_any();
    let used_by = module.status.iter().flat_map(|status| &status.used_by);
    let used_by: Vec<ModuleUser> = used_by.map(|user| ModuleUser::from(user.as_str())).collect();
    let mut message = format!("Module {name} is being deleted");
    if !used_by.is_empty() {
        message.push_str(&format!(" and is in use by {}", ModuleUser::listed(&used_by)));
    }
    Problem::new(message).hint(format!(
        "push under another name; or wait until it is gone: kubectl wait --for=delete module.pintle.dev/{name}"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_module_whose_bytes_are_in_another_namespace_is_not_unchanged() {
        let module = |namespace: &str| -> Module {
            let mut module = super::super::fixture::module("web-0.1.0", None);
            module["spec"]["source"]["configMap"]["namespace"] = json!(namespace);
            serde_json::from_value(module).unwrap()
        };
        let said =
            refuse_other_namespace(&module("pintle-system"), &module("tools")).unwrap_err().to_string();
        assert!(
            said.starts_with(
                "error: Module web-0.1.0 exists with these bytes in namespace pintle-system, not in tools"
            ) && said.ends_with("before you push again: kubectl delete module web-0.1.0\n"),
            "{said}"
        );
        refuse_other_namespace(&module("tools"), &module("tools")).unwrap();
    }

    #[test]
    fn a_module_that_is_being_deleted_is_told_with_who_uses_it() {
        let said = |used_by: &[&str]| {
            let mut module = super::super::fixture::module("web-0.1.0", None);
            module["status"]["usedBy"] = json!(used_by);
            going(&serde_json::from_value(module).unwrap()).to_string()
        };
        let hint = "hint: push under another name; or wait until it is gone: kubectl wait --for=delete module.pintle.dev/web-0.1.0\n";
        assert_eq!(
            said(&["shop", "view/llamas"]),
            format!(
                "error: Module web-0.1.0 is being deleted and is in use by Reconciler shop, View llamas\n{hint}"
            )
        );
        assert_eq!(said(&[]), format!("error: Module web-0.1.0 is being deleted\n{hint}"));
    }
}
