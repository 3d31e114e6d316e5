//! The command `pintle push`: it uploads a guest to a cluster as a Module.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use pintle_api::{self as api, Module, ModuleObjects, ModuleUser};
use pintle_kubernetes::connect::Connect;
use pintle_offline as offline;
use pintle_wit::{names, syntax};
use semver::Version;
use serde_json::json;

use super::{
    live::{self, FIELD_MANAGER, Progress},
    module, output,
    problem::{CommandStatus, Problem},
    users::Users,
};

/// What helps when the namespace for the ConfigMaps is not there.
const NO_NAMESPACE: &str = "install Pintle with: kubectl apply --server-side -f deploy/install.yaml; or name the host's \
                            namespace with --namespace";

/// Upload a guest as a Module
///
/// The command checks the module as the operator does. It stores the bytes in ConfigMaps in the namespace of the host and creates a
/// Module that names them. A Module never changes. If the Module exists with the same bytes, the command does nothing. Other bytes
/// need another name.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Upload a module
  pintle push webserver-0.2.0 webserver.wasm

  # Upload a module and wait until it is loaded
  pintle push webserver-0.2.0 webserver.wasm --wait

  # Then switch to it
  pintle swap webserver webserver-0.2.0")]
pub(super) struct Push {
    /// Name of the Module. Usually the name and version of the guest
    name: String,

    /// Module to upload, the file that `pintle build` wrote
    file: PathBuf,

    /// Namespace for the ConfigMaps. It must be the namespace of the host
    #[arg(short, long, default_value = api::NAMESPACE)]
    namespace: String,

    /// Wait until the operator has loaded the module
    #[arg(long)]
    wait: bool,

    /// How long to wait before giving up
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = live::duration)]
    timeout: Duration,

    #[command(flatten)]
    connect: Connect,
}

impl Push {
    pub(super) fn run(self) -> Result<CommandStatus, Problem> {
        let bytes = module::read(&self.file)?;
        let guest = check(&bytes, &self.file).map_err(|problem| self.takes(problem))?;
        if !is_name(&self.name) {
            return Err(Problem::new(format!("{:?} is no name for a Module", self.name))
                .hint("it has lower-case letters, digits, '-' and '.', as in webserver-0.2.0"));
        }
        live::block_on(self.push(&bytes, &guest))
    }

    /// A problem with the file, with what to push instead where it has objects.
    fn takes(&self, problem: Problem) -> Problem {
        match module::has_objects(&self.file) {
            true => problem.hint(format!(
                "a module is pushed, the .wasm file that pintle build wrote: pintle push {} MODULE",
                self.name
            )),
            false => problem,
        }
    }

    async fn push(&self, bytes: &[u8], guest: &Guest) -> Result<CommandStatus, Problem> {
        let client = live::client(&self.connect).await?;
        let digest = &guest.digest;
        let modules: Api<Module> = Api::all(client.clone());
        let wanted = ModuleObjects::new(&self.namespace, &self.name, bytes, digest);
        let found = modules.get_opt(&self.name).await.map_err(|error| live::problem("the Module", &error))?;
        if let Some(module) = found.as_ref().filter(|module| module.metadata.deletion_timestamp.is_some()) {
            return Err(self.going(&client, module).await);
        }
        // Who may not list Modules is not warned of them.
        let others: Vec<Module> = live::list(&client, "Modules").await.unwrap_or_default();
        let said = match found {
            Some(module) if module.spec.digest != *digest => return Err(self.taken(&module.spec.digest)),
            Some(module) => {
                // The ConfigMaps may have gone since. Bytes that somebody laid out in another way are left to them.
                if module.spec.source == wanted.module.spec.source {
                    self.upload(&client, &wanted).await?;
                    self.own(&client, &module, &wanted).await?;
                }
                "unchanged"
            }
            None => {
                self.upload(&client, &wanted).await?;
                let params =
                    PostParams { field_manager: Some(FIELD_MANAGER.into()), ..PostParams::default() };
                let module = modules
                    .create(&params, &wanted.module)
                    .await
                    .map_err(|error| live::problem(format!("module {}", self.name), &error))?;
                self.own(&client, &module, &wanted).await?;
                "created"
            }
        };
        output::print(&format!("module.pintle.dev/{} {said}\n", self.name))?;
        warnings(&self.name, guest, &others).iter().for_each(|warning| eprintln!("warning: {warning}"));
        if self.wait {
            live::wait(self.timeout, || self.look(&modules)).await?;
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

    async fn going(&self, client: &Client, module: &Module) -> Problem {
        // Who may not list Reconcilers or Views is told without their names.
        let users = Users::read(client).await.unwrap_or_default();
        let used_by: Vec<&ModuleUser> = users.of_module(&self.name).collect();
        going(module, &used_by)
    }

    fn taken(&self, digest: &str) -> Problem {
        Problem::new(format!(
            "Module {} exists with other bytes ({digest}), and a Module never changes",
            self.name
        ))
        .hint("push under another name, for instance that of the next version, and then: pintle swap")
    }

    async fn upload(&self, client: &Client, objects: &ModuleObjects) -> Result<(), Problem> {
        let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), &self.namespace);
        let params = PostParams { field_manager: Some(FIELD_MANAGER.into()), ..PostParams::default() };
        for wanted in &objects.config_maps {
            let name = wanted.metadata.name.clone().unwrap_or_default();
            let about = format!("ConfigMap {}/{name}", self.namespace);
            match config_maps.create(&params, wanted).await {
                Ok(_) => {}
                Err(error) if live::is(&error, 404) => {
                    return Err(
                        Problem::new(format!("there is no namespace {}", self.namespace)).hint(NO_NAMESPACE)
                    );
                }
                // An upload that was broken off leaves parts.
                Err(error) if live::is(&error, 409) => {
                    let found =
                        config_maps.get(&name).await.map_err(|error| live::problem(&about, &error))?;
                    if found.binary_data != wanted.binary_data {
                        return Err(Problem::new(format!("{about} exists and holds something else")).hint(
                            format!(
                                "push under another name, or: kubectl -n {} delete configmap {name}",
                                self.namespace
                            ),
                        ));
                    }
                }
                Err(error) => return Err(live::problem(&about, &error)),
            }
        }
        Ok(())
    }

    /// Makes the Module the owner of its ConfigMaps, so that they go with it.
    async fn own(&self, client: &Client, module: &Module, objects: &ModuleObjects) -> Result<(), Problem> {
        let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), &self.namespace);
        let owner = json!([{
            "apiVersion": "pintle.dev/v1alpha1", "kind": "Module", "name": self.name,
            "uid": module.metadata.uid.clone().unwrap_or_default(),
        }]);
        let patch = Patch::Merge(json!({"metadata": {"ownerReferences": owner}}));
        for name in objects.config_maps.iter().filter_map(|config_map| config_map.metadata.name.as_deref()) {
            // The fields have one writer, so that force is not needed, and a merge is enough.
            config_maps
                .patch(
                    name,
                    &PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() },
                    &patch,
                )
                .await
                .map_err(|error| live::problem(format!("ConfigMap {}/{name}", self.namespace), &error))?;
        }
        Ok(())
    }
}

/// What is said of a Module that is being deleted: until when it is there, and what to do.
fn going(module: &Module, used_by: &[&ModuleUser]) -> Problem {
    let name = module.name_any();
    let wait = format!("kubectl wait --for=delete module.pintle.dev/{name} && pintle push {name} FILE");
    if let [first, ..] = used_by {
        let names = ModuleUser::listed(used_by.iter().copied());
        return Problem::new(format!(
            "Module {name} is being deleted and is in use by {names}; it goes when no Reconciler or View uses it any more"
        ))
        .hint(format!(
            "push under another name; or: pintle swap {first} ANOTHER-MODULE, and then: {wait}"
        ));
    }
    let finalizers = module.finalizers();
    let until = match finalizers.iter().any(|finalizer| finalizer != names::FINALIZER_IN_USE) {
        true => format!("its finalizers are removed: {}", finalizers.join(", ")),
        false => "the host has seen that no Reconciler or View uses it".into(),
    };
    Problem::new(format!("Module {name} is being deleted; it goes when {until}"))
        .hint(format!("push under another name; or: {wait}"))
}

/// What is known of a guest before it is uploaded.
struct Guest {
    /// The digest of its bytes.
    digest: String,
    /// The version that it gives itself.
    version: String,
}

/// What is odd about a push, although nothing is wrong with it: a name that promises another version than the guest's, and bytes that
/// are a Module already. Somebody may have forgotten to raise the version, or to build.
fn warnings(name: &str, guest: &Guest, modules: &[Module]) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(version) = version_in(name).filter(|version| *version != guest.version) {
        warnings.push(format!(
            "the name of the Module ends in {version}; the guest says that it is {}",
            guest.version
        ));
    }
    let is_same = |module: &&Module| module.spec.digest == guest.digest && module.name_any() != name;
    let same: Vec<String> = modules.iter().filter(is_same).map(ResourceExt::name_any).collect();
    if !same.is_empty() {
        warnings.push(format!("these are the bytes of Module {}", same.join(", ")));
    }
    warnings
}

/// The version that the name of a Module ends in: `0.2.0-rc.1` of `web-0.2.0-rc.1`.
fn version_in(name: &str) -> Option<&str> {
    let mut ends = name.match_indices('-').filter_map(|(at, dash)| name.get(at + dash.len()..));
    ends.find(|end| Version::parse(end).is_ok())
}

/// Loads the bytes as the operator will.
fn check(bytes: &[u8], file: &Path) -> Result<Guest, Problem> {
    let module = offline::engine()?.load(bytes, None).map_err(|failure| module::refused(file, &failure))?;
    module::supports(&module).map_err(|failure| module::refused(file, &failure))?;
    Ok(Guest { digest: module.digest().to_string(), version: module.version().to_owned() })
}

/// A DNS subdomain, short enough for the names of further parts.
fn is_name(name: &str) -> bool {
    name.len() <= 250 && syntax::is_subdomain(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_that_is_being_deleted_is_told_with_until_when_it_is_there() {
        let module = |finalizers: &[&str]| {
            let mut module = super::super::fixture::module("web-0.1.0", None);
            module["metadata"]["finalizers"] = json!(finalizers);
            serde_json::from_value::<Module>(module).unwrap()
        };
        let (shop, llamas) = (ModuleUser::Reconciler("shop".into()), ModuleUser::View("llamas".into()));
        assert_eq!(
            going(&module(&[names::FINALIZER_IN_USE]), &[&shop, &llamas]).to_string(),
            "error: Module web-0.1.0 is being deleted and is in use by Reconciler shop, View llamas; it goes when no Reconciler or View \
             uses it any more\nhint: push under another name; or: pintle swap shop ANOTHER-MODULE, and then: kubectl wait --for=delete \
             module.pintle.dev/web-0.1.0 && pintle push web-0.1.0 FILE\n"
        );
        let of_a_view = going(&module(&[names::FINALIZER_IN_USE]), &[&llamas]).to_string();
        assert!(of_a_view.contains("or: pintle swap view/llamas ANOTHER-MODULE, and then"), "{of_a_view}");
        let unused = |finalizers: &[&str]| going(&module(finalizers), &[]).to_string();
        assert!(
            unused(&[names::FINALIZER_IN_USE])
                .contains("when the host has seen that no Reconciler or View uses it")
        );
        assert!(unused(&["a.io/b"]).contains("it goes when its finalizers are removed: a.io/b\n"));
    }

    #[test]
    fn a_push_warns_of_a_version_that_is_not_the_guests_and_of_bytes_that_are_a_module() {
        let digest = super::super::fixture::DIGEST;
        let guest = Guest { digest: digest.into(), version: "0.4.0".into() };
        let module = super::super::fixture::module;
        let mut other = module("cake-0.4.0", None);
        other["spec"]["digest"] = json!(digest.replace('0', "1"));
        let others = super::super::fixture::read(&[module("bakery-0.4.0", None), other]);
        assert_eq!(
            warnings("bakery-0.5.0", &guest, &others),
            [
                "the name of the Module ends in 0.5.0; the guest says that it is 0.4.0",
                "these are the bytes of Module bakery-0.4.0"
            ]
        );
        assert!(warnings("bakery-0.4.0", &guest, &others).is_empty(), "it is the Module itself");
        assert!(warnings("bakery", &guest, &[]).is_empty(), "the name promises no version");
        assert_eq!(version_in("web-2-0.2.0-rc.1"), Some("0.2.0-rc.1"));
        assert_eq!(version_in("web-0.2"), None);
    }

    #[test]
    fn a_module_is_named_as_an_object_is() {
        assert!(is_name("webserver-0.2.0"));
        assert!(!is_name("WebServer") && !is_name("a..b") && !is_name("-a") && !is_name(""));
    }
}
