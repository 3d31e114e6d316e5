//! What a command needs on the machine. This is checked before anything is built, and everything that is missing is reported at once.

use std::{
    env,
    path::{Path, PathBuf},
};

use xtask::say;

use crate::run::{Program, Result, program, rustc, target};

/// The target that guests are compiled for.
const WASM_TARGET: &str = "wasm32-unknown-unknown";

/// Fails with everything that is missing, each with what helps.
pub(crate) fn meet(requirements: Vec<Option<String>>) -> Result<()> {
    let missing: Vec<String> = requirements.into_iter().flatten().collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!("this machine lacks what is needed; nothing was built:\n{}", missing.join("\n")).into())
}

/// Something that is missing, and how to get it.
fn entry(what: &str, help: &str) -> String {
    format!("  {what}\n      {help}")
}

/// The compiler's target for guests. It is added if it is missing.
pub(crate) fn wasm_target() -> Option<String> {
    // The compiler itself is asked, because a toolchain need not come from rustup.
    let folder = || rustc(["--print", "target-libdir", "--target", WASM_TARGET]).asked();
    let is_there = || folder().is_some_and(|folder| Path::new(folder.trim()).is_dir());
    rust_part(WASM_TARGET, is_there, ["target", "add", WASM_TARGET])
}

/// A component of the toolchain: `clippy`, `rustfmt`. It is added if it is missing.
pub(crate) fn component(name: &str) -> Option<String> {
    // The proxies of rustup exist even without the component.
    let command = if name == "clippy" { "clippy-driver" } else { name };
    let is_there = || program(command, ["--version"]).asked().is_some();
    rust_part(name, is_there, ["component", "add", name])
}

/// Go, for the control plane's programs, unless they exist or a cluster is named.
pub(crate) fn control_plane() -> Option<String> {
    if control_plane_is_there(|name| env::var_os(name).map(PathBuf::from)) {
        return None;
    }
    Some(entry(
        &format!("{}, which the control plane is built with", lacks_go()?),
        "Install it, see https://go.dev/doc/install, and put it on PATH; or name the kubeconfig of a cluster that may be used for tests: export PINTLE_TESTBED_KUBECONFIG=FILE",
    ))
}

/// Go, in any case.
pub(crate) fn go() -> Option<String> {
    Some(entry(&lacks_go()?, "Install it, see https://go.dev/doc/install, and put it on PATH"))
}

/// Node, for those who change the console.
pub(crate) fn node() -> Option<String> {
    Some(entry(&lacks_node()?, "Install it, see https://nodejs.org"))
}

/// What a node that runs Pods needs: the first of it that is missing.
pub(crate) fn pods() -> Option<String> {
    let help = "A node that runs Pods needs it; testbed/node/needs.sh has what else it needs";
    Some(entry(&crate::node::lacks()?, help))
}

/// skopeo, for those who push the image.
pub(crate) fn skopeo() -> Option<String> {
    let help = "Install it: apt-get install skopeo, dnf install skopeo or brew install skopeo";
    on_path("skopeo").is_none().then(|| entry("skopeo, which pushes the image", help))
}

/// The program of this name on `PATH`.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Brings packages by apt.
pub(crate) fn apt(packages: &[&str]) -> Result<()> {
    say(format_args!("installing {}: apt-get install", packages.join(", ")));
    let apt = || program("apt-get", ["--quiet=2"]).env("DEBIAN_FRONTEND", "noninteractive");
    apt().args(["update"]).go()?;
    apt().args(["install", "--yes", "--no-install-recommends"]).args(packages).go()
}

/// A part of the Rust toolchain, which rustup adds.
fn rust_part(name: &str, is_there: impl Fn() -> bool, add: [&str; 3]) -> Option<String> {
    if is_there() {
        return None;
    }
    let what = format!("{name}, a part of the Rust toolchain");
    if program("rustup", ["--version"]).asked().is_none() {
        let help = "Install Rust with rustup, see https://rustup.rs; another toolchain must bring it itself";
        return Some(entry(&what, help));
    }
    let line = format!("rustup {}", add.join(" "));
    say(format_args!("adding {what}: {line}"));
    match program("rustup", add).go() {
        Ok(()) if is_there() => None,
        Ok(()) => Some(entry(
            &what,
            &format!("`{line}` has added it to another toolchain than cargo uses; run it there"),
        )),
        Err(error) => Some(entry(&what, &format!("{line}   # tried: {error}"))),
    }
}

/// Whether a control plane exists, so that none must be built. Only names are checked. The testbed reports anything that does not fit.
fn control_plane_is_there(variable: impl Fn(&str) -> Option<PathBuf>) -> bool {
    let set = |name: &str| variable(name).filter(|value| !value.as_os_str().is_empty());
    let programs = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok"];
    let assets = || {
        let folder = set("KUBEBUILDER_ASSETS")?;
        Some(programs.iter().all(|name| folder.join(name).is_file()))
    };
    let built = || {
        let cache = set("PINTLE_CACHE")
            .or_else(|| Some(set("XDG_CACHE_HOME")?.join("pintle")))
            .or_else(|| Some(set("HOME")?.join(".cache/pintle")))?;
        let entries = cache.read_dir().ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let names: Vec<String> = entries.collect();
        Some(["kubernetes-v", "kwok-v"].iter().all(|built| names.iter().any(|name| name.starts_with(built))))
    };
    set("PINTLE_TESTBED_KUBECONFIG").is_some() || assets() == Some(true) || built() == Some(true)
}

/// What of Go this machine lacks to build the control plane, by testbed/*/go.mod; none if it is new enough.
pub(crate) fn lacks_go() -> Option<String> {
    lacks("Go 1.26", outside("go", ["version"]), (1, 26))
}

/// What of Node this machine lacks to build the console's pages and to run their tests; none if it is new enough.
pub(crate) fn lacks_node() -> Option<String> {
    lacks("Node 20", outside("node", ["--version"]), (20, 0))
}

fn lacks(name: &str, program: Program, wanted: (u32, u32)) -> Option<String> {
    match program.asked().and_then(|said| version(&said)) {
        Some(found) if found >= wanted => None,
        Some((major, minor)) => Some(format!("{name} or newer; found {major}.{minor}")),
        None => Some(format!("{name} or newer")),
    }
}

/// `go version go1.26.8 linux/amd64` as (1, 26), and `v20.20.2` as (20, 20).
fn version(said: &str) -> Option<(u32, u32)> {
    let numbers = |word: &str| -> Option<(u32, u32)> {
        let (major, rest) = word.trim_start_matches(char::is_alphabetic).split_once('.')?;
        let minor = rest.split(|sign: char| !sign.is_ascii_digit()).next()?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    };
    said.split_whitespace().find_map(numbers)
}

/// This many GiB of disk for cargo's target folder, with what it has already. What cannot be found out is enough.
pub(crate) fn disk(gibibytes: u64) -> Option<String> {
    let target = target();
    let there = target.ancestors().find(|folder| folder.is_dir())?.as_os_str();
    let free = number(&outside("df", ["-Pk".as_ref(), there]).asked()?, 3)?;
    // Looking through the folder takes a moment, so only where there is a doubt.
    let used = || number(&outside("du", ["-sk".as_ref(), target.as_os_str()]).asked()?, 0);
    if free >> 20 >= gibibytes || (free + used().unwrap_or(0)) >> 20 >= gibibytes {
        return None;
    }
    Some(entry(
        &format!("{gibibytes} GiB of disk at {}; there are {}", target.display(), free >> 20),
        "Make room, or build elsewhere: export CARGO_TARGET_DIR=FOLDER",
    ))
}

/// The number in this column of the last line, as df and du print kibibytes.
fn number(said: &str, column: usize) -> Option<u64> {
    said.lines().next_back()?.split_whitespace().nth(column)?.parse().ok()
}

/// A program that prints information about itself. It runs outside of the workspace, whose files could change its answer.
fn outside<S: AsRef<std::ffi::OsStr>>(name: &str, arguments: impl IntoIterator<Item = S>) -> Program {
    program(name, arguments).folder(Path::new("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tools_say_is_read() {
        assert_eq!(version("go version go1.26.8 linux/amd64\n"), Some((1, 26)));
        assert_eq!(version("go version go1.27rc1 linux/amd64"), Some((1, 27)));
        assert_eq!(version("go version devel go1.30-abc"), Some((1, 30)));
        assert_eq!(version("no such thing"), None);
        assert_eq!(version("v20.20.2\n"), Some((20, 20)));
        let df = "Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/a b c\n";
        assert_eq!(number(df, 3), None);
        let df = "Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/a 10 3 2097152 1% /\n";
        assert_eq!(number(df, 3), Some(2_097_152));
    }

    #[test]
    fn a_named_cluster_or_a_built_control_plane_needs_no_go() {
        let cache = xtask::root().join("no/such/folder");
        let only =
            |name: &'static str, value: PathBuf| move |asked: &str| (asked == name).then(|| value.clone());
        assert!(!control_plane_is_there(only("HOME", cache.clone())));
        assert!(!control_plane_is_there(only("KUBEBUILDER_ASSETS", cache.clone())));
        assert!(control_plane_is_there(only("PINTLE_TESTBED_KUBECONFIG", cache)));
        assert!(!control_plane_is_there(only("PINTLE_TESTBED_KUBECONFIG", PathBuf::new())));
    }
}
