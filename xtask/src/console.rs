//! The pages of the console: TypeScript in `console/`, built with Node into `console/dist`. What is built is committed, so that nobody
//! needs Node who does not change the pages.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use xtask::root;

use crate::{
    build, guests,
    requirements::{apt, lacks_node, on_path},
    run::{Program, Result, built, program},
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

/// What checks the types, runs the tests of the pages' functions, and compares what is committed with what is built.
pub(crate) fn checks() -> Result<[Program; 3]> {
    install()?;
    let types = npm(["run", "--silent", "check"]);
    Ok([types, npm(["run", "--silent", "test"]), npm(["run", "--silent", "build", "--", "--check"])])
}

/// Chromium: of the variable `CHROMIUM`, or on `PATH`.
fn chromium() -> Option<PathBuf> {
    if let Some(named) = env::var_os("CHROMIUM").filter(|name| !name.is_empty()) {
        return Some(named.into());
    }
    CHROMIUMS.iter().find_map(|name| on_path(name))
}

/// What the machine lacks for tests in a browser.
pub(crate) fn lacks_browser() -> Option<String> {
    if chromium().is_none() {
        Some("Chromium; --install brings it with apt".to_owned())
    } else {
        lacks_node()
    }
}

/// Brings Chromium by apt if it is missing.
pub(crate) fn install_chromium() -> Result<()> {
    if chromium().is_some() {
        return Ok(());
    }
    apt(&PACKAGES)?;
    chromium().map(drop).ok_or_else(|| "apt-get has installed no chromium on PATH".into())
}

/// What works in a browser, on a control plane of its own: `browser` for the tests, `numbers` for measurements, `pictures` for those of
/// docs/. It needs a built workbench, this pintle and the built guests.
pub(crate) fn in_browser(word: &str, pintle: &Path) -> Result<Program> {
    install()?;
    let chromium = chromium().ok_or("there is no Chromium on PATH")?;
    Ok(build::workbench(pintle, word).env("CHROMIUM", chromium))
}

/// Takes the pictures of docs/.
pub(crate) fn pictures() -> Result<()> {
    build::binaries(&["workbench", "pintle"])?;
    guests::build()?;
    in_browser("pictures", &built("pintle"))?.go()
}

/// Installs the packages that `package-lock.json` names, unless they are there.
fn install() -> Result<()> {
    let changed = |file: &str| fs::metadata(root().join("console").join(file))?.modified();
    let lock = changed("package-lock.json")?;
    // npm writes this file once everything is installed.
    if changed("node_modules/.package-lock.json").is_ok_and(|packages| packages > lock) {
        return Ok(());
    }
    npm(["ci", "--no-audit", "--no-fund", "--silent"]).go()
}

fn npm<'a>(words: impl IntoIterator<Item = &'a str>) -> Program {
    program("npm", words).folder(&root().join("console"))
}
