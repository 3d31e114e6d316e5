//! A node that runs Pods. The testbed starts it; here is what it needs before.

use std::path::PathBuf;

use crate::{
    build,
    requirements::{apt, lacks_go},
    run::{Result, built, program, target},
};

/// What of its needs Debian has as packages.
const PACKAGES: [&str; 3] = ["runc", "nftables", "iproute2"];

/// Starts a control plane with a node, and replaces this process by it.
pub(crate) fn run(with_packages: bool) -> Result<()> {
    if with_packages {
        install()?;
    }
    if let Some(lacks) = lacks() {
        return Err(format!("no Pod can run here: this machine lacks {lacks}").into());
    }
    let image = image()?;
    program(built("workbench"), ["node"]).args([image]).replace()
}

/// The first thing that the machine lacks.
pub(crate) fn lacks() -> Option<String> {
    match program("bash", ["testbed/node/needs.sh"]).asked() {
        None => Some("bash".to_owned()),
        Some(said) if said.is_empty() => lacks_go(),
        Some(said) => Some(said.trim().to_owned()),
    }
}

/// Brings by apt what of it apt can bring, if that is what is lacking.
pub(crate) fn install() -> Result<()> {
    if lacks().is_some_and(|lacks| lacks.contains("--install")) { apt(&PACKAGES) } else { Ok(()) }
}

/// Makes the image of Pods of tests, and builds the programs of the node.
pub(crate) fn image() -> Result<PathBuf> {
    build::binaries(&["workbench", "packager"])?;
    program(built("workbench"), ["node-programs"]).go()?;
    let file = target().join("image/hello.tar");
    program(built("packager"), ["hello".as_ref(), file.as_os_str()]).output()?;
    Ok(file)
}
