//! Running cargo, and what it says of a package.

use std::{
    ffi::OsStr,
    fs,
    io::{self, IsTerminal, Read},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde::Deserialize;

use super::problem::Problem;

/// What guests are compiled for.
pub(super) const TARGET: &str = "wasm32-unknown-unknown";

/// A guest's package.
#[derive(Clone, Debug)]
pub(super) struct Package {
    /// Its name.
    pub(super) name: String,
    /// Its folder.
    pub(super) folder: PathBuf,
    /// The folder of its workspace; of a package alone, its own.
    pub(super) workspace: PathBuf,
    /// Its version.
    pub(super) version: String,
    /// The name of its library.
    pub(super) library: String,
    /// The name of the binary that writes the CRD.
    pub(super) schema: String,
    /// The folders of every package that is built from a path, by name: they must not show in the module.
    pub(super) sources: Vec<(String, PathBuf)>,
    /// Where cargo puts what it makes on the way: all packages of a workspace share it.
    pub(super) build_directory: PathBuf,
}

impl Package {
    /// cargo, in the folder of the package.
    pub(super) fn cargo(&self) -> Command {
        cargo(&self.folder)
    }

    /// Removes what another guest of its name, or another version, has left where cargo builds it: cargo names some files after the library
    /// alone, and would take them for those of this guest.
    pub(super) fn clean_others(&self) -> Result<(), Problem> {
        let folder = self.build_directory.join("pintle");
        let owner = folder.join(&self.library);
        let is = format!("{} {}\n", self.version, self.folder.display());
        if fs::read_to_string(&owner).is_ok_and(|was| was == is) {
            return Ok(());
        }
        for what in [&[][..], &["--release", "--target", TARGET]] {
            let mut command = self.cargo();
            command.args(["clean", "--quiet", "--package", &self.name]).args(what);
            run(&mut command, "cargo clean")?;
        }
        let written = fs::create_dir_all(&folder).and_then(|()| fs::write(owner, is));
        written.map_err(|error| Problem::new(format!("{} cannot be used: {error}", folder.display())))
    }
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<MetadataPackage>,
    workspace_root: PathBuf,
    build_directory: PathBuf,
}

#[derive(Deserialize)]
struct MetadataPackage {
    name: String,
    version: String,
    source: Option<String>,
    manifest_path: PathBuf,
    targets: Vec<MetadataTarget>,
}

#[derive(Deserialize)]
struct MetadataTarget {
    name: String,
    crate_types: Vec<String>,
    #[serde(default, rename = "required-features")]
    required_features: Vec<String>,
}

#[derive(Deserialize)]
struct Message {
    reason: String,
    #[serde(default)]
    target: Option<MetadataTarget>,
    #[serde(default)]
    filenames: Vec<PathBuf>,
    #[serde(default)]
    executable: Option<PathBuf>,
}

/// cargo, in this folder: the one that runs this process, or the one that the shell finds.
pub(super) fn cargo(folder: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(folder);
    command
}

/// Whether the compiler has what guests are compiled for.
pub(super) fn require_target(folder: &Path) -> Result<(), Problem> {
    let hint = "install Rust with rustup, see https://rustup.rs";
    let output = Command::new("rustc")
        .current_dir(folder)
        .args(["--print", "target-libdir", "--target", TARGET])
        .output()
        .map_err(|error| Problem::new(format!("rustc cannot be run: {error}")).hint(hint))?;
    let libraries = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    if output.status.success() && libraries.is_dir() {
        return Ok(());
    }
    Err(Problem::new(format!("rustc cannot compile for {TARGET}"))
        .hint(format!("run: rustup target add {TARGET}")))
}

/// What cargo says of the package in a folder.
pub(super) fn package(folder: &Path, locked: bool) -> Result<Package, Problem> {
    let manifest = folder.join("Cargo.toml");
    if !manifest.is_file() {
        let message = format!("{} has no Cargo.toml, so it is no guest in Rust", folder.display());
        return Err(
            Problem::new(message).hint("name the guest's folder, or make a guest with: pintle new NAME")
        );
    }
    let manifest =
        manifest.canonicalize().map_err(|error| Problem::new(format!("{}: {error}", manifest.display())))?;
    let mut command = cargo(folder);
    command.args(["metadata", "--format-version", "1", "--filter-platform", TARGET]);
    command.args(quiet()).args(locked.then_some("--locked"));
    let output = run(command.stdout(Stdio::piped()), "cargo metadata")?;
    let metadata: Metadata = serde_json::from_slice(&output)?;
    let is_here =
        |package: &&MetadataPackage| package.manifest_path.canonicalize().is_ok_and(|path| path == manifest);
    let Some(package) = metadata.packages.iter().find(is_here) else {
        let message = format!("{} is a workspace without a package of its own", folder.display());
        return Err(Problem::new(message).hint("name the folder of the guest's package"));
    };
    let find = |wanted: &dyn Fn(&MetadataTarget) -> bool| {
        package.targets.iter().find(|target| wanted(target)).map(|target| target.name.clone())
    };
    let library =
        find(&|target| target.crate_types.iter().any(|kind| kind == "cdylib")).ok_or_else(|| {
            Problem::new(format!("{} has no library of crate type cdylib", manifest.display()))
                .hint("a guest's Cargo.toml has: [lib] crate-type = [\"cdylib\", \"rlib\"]")
        })?;
    let is_schema = |target: &MetadataTarget| {
        target.crate_types.iter().any(|kind| kind == "bin")
            && target.required_features.iter().any(|feature| feature == "schema")
    };
    let schema = find(&is_schema).ok_or_else(|| {
        Problem::new(format!("{} has no binary with required-features = [\"schema\"]", manifest.display()))
            .hint("it writes crd.yaml and config.schema.json; `pintle new` makes a guest that has it")
    })?;
    let sources = metadata
        .packages
        .iter()
        .filter(|package| package.source.is_none())
        .filter_map(|package| Some((package.name.clone(), package.manifest_path.parent()?.to_owned())));
    Ok(Package {
        name: package.name.clone(),
        folder: manifest.parent().unwrap_or(folder).to_owned(),
        version: package.version.clone(),
        library,
        schema,
        sources: sources.collect(),
        workspace: metadata.workspace_root,
        build_directory: metadata.build_directory,
    })
}

/// The wasm file that a `cargo rustc --message-format=json` of the library made.
pub(super) fn wasm_file(messages: &[u8], library: &str) -> Option<PathBuf> {
    let mut files = artifacts(messages, library).flat_map(|message| message.filenames);
    files.find(|file| file.extension() == Some(OsStr::new("wasm")))
}

/// The program that a `cargo build --message-format=json` of a binary made.
pub(super) fn program(messages: &[u8], binary: &str) -> Option<PathBuf> {
    artifacts(messages, binary).find_map(|message| message.executable)
}

/// What cargo says that it made of a target.
fn artifacts<'a>(messages: &'a [u8], target: &'a str) -> impl Iterator<Item = Message> + 'a {
    let lines = messages.split(|byte| *byte == b'\n');
    let messages = lines.filter_map(|line| serde_json::from_slice::<Message>(line).ok());
    messages.filter(move |message| {
        message.reason == "compiler-artifact"
            && message.target.as_ref().is_some_and(|found| found.name == target)
    })
}

/// How much cargo tells: on a terminal its own progress, and otherwise only what is wrong.
pub(super) fn quiet() -> Option<&'static str> {
    (!io::stderr().is_terminal()).then_some("--quiet")
}

/// Runs a command, which writes its complaints to the standard error itself, and returns what it wrote to a piped standard output.
pub(super) fn run(command: &mut Command, what: &str) -> Result<Vec<u8>, Problem> {
    let cannot = |error: io::Error| Problem::new(format!("{what} cannot be run: {error}"));
    let mut child = command.spawn().map_err(cannot)?;
    let mut output = Vec::new();
    if let Some(mut stdout) = child.stdout.take() {
        stdout.read_to_end(&mut output).map_err(cannot)?;
    }
    let status = child.wait().map_err(cannot)?;
    if status.success() { Ok(output) } else { Err(Problem::failed(format!("{what} failed; see above"))) }
}
