//! Shows the main job on a real control plane. Every step is checked, and the demo fails if a step did not really happen.

mod console;
mod farm;

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use pintle_testbed::ControlPlane;
use roster::GUESTS;

use console::Console;

use crate::{cluster, painted, say};

/// How long a step may take. The slowest, a Deployment's roll-out, takes a few seconds.
const STEP_TIMEOUT: Duration = Duration::from_secs(60);

/// Shows the main job with this host and these guests. `workspace` is the folder with deploy/. With `exit`, everything ends after the last
/// step, which is reached only if every step happened. With `console`, the console is opened in the browser then.
pub(crate) fn run(workspace: &Path, pintle: &Path, guests: PathBuf, exit: bool, console: bool) -> Result<()> {
    let started = Instant::now();
    say("starting a control plane: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok");
    let plane = cluster::start()?;
    let demo = Demo::new(&plane, workspace, pintle, guests);
    let host = demo.install()?;
    demo.show()?;
    let gateway = demo.farm()?;
    say(format_args!("every step happened ({:.0} s)", started.elapsed().as_secs_f64()));
    if exit {
        gateway.stop()?;
        host.stop()?;
        return plane.stop();
    }
    println!();
    println!("  The control plane, the host and the gateway stay up. In another terminal:");
    println!();
    println!("    export KUBECONFIG={}", plane.kubeconfig().display());
    println!(
        "    export PATH={}:{}:$PATH   # kubectl, pintle",
        folder(plane.kubectl()),
        folder(&demo.pintle)
    );
    println!("    kubectl get modules,reconcilers,darkrooms,webservers,configmonitors");
    println!("    kubectl get views,llamas,farmpods");
    println!("    pintle console");
    println!();
    println!("  The host's log: {}", host.log.display());
    println!("  The gateway's log: {}", gateway.log.display());
    println!("  Ctrl-C ends it all.");
    let _console = if console { Some(demo.console()?) } else { None };
    loop {
        thread::park();
    }
}

fn folder(path: &Path) -> std::path::Display<'_> {
    path.parent().unwrap_or(path).display()
}

/// The running host, gateway or console.
pub(crate) struct Server {
    pub(crate) name: &'static str,
    pub(crate) process: Child,
    pub(crate) log: PathBuf,
}

impl Server {
    pub(crate) fn stop(mut self) -> Result<()> {
        let id = self.process.id().to_string();
        Command::new("kill").args(["-TERM", &id]).status()?;
        let status = self.process.wait()?;
        ensure!(status.success(), "the {} ended with {status}; its log is {}", self.name, self.log.display());
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process has already ended if `stop` ran. Otherwise a step failed, and nothing of the server may stay.
        let _ = self.process.kill();
    }
}

/// A control plane, and what is shown on it.
pub(crate) struct Demo<'a> {
    plane: &'a ControlPlane,
    workspace: PathBuf,
    pintle: PathBuf,
    pub(crate) guests: PathBuf,
}

impl<'a> Demo<'a> {
    pub(crate) fn new(plane: &'a ControlPlane, workspace: &Path, pintle: &Path, guests: PathBuf) -> Self {
        Self { plane, workspace: workspace.to_owned(), pintle: pintle.to_owned(), guests }
    }
}

impl Demo<'_> {
    pub(crate) fn install(&self) -> Result<Server> {
        say("installing: deploy/install.yaml, the guests' CRDs and roles");
        self.kubectl("apply --server-side -f deploy/install.yaml")?;
        // The Deployment's image is not built here. The host runs beside the control plane, with the same account and roles.
        self.quiet("scale deployment pintle -n pintle-system --replicas=0")?;
        self.kubectl("apply -f deploy/crds -f deploy/rbac")?;
        self.start("host", "pintle", &["operator", "--bind", "127.0.0.1:0"])
    }

    /// Starts the console with the rights of the administrator, for whoever reads what it prints.
    fn console(&self) -> Result<Server> {
        console::start(self.plane, &self.pintle, &[], Stdio::inherit())
    }

    /// Starts the console with the rights of the administrator, for tests.
    pub(crate) fn console_for_tests(&self) -> Result<Console> {
        Console::start(self.plane, &self.pintle)
    }

    /// Pushes the modules, and applies the samples of the systems.
    pub(crate) fn samples(&self) -> Result<()> {
        for guest in GUESTS {
            self.pintle(&["push", guest.module, &self.guest(guest.name), "--wait"])?;
        }
        self.kubectl("apply -f deploy/samples")?;
        self.wait("all roots to be Ready", || {
            self.is("wait --for=condition=Ready --timeout=1s darkroom/darkroom-sample webserver/webserver-sample configmonitor/flakapp-config-monitor")
        })
    }

    /// Starts a server of Pintle with the rights of its account.
    pub(crate) fn start(&self, name: &'static str, account: &str, arguments: &[&str]) -> Result<Server> {
        say(format_args!("starting the {name} as system:serviceaccount:pintle-system:{account}"));
        let kubeconfig = self.plane.kubeconfig_for_service_account("pintle-system", account)?;
        let log = self.plane.directory().join("logs").join(format!("{account}.log"));
        let mut server = Command::new(&self.pintle);
        server
            .args(arguments)
            .args(["--log-format", "text", "--kubeconfig"])
            .arg(&kubeconfig)
            .stdin(Stdio::null())
            .stderr(File::create(&log)?);
        self.plane.takes_in(&mut server)?;
        let process = server.spawn().with_context(|| format!("cannot start the {name}"))?;
        Ok(Server { name, process, log })
    }

    fn show(&self) -> Result<()> {
        say("pushing the modules; a Reconciler hangs each on its kind");
        self.samples()?;
        self.wait("the Reconcilers to say so", || {
            self.reads("get reconcilers -o jsonpath={.items[*].status.roots.ready}", "1 1 1")
        })?;
        self.kubectl("get modules,reconcilers")?;
        self.kubectl("get darkrooms,webservers -o wide")?;
        self.kubectl("get configmap,deployment,service,ingress -l pintle.dev/reconciler")?;

        say("scaling the WebServer from 3 to 4");
        self.kubectl("scale webserver webserver-sample --replicas=4")?;
        self.wait("four Pods to be ready", || {
            self.reads("get webserver webserver-sample -o jsonpath={.status.readyReplicas}", "4")
        })?;
        self.kubectl("get webservers")?;

        say("changing its image");
        self.quiet(r#"patch webserver webserver-sample --type=merge -p {"spec":{"image":"nginx:1.23.0"}}"#)?;
        let image = "get deployment webserver-sample -o jsonpath={.spec.template.spec.containers[0].image}";
        self.wait("the Deployment to have it", || self.reads(image, "nginx:1.23.0"))?;
        self.wait("the roll-out to end", || {
            self.is("rollout status deployment/webserver-sample --timeout=1s")
        })?;
        self.wait("the WebServer to say so", || {
            self.is("wait --for=condition=Ready --timeout=1s webserver/webserver-sample")
        })?;
        self.kubectl("get deployment webserver-sample -o wide")?;

        say("deleting its Service");
        let uid = "get service webserver-sample-service --ignore-not-found -o jsonpath={.metadata.uid}";
        let before = self.output(uid)?;
        ensure!(!before.is_empty(), "the Service was never there");
        self.kubectl("get service webserver-sample-service")?;
        self.kubectl("delete service webserver-sample-service")?;
        self.wait("it to be back", || {
            Ok(self.output(uid).is_ok_and(|now| !now.is_empty() && now != before))
        })?;
        self.kubectl("get service webserver-sample-service")?;

        say("editing the ConfigMap that the Deployment frontend uses: its ConfigMonitor restarts it");
        self.wait("the frontend to run", || self.is("rollout status deployment/frontend --timeout=1s"))?;
        let revision = r"get deployment frontend -o jsonpath={.metadata.annotations.deployment\.kubernetes\.io/revision}";
        ensure!(self.output(revision)? == "1", "nothing has restarted the frontend so far");
        self.quiet(
            r#"patch configmap flaskapp-config --type=merge -p {"data":{"config.cfg":"MSG=\"Hello\""}}"#,
        )?;
        self.wait("its Pods to be replaced", || {
            Ok(self.reads(revision, "2")? && self.is("rollout status deployment/frontend --timeout=1s")?)
        })?;
        self.kubectl("get configmonitors -o wide")?;
        self.kubectl("get events --field-selector reason=ConfigChanged")?;

        say("swapping the Darkroom module live: darkroom-0.2.0 caches for a day instead of a year");
        let cache = "get configmap darkroom-sample -o jsonpath={.data.CACHE_TIME}";
        ensure!(self.output(cache)? == "31536000", "the old module caches for a year");
        self.kubectl(cache)?;
        println!();
        self.pintle(&["push", "darkroom-0.2.0", &self.guest("darkroom-next"), "--wait"])?;
        self.pintle(&["swap", "darkroom", "darkroom-0.2.0", "--wait"])?;
        self.wait("the ConfigMap to follow", || self.reads(cache, "86400"))?;
        self.kubectl(cache)?;
        println!();
        self.wait("the Darkroom to be Ready again", || {
            self.is("wait --for=condition=Ready --timeout=1s darkroom/darkroom-sample")
        })?;
        self.kubectl("get reconcilers")?;
        self.kubectl("get darkrooms -o wide")?;
        Ok(())
    }

    pub(crate) fn wait(&self, what: &str, mut done: impl FnMut() -> Result<bool>) -> Result<()> {
        let started = Instant::now();
        while !done()? {
            if started.elapsed() > STEP_TIMEOUT {
                let _ = self.kubectl("get modules,reconcilers,darkrooms,webservers,configmonitors -o yaml");
                bail!("waited {} s for {what}", STEP_TIMEOUT.as_secs());
            }
            thread::sleep(Duration::from_millis(100));
        }
        println!("    {what}: {:.1} s", started.elapsed().as_secs_f64());
        Ok(())
    }

    /// Runs kubectl as a person would, and shows the command and its output.
    pub(crate) fn kubectl(&self, line: &str) -> Result<()> {
        println!("{}", painted("2", &format!("$ kubectl {}", pasted(line))));
        let status = self.command(line).status()?;
        ensure!(status.success(), "kubectl {line}: {status}");
        Ok(())
    }

    pub(crate) fn quiet(&self, line: &str) -> Result<()> {
        println!("{}", painted("2", &format!("$ kubectl {}", pasted(line))));
        self.output(line).map(|_| ())
    }

    pub(crate) fn output(&self, line: &str) -> Result<String> {
        let output = self.command(line).output()?;
        ensure!(
            output.status.success(),
            "kubectl {line}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    fn is(&self, line: &str) -> Result<bool> {
        Ok(self.command(line).output()?.status.success())
    }

    fn reads(&self, line: &str, wanted: &str) -> Result<bool> {
        Ok(self.output(line)? == wanted)
    }

    /// A built guest.
    fn guest(&self, name: &str) -> String {
        self.guests.join(format!("{name}.wasm")).display().to_string()
    }

    fn command(&self, line: &str) -> Command {
        let mut command = self.plane.kubectl_command();
        command.args(line.split(' ')).current_dir(&self.workspace);
        command
    }

    fn pintle(&self, arguments: &[&str]) -> Result<()> {
        let shown: Vec<String> = arguments
            .iter()
            .map(|argument| match Path::new(argument).strip_prefix(&self.workspace) {
                Ok(inside) => inside.display().to_string(),
                Err(_) => (*argument).to_owned(),
            })
            .collect();
        println!("{}", painted("2", &format!("$ pintle {}", shown.join(" "))));
        let status =
            Command::new(&self.pintle).args(arguments).env("KUBECONFIG", self.plane.kubeconfig()).status()?;
        ensure!(status.success(), "pintle {}: {status}", arguments.join(" "));
        Ok(())
    }
}

/// A command as a shell takes it: words with signs of the shell's own stand in quotes.
fn pasted(line: &str) -> String {
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "-_=/.,:@%+".contains(sign);
    let word = |word: &str| match word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    };
    line.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_can_be_pasted_into_a_shell() {
        assert_eq!(pasted("get modules,reconcilers"), "get modules,reconcilers");
        let patch = r#"patch ws/a --type=merge -p {"spec":{"replicas":4}}"#;
        assert_eq!(pasted(patch), r#"patch ws/a --type=merge -p '{"spec":{"replicas":4}}'"#);
    }
}
