//! The guests as components, in `target/guests`.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use xtask::root;

use crate::{
    build,
    run::{Result, program, rustc, target},
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
    /// The folder of a guest that it is built on.
    based_on: Option<&'static str>,
    /// The largest size of its component: it is stored in etcd, and every host compiles it. Those of the tests are not installed.
    bytes_max: u64,
}

const FARM: Guest = Guest { name: "farm", folder: "guest-farm", based_on: None, bytes_max: 130_000 };

const GUESTS: [Guest; 7] = [
    Guest { name: "darkroom", folder: "guest-darkroom", based_on: None, bytes_max: 350_000 },
    Guest { name: "webserver", folder: "guest-webserver", based_on: None, bytes_max: 175_000 },
    Guest { name: "configmonitor", folder: "guest-configmonitor", based_on: None, bytes_max: 245_000 },
    FARM,
    // Its roots say which children they have, for the tests.
    Guest { name: "raw", folder: "host/tests/raw", based_on: None, bytes_max: u64::MAX },
    // Serves two versions of one resource, for the tests.
    Guest { name: "tickets", folder: "host/tests/tickets", based_on: None, bytes_max: u64::MAX },
    Guest {
        name: "darkroom-next",
        folder: "host/tests/darkroom-next",
        based_on: Some("guest-darkroom"),
        bytes_max: u64::MAX,
    },
];

/// The benchmark's guest, the same with another logic for swaps, and the one whose views are measured.
const BENCH: [Guest; 3] = [
    FARM,
    Guest { name: "bench", folder: "bench/guest", based_on: None, bytes_max: u64::MAX },
    Guest { name: "bench-next", folder: "bench/guest", based_on: None, bytes_max: u64::MAX },
];

/// Builds the guests, and returns where they are.
pub(crate) fn build() -> Result<PathBuf> {
    make(&GUESTS, build::pintle)
}

/// Builds the benchmark's guests.
pub(crate) fn build_bench(pintle: &Path) -> Result<PathBuf> {
    make(&BENCH, || Ok(pintle.to_owned()))
}

/// Builds those guests that are not up to date. If all are, nothing is run at all, and `pintle` is not built either.
fn make(guests: &[Guest], pintle: impl FnOnce() -> Result<PathBuf>) -> Result<PathBuf> {
    let folder = target().join("guests");
    fs::create_dir_all(&folder)?;
    let compiler = rustc(["-vV"]).output()?;
    let is_stale = |guest: &&Guest| !guest.is_current(root(), &folder, &compiler).unwrap_or(false);
    let stale: Vec<&Guest> = guests.iter().filter(is_stale).collect();
    if stale.is_empty() {
        println!("    the guests are up to date");
    } else {
        let pintle = pintle()?;
        stale.iter().try_for_each(|guest| guest.build(&pintle, &folder, &compiler))?;
    }
    for Guest { name, bytes_max, .. } in guests {
        let bytes = fs::metadata(folder.join(format!("{name}.wasm")))?.len();
        if bytes > *bytes_max {
            return Err(format!("guest {name} has grown to {bytes} bytes; it may have {bytes_max}").into());
        }
    }
    Ok(folder)
}

impl Guest {
    /// Its module, and the file that is written after that. It names the compiler.
    fn files(&self, built: &Path) -> [PathBuf; 2] {
        ["wasm", "mark"].map(|end| built.join(format!("{}.{end}", self.name)))
    }

    /// Builds it as every author does.
    fn build(&self, pintle: &Path, built: &Path, compiler: &str) -> Result<()> {
        let began = SystemTime::now();
        println!("    guest {}", self.name);
        let [module, mark] = self.files(built);
        let source = root().join(self.folder);
        let words = [Path::new("build"), &source, Path::new("--locked"), Path::new("--output"), &module];
        let logic = if self.name == "bench-next" { "2" } else { "1" };
        let build = program(pintle, words).env("CARGO_TARGET_DIR", target());
        build.env("PINTLE_BENCH_LOGIC", logic).go()?;
        // Whoever changes a file meanwhile gets another build.
        if self.changed(root())? < began {
            fs::write(mark, compiler)?;
        }
        Ok(())
    }

    /// Whether the module in this folder was built by this compiler, and neither it nor what it is built of has changed since.
    fn is_current(&self, root: &Path, built: &Path, compiler: &str) -> io::Result<bool> {
        let [module, mark] = self.files(built);
        let marked = changed(&mark)?;
        let is_unchanged = self.changed(root)? < marked && changed(&module)? <= marked;
        Ok(is_unchanged && fs::read_to_string(mark)? == compiler)
    }

    /// When something that it is built of was last changed.
    fn changed(&self, root: &Path) -> io::Result<SystemTime> {
        let paths = COMMON.into_iter().chain(self.based_on).chain([self.folder]);
        let mut paths = paths.map(|path| root.join(path));
        paths.try_fold(SystemTime::UNIX_EPOCH, |newest, path| Ok(newest.max(changed(&path)?)))
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
        let guest = Guest { name: "guest", folder: "sources/guest", based_on: None, bytes_max: 0 };
        let [module, mark] = guest.files(&guests);
        let is_current = || guest.is_current(root, &guests, "rustc 1").unwrap_or(false);
        let age = |path: &Path, minutes: u64| {
            let time = SystemTime::now() - Duration::from_secs(60 * minutes);
            File::open(path).unwrap().set_modified(time).unwrap();
        };
        let file = root.join("sources/guest/src/lib.rs");
        let made_of = COMMON.map(|path| root.join(path));
        for file in made_of.iter().chain([&file, &module]) {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "one").unwrap();
        }
        let built = || {
            fs::write(&mark, "rustc 1").unwrap();
            age(&mark, 1);
            age(&module, 2);
            for path in file.ancestors().take(3).chain(made_of.iter().map(PathBuf::as_path)) {
                age(path, 2);
            }
        };
        assert!(!is_current(), "nobody knows what it was built of");
        built();
        assert!(is_current());
        assert!(!guest.is_current(root, &guests, "rustc 2").unwrap(), "another compiler");

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
        fs::write(&module, "another").unwrap();
        assert!(!is_current(), "the module is another one");
    }
}
