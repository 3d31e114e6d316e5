//! The guests as components, in `target/guests`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use crate::run::{Program, cargo, program, root, say, target};

/// What a guest may weigh at most: a guest is stored in etcd and compiled by every host.
const BYTES_MAX: [(&str, u64); 3] =
    [("webserver", 150_000), ("darkroom", 235_000), ("configmonitor", 220_000)];

/// The built guests.
pub(crate) struct Guests(PathBuf);

impl Guests {
    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.wasm"))
    }
}

/// The `pintle` binary, built.
pub(crate) fn pintle() -> Result<PathBuf> {
    cargo(["build", "--package", "pintle", "--bin", "pintle"]).go()?;
    Ok(target().join("debug").join("pintle"))
}

/// Builds the guests by the way that every author takes, `pintle build`.
pub(crate) fn build() -> Result<Guests> {
    let pintle = pintle()?;
    let folder = target().join("guests");
    fs::create_dir_all(&folder)?;
    let guests = Guests(folder);
    for (name, bytes_max) in BYTES_MAX {
        say(format_args!("building guest {name}"));
        let source = root().join(format!("guest-{name}"));
        build_one(&pintle, &source, &guests.path(name), &["--locked"], &target())?;
        let bytes = fs::metadata(guests.path(name))?.len();
        ensure!(bytes <= bytes_max, "guest {name} has grown to {bytes} bytes; it may have {bytes_max}");
    }
    say("building guest darkroom-next, a changed copy of darkroom");
    let changed = changed_darkroom()?;
    // Its schemas change with it, so that what was copied is stale. It has a target folder of its own, since cargo would take two
    // packages of one name for one another, and one that stays when the copy is made anew.
    build_one(&pintle, &changed, &guests.path("darkroom-next"), &[], &target().join("darkroom-next-target"))?;
    Ok(guests)
}

fn build_one(pintle: &Path, source: &Path, output: &Path, flags: &[&str], target: &Path) -> Result<()> {
    build_command(pintle, source, output, flags, target).go()
}

fn build_command(pintle: &Path, source: &Path, output: &Path, flags: &[&str], target: &Path) -> Program {
    let arguments = [Path::new("build"), source, Path::new("--output"), output];
    program(pintle, arguments.into_iter().chain(flags.iter().map(Path::new))).env("CARGO_TARGET_DIR", target)
}

/// Builds the benchmark's guest, the one with other logic that it is swapped for, and the one that never answers.
pub(crate) fn build_bench(pintle: &Path) -> Result<Guests> {
    let folder = target().join("guests");
    fs::create_dir_all(&folder)?;
    let guests = Guests(folder);
    for (name, logic) in [("bench", "1"), ("bench-next", "2"), ("bench-loop", "loop")] {
        say(format_args!("building guest {name}"));
        build_command(pintle, &root().join("bench/guest"), &guests.path(name), &["--locked"], &target())
            .env("PINTLE_BENCH_LOGIC", logic)
            .go()?;
    }
    Ok(guests)
}

/// A copy of the Darkroom guest with another cache time and version: what somebody does who changes the logic.
fn changed_darkroom() -> Result<PathBuf> {
    let copy = target().join("darkroom-next");
    if copy.exists() {
        fs::remove_dir_all(&copy)?;
    }
    let source = root().join("guest-darkroom");
    copy_folder(&source, &copy)?;
    let manifest = copy.join("Cargo.toml");
    let text = fs::read_to_string(&manifest)?;
    fs::write(&manifest, standalone(&text)?)?;
    fs::copy(root().join("Cargo.lock"), copy.join("Cargo.lock"))?;
    let mut changes = 0;
    for file in files_below(&copy.join("src"))? {
        let text = fs::read_to_string(&file)?;
        let changed = text.replace("31536000", "86400").replace("31_536_000", "86_400");
        if changed != text {
            changes += 1;
            fs::write(&file, changed)?;
        }
    }
    ensure!(changes > 0, "guest-darkroom no longer names its cache time; change xtask/src/guests.rs with it");
    Ok(copy)
}

/// A guest's manifest outside the workspace: what it inherits is spelled out.
fn standalone(manifest: &str) -> Result<String> {
    let workspace = fs::read_to_string(root().join("Cargo.toml"))?;
    let version = |name: &str| -> Result<String> {
        let line = workspace.lines().find(|line| line.starts_with(&format!("{name} = ")));
        let value = line.and_then(|line| line.split_once(" = ")).map(|(_, value)| value.trim().to_owned());
        value.with_context(|| format!("the workspace has no dependency {name}"))
    };
    let mut text = String::new();
    for line in manifest.lines() {
        let key = line.split(['.', ' ']).next().unwrap_or_default();
        if line.starts_with("version.workspace") {
            text.push_str("version = \"0.2.0\"\n");
        } else if line.starts_with("edition.workspace") {
            text.push_str("edition = \"2024\"\n");
        } else if line.ends_with(".workspace = true") && matches!(key, "rust-version" | "license" | "publish")
            || line == "workspace = true"
            || line == "[lints]"
        {
            // Nothing of it matters for a copy.
        } else if line == "pintle-guest.workspace = true" {
            text.push_str(&format!("pintle-guest = {{ path = {:?} }}\n", root().join("guest-sdk")));
        } else if line.ends_with(".workspace = true") {
            text.push_str(&format!("{key} = {}\n", version(key)?));
        } else if line.contains("workspace = true, optional = true") {
            let plain = version(key)?;
            text.push_str(&format!("{key} = {{ version = {plain}, optional = true }}\n"));
        } else {
            text.push_str(line);
            text.push('\n');
        }
    }
    text.push_str("\n[workspace]\n");
    Ok(text)
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            if entry.file_name() != "target" {
                copy_folder(&entry.path(), &target)?;
            }
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(files_below(&path)?);
        } else {
            files.push(path);
        }
    }
    Ok(files)
}
