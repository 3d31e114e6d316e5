//! Running cargo, and what it says of a package.

use std::{
    ffi::OsStr,
    fs,
    io::{self, IsTerminal},
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
    /// A command of cargo with these settings, in the folder of the package, that says what it makes.
    pub(super) fn cargo(&self, words: &[&str], settings: &[&str], locked: bool) -> Command {
        let mut command = cargo(&self.folder);
        command.args(words).arg("--message-format=json-render-diagnostics");
        command.args(quiet()).args(locked.then_some("--locked"));
        command.args(settings.iter().flat_map(|setting| ["--config", setting]));
        command
    }

    /// Has cargo make a target, and returns the file: its program, or its module.
    pub(super) fn make(target: &str, command: &mut Command) -> Result<PathBuf, Problem> {
        let messages = run(command, "cargo")?;
        let messages = messages.split(|byte| *byte == b'\n');
        let messages = messages.filter_map(|line| serde_json::from_slice::<Message>(line).ok());
        let mut of_target = messages.filter(|message| {
            let found = message.target.as_ref();
            message.reason == "compiler-artifact" && found.is_some_and(|found| found.name == target)
        });
        let is_wasm = |file: &PathBuf| file.extension() == Some(OsStr::new("wasm"));
        let file = of_target
            .find_map(|message| message.executable.or_else(|| message.filenames.into_iter().find(is_wasm)));
        file.ok_or_else(|| Problem::new(format!("cargo made no file of {target}")))
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
            let mut command = cargo(&self.folder);
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
fn cargo(folder: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(folder);
    command
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
    let output = run(&mut command, "cargo metadata")?;
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

/// How much cargo tells: on a terminal its own progress, and otherwise only what is wrong.
fn quiet() -> Option<&'static str> {
    (!io::stderr().is_terminal()).then_some("--quiet")
}

/// Runs a command, which writes its complaints to the standard error itself, and returns what it wrote to the standard output.
pub(super) fn run(command: &mut Command, what: &str) -> Result<Vec<u8>, Problem> {
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| Problem::new(format!("{what} cannot be run: {error}")))?;
    if !output.status.success() {
        return Err(Problem::failed(format!("{what} failed; see above")));
    }
    Ok(output.stdout)
}
