//! The guests as components, in `target/guests`.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use crate::{
    build,
    run::{Result, program, root, target},
};

/// What every guest is built of and with, besides its own folder. Of `pintle`, which builds it, these are the parts that make the module:
/// other parts change all the time, and the guests do not change with them.
const COMMON: [&str; 9] = [
    ".cargo",
    "Cargo.lock",
    "Cargo.toml",
    "guest-sdk",
    "wit",
    "host/src/cli/build.rs",
    "host/src/cli/cargo.rs",
    "host/src/cli/native.rs",
    "xtask/src/guests.rs",
];

/// A guest to be built.
#[derive(Clone, Copy)]
struct Guest {
    /// The name of the file that it becomes.
    name: &'static str,
    folder: &'static str,
    /// The folder of another guest that it is built on.
    based_on: Option<&'static str>,
    /// The largest size of its component: it is stored in etcd, and every host compiles it. Those of the tests are not installed.
    bytes_max: u64,
    /// Which logic of the benchmark's guest this is.
    logic: &'static str,
}

const FARM: Guest = Guest::new("farm", "guest-farm", 130_000);

const GUESTS: [Guest; 6] = [
    Guest::new("darkroom", "guest-darkroom", 350_000),
    Guest::new("webserver", "guest-webserver", 175_000),
    Guest::new("configmonitor", "guest-configmonitor", 245_000),
    FARM,
    // Serves two versions of one resource, for the tests.
    Guest::new("tickets", "host/tests/tickets", u64::MAX),
    Guest {
        based_on: Some("guest-darkroom"),
        ..Guest::new("darkroom-next", "host/tests/darkroom-next", u64::MAX)
    },
];

/// The benchmark's guest, the one with another logic for swaps, and the one whose views are measured.
const BENCH: [Guest; 3] = [
    FARM,
    Guest::new("bench", "bench/guest", u64::MAX),
    Guest { logic: "2", ..Guest::new("bench-next", "bench/guest", u64::MAX) },
];

/// Builds the guests, and returns where they are.
pub(crate) fn build() -> Result<PathBuf> {
    make(&GUESTS, build::pintle)
}

/// Builds the benchmark's guests, and returns where they are.
pub(crate) fn build_bench(pintle: &OsStr) -> Result<PathBuf> {
    make(&BENCH, || Ok(pintle.to_owned()))
}

/// Builds those guests that are not up to date. If all are, nothing is run at all, and `pintle` is not built either.
fn make(guests: &[Guest], pintle: impl FnOnce() -> Result<OsString>) -> Result<PathBuf> {
    let folder = target().join("guests");
    fs::create_dir_all(&folder)?;
    let compiler = program(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()), ["-vV"]).output()?;
    let stale: Vec<&Guest> =
        guests.iter().filter(|guest| !guest.is_current(&root(), &folder, &compiler)).collect();
    if stale.is_empty() {
        println!("    the guests are up to date");
    } else {
        let pintle = pintle()?;
        stale.iter().try_for_each(|guest| guest.build(&pintle, &folder, &compiler))?;
    }
    for guest in guests {
        let (bytes, max) = (fs::metadata(guest.module(&folder))?.len(), guest.bytes_max);
        if bytes > max {
            return Err(format!("guest {} has grown to {bytes} bytes; it may have {max}", guest.name).into());
        }
    }
    Ok(folder)
}

impl Guest {
    const fn new(name: &'static str, folder: &'static str, bytes_max: u64) -> Self {
        Self { name, folder, based_on: None, bytes_max, logic: "1" }
    }

    fn module(&self, built: &Path) -> PathBuf {
        built.join(format!("{}.wasm", self.name))
    }

    /// The file that is written after the module. It names the compiler.
    fn mark(&self, built: &Path) -> PathBuf {
        built.join(format!("{}.mark", self.name))
    }

    /// Builds it as every author does.
    fn build(&self, pintle: &OsStr, built: &Path, compiler: &str) -> Result<()> {
        let began = SystemTime::now();
        println!("    guest {}", self.name);
        let (source, module) = (root().join(self.folder), self.module(built));
        let words = [Path::new("build"), &source, Path::new("--locked"), Path::new("--output"), &module];
        let build = program(pintle, words).env("CARGO_TARGET_DIR", target());
        build.env("PINTLE_BENCH_LOGIC", self.logic).go()?;
        // Whoever changes a file meanwhile gets another build.
        if self.changed(&root())? < began {
            fs::write(self.mark(built), compiler)?;
        }
        Ok(())
    }

    /// Whether the module in this folder was built by this compiler, and neither it nor what it is built of has changed since.
    fn is_current(&self, root: &Path, built: &Path, compiler: &str) -> bool {
        let is_unchanged = || -> io::Result<bool> {
            let marked = changed(&self.mark(built))?;
            Ok(self.changed(root)? < marked && changed(&self.module(built))? <= marked)
        };
        fs::read_to_string(self.mark(built)).is_ok_and(|mark| mark == compiler)
            && is_unchanged().unwrap_or(false)
    }

    /// When something that it is built of was last changed.
    fn changed(&self, root: &Path) -> io::Result<SystemTime> {
        let paths = COMMON.into_iter().chain(self.based_on).chain([self.folder]);
        let mut newest = SystemTime::UNIX_EPOCH;
        for path in paths {
            newest = newest.max(changed(&root.join(path))?);
        }
        Ok(newest)
    }
}

/// When a file, or a folder or anything in it, was last changed.
fn changed(path: &Path) -> io::Result<SystemTime> {
    let itself = fs::metadata(path)?;
    if !itself.is_dir() {
        return itself.modified();
    }
    fs::read_dir(path)?.try_fold(itself.modified()?, |newest, entry| Ok(newest.max(changed(&entry?.path())?)))
}

#[cfg(test)]
mod tests {
    use std::{fs::File, time::Duration};

    use super::*;

    #[test]
    fn every_guest_of_the_repository_is_built() {
        let folders = fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().file_name());
        let names = folders.filter_map(|name| name.into_string().ok());
        let theirs: Vec<String> =
            names.filter(|name| name.starts_with("guest-") && name != "guest-sdk").collect();
        assert!(theirs.len() > 3, "{theirs:?}");
        for folder in theirs {
            assert!(GUESTS.iter().any(|guest| guest.folder == folder), "{folder}");
        }
    }

    #[test]
    fn a_guest_is_current_while_it_and_all_that_it_is_made_of_are_as_they_were() {
        let root = tempfile::tempdir().unwrap();
        let (root, guests) = (root.path(), root.path().join("guests"));
        let guest = Guest::new("guest", "sources/guest", 0);
        let is_current = || guest.is_current(root, &guests, "rustc 1");
        let age = |path: &Path, minutes: u64| {
            let time = SystemTime::now() - Duration::from_secs(60 * minutes);
            File::open(path).unwrap().set_modified(time).unwrap();
        };
        let file = root.join("sources/guest/src/lib.rs");
        let made_of = COMMON.map(|path| root.join(path));
        for file in made_of.iter().chain([&file, &guest.module(&guests)]) {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "one").unwrap();
        }
        let built = || {
            fs::write(guest.mark(&guests), "rustc 1").unwrap();
            age(&guest.mark(&guests), 1);
            age(&guest.module(&guests), 2);
            for path in file.ancestors().take(3).chain(made_of.iter().map(PathBuf::as_path)) {
                age(path, 2);
            }
        };
        assert!(!is_current(), "nobody knows what it was built of");
        built();
        assert!(is_current());
        assert!(!guest.is_current(root, &guests, "rustc 2"), "another compiler");

        fs::write(&file, "two").unwrap();
        assert!(!is_current(), "a source has changed");
        built();
        fs::rename(&file, file.with_file_name("main.rs")).unwrap();
        assert!(!is_current(), "a source has another name");
        fs::rename(file.with_file_name("main.rs"), &file).unwrap();
        built();
        fs::write(&made_of[1], "two").unwrap();
        assert!(!is_current(), "what all guests are made of has changed");
        built();
        fs::write(guest.module(&guests), "another").unwrap();
        assert!(!is_current(), "the module is another one");
    }
}
