//! Starts the components of a control plane in order, and waits until it is usable.

use std::ffi::OsString;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::{ControlPlane, Options, new_directory, run};
use crate::certificates::{Authority, Identity, Pair, ServiceAccountKeys};
use crate::patience::Look;
use crate::processes::Processes;
use crate::{Binaries, kubeconfig};

const ADMINISTRATOR: Identity = Identity { user: "kubernetes-admin", group: Some("system:masters") };
const CONTROLLER_MANAGER: Identity = Identity { user: "system:kube-controller-manager", group: None };
const SCHEDULER: Identity = Identity { user: "system:kube-scheduler", group: None };
/// It may do everything, but has its own name, so that the audit log tells it from the administrator.
const KWOK: Identity = Identity { user: "kwok", group: Some("system:masters") };
const FRONT_PROXY: Identity = Identity { user: "front-proxy-client", group: None };
const ETCD_CLIENT: Identity = Identity { user: "kube-apiserver", group: None };

/// Every request, but only once: the stage RequestReceived would log each of them twice.
const AUDIT_POLICY: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
";

/// With a configuration file, kwok uses no defaults for what is not in it, and some of these settings would stop its work if they were
/// zero.
const KWOK_CONFIGURATION: &str = "apiVersion: config.kwok.x-k8s.io/v1alpha1
kind: KwokConfiguration
options:
  manageAllNodes: true
  cidr: 10.244.0.0/16
  nodeIP: 10.0.0.1
  nodePlayStageParallelism: 4
  podPlayStageParallelism: 16
  podsOnNodeSyncParallelism: 4
  nodeLeaseParallelism: 4
  nodeLeaseDurationSeconds: 40
---
";
const KWOK_STAGES: &str = include_str!("../../kwok/stages.yaml");

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
        let (etcd, kube_apiserver) = (TcpListener::bind(loopback(0))?, TcpListener::bind(loopback(0))?);
        Ok(Self { etcd: etcd.local_addr()?.port(), kube_apiserver: kube_apiserver.local_addr()?.port() })
    }
}

pub(super) fn start(binaries: &Binaries, options: &Options, ports: Ports) -> Result<ControlPlane> {
    let temporary = new_directory(options.keep)?;
    let directory = temporary.path();
    // Declared after the folder, so that it is dropped first: nothing may write into the folder while it is removed.
    let processes = Processes::new(directory, options.keep)?;
    let mut starting = Starting::new(binaries, directory, ports, processes)?;
    starting.etcd()?;
    starting.kube_apiserver()?;
    if options.controllers {
        starting.controllers()?;
    }
    if options.nodes > 0 {
        starting.kwok(options.nodes)?;
    }
    if options.controllers {
        starting.wait_for_service_account()?;
    }
    if options.nodes > 0 {
        starting.wait_for_nodes(options)?;
    }
    let Starting { processes, kubeconfig, audit_log, .. } = starting;
    Ok(ControlPlane {
        processes: Some(processes),
        directory: temporary,
        kubeconfig,
        kubectl: binaries.kubectl.clone(),
        audit_log: Some(audit_log),
    })
}

struct Starting<'a> {
    binaries: &'a Binaries,
    directory: &'a Path,
    ports: Ports,
    processes: Processes,
    /// Signs the certificates of the API server and its clients.
    cluster: Authority,
    /// Signs the certificates of etcd and its only client. That client trusts no other etcd, so two instances cannot use one store by
    /// mistake, even if one gets the port that the other has just chosen.
    etcd_authority: Authority,
    service_accounts: ServiceAccountKeys,
    /// The kubeconfig of the administrator.
    kubeconfig: PathBuf,
    audit_log: PathBuf,
}

impl<'a> Starting<'a> {
    fn new(binaries: &'a Binaries, directory: &'a Path, ports: Ports, processes: Processes) -> Result<Self> {
        let pki = directory.join("pki");
        fs::create_dir(&pki)?;
        let cluster = Authority::create(&pki, "cluster")?;
        let etcd_authority = Authority::create(&pki, "etcd")?;
        let service_accounts = ServiceAccountKeys::create(&pki)?;
        let mut starting = Self {
            binaries,
            directory,
            ports,
            processes,
            cluster,
            etcd_authority,
            service_accounts,
            kubeconfig: PathBuf::new(),
            audit_log: directory.join("audit.jsonl"),
        };
        starting.kubeconfig = starting.kubeconfig_for("admin", &ADMINISTRATOR)?;
        Ok(starting)
    }

    fn etcd(&mut self) -> Result<()> {
        let Pair { certificate, key } = self.etcd_authority.server("server", &["127.0.0.1"])?;
        let address = loopback(self.ports.etcd);
        let args = Arguments::default()
            .path("data-dir", self.directory.join("etcd"))
            .text("listen-client-urls", format!("https://{address}"))
            .text("advertise-client-urls", format!("https://{address}"))
            // It has no peers, so any free port will do.
            .text("listen-peer-urls", "http://127.0.0.1:0")
            .path("cert-file", certificate)
            .path("key-file", key)
            .path("trusted-ca-file", self.etcd_authority.certificate())
            .text("client-cert-auth", "true")
            // The data goes with the instance, so there is no need to wait for the disk.
            .text("unsafe-no-fsync", "true");
        self.processes.start("etcd", &self.binaries.etcd, args.0)?;
        self.processes
            .wait_until("etcd", "it listens", || succeeded(TcpStream::connect(address).map_err(Into::into)))
    }

    fn kube_apiserver(&mut self) -> Result<()> {
        let pki = self.directory.join("pki");
        // Not the cluster's authority: whoever has a certificate of this one may act as any user.
        let front_proxy = Authority::create(&pki, "front-proxy")?;
        let proxy_client = front_proxy.client(&FRONT_PROXY)?;
        let etcd_client = self.etcd_authority.client(&ETCD_CLIENT)?;
        let hosts = [
            "127.0.0.1",
            "10.96.0.1",
            "localhost",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
        ];
        let server = self.cluster.server("kube-apiserver", &hosts)?;
        let policy = self.directory.join("audit-policy.yaml");
        fs::write(&policy, AUDIT_POLICY)?;

        let args = Arguments::default()
            .text("etcd-servers", format!("https://{}", loopback(self.ports.etcd)))
            .path("etcd-cafile", self.etcd_authority.certificate())
            .path("etcd-certfile", etcd_client.certificate)
            .path("etcd-keyfile", etcd_client.key)
            .text("bind-address", "127.0.0.1")
            .text("advertise-address", "127.0.0.1")
            .text("secure-port", self.ports.kube_apiserver.to_string())
            .path("tls-cert-file", server.certificate)
            .path("tls-private-key-file", server.key)
            .path("client-ca-file", self.cluster.certificate())
            .text("authorization-mode", "Node,RBAC")
            .text("anonymous-auth", "false")
            // In addition to the default plugins, as with kubeadm.
            .text("enable-admission-plugins", "NodeRestriction")
            .text("allow-privileged", "true")
            .text("service-cluster-ip-range", "10.96.0.0/16")
            // It would set 127.0.0.1 as the address of the Service kubernetes, which is not allowed there.
            .text("endpoint-reconciler-type", "none")
            .text("service-account-issuer", "https://kubernetes.default.svc")
            .path("service-account-key-file", self.service_accounts.public.clone())
            .path("service-account-signing-key-file", self.service_accounts.private.clone())
            .path("requestheader-client-ca-file", front_proxy.certificate())
            .text("requestheader-allowed-names", FRONT_PROXY.user)
            .text("requestheader-username-headers", "X-Remote-User")
            .text("requestheader-group-headers", "X-Remote-Group")
            .text("requestheader-extra-headers-prefix", "X-Remote-Extra-")
            .text("requestheader-uid-headers", "X-Remote-Uid")
            .path("proxy-client-cert-file", proxy_client.certificate)
            .path("proxy-client-key-file", proxy_client.key)
            .path("audit-policy-file", policy)
            .path("audit-log-path", self.audit_log.clone())
            // In megabytes. The log is practically never rotated, because its readers know only one file.
            .text("audit-log-maxsize", "1000000");
        self.processes.start("kube-apiserver", &self.binaries.kube_apiserver, args.0)?;
        let mut kubectl = self.kubectl();
        kubectl.args(["get", "--raw=/readyz", "--request-timeout=5s"]);
        self.processes.wait_until("kube-apiserver", "/readyz says ok", || succeeded(run(&mut kubectl, None)))
    }

    fn controllers(&mut self) -> Result<()> {
        let kubeconfig = self.kubeconfig_for("controller-manager", &CONTROLLER_MANAGER)?;
        let args = common(kubeconfig)
            .path("root-ca-file", self.cluster.certificate())
            .path("service-account-private-key-file", self.service_accounts.private.clone())
            .text("use-service-account-credentials", "true");
        self.processes.start("kube-controller-manager", &self.binaries.kube_controller_manager, args.0)?;
        let kubeconfig = self.kubeconfig_for("scheduler", &SCHEDULER)?;
        self.processes.start("kube-scheduler", &self.binaries.kube_scheduler, common(kubeconfig).0)
    }

    fn kwok(&mut self, nodes: usize) -> Result<()> {
        let config = self.directory.join("kwok.yaml");
        fs::write(&config, [KWOK_CONFIGURATION, KWOK_STAGES].concat())?;
        let kubeconfig = self.kubeconfig_for("kwok", &KWOK)?;
        let args = Arguments::default().path("config", config).path("kubeconfig", kubeconfig);
        self.processes.start("kwok", &self.binaries.kwok, args.0)?;
        let items: Vec<Value> = (0..nodes).map(node).collect();
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": items }).to_string();
        run(self.kubectl().args(["create", "--filename=-"]), Some(&list)).context("creating the nodes")?;
        Ok(())
    }

    fn wait_for_service_account(&mut self) -> Result<()> {
        let mut kubectl = self.kubectl();
        kubectl.args(["get", "serviceaccount", "default", "--namespace=default"]);
        self.processes.wait_until(
            "kube-controller-manager",
            "the ServiceAccount default exists in the namespace default",
            || succeeded(run(&mut kubectl, None)),
        )
    }

    fn wait_for_nodes(&mut self, options: &Options) -> Result<()> {
        let mut kubectl = self.kubectl();
        kubectl.args(["get", "nodes", "--output=json"]);
        self.processes.wait_until("kwok", "all nodes are ready for Pods", || {
            let listed = run(&mut kubectl, None).and_then(|list| Ok(serde_json::from_str::<Value>(&list)?));
            let list = match listed {
                Ok(list) => list,
                Err(error) => return Look::NotYet(format!("{error:#}")),
            };
            let items = list["items"].as_array().map_or(&[][..], Vec::as_slice);
            let waited_for = items.iter().find(|node| !is_ready(node, options.controllers));
            Look::reached_if(items.len() == options.nodes && waited_for.is_none(), || {
                let of = waited_for.unwrap_or(&Value::Null);
                let (taints, conditions) = (&of["spec"]["taints"], &of["status"]["conditions"]);
                format!(
                    "{} nodes; {}: taints {taints}, conditions {conditions}",
                    items.len(),
                    of["metadata"]["name"]
                )
            })
        })
    }

    fn kubectl(&self) -> Command {
        kubectl_command(&self.binaries.kubectl, &self.kubeconfig, self.directory)
    }

    fn kubeconfig_for(&self, file: &str, identity: &Identity) -> Result<PathBuf> {
        let path = self.directory.join(format!("{file}.kubeconfig"));
        let server = format!("https://{}", loopback(self.ports.kube_apiserver));
        let pair = self.cluster.client(identity)?;
        kubeconfig::with_certificate(&path, &server, &self.cluster.certificate(), identity.user, &pair)?;
        Ok(path)
    }
}

/// Whether something succeeded that is tried again until it does.
fn succeeded<T>(attempt: Result<T>) -> Look<()> {
    match attempt {
        Ok(_) => Look::Reached(()),
        Err(error) => Look::NotYet(format!("{error:#}")),
    }
}

pub(super) fn kubectl_command(kubectl: &Path, kubeconfig: &Path, directory: &Path) -> Command {
    let mut command = Command::new(kubectl);
    command
        .env("KUBECONFIG", kubeconfig)
        .env("KUBECACHEDIR", directory.join("kubectl-cache"))
        .env("KUBERC", "off");
    command
}

/// The flags that the controllers and the scheduler share.
fn common(kubeconfig: PathBuf) -> Arguments {
    Arguments::default()
        .path("kubeconfig", kubeconfig)
        .text("leader-elect", "false")
        .text("bind-address", "127.0.0.1")
        // Nothing here uses their servers, and without them they need no port.
        .text("secure-port", "0")
        // The defaults protect a shared server, and would affect a benchmark.
        .text("kube-api-qps", "500")
        .text("kube-api-burst", "1000")
}

fn node(number: usize) -> Value {
    let name = format!("node-{number}");
    let room = json!({ "cpu": "64", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "1000" });
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "node-role.kubernetes.io/worker": "",
            },
        },
        "status": { "allocatable": room, "capacity": room },
    })
}

/// Without the controllers, nobody removes the initial taint of a node, so then only its condition counts.
fn is_ready(node: &Value, controllers: bool) -> bool {
    let conditions = node["status"]["conditions"].as_array();
    let ready = conditions.is_some_and(|all| {
        all.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
    });
    let tainted = node["spec"]["taints"].as_array().is_some_and(|taints| !taints.is_empty());
    ready && !(controllers && tainted)
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// Command line flags. A path need not be valid UTF-8.
#[derive(Default)]
struct Arguments(Vec<OsString>);

impl Arguments {
    fn text(self, flag: &str, value: impl Into<String>) -> Self {
        self.path(flag, PathBuf::from(value.into()))
    }

    fn path(mut self, flag: &str, value: PathBuf) -> Self {
        let mut argument = OsString::from(format!("--{flag}="));
        argument.push(value);
        self.0.push(argument);
        self
    }
}
