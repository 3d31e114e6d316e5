//! What a command needs on the machine. This is checked before anything is built, and everything that is missing is reported at once.

use std::{
    env,
    fmt::{self, Display, Write as _},
    path::{Path, PathBuf},
};

use crate::run::{Program, Result, program, say, target};

/// The target that guests are compiled for.
const WASM_TARGET: &str = "wasm32-unknown-unknown";
/// The oldest Go that can build the control plane, as in testbed/*/go.mod.
const GO: (u32, u32) = (1, 26);

/// The oldest Node that builds the console's pages and runs their tests.
const NODE: u32 = 20;

/// Something that a command needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Requirement {
    /// The compiler's target for guests. It is added if it is missing.
    WasmTarget,
    /// A component of the toolchain: `clippy`, `rustfmt`. It is added if it is missing.
    Component(&'static str),
    /// Go, for the control plane's programs, unless they exist or a cluster is named.
    ControlPlane,
    /// Go, in any case.
    Go,
    /// Node, for those who change the console.
    Node,
    /// This many GiB of free disk in cargo's target folder.
    Disk(u64),
}

/// Something that is missing, and how to get it.
#[derive(Debug, PartialEq, Eq)]
struct Missing {
    what: String,
    help: String,
}

impl Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  {}\n      {}", self.what, self.help)
    }
}

/// Makes sure that all requirements are met, and adds what rustup can add.
///
/// # Errors
/// Everything that is missing, each with the command that adds it.
pub(crate) fn meet(requirements: &[Requirement]) -> Result<()> {
    let missing: Vec<Missing> = requirements.iter().filter_map(|one| one.missing()).collect();
    if missing.is_empty() { Ok(()) } else { Err(report(&missing).into()) }
}

fn report(missing: &[Missing]) -> String {
    let mut report = "this machine lacks what is needed; nothing was built:".to_owned();
    for one in missing {
        // Writing to a String cannot fail.
        let _ = write!(report, "\n{one}");
    }
    report
}

impl Requirement {
    fn missing(self) -> Option<Missing> {
        match self {
            Self::WasmTarget => rust_part(
                has_wasm_target,
                ["target", "add", WASM_TARGET],
                format!("the target {WASM_TARGET} of the Rust compiler, which guests are built for"),
                "Install Rust with rustup, see https://rustup.rs; another toolchain must bring the target's standard library itself",
            ),
            Self::Component(name) => rust_part(
                || has_component(name),
                ["component", "add", name],
                format!("{name}, a component of the Rust toolchain"),
                "Install Rust with rustup, see https://rustup.rs",
            ),
            Self::ControlPlane => {
                if control_plane_is_there(|name| env::var_os(name).map(PathBuf::from)) {
                    None
                } else {
                    go_is_missing(
                        "; or name the kubeconfig of a cluster that may be used for tests: export PINTLE_TESTBED_KUBECONFIG=FILE",
                    )
                }
            }
            Self::Go => go_is_missing(""),
            Self::Node => {
                lacks_node().map(|what| Missing { what, help: "Install it, see https://nodejs.org".into() })
            }
            Self::Disk(gibibytes) => {
                let target = target();
                let free = free_gibibytes(&target)?;
                (free < gibibytes).then(|| Missing {
                    what: format!("{gibibytes} GiB of free disk at {}; there are {free}", target.display()),
                    help: "Make room, or build elsewhere: export CARGO_TARGET_DIR=FOLDER".into(),
                })
            }
        }
    }
}

/// Checks and adds the parts that come from rustup.
fn rust_part(
    is_there: impl Fn() -> bool,
    add: [&str; 3],
    what: String,
    without_rustup: &str,
) -> Option<Missing> {
    if is_there() {
        return None;
    }
    if program("rustup", ["--version"]).asked().is_none() {
        return Some(Missing { what, help: without_rustup.into() });
    }
    let line = format!("rustup {}", add.join(" "));
    say(format_args!("adding {what}: {line}"));
    let added = program("rustup", add).go();
    match added {
        Ok(()) if is_there() => None,
        Ok(()) => Some(Missing {
            what,
            help: format!("`{line}` has added it to another toolchain than cargo uses; run it there"),
        }),
        Err(error) => Some(Missing { what, help: format!("{line}   # tried: {error}") }),
    }
}

/// The compiler itself is asked, because a toolchain need not come from rustup.
fn has_wasm_target() -> bool {
    let asked = program(
        env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()),
        ["--print", "target-libdir", "--target", WASM_TARGET],
    );
    asked.asked().is_some_and(|folder| Path::new(folder.trim()).is_dir())
}

fn has_component(name: &str) -> bool {
    // The proxies of rustup exist even without the component.
    let command = if name == "clippy" { "clippy-driver" } else { name };
    program(command, ["--version"]).asked().is_some()
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
            .or_else(|| set("XDG_CACHE_HOME").map(|caches| caches.join("pintle")))
            .or_else(|| set("HOME").map(|home| home.join(".cache/pintle")))?;
        let entries: Vec<_> = cache.read_dir().ok()?.filter_map(std::result::Result::ok).collect();
        let is_there = |prefix: &str| {
            entries
                .iter()
                .any(|entry| entry.path().is_dir() && entry.file_name().to_string_lossy().starts_with(prefix))
        };
        Some(is_there("kubernetes-v") && is_there("kwok-v"))
    };
    set("PINTLE_TESTBED_KUBECONFIG").is_some() || assets() == Some(true) || built() == Some(true)
}

fn go_is_missing(otherwise: &str) -> Option<Missing> {
    let (major, minor) = GO;
    let what = format!("Go {major}.{minor} or newer, which the control plane is built with");
    let help = format!("Install it, see https://go.dev/doc/install, and put it on PATH{otherwise}");
    let said = outside("go", ["version"]).asked();
    match said.as_deref().map(go_version) {
        Some(Some(version)) if version >= GO => None,
        Some(Some((major, minor))) => Some(Missing { what: format!("{what}; found {major}.{minor}"), help }),
        _ => Some(Missing { what, help }),
    }
}

/// `go version go1.26.8 linux/amd64` as (1, 26).
fn go_version(said: &str) -> Option<(u32, u32)> {
    let word = said.split_whitespace().find_map(|word| word.strip_prefix("go1."))?;
    let minor = word.split(|char: char| !char.is_ascii_digit()).next()?;
    Some((1, minor.parse().ok()?))
}

/// What of Node this machine lacks for the console's pages; none if it is new enough.
pub(crate) fn lacks_node() -> Option<String> {
    let version = outside("node", ["--version"]).asked().and_then(|said| node_version(&said));
    match version {
        Some(version) if version >= NODE => None,
        Some(version) => Some(format!("Node {NODE} or newer; found {version}")),
        None => Some(format!("Node {NODE} or newer")),
    }
}

/// `v20.20.2` as 20.
fn node_version(said: &str) -> Option<u32> {
    said.trim().strip_prefix('v')?.split('.').next()?.parse().ok()
}

/// The free disk at a folder, or where it will be; none if it cannot be determined.
fn free_gibibytes(folder: &Path) -> Option<u64> {
    let there = folder.ancestors().find(|folder| folder.is_dir()).unwrap_or(folder);
    let said = outside("df", ["-Pk".as_ref(), there.as_os_str()]).asked()?;
    available_kibibytes(&said).map(|kibibytes| kibibytes >> 20)
}

/// The column `Available` of the POSIX output of df.
fn available_kibibytes(said: &str) -> Option<u64> {
    said.lines().nth(1)?.split_whitespace().nth(3)?.parse().ok()
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
        assert_eq!(go_version("go version go1.26.8 linux/amd64\n"), Some((1, 26)));
        assert_eq!(go_version("go version go1.27rc1 linux/amd64"), Some((1, 27)));
        assert_eq!(go_version("go version devel go1.30-abc"), Some((1, 30)));
        assert_eq!(go_version("no such thing"), None);
        assert_eq!(node_version("v20.20.2\n"), Some(20));
        assert_eq!(node_version("20"), None);
        let df = "Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/a b c\n";
        assert_eq!(available_kibibytes(df), None);
        let df = "Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/a 10 3 2097152 1% /\n";
        assert_eq!(available_kibibytes(df), Some(2_097_152));
    }

    #[test]
    fn all_that_is_missing_is_said_at_once_each_with_what_helps() {
        let missing = |what: &str| Missing { what: what.into(), help: format!("install {what}") };
        assert_eq!(
            report(&[missing("a"), missing("b")]),
            "this machine lacks what is needed; nothing was built:\n  a\n      install a\n  b\n      install b"
        );
    }

    #[test]
    fn a_named_cluster_or_a_built_control_plane_needs_no_go() {
        let cache = crate::run::root().join("no/such/folder");
        let only =
            |name: &'static str, value: PathBuf| move |asked: &str| (asked == name).then(|| value.clone());
        assert!(!control_plane_is_there(only("HOME", cache.clone())));
        assert!(!control_plane_is_there(only("KUBEBUILDER_ASSETS", cache.clone())));
        assert!(control_plane_is_there(only("PINTLE_TESTBED_KUBECONFIG", cache)));
        assert!(!control_plane_is_there(only("PINTLE_TESTBED_KUBECONFIG", PathBuf::new())));
    }
}
