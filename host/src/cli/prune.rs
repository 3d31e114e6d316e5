//! The command `pintle prune`: it deletes Modules that no Reconciler and no View uses.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, Preconditions},
};
use pintle_api::Module;
use pintle_kubernetes::connect::Connect;

use super::{
    live, output,
    problem::{CommandStatus, Problem},
    users::Users,
};

/// Delete Modules that are not in use
///
/// A Module is in use while a Reconciler or a View names it, has it in force, or waits for it. Such a Module is never deleted. Of the others, the
/// newest of each guest are kept, so that you can swap back to them.
///
/// A Module that changes while the command runs is left alone. The ConfigMaps of a Module go with it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Show what would be deleted
  pintle prune modules --dry-run

  # Delete all but the newest unused Module of each guest
  pintle prune modules --keep 1")]
pub(super) struct Prune {
    /// What to delete: modules
    #[arg(hide_possible_values = true)]
    what: What,

    /// How many unused Modules of each guest to keep
    #[arg(long, value_name = "N", default_value_t = 3)]
    keep: usize,

    /// Only print what would be deleted
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    connect: Connect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    #[value(alias = "module", alias = "pmod")]
    Modules,
}

impl Prune {
    pub(super) fn run(self) -> Result<CommandStatus, Problem> {
        let What::Modules = self.what;
        live::block_on(async {
            let client = live::client(&self.connect).await?;
            prune(&client, self.keep, self.dry_run, &mut |line| output::print(line)).await?;
            Ok(CommandStatus::Fine)
        })
    }
}

/// Deletes what [`plan`] says. `tell` gets a line for each Module.
async fn prune(
    client: &Client,
    keep: usize,
    dry_run: bool,
    tell: &mut dyn FnMut(&str) -> Result<(), Problem>,
) -> Result<(), Problem> {
    // Who uses Modules comes last: who names a Module meanwhile is seen. Who does it later is noticed by the host, which then puts a
    // finalizer on the Module; its resourceVersion changes, and the deletion is refused.
    let modules: Vec<Module> = live::list(client, "Modules").await?;
    let users = Users::read(client).await?;
    let plan = plan(&modules, &users, keep);
    let api: Api<Module> = Api::all(client.clone());
    for module in &plan.delete {
        let name = module.name_any();
        if dry_run {
            tell(&format!("module.pintle.dev/{name} deleted (dry run)\n"))?;
            continue;
        }
        if let Some(said) = delete(&api, module).await? {
            tell(&format!("module.pintle.dev/{name} {said}\n"))?;
        }
    }
    if plan.delete.is_empty() {
        let Plan { used, kept, .. } = plan;
        tell(&format!("no Module is deleted: {used} in use, {kept} not in use and kept\n"))?;
    }
    Ok(())
}

/// Deletes a Module if it is still as it was read, and says what came of it; nothing where somebody else was faster.
async fn delete(api: &Api<Module>, module: &Module) -> Result<Option<&'static str>, Problem> {
    let name = module.name_any();
    let params = DeleteParams::background().preconditions(Preconditions {
        uid: module.metadata.uid.clone(),
        resource_version: module.metadata.resource_version.clone(),
    });
    match api.delete(&name, &params).await {
        Ok(_) => Ok(Some("deleted")),
        Err(error) if live::is(&error, 404) => Ok(None),
        Err(error) if live::is(&error, 409) => Ok(Some("left alone: it has changed meanwhile")),
        Err(error) => Err(live::problem(format!("Module {name}"), &error)),
    }
}

/// What is deleted, and how much is not.
#[derive(Debug)]
struct Plan<'a> {
    /// The Modules to delete: guest by guest, the oldest first.
    delete: Vec<&'a Module>,
    /// How many Modules are in use.
    used: usize,
    /// How many are not in use and kept.
    kept: usize,
}

/// Decides which Modules are deleted: of those that nobody uses, all but the newest `keep` of each guest. What is being deleted already
/// does not count.
fn plan<'a>(modules: &'a [Module], users: &Users, keep: usize) -> Plan<'a> {
    let (used, unused): (Vec<&Module>, Vec<&Module>) = modules
        .iter()
        .filter(|module| module.metadata.deletion_timestamp.is_none())
        .partition(|module| users.has(&module.name_any()));
    let mut guests: BTreeMap<String, Vec<&Module>> = BTreeMap::new();
    for module in unused {
        guests.entry(guest_of(module)).or_default().push(module);
    }
    let (mut delete, mut kept) = (Vec::new(), 0);
    for mut of_guest in guests.into_values() {
        of_guest.sort_by_key(|module| (module.creation_timestamp(), module.name_any()));
        let old = of_guest.len().saturating_sub(keep);
        kept += of_guest.len() - old;
        delete.extend(of_guest.drain(..old));
    }
    Plan { delete, used: used.len(), kept }
}

/// A word of the manifest that a Module's status shows; empty where there is none yet.
pub(super) fn manifest_text(module: &Module, key: &str) -> String {
    let manifest = module.status.as_ref().and_then(|status| status.manifest.as_ref());
    manifest.and_then(|manifest| manifest[key].as_str()).unwrap_or_default().to_owned()
}

/// The guest that a Module holds: as its manifest says, or, where it was never loaded, its name without the version.
fn guest_of(module: &Module) -> String {
    let said = manifest_text(module, "name");
    if !said.is_empty() {
        return said;
    }
    let name = module.name_any();
    let version = name.match_indices('-').find(|(at, _)| {
        name[at + 1..].trim_start_matches('v').starts_with(|letter: char| letter.is_ascii_digit())
    });
    version.map_or_else(|| name.clone(), |(at, _)| name[..at].to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{
        super::fixture::{self, cluster, read, reconciler, view},
        *,
    };

    fn module(name: &str, guest: Option<&str>, created: &str) -> Value {
        let mut module = fixture::module(name, guest);
        module["metadata"]["creationTimestamp"] = json!(created);
        module
    }

    fn names(plan: &Plan<'_>) -> Vec<String> {
        plan.delete.iter().map(|module| module.name_any()).collect()
    }

    #[test]
    fn the_newest_unused_modules_of_each_guest_are_kept() {
        let modules: Vec<Module> = read(&[
            module("web-0.1.0", Some("web"), "2000-01-01T00:00:00Z"),
            module("web-0.2.0", Some("web"), "2000-01-03T00:00:00Z"),
            module("zeta", Some("web"), "2000-01-02T00:00:00Z"),
            module("shop-0.1.0", Some("shop"), "2000-01-01T00:00:00Z"),
        ]);
        assert_eq!(names(&plan(&modules, &Users::default(), 1)), ["web-0.1.0", "zeta"]);
        assert_eq!(
            names(&plan(&modules, &Users::default(), 0)),
            ["shop-0.1.0", "web-0.1.0", "zeta", "web-0.2.0"]
        );
        let found = plan(&modules, &Users::default(), 3);
        assert!(found.delete.is_empty() && found.kept == 4, "{found:?}");
    }

    #[test]
    fn what_a_reconciler_or_a_view_wants_or_works_with_is_never_deleted_and_does_not_count_as_kept() {
        let modules: Vec<Module> = read(&[
            module("web-0.1.0", Some("web"), "2000-01-01T00:00:00Z"),
            module("web-0.2.0", Some("web"), "2000-01-02T00:00:00Z"),
            module("web-0.3.0", Some("web"), "2000-01-03T00:00:00Z"),
        ]);
        let of_a_reconciler = Users::of(&read(&[reconciler("web-0.3.0", Some("web-0.1.0"), &[])]), &[]);
        let of_a_view = Users::of(&[], &read(&[view("v", "web-0.3.0", Some("web-0.1.0"), &[])]));
        for users in [of_a_reconciler, of_a_view] {
            let found = plan(&modules, &users, 0);
            assert_eq!((names(&found), found.used), (vec!["web-0.2.0".to_owned()], 2));
            assert!(plan(&modules, &users, 1).delete.is_empty());
        }
    }

    #[test]
    fn what_is_being_deleted_takes_no_place_of_what_is_kept() {
        let mut going = module("web-0.2.0", Some("web"), "2000-01-02T00:00:00Z");
        going["metadata"]["deletionTimestamp"] = json!("2000-01-03T00:00:00Z");
        let modules: Vec<Module> = read(&[module("web-0.1.0", Some("web"), "2000-01-01T00:00:00Z"), going]);
        let found = plan(&modules, &Users::default(), 1);
        assert!(found.delete.is_empty() && found.kept == 1, "{found:?}");
        assert_eq!(names(&plan(&modules, &Users::default(), 0)), ["web-0.1.0"]);
    }

    #[test]
    fn a_module_that_was_never_loaded_is_of_the_guest_of_its_name() {
        for (name, guest) in [
            ("web-0.1.0", "web"),
            ("web-server-v2", "web-server"),
            ("web", "web"),
            ("web-next", "web-next"),
            ("web-1.0.0-rc-1", "web"),
        ] {
            let modules: Vec<Module> = read(&[module(name, None, "2000-01-01T00:00:00Z")]);
            assert_eq!(guest_of(&modules[0]), guest);
        }
    }

    async fn left(client: &Client) -> Vec<String> {
        let modules: Vec<Module> = live::list(client, "Modules").await.unwrap();
        modules.iter().map(ResourceExt::name_any).collect()
    }

    #[tokio::test]
    async fn a_dry_run_deletes_nothing_and_says_what_the_same_command_deletes_without_it() {
        let objects = [
            fixture::module("web-0.1.0", None),
            fixture::module("web-0.2.0", None),
            fixture::module("web-0.3.0", None),
            fixture::module("web-0.0.1", None),
            reconciler("web-0.3.0", None, &[]),
            view("v", "web-0.0.1", None, &[]),
        ];
        let (_server, client) = cluster(&objects);
        let mut told = String::new();
        let mut tell = |line: &str| {
            told.push_str(line);
            Ok(())
        };
        prune(&client, 1, true, &mut tell).await.unwrap();
        assert_eq!(left(&client).await, ["web-0.0.1", "web-0.1.0", "web-0.2.0", "web-0.3.0"]);
        prune(&client, 1, false, &mut tell).await.unwrap();
        assert_eq!(left(&client).await, ["web-0.0.1", "web-0.2.0", "web-0.3.0"]);
        prune(&client, 1, false, &mut tell).await.unwrap();
        assert_eq!(
            told,
            "module.pintle.dev/web-0.1.0 deleted (dry run)\nmodule.pintle.dev/web-0.1.0 deleted\n\
             no Module is deleted: 2 in use, 1 not in use and kept\n"
        );
    }
    /// The version that was read is part of the deletion.
    #[tokio::test]
    async fn a_module_that_has_changed_meanwhile_is_left_alone() {
        let (server, client) = cluster(&[fixture::module("web-0.1.0", None)]);
        let mut modules: Vec<Module> = live::list(&client, "Modules").await.unwrap();
        let finalizers = json!({"metadata": {"finalizers": ["pintle.dev/in-use"]}});
        let target = pintle_core::object::reference(&fixture::module("web-0.1.0", None));
        let act = pintle_simulator::Act::Merge { target, subresource: None, patch: finalizers };
        server.act("host", &act).unwrap();
        let said = delete(&Api::all(client.clone()), &modules.remove(0)).await.unwrap();
        assert_eq!(said, Some("left alone: it has changed meanwhile"));
        let left: Vec<Module> = live::list(&client, "Modules").await.unwrap();
        assert!(left[0].metadata.deletion_timestamp.is_none());
    }
}
