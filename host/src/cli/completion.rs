//! The command `pintle completion`, and what it registers: shells ask this binary how a command line may go on.
//!
//! A shell sets [`VARIABLE`] to its name and passes the words so far behind `--`. [`answer`] prints what fits. Names of objects come from
//! the cluster that the words mean. Whoever presses a key wants no error and no wait: where the cluster does not answer within a moment,
//! there are no names.

use std::{
    env,
    ffi::{OsStr, OsString},
    fmt::Debug,
    path::Path,
    time::Duration,
};

use clap::{Args, Command};
use clap_complete::{
    CompleteEnv,
    engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter},
    env::Shells,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DynamicObject, ListParams},
};
use pintle_api::{Module, ModuleUser, Reconciler, View};
use pintle_kubernetes::{Cluster, connect::Connect};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::{
    live, output,
    problem::{CommandStatus, Problem},
    seeing,
};

/// Print the script for your shell
///
/// Commands, flags and files complete, and so do the names of Reconcilers, Views, Modules and roots in the cluster. The script calls this program
/// for each completion, by the name that the program has now. Nothing is printed where the cluster does not answer within 2 seconds.
///
/// The script `kubectl` is for the plugin `kubectl pintle`. kubectl runs it if it is an executable file with the name
/// kubectl_complete-pintle in the PATH.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # bash: in this session, and in all later ones
  source <(pintle completion bash)
  echo 'source <(pintle completion bash)' >> ~/.bashrc

  # zsh
  echo 'source <(pintle completion zsh)' >> ~/.zshrc

  # fish: in this session. For all, put it in config.fish
  pintle completion fish | source

  # PowerShell
  pintle completion powershell >> $PROFILE

  # kubectl pintle, in whichever shell kubectl completes
  pintle completion kubectl > kubectl_complete-pintle
  chmod +x kubectl_complete-pintle
  mv kubectl_complete-pintle /usr/local/bin/")]
pub(super) struct Completion {
    /// The shell. One of bash, zsh, fish, powershell or kubectl
    #[arg(
        value_name = "SHELL", hide_possible_values = true,
        value_parser = ["bash", "zsh", "fish", "powershell", "kubectl"]
    )]
    shell: String,
}

/// The variable by which a shell asks.
const VARIABLE: &str = "PINTLE_COMPLETE";

/// What kubectl runs to complete the plugin, with the words behind `kubectl pintle`. It reads the candidates as fish does, and in the last line
/// what cobra calls a directive: 4 for no files, since these are among the candidates, and 2 more for no space, where something follows.
const KUBECTL: &str = r#"#!/bin/sh
# kubectl runs this to complete "kubectl pintle". Its name is kubectl_complete-pintle.
found=$(VARIABLE=fish PROGRAM -- PROGRAM "$@")
[ -z "$found" ] || printf '%s\n' "$found"
if printf '%s\n' "$found" | cut -f 1 | grep -qv '[/=]$'; then echo :4; else echo :6; fi
"#;

/// How long somebody waits who has pressed a key.
const PATIENCE: Duration = Duration::from_secs(2);

/// No more names than this are asked for: nobody reads more, and the answer stays small.
const NAMES_MAX: u32 = 500;

impl Completion {
    pub(super) fn run(self) -> Result<CommandStatus, Problem> {
        let called = called(env::args_os().next().as_deref());
        let shells = Shells::builtins();
        let Some(shell) = shells.completer(&self.shell) else {
            output::print(&KUBECTL.replace("VARIABLE", VARIABLE).replace("PROGRAM", &called))?;
            return Ok(CommandStatus::Fine);
        };
        let mut script = Vec::new();
        shell.write_registration(VARIABLE, &called, &called, &called, &mut script)?;
        output::print(&String::from_utf8(script)?)?;
        Ok(CommandStatus::Fine)
    }
}

/// The name that this program was called by, without its folder: a script outlives the place where the program was.
fn called(program: Option<&OsStr>) -> String {
    let name = program.and_then(|program| Path::new(program).file_stem()?.to_str());
    name.unwrap_or("pintle").to_owned()
}

/// Answers a shell that asks how the words may go on, if one does.
///
/// # Errors
/// When nothing can be said of the words, or it cannot be printed.
pub(super) fn answer(command: impl Fn() -> Command, arguments: &[OsString]) -> Result<bool, clap::Error> {
    let called = called(arguments.first().map(OsString::as_os_str));
    let folder = env::current_dir().ok();
    CompleteEnv::with_factory(command).var(VARIABLE).bin(called).try_complete(arguments, folder.as_deref())
}

/// Completes the name of a Module.
pub(super) fn modules() -> ArgValueCandidates {
    ArgValueCandidates::new(|| ask(all::<Module>))
}

/// Completes the name of a Module, or a file.
pub(super) fn modules_and_files() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let mut found = ask(all::<Module>);
        found.retain(|name| {
            current.to_str().is_some_and(|current| name.get_value().to_string_lossy().starts_with(current))
        });
        found.extend(PathCompleter::file().complete(current));
        found
    })
}

/// Completes the name of a Reconciler.
pub(super) fn reconcilers() -> ArgValueCandidates {
    ArgValueCandidates::new(|| ask(all::<Reconciler>))
}

/// Completes the name of a Reconciler, or of a View behind `view/`.
pub(super) fn reconcilers_and_views() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        ask(async |client: Client| {
            let (mut names, views) = tokio::join!(all::<Reconciler>(client.clone()), all::<View>(client));
            names.extend(views.into_iter().map(|name| ModuleUser::View(name).to_string()));
            names
        })
    })
}

/// Completes `KIND/NAME` of a root: a kind that a Reconciler is for, and then a name in the namespace that the words mean.
pub(super) fn roots() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let current = current.to_string_lossy();
        let kind = current.split_once('/').map(|(kind, _)| kind);
        let mut found = ask(async |client| roots_of(&client, kind).await.unwrap_or_default());
        found.retain(|name| name.get_value().to_string_lossy().starts_with(&*current));
        found
    })
}

/// The kinds of roots, or the names of those of one; none where the cluster does not tell.
async fn roots_of(client: &Client, kind: Option<&str>) -> Option<Vec<String>> {
    let reconcilers: Api<Reconciler> = Api::all(client.clone());
    let reconcilers = reconcilers.list(&ListParams::default().limit(NAMES_MAX)).await.ok()?;
    let mut kinds = reconcilers.items.into_iter().map(|reconciler| reconciler.spec.r#for);
    let Some(text) = kind else {
        return Some(kinds.map(|kind| format!("{}/", kind.kind.to_lowercase())).collect());
    };
    let kind = kinds.find(|kind| seeing::is_called(kind, &[], text))?;
    let served = Cluster::new(client.clone()).discover(&kind).await.ok()??;
    let resource = served.api_resource();
    let roots: Api<DynamicObject> = if served.namespaced {
        let namespace = value_of(&["-n", "--namespace"], &words());
        let namespace = namespace.as_deref().unwrap_or(client.default_namespace());
        Api::namespaced_with(client.clone(), namespace, &resource)
    } else {
        Api::all_with(client.clone(), &resource)
    };
    let roots = roots.list_metadata(&ListParams::default().limit(NAMES_MAX)).await.ok()?;
    Some(roots.items.iter().map(|root| format!("{text}/{}", root.name_any())).collect())
}

/// The names of all objects of a kind; none where the cluster does not tell.
async fn all<K>(client: Client) -> Vec<String>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let found = Api::<K>::all(client).list_metadata(&ListParams::default().limit(NAMES_MAX)).await;
    found.map(|list| list.items.iter().map(ResourceExt::name_any).collect()).unwrap_or_default()
}

/// The names that the cluster of this command line tells within a moment.
fn ask(names: impl AsyncFnOnce(Client) -> Vec<String>) -> Vec<CompletionCandidate> {
    let words = words();
    let kubeconfig = value_of(&["--kubeconfig"], &words).map(Into::into);
    let connect = Connect { kubeconfig, context: value_of(&["--context"], &words) };
    let names = live::block_on(async {
        let client = connect.client().await?;
        Ok(timeout(PATIENCE, names(client)).await.unwrap_or_default())
    });
    names.unwrap_or_default().into_iter().map(CompletionCandidate::new).collect()
}

/// The words of an unfinished command line, as far as they are text.
fn words() -> Vec<String> {
    env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// The last value of a flag among words.
fn value_of(flags: &[&str], words: &[String]) -> Option<String> {
    let value = |(at, word): (usize, &String)| match word.split_once('=') {
        Some((flag, value)) if flags.contains(&flag) => Some(value.to_owned()),
        None if flags.contains(&word.as_str()) => words.get(at + 1).cloned(),
        _ => None,
    };
    words.iter().enumerate().rev().find_map(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(flags: &[&str], words: &str) -> Option<String> {
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        value_of(flags, &words)
    }

    #[test]
    fn names_come_from_the_cluster_and_namespace_that_the_words_mean() {
        let kubeconfig = |words: &str| value(&["--kubeconfig"], words);
        assert_eq!(kubeconfig("pintle swap --kubeconfig a --context=b").as_deref(), Some("a"));
        assert_eq!(kubeconfig("pintle swap --kubeconfig=a=b").as_deref(), Some("a=b"));
        assert_eq!(kubeconfig("pintle swap --kubeconfig"), None);
        let namespace = |words: &str| value(&["-n", "--namespace"], words);
        assert_eq!(namespace("pintle inspect -n blog webserver/").as_deref(), Some("blog"));
        assert_eq!(namespace("pintle inspect --namespace=blog -n shop web").as_deref(), Some("shop"));
    }

    #[test]
    fn a_script_calls_the_program_by_its_name_alone() {
        assert_eq!(called(Some(OsStr::new("/usr/bin/kubectl-pintle"))), "kubectl-pintle");
        assert_eq!(called(None), "pintle");
    }
}
