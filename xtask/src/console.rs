//! The pages of the console: TypeScript in `console/`, built with Node into `console/dist`. What is built is committed, so that nobody
//! needs Node who does not change the pages.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use crate::{
    build, guests,
    run::{Program, Result, built, program, root, say, target, while_doing},
};

/// Where Debian, Ubuntu and others have Chromium.
const CHROMIUMS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// The packages of Chromium. Without the font, pages have another width on each machine.
const PACKAGES: [&str; 2] = ["chromium", "fonts-liberation"];

/// Builds the pages into `console/dist`.
pub(crate) fn build() -> Result<()> {
    install()?;
    npm(["run", "build"]).go()
}

/// Checks the types, runs the tests of the pages' functions, and compares what is committed with what is built.
pub(crate) fn check() -> Result<()> {
    install()?;
    for script in ["check", "test"] {
        npm(["run", "--silent", script]).go()?;
    }
    npm(["run", "--silent", "build", "--", "--check"]).go()
}

/// Chromium: of the variable `CHROMIUM`, or on `PATH`.
pub(crate) fn chromium() -> Option<PathBuf> {
    if let Some(named) = env::var_os("CHROMIUM").filter(|name| !name.is_empty()) {
        return Some(named.into());
    }
    let folders: Vec<PathBuf> = env::split_paths(&env::var_os("PATH")?).collect();
    let found = |name: &&str| folders.iter().map(|folder| folder.join(name)).find(|file| file.is_file());
    CHROMIUMS.iter().find_map(found)
}

/// Brings Chromium by apt if it is missing.
///
/// # Errors
/// When apt cannot.
pub(crate) fn install_chromium() -> Result<()> {
    if chromium().is_some() {
        return Ok(());
    }
    say(format_args!("installing {}: apt-get install", PACKAGES.join(", ")));
    let apt = |words: &[&str]| {
        let quiet = program("apt-get", words).env("DEBIAN_FRONTEND", "noninteractive");
        quiet.args(["--quiet=2"]).go().map_err(while_doing("Chromium cannot be installed"))
    };
    apt(&["update"])?;
    apt(&[&["install", "--yes", "--no-install-recommends"], &PACKAGES[..]].concat())?;
    chromium().map(drop).ok_or_else(|| "apt-get has installed no chromium on PATH".into())
}

/// The tests in a browser, on a control plane of their own: those whose names fit `pattern`. It needs a built workbench and pintle.
pub(crate) fn browser_tests(chromium: &Path, pattern: Option<&str>) -> Result<Program> {
    let pattern = pattern.into_iter().flat_map(|pattern| ["--grep", pattern]);
    Ok(in_browser(chromium, Path::new(&built("pintle")), "browser")?.args(pattern))
}

/// Measures the console of this `pintle` in a browser, with the built guests.
pub(crate) fn numbers(chromium: &Path, pintle: &Path) -> Result<()> {
    build::binaries(&["workbench"])?;
    in_browser(chromium, pintle, "numbers")?.go()
}

/// Takes the pictures of docs/.
pub(crate) fn pictures() -> Result<()> {
    let chromium = chromium().ok_or("there is no Chromium on PATH")?;
    build::binaries(&["workbench", "pintle"])?;
    guests::build()?;
    in_browser(&chromium, Path::new(&built("pintle")), "pictures")?.go()
}

fn in_browser(chromium: &Path, pintle: &Path, word: &str) -> Result<Program> {
    install()?;
    Ok(build::workbench(pintle.as_os_str(), word).env("CHROMIUM", chromium))
}

/// Installs the packages that `package-lock.json` names, unless they are there.
fn install() -> Result<()> {
    let lock = fs::read(folder().join("package-lock.json"))?;
    let mark = target().join("console-packages.lock");
    if folder().join("node_modules").is_dir() && fs::read(&mark).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    npm(["ci", "--no-audit", "--no-fund", "--silent"]).go()?;
    fs::create_dir_all(target())?;
    Ok(fs::write(&mark, lock)?)
}

fn folder() -> PathBuf {
    root().join("console")
}

fn npm<'a>(words: impl IntoIterator<Item = &'a str>) -> Program {
    program("npm", words).folder(&folder())
}
