//! A node that runs Pods. The testbed starts it; here is what it needs before.

use std::path::{Path, PathBuf};

use crate::{
    build, release,
    requirements::{apt, lacks_go},
    run::{Result, built, program, target},
};

/// What of its needs Debian has as packages.
const PACKAGES: [&str; 5] = ["runc", "nftables", "iproute2", "nginx", "curl"];

/// Starts a control plane with a node, which has the image of the host if asked for, and replaces this process by it.
pub(crate) fn run(with_packages: bool, with_pintle: bool) -> Result<()> {
    if with_packages {
        install()?;
    }
    let images = images(with_pintle)?;
    let flags = with_pintle.then_some("--pintle");
    program(built("workbench"), ["node"]).args(flags).env("PINTLE_IMAGES", images).replace()
}

/// The first thing that the machine lacks.
pub(crate) fn lacks() -> Option<String> {
    match program("bash", ["testbed/node/needs.sh"]).asked() {
        None => Some("bash".to_owned()),
        Some(line) if line.is_empty() => lacks_go(),
        Some(line) => Some(line.trim().to_owned()),
    }
}

/// Brings by apt what of it apt can bring, if that is what is lacking.
pub(crate) fn install() -> Result<()> {
    if !lacks().is_some_and(|lacks| lacks.contains("--install")) {
        return Ok(());
    }
    let has_nginx = Path::new("/usr/sbin/nginx").exists();
    apt(&PACKAGES)?;
    if !has_nginx {
        // Debian starts a server that nobody asked for. The image needs only the program.
        let stop = "systemctl disable --now nginx || service nginx stop";
        drop(program("sh", ["-c", stop]).asked());
    }
    Ok(())
}

/// Builds the programs of the node, and makes the images of its Pods. Returns their folder: `hello`, `nginx` and `resizer`, and of the host
/// `pintle` and `pintle-next` if asked for, which takes long. Says what the machine lacks before it builds anything.
pub(crate) fn images(with_pintle: bool) -> Result<PathBuf> {
    if let Some(lacks) = lacks() {
        return Err(format!("no Pod can run here: this machine lacks {lacks}").into());
    }
    build::binaries(&["workbench", "packager"])?;
    program(built("workbench"), ["node-programs"]).go()?;
    let folder = target().join("image");
    program(built("packager"), ["pods".as_ref(), folder.as_os_str()]).output()?;
    if with_pintle {
        release::images(&folder)?;
    }
    Ok(folder)
}
