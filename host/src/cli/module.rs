//! Reading the module that a command line names.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use pintle_engine::{Engine, Guest, Module, Views};
use pintle_offline::{
    documents::{self, Document},
    setting,
};
use pintle_wit::{Failure, Kind, reasons, views::ViewManifest};

use super::problem::Problem;

/// The bytes of a file that should be a module.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, Problem> {
    std::fs::read(path).map_err(|error| {
        let problem = Problem::new(format!("{} cannot be read: {error}", path.display()));
        if path.is_dir() { problem.hint(build(path)) } else { problem }
    })
}

/// Loads the module in a file, as a host would, and says where it is older than its sources.
pub fn load(engine: &Engine, path: &Path) -> Result<Module, Problem> {
    let module = engine.load(&read(path)?, None).map_err(|failure| refused(path, &failure))?;
    if is_stale(path) {
        let folder = folder(path);
        eprintln!(
            "warning: {} is older than src beside it; run: pintle build {}",
            path.display(),
            folder.display()
        );
    }
    Ok(module)
}

/// Whether a source in `src` beside a module, not in a folder below, was written after it. Those of a guest are beside its Cargo.toml.
fn is_stale(module: &Path) -> bool {
    let written = |path: &Path| path.metadata().and_then(|metadata| metadata.modified()).ok();
    let Some(built) = written(module) else { return false };
    let sources = module.with_file_name("src").read_dir().into_iter().flatten().flatten();
    module.with_file_name("Cargo.toml").is_file()
        && sources
            .map(|source| source.path())
            .any(|path| extension(&path) == Some("rs") && written(&path) > Some(built))
}

/// The part of a module that reconciles, for a command that is about it.
pub fn guest_of(module: &Module, path: &Path) -> Result<Guest, Problem> {
    module.guest().ok_or_else(|| {
        let views: Vec<String> = module.views().iter().flat_map(views).collect();
        Problem::new(format!("{} reconciles nothing; it serves views: {}", path.display(), views.join("; ")))
            .hint(format!("see what is known of it with: pintle check {}", path.display()))
    })
}

/// The views of a module, each in a line: `farmpods: farm.example.com/v1alpha FarmPod of v1 Pod, read-only`.
pub(super) fn views(views: &Views) -> Vec<String> {
    views.manifest().views.iter().map(view).collect()
}

fn view(view: &ViewManifest) -> String {
    let verbs = if view.is_writable() { "writable" } else { "read-only" };
    let what = view.shown.as_ref().map_or_else(|| "documents".to_owned(), |shown| shown.kind().to_string());
    format!("{}: {what} of {}, {verbs}", view.name, view.backing)
}

/// The CRDs in `crd.yaml` beside a module, unless they are not wanted.
pub(super) fn crds_beside(module: &Path, no_crd: bool) -> Result<Vec<Document>, Problem> {
    let file = module.with_file_name("crd.yaml");
    if no_crd || !file.is_file() {
        return Ok(Vec::new());
    }
    Ok(documents::read(&[file])?)
}

/// Whether the rules of CRDs compile.
pub(super) fn check_rules(crds: &[Document]) -> Result<(), Problem> {
    setting::check_rules(crds).map_err(|error| Problem::failed(error.to_string()))
}

/// What a host holds against `reconciler.yaml` beside a module, and the name of that file if it is there.
pub fn reconciler_beside(module: &Path, guest: &Guest) -> Result<Option<(String, Vec<Failure>)>, Problem> {
    let file = module.with_file_name("reconciler.yaml");
    if !file.is_file() {
        return Ok(None);
    }
    let name = file.display().to_string();
    Ok(Some((name, setting::held_against_reconcilers(guest.manifest(), &documents::read(&[file])?))))
}

/// Why a host does not take the module in a file, and what to do about it.
pub(super) fn refused(path: &Path, failure: &Failure) -> Problem {
    let problem = Problem::failed(format!("{}: {failure}", path.display()));
    if failure.reason == reasons::NOT_WASM { problem.hint(instead(path)) } else { problem }
}

/// Says on the standard error which children were not checked against a schema, where there are any.
pub(super) fn warn_unchecked(kinds: &BTreeSet<Kind>) {
    let kinds: Vec<String> = kinds.iter().map(ToString::to_string).collect();
    if !kinds.is_empty() {
        eprintln!("not checked: no schema for {}", kinds.join(", "));
    }
}

/// What to run instead, where a file is no WebAssembly: its name says what somebody may have meant by it.
fn instead(path: &Path) -> String {
    match extension(path) {
        Some("yaml" | "yml" | "json") => {
            format!("objects are given by -f: pintle render MODULE -f {}", path.display())
        }
        Some("rs" | "toml" | "lock") => build(&folder(path)),
        Some("wat") => format!("make the binary form: wasm-tools parse {} -o guest.wasm", path.display()),
        _ => "a module is the .wasm file that is made by: pintle build FOLDER".into(),
    }
}

/// Whether a word of the command line names a file, and not a Module in the cluster.
pub(super) fn is_file(text: &str) -> bool {
    extension(Path::new(text)) == Some("wasm") || text.contains('/')
}

fn extension(path: &Path) -> Option<&str> {
    path.extension().and_then(|extension| extension.to_str())
}

/// What to run where a folder, or a source file in it, was taken for a module.
fn build(folder: &Path) -> String {
    format!("this is no module; make one of the sources with: pintle build {}", folder.display())
}

/// The folder of a guest that a source file is in.
fn folder(path: &Path) -> PathBuf {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let above = parent.ancestors().find(|folder| folder.join("Cargo.toml").is_file());
    above.unwrap_or(parent).to_owned()
}

#[cfg(test)]
mod tests {
    use std::{
        fs::File,
        time::{Duration, SystemTime},
    };

    use super::*;

    #[test]
    fn a_module_is_stale_where_a_source_beside_it_is_newer() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("src")).unwrap();
        let write = |name: &str, seconds: u64| {
            let file = File::create(folder.path().join(name)).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
        };
        let module = folder.path().join("guest.wasm");
        write("guest.wasm", 100);
        write("src/lib.rs", 200);
        assert!(!is_stale(&module), "what is beside it is no guest");
        write("Cargo.toml", 300);
        assert!(is_stale(&module));
        write("guest.wasm", 200);
        write("src/.lib.rs.swp", 300);
        assert!(!is_stale(&module));
    }
}
