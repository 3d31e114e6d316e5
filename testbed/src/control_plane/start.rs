//! Starts the components of a control plane in order, and waits until it is usable.

use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::json;

use super::{ControlPlane, Options, new_directory, output};
use crate::certificates::{self, CLIENTS, NODE_CLIENTS};
use crate::node::{self, Node};
use crate::patience::Look;
use crate::processes::Processes;
use crate::{Binaries, kubeconfig};

const AUDIT_POLICY: &str = include_str!("../../control-plane/audit-policy.yaml");
const KWOK_FILE: &str =
    concat!(include_str!("../../kwok/configuration.yaml"), include_str!("../../kwok/stages.yaml"));
const NODE: &str = include_str!("../../kwok/node.yaml");

/// In all flags, `FOLDER` is the folder of the instance, `ETCD` and `API-SERVER` are ports, and `MACHINE-ADDRESS` is where a node reaches
/// this machine.
const ETCD: &[&str] = &[
    "--data-dir=FOLDER/etcd",
    "--listen-client-urls=https://127.0.0.1:ETCD",
    "--advertise-client-urls=https://127.0.0.1:ETCD",
    // It has no peers, so any free port will do.
    "--listen-peer-urls=http://127.0.0.1:0",
    "--cert-file=FOLDER/pki/etcd.crt",
    "--key-file=FOLDER/pki/etcd.key",
    "--trusted-ca-file=FOLDER/pki/etcd-ca.crt",
    "--client-cert-auth=true",
    // The data goes with the instance, so there is no need to wait for the disk.
    "--unsafe-no-fsync=true",
    // Twice the default: hundreds of objects of 1.4 MiB are written, and compacted only every five minutes.
    "--quota-backend-bytes=4294967296",
];

const API_SERVER: &[&str] = &[
    "--etcd-servers=https://127.0.0.1:ETCD",
    "--etcd-cafile=FOLDER/pki/etcd-ca.crt",
    "--etcd-certfile=FOLDER/pki/etcd-client.crt",
    "--etcd-keyfile=FOLDER/pki/etcd-client.key",
    "--bind-address=127.0.0.1",
    "--advertise-address=127.0.0.1",
    "--secure-port=API-SERVER",
    "--tls-cert-file=FOLDER/pki/kube-apiserver.crt",
    "--tls-private-key-file=FOLDER/pki/kube-apiserver.key",
    "--client-ca-file=FOLDER/pki/cluster-ca.crt",
    "--authorization-mode=Node,RBAC",
    "--anonymous-auth=false",
    // In addition to the default plugins, as with kubeadm.
    "--enable-admission-plugins=NodeRestriction",
    "--allow-privileged=true",
    "--service-cluster-ip-range=10.96.0.0/16",
    // It would set 127.0.0.1 as the address of the Service kubernetes, which is not allowed there.
    "--endpoint-reconciler-type=none",
    "--service-account-issuer=https://kubernetes.default.svc",
    "--service-account-key-file=FOLDER/pki/service-account.pub",
    "--service-account-signing-key-file=FOLDER/pki/service-account.key",
    "--requestheader-client-ca-file=FOLDER/pki/front-proxy-ca.crt",
    "--requestheader-allowed-names=front-proxy-client",
    "--requestheader-username-headers=X-Remote-User",
    "--requestheader-group-headers=X-Remote-Group",
    "--requestheader-extra-headers-prefix=X-Remote-Extra-",
    "--requestheader-uid-headers=X-Remote-Uid",
    "--proxy-client-cert-file=FOLDER/pki/front-proxy-client.crt",
    "--proxy-client-key-file=FOLDER/pki/front-proxy-client.key",
    "--audit-policy-file=FOLDER/audit-policy.yaml",
    "--audit-log-path=FOLDER/audit.jsonl",
    // In megabytes. The log is practically never rotated, because its readers know only one file.
    "--audit-log-maxsize=1000000",
];

const CONTROLLER_MANAGER: &[&str] = &[
    "--kubeconfig=FOLDER/controller-manager.kubeconfig",
    "--root-ca-file=FOLDER/pki/cluster-ca.crt",
    "--service-account-private-key-file=FOLDER/pki/service-account.key",
    "--use-service-account-credentials=true",
    // By default, a folder in /usr, which it makes where it may.
    "--flex-volume-plugin-dir=FOLDER/volume-plugins",
];

const SCHEDULER: &[&str] = &["--kubeconfig=FOLDER/scheduler.kubeconfig"];

/// The flags that the controllers and the scheduler share.
const CONTROLLERS: &[&str] = &[
    "--leader-elect=false",
    "--bind-address=127.0.0.1",
    // Nothing here uses their servers, and without them they need no port.
    "--secure-port=0",
    // The defaults protect a shared server, and would affect a benchmark.
    "--kube-api-qps=500",
    "--kube-api-burst=1000",
];

const KWOK: &[&str] = &["--config=FOLDER/kwok.yaml", "--kubeconfig=FOLDER/kwok.kubeconfig"];

/// Of each node, whether it is Ready, and its taints.
const NODES: &str = "--output=jsonpath={range .items[*]}\
    {.status.conditions[?(@.type==\"Ready\")].status}{.spec.taints[*].key}{\"\\n\"}{end}";

/// The ports of one instance. Every other listener is turned off.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ports {
    pub(super) etcd: u16,
    pub(super) kube_apiserver: u16,
}

impl Ports {
    /// Ports that are free now.
    pub(super) fn choose() -> Result<Self> {
        // Both are held at the same time, so that they differ.
        let free = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let (etcd, kube_apiserver) = (free()?, free()?);
        Ok(Self { etcd: etcd.local_addr()?.port(), kube_apiserver: kube_apiserver.local_addr()?.port() })
    }
}

pub(super) fn start(binaries: &Binaries, options: &Options, ports: Ports) -> Result<ControlPlane> {
    let temporary = new_directory(options.keep)?;
    let directory = temporary.path();
    let folder = directory.to_str().context("the path of the folder for temporary files is not UTF-8")?;
    // Declared after the folder, so that it is dropped first: nothing may write into the folder while it is removed.
    let mut processes = Processes::new(directory, options.keep)?;
    let with_node = options.node.is_some();
    certificates::write(&directory.join("pki"), with_node)?;
    let clients = CLIENTS.map(|(file, ..)| (file, "127.0.0.1")).into_iter();
    let node_clients = NODE_CLIENTS.map(|(file, ..)| (file, node::MACHINE)).into_iter();
    for (file, host) in clients.chain(node_clients.filter(|_| with_node)) {
        let cluster = json!({
            "server": format!("https://{host}:{}", ports.kube_apiserver),
            "certificate-authority": format!("{folder}/pki/cluster-ca.crt"),
        });
        let pair = |end: &str| format!("{folder}/pki/{file}.{end}");
        let user = json!({ "client-certificate": pair("crt"), "client-key": pair("key") });
        kubeconfig::write(&directory.join(format!("{file}.kubeconfig")), &cluster, None, &user)?;
    }
    let kubeconfig = directory.join("admin.kubeconfig");
    let kubectl = |args: &[&str]| {
        let mut kubectl = kubectl_command(&binaries.kubectl, &kubeconfig, directory);
        kubectl.args(args);
        kubectl
    };
    let flags = |flags: &[&str]| -> Vec<String> {
        let fill = |flag: &&str| {
            let flag = flag.replace("ETCD", &ports.etcd.to_string());
            let flag = flag.replace("API-SERVER", &ports.kube_apiserver.to_string());
            flag.replace("MACHINE-ADDRESS", node::MACHINE).replace("FOLDER", folder)
        };
        flags.iter().map(fill).collect()
    };

    processes.start("etcd", &binaries.etcd, &flags(ETCD))?;
    let listens =
        || Look::of(TcpStream::connect((Ipv4Addr::LOCALHOST, ports.etcd)).map(drop).map_err(Into::into));
    processes.wait_until("etcd", "it listens", listens)?;

    fs::write(directory.join("audit-policy.yaml"), AUDIT_POLICY)?;
    let with_link: &[&str] = if with_node { node::API_SERVER } else { &[] };
    processes.start("kube-apiserver", &binaries.kube_apiserver, &flags(&[API_SERVER, with_link].concat()))?;
    let mut readyz = kubectl(&["get", "--raw=/readyz", "--request-timeout=5s"]);
    processes
        .wait_until("kube-apiserver", "/readyz says ok", || Look::of(output(&mut readyz, None).map(drop)))?;

    if options.controllers {
        let manager = flags(&[CONTROLLER_MANAGER, CONTROLLERS].concat());
        processes.start("kube-controller-manager", &binaries.kube_controller_manager, &manager)?;
        let scheduler = flags(&[SCHEDULER, CONTROLLERS].concat());
        processes.start("kube-scheduler", &binaries.kube_scheduler, &scheduler)?;
    }
    let start_node = |binaries| Node::start(&mut processes, binaries, folder, ports.kube_apiserver);
    let node = options.node.as_ref().map(start_node).transpose()?;
    let (nodes, player) = if node.is_some() { (1, "node") } else { (options.nodes, "kwok") };
    if options.nodes > 0 && node.is_none() {
        fs::write(directory.join("kwok.yaml"), KWOK_FILE)?;
        processes.start("kwok", &binaries.kwok, &flags(KWOK))?;
        let objects: String =
            (0..nodes).map(|number| NODE.replace("NAME", &format!("node-{number}"))).collect();
        output(&mut kubectl(&["create", "--filename=-"]), Some(&objects)).context("creating the nodes")?;
    }
    if options.controllers {
        let mut account = kubectl(&["get", "serviceaccount", "default", "--namespace=default"]);
        processes.wait_until(
            "kube-controller-manager",
            "the ServiceAccount default exists in the namespace default",
            || Look::of(output(&mut account, None).map(drop)),
        )?;
    }
    if nodes > 0 {
        let mut look = kubectl(&["get", "nodes", NODES]);
        // Without the controllers, nobody removes the initial taint of a node.
        let is_ready =
            |node: &str| if options.controllers { node == "True" } else { node.starts_with("True") };
        processes.wait_until(player, "all nodes are ready for Pods", || match output(&mut look, None) {
            Ok(said) => {
                let ready = said.lines().filter(|node| is_ready(node)).count();
                Look::reached_if(ready == nodes, || format!("conditions and taints: {said}"))
            }
            Err(error) => Look::NotYet(format!("{error:#}")),
        })?;
    }
    let audit_log = Some(directory.join("audit.jsonl"));
    let kubectl = binaries.kubectl.clone();
    let processes = Some(processes);
    Ok(ControlPlane { processes, node, directory: temporary, kubeconfig, kubectl, audit_log })
}

pub(super) fn kubectl_command(kubectl: &Path, kubeconfig: &Path, directory: &Path) -> Command {
    let mut command = Command::new(kubectl);
    command
        .env("KUBECONFIG", kubeconfig)
        .env("KUBECACHEDIR", directory.join("kubectl-cache"))
        .env("KUBERC", "off");
    command
}
