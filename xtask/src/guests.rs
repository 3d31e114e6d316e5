//! The guests as components, in `target/guests`.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use roster::{GUESTS, VIEW_GUESTS};

use crate::{
    build,
    progress::Board,
    run::{Program, Result, program, root, target},
};

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

/// Builds the guests with `pintle build`, as every author does.
pub(crate) fn build(board: &Board) -> Result<Guests> {
    let pintle = build::pintle(board)?;
    let folder = target().join("guests");
    fs::create_dir_all(&folder)?;
    let guests = Guests(folder);
    let reconciling = GUESTS.iter().map(|guest| (guest.name, guest.folder(), guest.bytes_max));
    let serving = VIEW_GUESTS.iter().map(|guest| (guest.name, guest.folder(), guest.bytes_max));
    for (name, folder, bytes_max) in reconciling.chain(serving) {
        board.is_at("guest", name);
        let source = root().join(folder);
        build_command(&pintle, &source, &guests.path(name), &["--locked"]).output()?;
        let bytes = fs::metadata(guests.path(name))?.len();
        if bytes > bytes_max {
            return Err(format!("guest {name} has grown to {bytes} bytes; it may have {bytes_max}").into());
        }
        board.show(&format!("    guest {name}: {bytes} bytes"));
    }
    // Serves two versions of one resource, for the tests.
    build_command(&pintle, &root().join("host/tests/tickets"), &guests.path("tickets"), &["--locked"])
        .output()?;
    board.is_at("guest", "darkroom-next, a changed copy of darkroom");
    // Its schemas change, so the copied ones are stale.
    build_command(&pintle, &changed_darkroom()?, &guests.path("darkroom-next"), &[]).output()?;
    board.end("guest");
    Ok(guests)
}

/// `pintle build`. It does not list what cargo compiles, but shows errors.
fn build_command(pintle: &OsStr, source: &Path, output: &Path, flags: &[&str]) -> Program {
    let arguments = [Path::new("build"), source, Path::new("--output"), output];
    program(pintle, arguments.into_iter().chain(flags.iter().map(Path::new)))
        .env("CARGO_TARGET_DIR", target())
        .env("CARGO_TERM_QUIET", "true")
}

/// Builds the benchmark's guest, the one with another logic for swaps, the one that never answers, and the one whose views are measured.
pub(crate) fn build_bench(board: &Board, pintle: &OsStr) -> Result<Guests> {
    let folder = target().join("guests");
    fs::create_dir_all(&folder)?;
    let guests = Guests(folder);
    for (name, logic) in [("bench", "1"), ("bench-next", "2"), ("bench-loop", "loop")] {
        board.is_at("guest", name);
        build_command(pintle, &root().join("bench/guest"), &guests.path(name), &["--locked"])
            .env("PINTLE_BENCH_LOGIC", logic)
            .output()?;
    }
    board.is_at("guest", "farm");
    build_command(pintle, &root().join("guest-farm"), &guests.path("farm"), &["--locked"]).output()?;
    board.end("guest");
    Ok(guests)
}

/// A copy of the Darkroom guest with another cache time and version, as if somebody had changed its logic.
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
        changes += usize::from(changed != text);
        // The same name as in `standalone`.
        fs::write(&file, changed.replace("guest_darkroom", "guest_darkroom_next"))?;
    }
    if changes == 0 {
        return Err(
            "guest-darkroom no longer names its cache time; change xtask/src/guests.rs with it".into()
        );
    }
    Ok(copy)
}

/// A guest's manifest without the workspace: inherited values are written out.
fn standalone(manifest: &str) -> Result<String> {
    let workspace = fs::read_to_string(root().join("Cargo.toml"))?;
    let version = |name: &str| -> Result<String> {
        let line = workspace.lines().find(|line| line.starts_with(&format!("{name} = ")));
        let value = line.and_then(|line| line.split_once(" = ")).map(|(_, value)| value.trim().to_owned());
        value.ok_or_else(|| format!("the workspace has no dependency {name}").into())
    };
    let mut text = String::new();
    for line in manifest.lines() {
        let key = line.split(['.', ' ']).next().unwrap_or_default();
        if line.contains("\"guest-darkroom") {
            // In the shared target folder, cargo would confuse two packages with the same name.
            text.push_str(&line.replace("guest-darkroom", "guest-darkroom-next"));
            text.push('\n');
        } else if line.starts_with("version.workspace") {
            text.push_str("version = \"0.2.0\"\n");
        } else if line.starts_with("edition.workspace") {
            text.push_str("edition = \"2024\"\n");
        } else if line.ends_with(".workspace = true") && matches!(key, "rust-version" | "license" | "publish")
            || line == "workspace = true"
            || line == "[lints]"
        {
            // A copy does not need it.
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
    // With the same profiles, cargo uses what the workspace has already built in the shared target folder.
    for header in ["[profile.dev]", "[profile.dev.package.\"*\"]", "[profile.release]"] {
        let section = workspace.lines().skip_while(|line| *line != header);
        for line in section.take_while(|line| !line.is_empty()) {
            text.push_str(line);
            text.push('\n');
        }
    }
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
