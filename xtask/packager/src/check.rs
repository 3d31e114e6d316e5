//! Checks the image with the programs that people load, run and push it with: skopeo, podman, and a registry on loopback.

use std::{fs, path::Path, process::Command};

use anyhow::{Result, ensure};
use pintle_testbed::{Server, output};
use serde_json::json;
use tempfile::TempDir;
use xtask::{IMAGE, say};

use crate::image::{Image, compile, push};

/// What a container is run with, so that little of the machine is asked for.
const RUN: [&str; 6] =
    ["run", "--rm", "--network=none", "--cgroups=disabled", "--log-driver=k8s-file", "--user=65532:65532"];

pub(crate) fn run(binary: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let archive = folder.path().join("pintle.tar");
    let [image, again] = [Image::new(fs::read(binary)?)?, Image::new(fs::read(binary)?)?];
    ensure!(image.archive == again.archive, "the image made twice is not the same bytes");
    fs::write(&archive, &image.archive)?;
    inspect(&archive, &image.digest)?;
    registry(folder.path(), &archive, &image.digest)?;
    let podman = Podman { folder };
    let checked = podman.check(&archive, binary);
    podman.end();
    checked
}

/// Reads the image by both of its indexes.
fn inspect(archive: &Path, digest: &str) -> Result<()> {
    say("skopeo: the archive of docker, and that of OCI");
    let archive = archive.display();
    let [docker, oci] = [format!("docker-archive:{archive}"), format!("oci-archive:{archive}")];
    let found = skopeo(&["inspect", "--format", "{{.Digest}}", &oci])?;
    ensure!(found.trim() == digest, "the digest is {digest}, and skopeo finds {found}");
    let config = |archive: &str| skopeo(&["inspect", "--config", "--raw", archive]);
    ensure!(config(&docker)? == config(&oci)?, "docker and OCI are told different configs");
    Ok(())
}

/// Pushes the image as `cargo xtask image --push` does, and asks the registry for it.
fn registry(folder: &Path, archive: &Path, digest: &str) -> Result<()> {
    say("a registry: push, and inspect what it has");
    let file = folder.join("registry.json");
    let config = json!({
        "version": "0.1",
        "log": {"level": "info"},
        "storage": {"filesystem": {"rootdirectory": folder.join("registry")}},
        "http": {"addr": "127.0.0.1:0"},
    });
    fs::write(&file, config.to_string())?;
    let mut command = Command::new("docker-registry");
    command.arg("serve").arg(&file);
    let mut server = Server::start("the registry", &mut command, &folder.join("registry.log"))?;
    let name = format!("{}/{IMAGE}", server.address("listening on")?);
    push(archive, &name)?;
    let remote = format!("docker://{name}");
    let found = skopeo(&["inspect", "--tls-verify=false", "--format", "{{.Digest}}", &remote])?;
    ensure!(found.trim() == digest, "{digest} was pushed, and the registry has {found}");
    server.stop()?;
    Ok(())
}

fn skopeo(words: &[&str]) -> Result<String> {
    output(Command::new("skopeo").args(words), None)
}

/// Podman with a store of its own.
struct Podman {
    folder: TempDir,
}

impl Podman {
    fn check(&self, archive: &Path, binary: &Path) -> Result<()> {
        say("podman: load and run");
        let loaded = self.output(&["load", "--input", &archive.display().to_string()])?;
        let name = format!("docker.io/library/{IMAGE}");
        ensure!(loaded.contains(&name), "podman has loaded it by another name: {loaded}");
        let said = if self.can_run()? {
            self.output(&[&RUN[..], &["--pull=never", name.as_str(), "version"]].concat())?
        } else {
            say("podman can run no container on this machine: the binary runs without one");
            output(Command::new(binary).arg("version").env_clear(), None)?
        };
        ensure!(said.contains(env!("CARGO_PKG_VERSION")), "the version is missing: {said}");
        Ok(())
    }

    /// Whether this machine lets podman run a container at all: an empty program without an image.
    fn can_run(&self) -> Result<bool> {
        let (root, source) = (self.folder.path().join("empty"), self.folder.path().join("empty.rs"));
        fs::create_dir(&root)?;
        fs::write(&source, "fn main() {}\n")?;
        compile(&source, &root.join("empty"))?;
        let root = root.display().to_string();
        Ok(self.output(&[&RUN[..], &["--rootfs", root.as_str(), "/empty"]].concat()).is_ok())
    }

    /// Ends the process that podman leaves behind for a user who is not root.
    fn end(&self) {
        drop(self.output(&["system", "migrate"]));
    }

    /// What podman prints. Nothing of it is shared with the containers and images of this machine.
    fn output(&self, words: &[&str]) -> Result<String> {
        let folder = self.folder.path();
        let mut podman = Command::new("podman");
        podman.arg("--root").arg(folder.join("store")).arg("--runroot").arg(folder.join("run"));
        podman.arg("--tmpdir").arg(folder.join("state")).env("XDG_RUNTIME_DIR", folder);
        podman.args(["--storage-driver=vfs", "--cgroup-manager=cgroupfs", "--events-backend=none"]);
        output(podman.args(words), None)
    }
}
