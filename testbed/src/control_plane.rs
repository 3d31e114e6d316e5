//! [`ControlPlane`]: a Kubernetes cluster to test against, started here or already there.

mod start;

use std::fs;
use std::io::{Seek as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::kubeconfig;
use crate::node::{self, Node};
use crate::processes::{Processes, Server};
use crate::{Binaries, NodeBinaries};

/// What a control plane consists of.
#[derive(Clone, Debug)]
pub struct Options {
    /// The number of nodes, which are called `node-0` and so on. kwok plays them, and the Pods that the scheduler assigns to them: these
    /// become Running and Ready, and are removed when they are deleted, but nothing runs in them, so nothing answers on their addresses.
    /// With 0 there is no kwok.
    pub nodes: usize,
    /// A node that runs Pods, `node-0`, which is then the only one. It needs root on Linux, runc and nft, and what else `node/needs.sh`
    /// looks for. There is one at a time on a machine: the next one waits until it has ended, as long as that takes, and a line on stderr
    /// says so. The machine reaches its Pods and Services. Its images are those that [`ControlPlane::load_image`] gives it; it must have
    /// `registry.test/hello:1` before its first Pod.
    pub node: Option<NodeBinaries>,
    /// Whether kube-controller-manager and kube-scheduler run. Without them nothing is garbage-collected, no Deployment gets Pods and no
    /// namespace gets its default ServiceAccount, but the start is faster and only the caller writes.
    pub controllers: bool,
    /// Whether the folder of the instance (logs, data, audit log) is kept when the instance stops or fails to start. Its path is then
    /// printed to stderr.
    pub keep: bool,
}

impl Default for Options {
    /// Three nodes, all controllers, and nothing kept unless `PINTLE_TESTBED_KEEP` is `1`.
    fn default() -> Self {
        Self {
            nodes: 3,
            node: None,
            controllers: true,
            keep: std::env::var_os("PINTLE_TESTBED_KEEP").is_some_and(|value| value == "1"),
        }
    }
}

/// A Kubernetes cluster to test against, reached as its administrator.
///
/// A control plane that was started here ends with this value. The processes stop and their folder is removed on [`ControlPlane::stop`], on
/// drop, and on a panic that unwinds. If this process is killed, a watchdog does the same a few seconds later.
#[derive(Debug)]
pub struct ControlPlane {
    // Before the folder, so that it is dropped first: nothing may write into the folder while it is removed.
    processes: Option<Processes>,
    node: Option<Node>,
    directory: TempDir,
    kubeconfig: PathBuf,
    kubectl: PathBuf,
    audit_log: Option<PathBuf>,
}

impl ControlPlane {
    /// Starts a control plane on free ports of the loopback interface. Everything it writes is in a temporary folder. Returns when it is
    /// usable: the API server is ready and, as far as `options` ask for them, the ServiceAccount `default` of the namespace `default`
    /// exists and all nodes accept Pods. Any number of control planes may run at the same time.
    ///
    /// # Errors
    /// When a component exits or is not ready in time; the error ends with what that component logged last.
    pub fn start(binaries: &Binaries, options: &Options) -> Result<Self> {
        // Another process may take a port between its choice and its use. Five failures in a row have another cause.
        let mut attempts = 5;
        loop {
            attempts -= 1;
            match start::start(binaries, options, start::Ports::choose()?) {
                Err(error) if attempts > 0 && port_was_taken(&error) => {}
                outcome => return outcome,
            }
        }
    }

    /// Finds or builds the programs, and starts a control plane whose only node runs Pods, and has the images of these names: the archives
    /// `NAME.tar` in a folder. Meanwhile `progress` gets a line now and then.
    ///
    /// # Errors
    /// As [`ControlPlane::start`] and [`ControlPlane::load_image`], and when a program cannot be built.
    pub fn start_with_node(images: &Path, names: &[&str], progress: &mut dyn FnMut(&str)) -> Result<Self> {
        let node = Some(NodeBinaries::locate_or_build(progress)?);
        let binaries = Binaries::locate_or_build(progress)?;
        progress("starting a control plane, and a node with containerd, kubelet and kube-proxy");
        let plane = Self::start(&binaries, &Options { node, ..Options::default() })?;
        for name in names {
            plane.load_image(&images.join(format!("{name}.tar")))?;
        }
        Ok(plane)
    }

    /// Uses the cluster of a kubeconfig's current context. Only the user may choose it: see [`Source::from_env`](crate::Source::from_env).
    /// Nothing in it is started, stopped or cleaned up.
    ///
    /// # Errors
    /// When there is no kubectl, or the cluster does not answer.
    pub fn existing(kubeconfig: &Path) -> Result<Self> {
        let cluster = Self {
            processes: None,
            node: None,
            directory: new_directory(false)?,
            kubeconfig: fs::canonicalize(kubeconfig)
                .with_context(|| format!("reading {}", kubeconfig.display()))?,
            kubectl: Binaries::locate_kubectl()?,
            audit_log: None,
        };
        cluster
            .run_kubectl(&["get", "--raw=/version"], None)
            .context("asking the existing cluster for its version")?;
        Ok(cluster)
    }

    /// The administrator's kubeconfig.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// A new kubeconfig for an existing ServiceAccount. It is valid for as long as the cluster allows, at most a year. It is in the folder
    /// of this instance, and is removed with it.
    ///
    /// # Errors
    /// When the ServiceAccount does not exist, or the cluster refuses the token.
    pub fn kubeconfig_for_service_account(&self, namespace: &str, name: &str) -> Result<PathBuf> {
        let token =
            self.run_kubectl(&["create", "token", name, "--namespace", namespace, "--duration=8760h"], None)?;
        let current =
            self.run_kubectl(&["config", "view", "--raw", "--flatten", "--minify", "--output=json"], None)?;
        let current: Value = serde_json::from_str(&current)?;
        let cluster = current.pointer("/clusters/0/cluster").context("the kubeconfig names no cluster")?;
        let path = self.directory.path().join(format!("{namespace}-{name}.kubeconfig"));
        kubeconfig::write(&path, cluster, Some(namespace), &json!({ "token": token.trim() }))?;
        Ok(path)
    }

    /// The kubectl that belongs to this cluster.
    #[must_use]
    pub fn kubectl(&self) -> &Path {
        &self.kubectl
    }

    /// A kubectl that uses this cluster as its administrator, and neither reads nor writes the user's own settings and caches.
    #[must_use]
    pub fn kubectl_command(&self) -> Command {
        start::kubectl_command(&self.kubectl, &self.kubeconfig, self.directory.path())
    }

    /// Runs [`ControlPlane::kubectl_command`] with these arguments and this input, and returns what it printed.
    ///
    /// # Errors
    /// When kubectl fails; the error is its error output.
    pub fn run_kubectl(&self, args: &[&str], stdin: Option<&str>) -> Result<String> {
        output(self.kubectl_command().args(args), stdin)
    }

    /// The file with every request that the API server has answered, as audit events of level Metadata, one JSON object on each line. A
    /// watch has two events, with the stages ResponseStarted and ResponseComplete. An event may come a moment after its answer. None for an
    /// existing cluster.
    #[must_use]
    pub fn audit_log(&self) -> Option<&Path> {
        self.audit_log.as_deref()
    }

    /// The folder of this instance. The logs of its components are in its subfolder `logs`.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Gives the node that runs Pods the images of an OCI archive, which name themselves by the annotation `io.containerd.image.name`.
    ///
    /// # Errors
    /// When there is no such node, or it does not take the archive.
    pub fn load_image(&self, archive: &Path) -> Result<()> {
        self.node.as_ref().context("this control plane has no node that runs Pods")?.load(archive)
    }

    /// Runs a program in the network of the node that runs Pods, through which all that Pods send passes, and returns what it printed.
    ///
    /// # Errors
    /// When there is no such node, or the program fails; the error is its error output.
    pub fn in_node(&self, program: &str, words: &[&str]) -> Result<String> {
        let node = self.processes.as_ref().and_then(|processes| processes.id(node::NAME));
        node::in_network(node.context("this control plane has no node that runs Pods")?, program, words)
    }

    /// Starts a program that works on this control plane and ends with it. All that it prints is added to the log of this name, among those of
    /// the components.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start_server(&self, name: &str, command: &mut Command) -> Result<Server> {
        self.takes_in(command)?;
        Server::start(name, command, &self.directory().join(format!("logs/{name}.log")))
    }

    /// Makes the process of a command end with this control plane, however this process ends. Does nothing for a control plane that
    /// somebody else started.
    ///
    /// # Errors
    /// When the control plane's processes have no group.
    pub fn takes_in(&self, command: &mut Command) -> Result<()> {
        if let Some(processes) = &self.processes {
            command.process_group(processes.group()?);
        }
        Ok(())
    }

    /// Checks that every component still runs. If a test fails for no apparent reason, call this first.
    ///
    /// # Errors
    /// When a component has exited. The error ends with what it logged last.
    pub fn check(&mut self) -> Result<()> {
        self.processes.as_mut().map_or(Ok(()), Processes::check)
    }

    /// Stops all components in order, and removes the folder. One that does not end within 30 seconds is killed, and a line on stderr says
    /// so, which is no error: a busy machine makes that happen. Dropping does the same, but cannot report errors.
    ///
    /// # Errors
    /// When a component had exited before, or a node that runs Pods was killed or could not clean up; what is left of it, the next one
    /// removes. All components have ended in any case.
    pub fn stop(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        // Before the node's network goes, and the address of its relay.
        self.node = None;
        self.processes.as_mut().map_or(Ok(()), Processes::stop)
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        // A caller that only drops does not need the error.
        let _ = self.end();
    }
}

/// Runs a command with this input to its end, and returns what it printed.
///
/// # Errors
/// When it cannot be started, or fails; the error has its error output.
pub fn output(command: &mut Command, stdin: Option<&str>) -> Result<String> {
    let stdin = match stdin {
        None => Stdio::null(),
        Some(text) => {
            let mut file = tempfile::tempfile()?;
            file.write_all(text.as_bytes())?;
            file.rewind()?;
            file.into()
        }
    };
    let output = command.stdin(stdin).output().with_context(|| format!("starting {command:?}"))?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} failed ({}): {}", output.status, complaint.trim());
    Ok(String::from_utf8(output.stdout)?)
}

/// Whether another process had a port. Then another start with other ports may succeed.
fn port_was_taken(error: &anyhow::Error) -> bool {
    // The components write it so, and this process with a capital letter.
    format!("{error:#}").to_lowercase().contains("address already in use")
}

/// The folder of an instance, with one for logs. Only its owner can read it, because it has private keys.
fn new_directory(keep: bool) -> Result<TempDir> {
    let mut directory = tempfile::Builder::new()
        .prefix("pintle-testbed-")
        .tempdir()
        .context("creating a folder for the control plane")?;
    if keep {
        directory.disable_cleanup(true);
        eprintln!("the control plane's folder will be kept: {}", directory.path().display());
    }
    fs::create_dir(directory.path().join("logs"))?;
    Ok(directory)
}

#[cfg(test)]
mod tests;
