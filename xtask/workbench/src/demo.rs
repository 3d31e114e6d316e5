//! Shows the main job on a real control plane. Every step is checked, and the demo fails if a step did not really happen.

mod farm;

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::Instant,
};

use anyhow::{Context, Result, ensure};
use pintle_testbed::{ControlPlane, Look, Patience, eventually};
use xtask::GUESTS;

use crate::{cluster, painted, say, server::Server, workspace};

/// Shows the main job. With `exit`, everything ends after the last step, which is reached only if every step happened. With `console`, the
/// console is opened in the browser then.
pub(crate) fn run(exit: bool, console: bool) -> Result<()> {
    let started = Instant::now();
    say("starting a control plane: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok");
    let plane = cluster::start()?;
    let demo = Demo::new(&plane)?;
    let host = demo.install()?;
    demo.systems()?;
    let gateway = demo.farm()?;
    say(format_args!("every step happened ({:.0} s)", started.elapsed().as_secs_f64()));
    if exit {
        gateway.stop()?;
        host.stop()?;
        return plane.stop();
    }
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
        host.log(),
        gateway.log(),
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
    plane: &'a ControlPlane,
    pintle: PathBuf,
    guests: PathBuf,
}

impl<'a> Demo<'a> {
    pub(crate) fn new(plane: &'a ControlPlane) -> Result<Self> {
        let named =
            |name: &str| env::var_os(name).map(PathBuf::from).with_context(|| format!("{name} is not set"));
        Ok(Self { plane, pintle: named("PINTLE")?, guests: named("PINTLE_GUESTS")? })
    }

    pub(crate) fn install(&self) -> Result<Server> {
        say("installing: deploy/install.yaml, the guests' CRDs and roles");
        self.run("kubectl apply --server-side -f deploy/install.yaml")?;
        // The Deployment's image is not built here. The host runs beside the control plane, with the same account and roles.
        self.quiet("kubectl scale deployment pintle -n pintle-system --replicas=0")?;
        self.run("kubectl apply -f deploy/crds -f deploy/rbac")?;
        self.start("pintle", &["operator", "--bind", "127.0.0.1:0"])
    }

    /// Pushes the modules, and applies the samples of the systems.
    pub(crate) fn samples(&self) -> Result<()> {
        for guest in GUESTS {
            self.push(guest.module, guest.name)?;
        }
        self.run("kubectl apply -f deploy/samples")?;
        let roots =
            "darkroom/darkroom-sample webserver/webserver-sample configmonitor/flakapp-config-monitor";
        self.until("all roots to be Ready", "condition=Ready", roots)
    }

    /// Starts a server of Pintle with the rights of its account.
    pub(crate) fn start(&self, account: &'static str, arguments: &[&str]) -> Result<Server> {
        say(format_args!("starting {account} as system:serviceaccount:pintle-system:{account}"));
        let kubeconfig = self.plane.kubeconfig_for_service_account("pintle-system", account)?;
        let mut server = Command::new(&self.pintle);
        server.args(arguments).args(["--log-format", "text", "--kubeconfig"]).arg(&kubeconfig);
        Server::start(self.plane, account, server)
    }

    /// Starts the console with the rights of the administrator, and returns its address.
    pub(crate) fn console(&self) -> Result<(Server, String)> {
        let mut console = Command::new(&self.pintle);
        console.args(["console", "--kubeconfig"]).arg(self.plane.kubeconfig());
        let mut console = Server::start(self.plane, "console", console)?;
        let address = console.says("its address", |said| {
            said.split_whitespace().find(|word| word.starts_with("http://")).map(str::to_owned)
        })?;
        Ok((console, address))
    }

    fn systems(&self) -> Result<()> {
        say("pushing the modules; a Reconciler hangs each on its kind");
        self.samples()?;
        self.until("the Reconcilers to say so", "jsonpath='{.status.roots.ready}'=1", "reconcilers --all")?;
        self.run("kubectl get modules,reconcilers")?;
        self.run("kubectl get darkrooms,webservers -o wide")?;
        self.run("kubectl get configmap,deployment,service,ingress -l pintle.dev/reconciler")?;

        say("scaling the WebServer from 3 to 4");
        self.run("kubectl scale webserver webserver-sample --replicas=4")?;
        self.until(
            "four Pods to be ready",
            "jsonpath='{.status.readyReplicas}'=4",
            "webserver/webserver-sample",
        )?;
        self.run("kubectl get webservers")?;

        say("changing its image");
        self.quiet(
            r#"kubectl patch webserver webserver-sample --type=merge -p '{"spec":{"image":"nginx:1.23.0"}}'"#,
        )?;
        self.until(
            "the Deployment to have it",
            "jsonpath='{.spec.template.spec.containers[0].image}'=nginx:1.23.0",
            "deployment/webserver-sample",
        )?;
        self.wait("the roll-out to end", "kubectl rollout status deployment/webserver-sample --timeout=10s")?;
        self.until("the WebServer to say so", "condition=Ready", "webserver/webserver-sample")?;
        self.run("kubectl get deployment webserver-sample -o wide")?;

        say("deleting its Service");
        let service = "kubectl get service webserver-sample-service";
        self.run(service)?;
        // It returns once this Service is gone, so that whichever is there after that is another one.
        self.run("kubectl delete service webserver-sample-service")?;
        self.wait("it to be back", service)?;
        self.run(service)?;

        say("editing the ConfigMap that the Deployment frontend uses: its ConfigMonitor restarts it");
        let rollout = "kubectl rollout status deployment/frontend --timeout=10s";
        self.wait("the frontend to run", rollout)?;
        let revision = r"'{.metadata.annotations.deployment\.kubernetes\.io/revision}'";
        self.reads(&format!("kubectl get deployment frontend -o jsonpath={revision}"), "1")?;
        self.quiet(
            r#"kubectl patch configmap flaskapp-config --type=merge -p '{"data":{"config.cfg":"MSG=\"Hello\""}}'"#,
        )?;
        self.wait(
            "its Pods to be replaced",
            &format!(
                "kubectl wait --for=jsonpath={revision}=2 --timeout=10s deployment/frontend && {rollout}"
            ),
        )?;
        self.run("kubectl get configmonitors -o wide")?;
        self.run("kubectl get events --field-selector reason=ConfigChanged")?;

        say("swapping the Darkroom module live: darkroom-0.2.0 caches for a day instead of a year");
        let cache = "kubectl get configmap darkroom-sample -o jsonpath='{.data.CACHE_TIME}'";
        self.reads(cache, "31536000")?;
        self.push("darkroom-0.2.0", "darkroom-next")?;
        self.run(&format!("pintle swap darkroom darkroom-0.2.0 --wait --timeout={}", patience()))?;
        self.until(
            "the ConfigMap to follow",
            "jsonpath='{.data.CACHE_TIME}'=86400",
            "configmap/darkroom-sample",
        )?;
        self.reads(cache, "86400")?;
        self.until("the Darkroom to be Ready again", "condition=Ready", "darkroom/darkroom-sample")?;
        self.run("kubectl get reconcilers")?;
        self.run("kubectl get darkrooms -o wide")
    }

    /// Uploads a built guest.
    fn push(&self, module: &str, guest: &str) -> Result<()> {
        let file = self.guests.join(format!("{guest}.wasm"));
        let file = file.strip_prefix(workspace()).unwrap_or(&file).display();
        self.run(&format!("pintle push {module} {file} --wait --timeout={}", patience()))
    }

    /// Waits until this is so of these objects.
    fn until(&self, what: &str, condition: &str, objects: &str) -> Result<()> {
        self.wait(what, &format!("kubectl wait --for={condition} --timeout=10s {objects}"))
    }

    /// Waits until a line succeeds.
    fn wait(&self, what: &str, line: &str) -> Result<()> {
        let started = Instant::now();
        let succeeds = || match self.output(line) {
            Ok(_) => Ok(Look::Reached(())),
            Err(error) => Ok(Look::NotYet(format!("{error:#}"))),
        };
        eventually(what, succeeds).inspect_err(|_| {
            let _ = self.run("kubectl get modules,reconcilers,darkrooms,webservers,configmonitors -o yaml");
        })?;
        println!("    {what}: {:.1} s", started.elapsed().as_secs_f64());
        Ok(())
    }

    /// Shows a line and what it prints, which must be this.
    fn reads(&self, line: &str, wanted: &str) -> Result<()> {
        let found = self.quiet(line)?;
        println!("{found}");
        ensure!(found == wanted, "{line}: {found} instead of {wanted}");
        Ok(())
    }

    /// Shows a line and runs it, with what it prints.
    pub(crate) fn run(&self, line: &str) -> Result<()> {
        println!("{}", painted("2", &format!("$ {line}")));
        let status = self.shell(line).status()?;
        ensure!(status.success(), "{line}: {status}");
        Ok(())
    }

    /// Shows a line and runs it, without what it prints.
    pub(crate) fn quiet(&self, line: &str) -> Result<String> {
        println!("{}", painted("2", &format!("$ {line}")));
        self.output(line)
    }

    /// What a line prints.
    pub(crate) fn output(&self, line: &str) -> Result<String> {
        let output = self.shell(line).output()?;
        ensure!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr).trim());
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// A line as whoever copies it would run it: in the folder of the workspace, with kubectl and pintle on `PATH`.
    fn shell(&self, line: &str) -> Command {
        let kubectl = self.plane.kubectl_command();
        let mut path = OsString::new();
        for part in [folder(self.plane.kubectl()), folder(&self.pintle)] {
            path.push(part);
            path.push(":");
        }
        path.push(env::var_os("PATH").unwrap_or_default());
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).current_dir(workspace()).env("PATH", path);
        shell.envs(kubectl.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell
    }
}

/// How long a command waits, as a flag.
fn patience() -> String {
    format!("{}s", Patience::default().whole().as_secs())
}
