//! The image of the host, and what else a release consists of. `packager` writes the files, since that takes libraries.

use std::{
    env::consts::ARCH,
    fs,
    path::{Path, PathBuf},
};

use xtask::{IMAGE, NEXT_IMAGE, root, say};

use crate::{
    build,
    requirements::{apt, on_path},
    run::{Program, Result, built, cargo, program, target},
};

/// The flags of `cargo xtask image`.
#[derive(clap::Args)]
pub(crate) struct Flags {
    /// Push the image to a registry, too, by this name: registry.example.com/pintle:0.1.0. Needs skopeo, which takes the password that
    /// `skopeo login` or `docker login` has stored
    #[arg(long, value_name = "NAME")]
    push: Option<String>,
}

impl Flags {
    pub(crate) fn is_push(&self) -> bool {
        self.push.is_some()
    }
}

/// What the image is checked with. Debian has all of them.
const TOOLS: [&str; 3] = ["podman", "skopeo", "docker-registry"];

/// The crates that authors of guests depend on.
const CRATES: [&str; 4] = ["--package", "pintle-wit", "--package", "pintle-guest"];

/// Makes the image, and says what to do with it.
pub(crate) fn image(flags: &Flags) -> Result<()> {
    let file = target().join("image/pintle.tar");
    let digest = packager("image", &binary()?)?.args([&file]).output()?;
    if let Some(name) = &flags.push {
        program(built("packager"), ["push".as_ref(), file.as_os_str(), name.as_ref()]).go()?;
    }
    let megabytes = fs::metadata(&file)?.len() as f64 / 1e6;
    let file = shown(&file);
    let next = match &flags.push {
        Some(name) => format!(
            "sed 's|image: {IMAGE}|image: {name}|' deploy/install.yaml | kubectl apply --server-side -f -"
        ),
        None => format!("kind load image-archive {file}; docs/install.md has what else takes it"),
    };
    say(format_args!("{file}: {IMAGE}, {megabytes:.1} MB, {}; next: {next}", digest.trim()));
    Ok(())
}

/// Writes the image into this folder twice: as it is released, and as the image that an upgrade goes to. Their digests differ, because they
/// say that they are of different commits.
pub(crate) fn images(folder: &Path) -> Result<()> {
    let binary = binary()?;
    let image = |file: &str, name: &str| -> Result<Program> {
        let file = folder.join(file);
        Ok(packager("image", &binary)?.args([file.as_os_str(), name.as_ref()]))
    };
    image("pintle.tar", IMAGE)?.output()?;
    image("pintle-next.tar", NEXT_IMAGE)?.env("PINTLE_REVISION", "next").output()?;
    Ok(())
}

/// Makes the files of a release, and checks whether the crates can be published.
pub(crate) fn release() -> Result<()> {
    say("the crates of the SDK, as a registry would get them");
    // For the target that guests are built for. `cargo publish --dry-run` does the same, but not where another registry stands in for
    // crates.io.
    cargo(["package", "--target", "wasm32-unknown-unknown"]).args(CRATES).go()?;
    let folder = target().join("releases");
    packager("release", &binary()?)?.args([&folder]).go()?;
    let folder = shown(&folder);
    say(format_args!("{folder}: a release; next: upload its files, and cargo publish {}", CRATES.join(" ")));
    Ok(())
}

/// A path as people type it in the workspace.
fn shown(path: &Path) -> std::path::Display<'_> {
    path.strip_prefix(root()).unwrap_or(path).display()
}

/// Builds `pintle` as one file that needs no library of the machine. Returns where it is.
fn binary() -> Result<PathBuf> {
    say("building pintle without shared libraries, as it is released; this takes long");
    // The target is named even where it is the compiler's own: otherwise cargo would build macros with these flags, which cannot be.
    let triple = format!("{ARCH}-unknown-linux-gnu");
    let words =
        ["build", "--locked", "--profile", "dist", "--package", "pintle", "--bin", "pintle", "--target"];
    cargo(words).args([&triple]).env("RUSTFLAGS", "-Ctarget-feature=+crt-static").go()?;
    let binary = target().join(triple).join("dist/pintle");
    let libraries = program("ldd", [&binary]).asked().filter(|said| said.contains("=>"));
    match libraries {
        Some(libraries) => Err(format!("{} needs shared libraries:\n{libraries}", binary.display()).into()),
        None => Ok(binary),
    }
}

/// The built packager, for this binary.
fn packager(word: &str, binary: &Path) -> Result<Program> {
    build::binaries(&["packager"])?;
    // The commit, where the sources have one, and whether they differ from it.
    let revision = program("git", ["describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]).asked();
    let packager = program(built("packager"), [word.as_ref(), binary.as_os_str()]);
    Ok(packager.env("PINTLE_REVISION", revision.unwrap_or_default().trim()))
}

/// What checks the image with other programs.
pub(crate) fn check() -> Result<Program> {
    packager("check", &binary()?)
}

/// What the machine lacks for that.
pub(crate) fn lacks_tools() -> Option<String> {
    let missing: Vec<&str> = TOOLS.into_iter().filter(|tool| on_path(tool).is_none()).collect();
    (!missing.is_empty()).then(|| format!("{}; --install brings them with apt", missing.join(", ")))
}

/// Brings what is missing of it by apt.
pub(crate) fn install_tools() -> Result<()> {
    if lacks_tools().is_none() {
        return Ok(());
    }
    apt(&TOOLS)?;
    // Where there is systemd, Debian starts a registry that nobody asked for.
    drop(program("systemctl", ["disable", "--now", "docker-registry"]).asked());
    Ok(())
}
