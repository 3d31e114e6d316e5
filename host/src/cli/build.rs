//! The command `pintle build`: it builds a guest in Rust.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use clap::Args;
use pintle_engine::Module;
use pintle_modules::upload;
use pintle_offline::{self as offline, documents};
use pintle_schema::{admission, structural::Structural};
use pintle_wit::Cause;
use serde_json::Value;

use super::{
    cargo::{self, Package, TARGET},
    module, native, output,
    problem::{CommandStatus, Problem},
};

/// What helps when a core module does not become a component.
const NO_COMPONENT: &str =
    "a guest exports its type with pintle_guest::export!(...), and links nothing that calls the system";

/// Build a guest in Rust
///
/// The command compiles the guest, makes a component of it and loads the component as the operator does. It writes the files that are
/// generated from the types of the guest to its directory: `crd.yaml` and `config.schema.json`, and `views.json` for views. The same
/// sources and the same compiler give the same digest on every machine.
///
/// The command fails, and leaves `crd.yaml` as it was, if the API server would refuse the CRD for its names, for a schema that is not
/// structural, for a default that does not fit, for the keys of a list, for the path of a column or of the scale, or for a CEL rule with
/// an error of syntax, a field that is not declared or a function that is not there. What a CEL rule costs, and whether its operands fit together, is left to the API
/// server.
///
/// The compiled dependencies are where cargo puts them: in `target` of the guest, or of its workspace, whose guests share them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Build the guest in this directory
  pintle build

  # Build another guest and name the output file
  pintle build guests/webserver -o webserver.wasm

  # In CI: fail if a generated file is out of date
  pintle build --locked")]
pub(super) struct Build {
    /// Directory of the guest
    #[arg(default_value = ".")]
    dir: PathBuf,

    /// Write only the module. Fail if Cargo.lock or a generated file is out of date
    #[arg(long)]
    locked: bool,

    /// File to write the module to [default: DIR/GUEST.wasm]
    #[arg(short, long = "output", value_name = "FILE")]
    output: Option<PathBuf>,
}

/// A guest's stack: 64 KiB instead of the linker's 1 MiB, so that everything that a call touches stays mapped between calls.
const STACK_BYTES: u32 = 64 << 10;

/// Small, since a module is compiled again wherever it is loaded, and the optimiser of the engine does the rest. No unwinding, for
/// there is nobody to catch.
const PROFILE: [&str; 5] = [
    "profile.release.opt-level=\"s\"",
    "profile.release.lto=\"fat\"",
    "profile.release.codegen-units=1",
    "profile.release.strip=true",
    "profile.release.panic=\"abort\"",
];

impl Build {
    pub(super) fn run(self) -> Result<CommandStatus, Problem> {
        let package = cargo::package(&self.dir, self.locked)?;
        let core = self.compile(&package)?;
        let component = wit_component::ComponentEncoder::default()
            .validate(true)
            .module(&core)
            .and_then(|mut encoder| encoder.encode())
            .map_err(|error| {
                Problem::failed(format!("the module cannot be made a component: {error:#}"))
                    .hint(NO_COMPONENT)
            })?;
        let engine = offline::engine()?;
        let module = engine
            .load(&component, None)
            .map_err(|failure| Problem::failed(format!("no host would load the module: {failure}")))?;
        if let Err(failure) = upload::supports(&module) {
            eprintln!("warning: a host of this version would not take the module: {failure}");
        }
        let name = module.name();
        let path = self.output.clone().unwrap_or_else(|| self.dir.join(format!("{name}.wasm")));
        fs::write(&path, &component)
            .map_err(|error| Problem::new(format!("{} cannot be written: {error}", path.display())))?;
        output::print(&summary(&module, &path))?;
        Ok(CommandStatus::Fine)
    }

    /// Writes the generated files, and compiles the core module.
    fn compile(&self, package: &Package) -> Result<Vec<u8>, Problem> {
        package.clean_others()?;
        eprintln!("building the schema generator (1 of 2)");
        let mut generator = Command::new(native::build(package, self.locked)?);
        generator.args(self.locked.then_some("--check"));
        let before = JUDGED.map(|(file, _)| fs::read(package.folder.join(file)).ok());
        let wrote = cargo::run(&mut generator, "generating the schemas")?;
        admit(&package.folder).inspect_err(|_| restore(&package.folder, before))?;
        output::print(&String::from_utf8_lossy(&wrote))?;
        eprintln!("building the module (2 of 2)");
        let words = ["rustc", "--lib", "--release", "--target", TARGET];
        let mut command = package.cargo(&words, &PROFILE, self.locked);
        command.env("CARGO_ENCODED_RUSTFLAGS", flags(package).join("\u{1f}"));
        // Only for the guest's own crate, where the flags of all do not have it.
        command.args(["--", &remapped(&package.name, &package.folder)]);
        let file = Package::make(&package.library, &mut command)?;
        fs::read(&file).map_err(|error| Problem::new(format!("{} cannot be read: {error}", file.display())))
    }
}

/// What the API server would refuse of a document.
type Admission = fn(&Value) -> Vec<Cause>;

/// The generated files that the API server judges.
const JUDGED: [(&str, Admission); 2] =
    [("crd.yaml", admission::crd), ("config.schema.json", admission::config)];

/// Puts the generated files back as they were, so that nobody takes a refused one for good.
fn restore(folder: &Path, before: [Option<Vec<u8>>; JUDGED.len()]) {
    for ((file, _), before) in JUDGED.into_iter().zip(before) {
        let path = folder.join(file);
        if fs::read(&path).ok() == before {
            continue;
        }
        let put = match before {
            Some(text) => fs::write(&path, text),
            None => fs::remove_file(&path),
        };
        if let Err(error) = put {
            eprintln!("warning: {} is refused, and cannot be put back: {error}", path.display());
        }
    }
}

/// Fails if the API server would refuse a schema that was generated into this folder, and names the places.
fn admit(folder: &Path) -> Result<(), Problem> {
    let mut refused = Vec::new();
    for (file, causes) in JUDGED {
        let path = folder.join(file);
        if !path.is_file() {
            continue;
        }
        let document: Value = documents::parse_one(file, &documents::read_text(&path)?)?;
        let causes = causes(&document);
        // What is refused is told once.
        let schema =
            document.pointer("/spec/versions/0/schema/openAPIV3Schema").filter(|_| causes.is_empty());
        let told = causes.into_iter().map(|cause| format!("{file}: {}: {}", cause.field, cause.message));
        refused.extend(told);
        if let Some(Err(unsupported)) = schema.map(Structural::of_crd) {
            eprintln!(
                "warning: {file}: Pintle cannot evaluate {unsupported}, and the API server may refuse it"
            );
        }
    }
    if refused.is_empty() {
        return Ok(());
    }
    let message = format!("the generated schemas are refused:\n  {}", refused.join("\n  "));
    let hint = if refused.iter().all(|told| told.contains(".x-kubernetes-validations[")) {
        "a rule of CEL stands in `rules` of the Crd or at its field, in src/resource.rs of a new guest"
    } else {
        "docs/crds.md says which type of Rust gives which schema"
    };
    Err(Problem::failed(message).hint(hint))
}

/// The flags of the compiler. No path of this machine may get into the module, or its digest would depend on it. They are the same for all
/// guests of a workspace, and for all guests without one: with a flag that differs, no guest could use what was built for another.
fn flags(package: &Package) -> Vec<String> {
    let mut flags = vec![format!("-Clink-arg=-zstack-size={STACK_BYTES}")];
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    flags.extend(home.map(|home| remapped("cargo", &home)));
    let is_alone = package.folder == package.workspace;
    let shared = package.sources.iter().filter(|(_, folder)| !(is_alone && *folder == package.folder));
    flags.extend(shared.map(|(name, folder)| remapped(name, folder)));
    flags
}

fn remapped(name: &str, folder: &Path) -> String {
    format!("--remap-path-prefix={}=/{name}", folder.display())
}

fn summary(module: &Module, path: &Path) -> String {
    let mut rows = vec![
        ["Module".into(), path.display().to_string()],
        ["Guest".into(), format!("{} {}", module.name(), module.version())],
    ];
    rows.extend(module.guest().map(|guest| ["Reconciles".into(), guest.manifest().reconciles.to_string()]));
    rows.extend(module.views().map(|views| ["Views".into(), module::views(&views).join("\n")]));
    rows.push(["Size".into(), format!("{} bytes", module.size_bytes())]);
    rows.push(["Digest".into(), module.digest().to_string()]);
    output::columns(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The package `guest` in this folder of this workspace, which builds on the SDK.
    fn package(folder: &str, workspace: &str) -> Package {
        Package {
            name: "guest".into(),
            folder: folder.into(),
            workspace: workspace.into(),
            version: "0.1.0".into(),
            library: "guest".into(),
            schema: "guest-schema".into(),
            sources: [("guest", folder), ("other", "/w/other"), ("pintle-guest", "/sdk")]
                .map(|(name, folder)| (name.to_owned(), folder.into()))
                .to_vec(),
            build_directory: "/w/target".into(),
        }
    }

    #[test]
    fn a_crd_that_the_api_server_would_refuse_is_said_with_path_and_reason() {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for guest in ["guest-configmonitor", "guest-darkroom", "guest-webserver"] {
            assert!(admit(&repository.join(guest)).is_ok(), "{guest}");
        }
        let folder = tempfile::tempdir().unwrap();
        let manifests = "type: object, properties: {manifests: {type: array, items: {}}}";
        let crd = format!("spec: {{versions: [{{schema: {{openAPIV3Schema: {{{manifests}}}}}}}]}}");
        fs::write(folder.path().join("crd.yaml"), crd).unwrap();
        let problem = admit(folder.path()).unwrap_err().to_string();
        let expected = "crd.yaml: spec.versions[0].schema.openAPIV3Schema.properties[manifests].items.type: Required value: must not be empty for specified array items\n";
        assert!(problem.contains(expected), "{problem}");
    }

    #[test]
    fn generated_files_that_are_refused_are_put_back() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        fs::write(file("crd.yaml"), "before").unwrap();
        let before = JUDGED.map(|(name, _)| fs::read(file(name)).ok());
        fs::write(file("crd.yaml"), "after").unwrap();
        fs::write(file("config.schema.json"), "after").unwrap();
        restore(folder.path(), before);
        assert_eq!(fs::read_to_string(file("crd.yaml")).unwrap(), "before");
        assert!(!file("config.schema.json").exists());
    }

    #[test]
    fn guests_that_share_a_build_folder_have_the_same_flags_and_show_no_path() {
        let shows =
            |flags: &[String], folder: &str| flags.iter().any(|flag| flag.contains(&format!("={folder}=")));
        let member = flags(&package("/w/guest", "/w"));
        for folder in ["/w/guest", "/w/other", "/sdk"] {
            assert!(shows(&member, folder), "{folder}: {member:?}");
        }
        // Its own folder is in a flag of its own crate.
        assert_eq!(flags(&package("/a", "/a")), flags(&package("/b", "/b")));
        assert!(shows(&flags(&package("/a", "/a")), "/sdk"));
    }
}
