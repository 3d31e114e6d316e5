//! The command `pintle completion`, and what it registers: shells ask this binary how a command line may go on.
//!
//! A shell sets the variable `COMPLETE` to its name and passes the words so far behind `--`. [`answer`] prints what fits. Names of
//! objects come from the cluster that the words mean. Whoever presses a key wants no error and no wait: where the cluster does not
//! answer within a moment, there are no names.

mod kubectl;

use std::{
    ffi::{OsStr, OsString},
    fmt::Debug,
    io::{self, Write},
    path::Path,
    time::Duration,
};

use clap::{Args, Command, ValueEnum};
use clap_complete::{
    CompleteEnv,
    engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter},
    env::{Bash, EnvCompleter, Fish, Powershell, Shells, Zsh},
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams},
};
use pintle_api::{Module, Reconciler, View};
use pintle_kubernetes::connect::Connect;
use serde::de::DeserializeOwned;

use super::{
    live,
    named::VIEW_PREFIX,
    output,
    problem::{CommandStatus, Problem},
    seeing,
};

/// Print the script that completes commands in a shell
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
    #[arg(value_name = "SHELL", hide_possible_values = true)]
    shell: Shell,
}

/// Who completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
    Powershell,
    Kubectl,
}

/// All that can ask.
const SHELLS: Shells<'static> = Shells(&[&Bash, &Zsh, &Fish, &Powershell, &kubectl::Kubectl]);

/// The variable by which a shell asks.
const VARIABLE: &str = "COMPLETE";

/// How long somebody waits who has pressed a key.
const PATIENCE: Duration = Duration::from_secs(2);

/// No more names than this are asked for: nobody reads more, and the answer stays small.
const NAMES_MAX: u32 = 500;

impl Shell {
    fn completer(self) -> &'static dyn EnvCompleter {
        match self {
            Self::Bash => &Bash,
            Self::Zsh => &Zsh,
            Self::Fish => &Fish,
            Self::Powershell => &Powershell,
            Self::Kubectl => &kubectl::Kubectl,
        }
    }
}

impl Completion {
    pub(super) fn run(self) -> Result<CommandStatus, Problem> {
        let called = called(std::env::args_os().next().as_deref());
        let mut script = Vec::new();
        self.shell.completer().write_registration(VARIABLE, &called, &called, &called, &mut script)?;
        output::print(&String::from_utf8(script)?)?;
        Ok(CommandStatus::Fine)
    }
}

/// The name that this program was called by, without its folder: a script outlives the place where the program was.
fn called(program: Option<&OsStr>) -> String {
    let name = program.and_then(|program| Path::new(program).file_stem()?.to_str());
    name.unwrap_or("pintle").to_owned()
}

/// Answers a shell that asks how the words may go on, if one does. Where the variable names no shell, somebody else has set it.
///
/// # Errors
/// When nothing can be said of the words, or it cannot be printed.
pub(super) fn answer(command: impl Fn() -> Command, arguments: &[OsString]) -> Result<bool, clap::Error> {
    let asks = std::env::var_os(VARIABLE).is_some_and(|shell| {
        let name = Path::new(&shell).file_stem().and_then(OsStr::to_str);
        name.is_some_and(|name| SHELLS.completer(name).is_some())
    });
    if !asks {
        return Ok(false);
    }
    let called = called(arguments.first().map(OsString::as_os_str));
    CompleteEnv::with_factory(command)
        .var(VARIABLE)
        .bin(called)
        .shells(SHELLS)
        .try_complete(arguments, std::env::current_dir().ok().as_deref())
}

/// Completes the name of a Reconciler.
pub(super) fn reconcilers() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| names::<Reconciler>(current))
}

/// Completes the name of a Module.
pub(super) fn modules() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| names::<Module>(current))
}

/// Completes the name of a Module, or a file.
pub(super) fn modules_and_files() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let mut found = names::<Module>(current);
        found.extend(PathCompleter::file().complete(current));
        found
    })
}

/// Completes the name of a Reconciler, or of a View behind `view/`.
pub(super) fn named() -> ArgValueCompleter {
    ArgValueCompleter::new(reconcilers_and_views)
}

fn reconcilers_and_views(current: &OsStr) -> Vec<CompletionCandidate> {
    let Some(current) = current.to_str() else { return Vec::new() };
    // A Reconciler has no `/` in its name, and a View is asked for by the first letters of what stands before its name.
    let is_view = current.starts_with(VIEW_PREFIX);
    let may_be_view = is_view || VIEW_PREFIX.starts_with(current);
    let found = ask(async |client| {
        let reconcilers = async { if is_view { Vec::new() } else { all::<Reconciler>(&client).await } };
        let views = async { if may_be_view { all::<View>(&client).await } else { Vec::new() } };
        let (mut names, views) = tokio::join!(reconcilers, views);
        names.extend(views.into_iter().map(|name| format!("{VIEW_PREFIX}{name}")));
        names
    });
    candidates(found, current)
}

/// Completes `KIND/NAME` of a root: a kind that a Reconciler is for, and then a name in the namespace that the words mean.
pub(super) fn roots() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let Some(current) = current.to_str() else { return Vec::new() };
        let kind = current.split_once('/').map(|(kind, _)| kind);
        let namespace = value_of(&["-n", "--namespace"], std::env::args_os());
        let found = ask(async |client| {
            let found = tokio::time::timeout(PATIENCE, roots_of(&client, kind, namespace.as_deref())).await;
            found.ok().flatten().unwrap_or_default()
        });
        candidates(found, current)
    })
}

/// The kinds of roots, or the names of those of one; none where the cluster does not tell.
async fn roots_of(client: &Client, kind: Option<&str>, namespace: Option<&str>) -> Option<Vec<String>> {
    let reconcilers: Api<Reconciler> = Api::all(client.clone());
    let reconcilers = reconcilers.list(&ListParams::default().limit(NAMES_MAX)).await.ok()?;
    let mut kinds = reconcilers.items.into_iter().map(|reconciler| reconciler.spec.r#for);
    let Some(text) = kind else {
        return Some(kinds.map(|kind| format!("{}/", kind.kind.to_lowercase())).collect());
    };
    let kind = kinds.find(|kind| seeing::is_called(kind, &[], text))?;
    let served = client.list_api_group_resources(&kind.api_version).await.ok()?;
    let served = served.resources.into_iter().find(|one| one.kind == kind.kind && !one.name.contains('/'))?;
    let gvk = GroupVersionKind::gvk(kind.group(), kind.version(), &kind.kind);
    let resource = ApiResource::from_gvk_with_plural(&gvk, &served.name);
    let roots: Api<DynamicObject> = match served.namespaced {
        true => {
            let namespace = namespace.unwrap_or(client.default_namespace());
            Api::namespaced_with(client.clone(), namespace, &resource)
        }
        false => Api::all_with(client.clone(), &resource),
    };
    let roots = roots.list_metadata(&ListParams::default().limit(NAMES_MAX)).await.ok()?;
    Some(roots.items.iter().map(|root| format!("{text}/{}", root.name_any())).collect())
}

/// The names that begin in this way; none where the cluster cannot be asked.
fn names<K>(current: &OsStr) -> Vec<CompletionCandidate>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let Some(current) = current.to_str() else { return Vec::new() };
    candidates(ask(async |client| all::<K>(&client).await), current)
}

fn candidates(names: Vec<String>, current: &str) -> Vec<CompletionCandidate> {
    names.into_iter().filter(|name| name.starts_with(current)).map(CompletionCandidate::new).collect()
}

/// What the cluster of this command line says.
fn ask(names: impl AsyncFnOnce(Client) -> Vec<String>) -> Vec<String> {
    let connect = connect(std::env::args_os().collect::<Vec<_>>().into_iter());
    live::block_on(async { Ok(names(connect.client().await?).await) }).unwrap_or_default()
}

/// The names of all objects of a kind; none where they are not told within a moment.
async fn all<K>(client: &Client) -> Vec<String>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let objects: Api<K> = Api::all(client.clone());
    let params = ListParams::default().limit(NAMES_MAX);
    let found = tokio::time::timeout(PATIENCE, objects.list_metadata(&params)).await;
    let Ok(Ok(list)) = found else { return Vec::new() };
    list.items.iter().map(ResourceExt::name_any).collect()
}

/// The cluster that the words of an unfinished command line mean.
fn connect(words: impl Iterator<Item = OsString> + Clone) -> Connect {
    Connect {
        kubeconfig: value_of(&["--kubeconfig"], words.clone()).map(Into::into),
        context: value_of(&["--context"], words),
    }
}

/// The last value of a flag among words that nobody has parsed.
fn value_of(flags: &[&str], words: impl Iterator<Item = OsString>) -> Option<String> {
    let mut found = None;
    let mut words = words.map(|word| word.to_string_lossy().into_owned());
    while let Some(word) = words.next() {
        let (flag, value) = match word.split_once('=') {
            Some((flag, value)) => (flag, Some(value.to_owned())),
            None => (word.as_str(), None),
        };
        if flags.contains(&flag) {
            found = value.or_else(|| words.next());
        }
    }
    found
}

/// Writes candidates as kubectl and other programs read them: a line each, and what it is for behind a tab.
fn write_lines(candidates: &[CompletionCandidate], to: &mut dyn Write) -> io::Result<()> {
    for candidate in candidates {
        write!(to, "{}", candidate.get_value().to_string_lossy())?;
        if let Some(help) = candidate.get_help() {
            write!(to, "\t{}", help.to_string().lines().next().unwrap_or_default())?;
        }
        writeln!(to)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> (Option<String>, Option<String>) {
        let connect = connect(words.iter().map(OsString::from));
        (connect.kubeconfig.map(|path| path.display().to_string()), connect.context)
    }

    #[test]
    fn names_come_from_the_cluster_that_the_words_mean() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(of(&["pintle", "swap", "--kubeconfig", "a", "--context=b", ""]), (some("a"), some("b")));
        assert_eq!(of(&["pintle", "swap", "--kubeconfig=a=b"]), (some("a=b"), None));
        assert_eq!(of(&["pintle", "swap", "--kubeconfig"]), (None, None));
        let namespace = |words: &[&str]| value_of(&["-n", "--namespace"], words.iter().map(OsString::from));
        assert_eq!(namespace(&["pintle", "inspect", "-n", "blog", "webserver/"]).as_deref(), Some("blog"));
        assert_eq!(namespace(&["pintle", "inspect", "--namespace=blog", "-n"]), None);
    }

    #[test]
    fn a_script_calls_the_program_by_its_name_alone() {
        assert_eq!(called(Some(OsStr::new("/usr/bin/kubectl-pintle"))), "kubectl-pintle");
        assert_eq!(called(None), "pintle");
    }
}
