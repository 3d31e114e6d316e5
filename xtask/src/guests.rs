//! The guests as components, in `target/guests`.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::{Path, PathBuf},
};

use roster::{GUESTS, VIEW_GUESTS};

use crate::{
    build,
    progress::Board,
    run::{Result, program, root, target, while_doing},
};

/// What every guest is built of and with, besides its own folder. Of `pintle`, which builds it, these are the parts that make the module:
/// other parts change all the time, and the guests do not change with them.
const COMMON: [&str; 10] = [
    ".cargo",
    "Cargo.lock",
    "Cargo.toml",
    "guest-sdk",
    "wit",
    "host/src/cli/build.rs",
    "host/src/cli/build_folder.rs",
    "host/src/cli/cargo.rs",
    "host/src/cli/native.rs",
    "xtask/src/guests.rs",
];

/// The built guests.
pub(crate) struct Guests(PathBuf);

/// A guest to be built.
struct Source {
    /// The name of the file that it becomes.
    name: &'static str,
    folder: PathBuf,
    /// The folder of another guest that it is built on.
    based_on: Option<&'static str>,
    /// The largest size of its component.
    bytes_max: Option<u64>,
    /// Which logic of the benchmark's guest this is.
    logic: Option<&'static str>,
}

/// Builds the guests with `pintle build`, as every author does. A guest is left alone if what it is made of is as it was. If that is so of
/// all, nothing is run at all, and `pintle` is not built either.
pub(crate) fn build(board: &Board) -> Result<Guests> {
    let reconciling = GUESTS.iter().map(|guest| (guest.name, guest.folder(), guest.bytes_max));
    let serving = VIEW_GUESTS.iter().map(|guest| (guest.name, guest.folder(), guest.bytes_max));
    let mut sources: Vec<Source> = reconciling
        .chain(serving)
        .map(|(name, folder, bytes)| Source { bytes_max: Some(bytes), ..Source::new(name, &folder) })
        .collect();
    // Serves two versions of one resource, for the tests.
    sources.push(Source::new("tickets", "host/tests/tickets"));
    let next = Source::new("darkroom-next", "host/tests/darkroom-next");
    sources.push(Source { based_on: Some("guest-darkroom"), ..next });
    Guests::build(board, &sources, || build::pintle(board))
}

/// Builds the benchmark's guest, the one with another logic for swaps, the one that never answers, and the one whose views are measured.
pub(crate) fn build_bench(board: &Board, pintle: &OsStr) -> Result<Guests> {
    let mut sources = vec![Source::new("farm", "guest-farm")];
    for (name, logic) in [("bench", "1"), ("bench-next", "2"), ("bench-loop", "loop")] {
        sources.push(Source { logic: Some(logic), ..Source::new(name, "bench/guest") });
    }
    Guests::build(board, &sources, || Ok(pintle.to_owned()))
}

impl Guests {
    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.wasm"))
    }

    /// Builds those guests that are not up to date.
    fn build(board: &Board, sources: &[Source], pintle: impl FnOnce() -> Result<OsString>) -> Result<Self> {
        let guests = Self(target().join("guests"));
        fs::create_dir_all(&guests.0)?;
        let compiler = compiler()?;
        let mut stale = Vec::new();
        for source in sources {
            let fingerprint = source.fingerprint(&compiler)?;
            if !guests.is_current(source.name, fingerprint) {
                stale.push((source, fingerprint));
            }
        }
        if stale.is_empty() {
            board.show("    the guests are up to date");
        } else {
            let pintle = pintle()?;
            for (source, fingerprint) in stale {
                board.is_at("guest", source.name);
                source.build(&pintle, &guests.path(source.name))?;
                // Whoever changes a file meanwhile gets another build.
                if source.fingerprint(&compiler)? == fingerprint {
                    guests.mark(source.name, fingerprint)?;
                }
                let bytes = fs::metadata(guests.path(source.name))?.len();
                board.show(&format!("    guest {}: {bytes} bytes", source.name));
            }
            board.end("guest");
        }
        for Source { name, bytes_max, .. } in sources {
            let bytes = fs::metadata(guests.path(name))?.len();
            if let Some(bytes_max) = bytes_max.filter(|max| bytes > *max) {
                return Err(
                    format!("guest {name} has grown to {bytes} bytes; it may have {bytes_max}").into()
                );
            }
        }
        Ok(guests)
    }

    /// Whether a module is what was built of sources with this fingerprint.
    fn is_current(&self, name: &str, fingerprint: u64) -> bool {
        let mark = fs::read_to_string(self.path_of_mark(name)).ok();
        mark.is_some_and(|mark| self.mark_for(name, fingerprint).is_ok_and(|wanted| wanted == mark))
    }

    fn mark(&self, name: &str, fingerprint: u64) -> Result<()> {
        Ok(fs::write(self.path_of_mark(name), self.mark_for(name, fingerprint)?)?)
    }

    /// Names the module too, since anybody may write a file of that name.
    fn mark_for(&self, name: &str, fingerprint: u64) -> Result<String> {
        let mut module = DefaultHasher::new();
        add(&mut module, &self.path(name))?;
        Ok(format!("{fingerprint:016x} {:016x}\n", module.finish()))
    }

    fn path_of_mark(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.mark"))
    }
}

impl Source {
    fn new(name: &'static str, folder: &str) -> Self {
        Self { name, folder: root().join(folder), based_on: None, bytes_max: None, logic: None }
    }

    /// `pintle build`. It does not list what cargo compiles, but shows errors.
    fn build(&self, pintle: &OsStr, output: &Path) -> Result<()> {
        let arguments =
            [Path::new("build"), &self.folder, Path::new("--locked"), Path::new("--output"), output];
        let mut command =
            program(pintle, arguments).env("CARGO_TARGET_DIR", target()).env("CARGO_TERM_QUIET", "true");
        if let Some(logic) = self.logic {
            command = command.env("PINTLE_BENCH_LOGIC", logic);
        }
        command.output().map(drop)
    }

    /// A fingerprint of all that the module is made of and with.
    fn fingerprint(&self, compiler: &str) -> Result<u64> {
        let mut hasher = DefaultHasher::new();
        (compiler, self.logic).hash(&mut hasher);
        for path in COMMON.into_iter().chain(self.based_on) {
            add(&mut hasher, &root().join(path))?;
        }
        add(&mut hasher, &self.folder)?;
        Ok(hasher.finish())
    }
}

/// What the compiler says of itself.
fn compiler() -> Result<String> {
    program(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()), ["-vV"]).output()
}

/// Adds a file, or all files in a folder, to a fingerprint.
fn add(hasher: &mut DefaultHasher, path: &Path) -> Result<()> {
    path.hash(hasher);
    if path.is_dir() {
        let entries = fs::read_dir(path)?.map(|entry| Ok(entry?.path()));
        let mut entries = entries.collect::<Result<Vec<_>>>()?;
        entries.retain(|entry| !entry.ends_with("target"));
        entries.sort();
        entries.iter().try_for_each(|entry| add(hasher, entry))
    } else {
        fs::read(path).map_err(while_doing(path.display()))?.hash(hasher);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_is_current_while_it_and_all_that_it_is_made_of_are_as_they_were() {
        let folder = tempfile::tempdir().unwrap();
        let (sources, guests) = (folder.path().join("sources"), Guests(folder.path().to_owned()));
        fs::create_dir_all(sources.join("src")).unwrap();
        fs::write(sources.join("src/lib.rs"), "one").unwrap();
        let source = Source { folder: sources.clone(), ..Source::new("guest", "") };
        let is_current = |source: &Source| guests.is_current("guest", source.fingerprint("rustc 1").unwrap());
        assert!(!is_current(&source), "nothing is built");
        fs::write(guests.path("guest"), "module").unwrap();
        assert!(!is_current(&source), "nobody knows what it was built of");
        guests.mark("guest", source.fingerprint("rustc 1").unwrap()).unwrap();
        assert!(is_current(&source));

        fs::write(sources.join("src/lib.rs"), "two").unwrap();
        assert!(!is_current(&source), "a source has changed");
        fs::write(sources.join("src/lib.rs"), "one").unwrap();
        assert!(is_current(&source), "and has changed back");
        fs::rename(sources.join("src/lib.rs"), sources.join("src/main.rs")).unwrap();
        assert!(!is_current(&source), "a source has another name");
        fs::rename(sources.join("src/main.rs"), sources.join("src/lib.rs")).unwrap();
        assert!(!guests.is_current("guest", source.fingerprint("rustc 2").unwrap()), "another compiler");
        assert!(!is_current(&Source { logic: Some("2"), ..source }), "another logic");

        let source = Source { folder: sources.clone(), ..Source::new("guest", "") };
        assert!(is_current(&source));
        fs::write(guests.path("guest"), "another").unwrap();
        assert!(!is_current(&source), "the module is another one");
    }
}
