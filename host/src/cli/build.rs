//! The command `pintle build`: it builds a guest in Rust.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use clap::Args;
use pintle_engine::Module;
use pintle_offline as offline;
use pintle_schema::config_schema;
use pintle_wit::Failure;

use super::{
    cargo::{self, Package, TARGET, cargo},
    output,
    problem::{CommandStatus, Problem},
};

/// What helps when a core module does not become a component.
const NO_COMPONENT: &str =
    "a guest exports its type with pintle_guest::export!(...), and links nothing that calls the system";

/// Build a guest in Rust
///
/// The command compiles the guest, makes a component of it and loads the component as the operator does. It writes `crd.yaml` and
/// `config.schema.json` to the directory of the guest. The same sources and the same compiler give the same digest on every
/// machine.
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
        if !self.dir.is_dir() {
            return Err(Problem::new(format!("there is no directory {}", self.dir.display())));
        }
        cargo::require_target(&self.dir)?;
        let package = cargo::package(&self.dir, self.locked)?;
        self.generate(&package)?;
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
        if let Err(failure) = config_schema::supports(module.manifest()).map_err(Failure::from) {
            eprintln!("warning: a host of this version would not take the module: {failure}");
        }
        let name = &module.manifest().name;
        let path = self.output.clone().unwrap_or_else(|| self.dir.join(format!("{name}.wasm")));
        fs::write(&path, &component)
            .map_err(|error| Problem::new(format!("{} cannot be written: {error}", path.display())))?;
        output::print(&summary(&module, &path))?;
        Ok(CommandStatus::Fine)
    }

    /// The generated files, in a native build.
    fn generate(&self, package: &Package) -> Result<(), Problem> {
        let mut command = cargo(&package.folder);
        command.args(["run", "--quiet", "--features", "schema", "--bin", &package.schema]);
        command.args(self.locked.then_some("--locked"));
        if self.locked {
            command.args(["--", "--check"]);
        }
        cargo::run(&mut command, "generating crd.yaml and config.schema.json")?;
        Ok(())
    }

    /// The core module. Cargo names the file of a library without its version, and takes what is there for up to date when the
    /// version goes back to one that was built before; so what another version left is taken away first.
    fn compile(&self, package: &Package) -> Result<Vec<u8>, Problem> {
        let mut file = self.cargo_build(package)?;
        let stamp = file.with_extension("version");
        if fs::read_to_string(&stamp).is_ok_and(|built| built != package.version) {
            let linked = file.file_name().map(|name| file.with_file_name("deps").join(name));
            for left in linked.iter().chain([&file]) {
                // What is not there need not be taken away.
                let _ = fs::remove_file(left);
            }
            file = self.cargo_build(package)?;
        }
        let problem = |error| Problem::new(format!("{} cannot be written: {error}", stamp.display()));
        fs::write(&stamp, &package.version).map_err(problem)?;
        fs::read(&file).map_err(|error| Problem::new(format!("{} cannot be read: {error}", file.display())))
    }

    /// Runs cargo, and finds the wasm file that it made.
    fn cargo_build(&self, package: &Package) -> Result<PathBuf, Problem> {
        let mut command = cargo(&package.folder);
        command.args([
            "build",
            "--lib",
            "--release",
            "--target",
            TARGET,
            "--message-format=json-render-diagnostics",
        ]);
        command.args(self.locked.then_some("--locked"));
        for setting in PROFILE {
            command.args(["--config", setting]);
        }
        command.env("CARGO_ENCODED_RUSTFLAGS", flags(package).join("\u{1f}"));
        let messages = cargo::run(command.stdout(Stdio::piped()), "cargo build")?;
        cargo::artifact(&messages, &package.library)
            .ok_or_else(|| Problem::new(format!("cargo built no wasm file for library {}", package.library)))
    }
}

/// The flags of the compiler. No path of this machine may get into the module, or its digest would depend on it.
fn flags(package: &Package) -> Vec<String> {
    let mut flags = vec![format!("-Clink-arg=-zstack-size={STACK_BYTES}")];
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    if let Some(home) = home {
        flags.push(format!("--remap-path-prefix={}=/cargo", home.display()));
    }
    for (name, folder) in &package.sources {
        flags.push(format!("--remap-path-prefix={}=/{name}", folder.display()));
    }
    flags
}

fn summary(module: &Module, path: &Path) -> String {
    let manifest = module.manifest();
    output::columns(&[
        ["Module".into(), path.display().to_string()],
        ["Guest".into(), format!("{} {}", manifest.name, manifest.version)],
        ["Reconciles".into(), manifest.reconciles.to_string()],
        ["Size".into(), format!("{} bytes", module.size_bytes())],
        ["Digest".into(), module.digest().to_string()],
    ])
}
