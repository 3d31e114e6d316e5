//! Shows the main job on a real control plane. Every step is checked, and the demo fails if a step did not really happen.
//!
//! What people type is in `demo/*.txt`: `## TEXT` says what comes next, `$ COMMAND` is shown and run, with what it prints, and
//! `until TEXT: COMMAND` is run until it succeeds. `GUESTS` is the folder of the built guests, `PATIENCE` how long a command may wait,
//! and `NODE-ADDRESS` that of a node that runs Pods.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::Instant,
};

use anyhow::{Context, Result, bail, ensure};
use pintle_testbed::{ControlPlane, Look, NODE_ADDRESS, Patience, Server, eventually};
use xtask::{painted, root, say};

use crate::cluster;

/// Installs the gateway.
pub(crate) const GATEWAY: &str = include_str!("demo/gateway.txt");

/// Pushes the modules, and applies the samples of the systems.
pub(crate) const SAMPLES: &str = include_str!("demo/samples.txt");

/// What sends requests for the farm's group to the gateway.
const APISERVICE: &str = "deploy/samples/farm/apiservice.yaml";

/// Shows the main job. With `exit`, everything ends after the last step, which is reached only if every step happened. With `console`, the
/// console is opened in the browser then. On a node, Pods run: Pintle's, and those of its systems.
pub(crate) fn run(exit: bool, console: bool, on_node: bool) -> Result<()> {
    let started = Instant::now();
    let plane = if on_node {
        cluster::start_with_node(true)?
    } else {
        say("starting a control plane: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok");
        cluster::start()?
    };
    let demo = Demo::new(&plane)?;
    let host = demo.install(on_node)?;
    demo.play(SAMPLES)?;
    demo.play(include_str!("demo/systems.txt"))?;
    if on_node {
        demo.play(include_str!("demo/node.txt"))?;
    }
    let gateway = demo.farm(on_node)?;
    say(format_args!("every step happened ({:.0} s)", started.elapsed().as_secs_f64()));
    if exit {
        gateway.map(Server::stop).transpose()?;
        host.map(Server::stop).transpose()?;
        return plane.stop();
    }
    let log = |server: Option<&Server>, deployment: &str| match server {
        Some(server) => server.log().display().to_string(),
        None => format!("kubectl logs -n pintle-system deployment/{deployment}"),
    };
    println!(
        "
  The control plane, the host and the gateway stay up. In another terminal:

    export KUBECONFIG={}
    export PATH={}:{}:$PATH   # kubectl, pintle
    kubectl get modules,reconcilers,darkrooms,webservers,configmonitors
    kubectl get views,llamas,farmpods
    pintle console

  The host's log: {}
  The gateway's log: {}
  Ctrl-C ends it all.",
        plane.kubeconfig().display(),
        folder(plane.kubectl()).display(),
        folder(&demo.pintle).display(),
        log(host.as_ref(), "pintle"),
        log(gateway.as_ref(), "pintle-gateway"),
    );
    if console {
        let mut console = demo.shell("exec pintle console --open");
        plane.takes_in(&mut console)?;
        console.stdin(Stdio::null()).status()?;
    }
    loop {
        thread::park();
    }
}

fn folder(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

/// A control plane, and what is shown on it.
pub(crate) struct Demo<'a> {
    pub(crate) plane: &'a ControlPlane,
    pub(crate) pintle: PathBuf,
    guests: PathBuf,
}

impl<'a> Demo<'a> {
    pub(crate) fn new(plane: &'a ControlPlane) -> Result<Self> {
        let named =
            |name: &str| env::var_os(name).map(PathBuf::from).with_context(|| format!("{name} is not set"));
        Ok(Self { plane, pintle: named("PINTLE")?, guests: named("PINTLE_GUESTS")? })
    }

    /// Installs Pintle, and returns its host unless that runs as Pods of a node.
    pub(crate) fn install(&self, on_node: bool) -> Result<Option<Server>> {
        self.play(include_str!("demo/install.txt"))?;
        if on_node {
            return self.wait_for_pods("pintle").map(|()| None);
        }
        self.start("pintle", &["operator", "--bind", "127.0.0.1:0"]).map(Some)
    }

    /// Waits until the Pods of one of Pintle's Deployments are Ready.
    fn wait_for_pods(&self, deployment: &str) -> Result<()> {
        self.wait(
            &format!("the Pods of {deployment} are Ready"),
            &format!("kubectl rollout status deployment/{deployment} -n pintle-system --timeout=10s"),
        )?;
        self.run("kubectl get pods -n pintle-system")
    }

    /// Starts a server of Pintle with the account of its Deployment, which has no Pods: they would only pretend to run.
    pub(crate) fn start(&self, account: &str, arguments: &[&str]) -> Result<Server> {
        self.run(&format!("kubectl scale deployment {account} -n pintle-system --replicas=0"))?;
        say(format_args!("starting {account} as system:serviceaccount:pintle-system:{account}"));
        let kubeconfig = self.plane.kubeconfig_for_service_account("pintle-system", account)?;
        let mut server = Command::new(&self.pintle);
        server.args(arguments).args(["--log-format", "text", "--kubeconfig"]).arg(&kubeconfig);
        self.plane.start_server(account, &mut server)
    }

    /// Serves the farm, an API whose objects a guest computes, and shows that people and watches see what is stored.
    fn farm(&self, on_node: bool) -> Result<Option<Server>> {
        self.play(GATEWAY)?;
        self.run("kubectl apply -f deploy/samples/farm/crd.yaml -f deploy/samples/farm/rbac.yaml")?;
        let gateway = if on_node {
            self.wait_for_pods("pintle-gateway")?;
            self.run(&format!("kubectl apply -f {APISERVICE}"))?;
            None
        } else {
            let flags = ["gateway", "--aggregated-bind", "127.0.0.1:0"];
            let mut gateway = self.start("pintle-gateway", &flags)?;
            let address = gateway.address("The gateway starts")?;
            // On a node, this is `kubectl apply` of the same file, and the Service leads to the gateway's Pods.
            let service = self.output(&format!("kubectl create --dry-run=client -o json -f {APISERVICE}"))?;
            self.plane.serve_api_on_loopback(&serde_json::from_str(&service)?, address.port())?;
            println!("    {APISERVICE} leads to {address}");
            Some(gateway)
        };
        self.play(include_str!("demo/farm.txt"))?;

        say("editing a Llama while somebody watches");
        let line = "kubectl get llamas --watch";
        println!("{}", painted("2", &format!("$ {line} &")));
        let mut watch = self.plane.start_server("watch", &mut self.shell(&format!("exec {line}")))?;
        watch.says("her weight", |said| said.contains("31.4").then_some(()))?;
        self.run("KUBE_EDITOR='sed -i /^..weight:/s/31.4/32/' kubectl edit llama dolly")?;
        let said = watch.says("the new weight", |said| said.contains("32").then(|| said.to_owned()))?;
        println!("{said}");
        self.run("kubectl get llamarecord dolly -o jsonpath='{.spec.weight}' | grep -x 32")?;
        self.run("kubectl get llamarecords")?;
        Ok(gateway)
    }

    /// Does what a text says.
    pub(crate) fn play(&self, text: &str) -> Result<()> {
        let guests = self.guests.strip_prefix(root()).unwrap_or(&self.guests).display().to_string();
        let patience = format!("{}s", Patience::default().whole().as_secs());
        let text = text.replace("GUESTS", &guests).replace("PATIENCE", &patience);
        let text = text.replace("NODE-ADDRESS", NODE_ADDRESS);
        for line in text.lines() {
            if let Some(heading) = line.strip_prefix("## ") {
                say(heading);
            } else if let Some(command) = line.strip_prefix("$ ") {
                self.run(command)?;
            } else if let Some((what, command)) =
                line.strip_prefix("until ").and_then(|rest| rest.split_once(": "))
            {
                self.wait(what, command)?;
            } else if !line.is_empty() && !line.starts_with('#') {
                bail!("nobody knows how to read: {line}");
            }
        }
        Ok(())
    }

    /// Waits until a line succeeds.
    fn wait(&self, what: &str, line: &str) -> Result<()> {
        let started = Instant::now();
        eventually(what, || Ok(Look::of(self.output(line)))).inspect_err(|_| {
            let _ = self.run("kubectl get modules,reconcilers,darkrooms,webservers,configmonitors -o yaml");
        })?;
        println!("    {what}: {:.1} s", started.elapsed().as_secs_f64());
        Ok(())
    }

    /// Shows a line and runs it, with what it prints.
    pub(crate) fn run(&self, line: &str) -> Result<()> {
        println!("{}", painted("2", &format!("$ {line}")));
        let status = self.shell(line).status()?;
        ensure!(status.success(), "{line}: {status}");
        Ok(())
    }

    /// What a line prints.
    pub(crate) fn output(&self, line: &str) -> Result<String> {
        let output = self.shell(line).output()?;
        ensure!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr).trim());
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// A line as whoever copies it would run it: in the folder of the workspace, with kubectl and pintle on `PATH`.
    fn shell(&self, line: &str) -> Command {
        let (kubectl, pintle) = (folder(self.plane.kubectl()).display(), folder(&self.pintle).display());
        let path = format!("{kubectl}:{pintle}:{}", env::var("PATH").unwrap_or_default());
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).current_dir(root()).env("PATH", path);
        let kubectl = self.plane.kubectl_command();
        shell.envs(kubectl.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell
    }
}
