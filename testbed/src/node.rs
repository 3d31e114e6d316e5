//! A node that runs Pods: the released containerd, runc, kubelet and kube-proxy, in namespaces and cgroups of their own. The files are in
//! `node/`: `needs.sh` says what a machine needs for it, `node.sh` makes the cgroups and the network and removes them, `box.sh` does the
//! rest. It needs cgroups of version 1: with version 2, nobody has tried it yet.

use std::env;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::control_plane::output;
use crate::processes::Processes;
use crate::{NodeBinaries, Relay};

/// The component that the node is. Its process is in the network of the node.
pub(crate) const NAME: &str = "node";

/// The address of the machine on the link to the node, where Pods reach the API server.
pub(crate) const MACHINE: &str = "10.199.0.1";

/// The address of a node that runs Pods, at which this machine reaches the ports of its Services.
pub const NODE_ADDRESS: &str = "10.199.0.2";

/// What the API server is told besides. Of a flag that is there twice, the last one counts.
pub(crate) const API_SERVER: &[&str] = &[
    "--advertise-address=MACHINE-ADDRESS",
    "--endpoint-reconciler-type=lease",
    "--kubelet-certificate-authority=FOLDER/pki/cluster-ca.crt",
    "--kubelet-client-certificate=FOLDER/pki/kubelet-client.crt",
    "--kubelet-client-key=FOLDER/pki/kubelet-client.key",
    // Nobody here knows the node by its name.
    "--kubelet-preferred-address-types=InternalIP",
];

const FILES: [(&str, &str); 6] = [
    ("node.sh", include_str!("../node/node.sh")),
    ("box.sh", include_str!("../node/box.sh")),
    ("containerd.toml", include_str!("../node/containerd.toml")),
    ("kubelet.yaml", include_str!("../node/kubelet.yaml")),
    ("kube-proxy.yaml", include_str!("../node/kube-proxy.yaml")),
    ("cni/pintle.conflist", include_str!("../node/cni.conflist")),
];

/// What a control plane holds of its node. The node itself is one of its processes.
#[derive(Debug)]
pub(crate) struct Node {
    /// Where Pods reach the API server, which stays on loopback: it would not stop if an address of its own were gone.
    _relay: Relay,
    ctr: PathBuf,
    socket: PathBuf,
}

impl Node {
    /// Starts a node of the API server at this port. Waits until another node of this machine has ended, as long as that takes. It is not
    /// Ready yet.
    pub(crate) fn start(
        processes: &mut Processes,
        binaries: &NodeBinaries,
        folder: &str,
        api_server: u16,
    ) -> Result<Self> {
        let [tools, kubelet] = [&binaries.containerd, &binaries.kubelet].map(|folder| folder.to_str());
        let (tools, kubelet) = tools.zip(kubelet).context("the path of the cache is not UTF-8")?;
        let directory = Path::new(folder);
        fs::create_dir(directory.join("cni"))?;
        for (file, text) in FILES {
            let text = text.replace("MACHINE-ADDRESS", MACHINE).replace("NODE-ADDRESS", NODE_ADDRESS);
            fs::write(directory.join(file), text.replace("FOLDER", folder).replace("TOOLS", tools))?;
        }
        let (script, machine) = (format!("{folder}/node.sh"), process::id().to_string());
        let programs = format!("{tools}:{kubelet}");
        let words: [&str; 9] =
            ["--mount", "--net", "--ipc", "--uts", "bash", &script, folder, &machine, &programs];
        processes.start_with_pipe(NAME, Path::new("unshare"), &words.map(str::to_owned))?;

        // The script writes the first if another node runs, and the second when the link is there. Until then, the address of the machine
        // is that of another node.
        let [queue, network] = ["queue", "network"].map(|file| directory.join(file));
        let mut is_told = false;
        while !network.exists() {
            processes.check()?;
            if !is_told && queue.exists() {
                eprintln!("another node runs on this machine; waiting until it has ended");
                is_told = true;
            }
            thread::sleep(Duration::from_millis(100));
        }
        let address = SocketAddr::new(MACHINE.parse()?, api_server);
        let relay = Relay::start_at(address, &[(Ipv4Addr::LOCALHOST, api_server).into()])?;
        let connect = format!("</dev/tcp/{MACHINE}/{api_server}");
        let process = processes.id(NAME).context("the node has no process")?;
        in_network(process, "timeout", &["10", "bash", "-c", &connect]).context(
            "packets from the node do not reach this machine: a firewall drops what comes in at pintle-node",
        )?;
        Ok(Self {
            _relay: relay,
            ctr: binaries.containerd.join("ctr"),
            socket: directory.join("containerd.sock"),
        })
    }

    /// Gives it the images of an OCI archive.
    pub(crate) fn load(&self, archive: &Path) -> Result<()> {
        let mut ctr = Command::new(&self.ctr);
        ctr.arg("--address").arg(&self.socket);
        ctr.args(["--namespace", "k8s.io", "images", "import", "--local"]).arg(archive);
        output(&mut ctr, None).map(drop)
    }
}

/// Runs a program in the network of this process, and returns what it printed.
pub(crate) fn in_network(process: u32, program: &str, words: &[&str]) -> Result<String> {
    let path = env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let mut nsenter = Command::new("nsenter");
    nsenter.args(["--net", "--target", &process.to_string(), program]).args(words).env("PATH", path);
    output(&mut nsenter, None)
}
