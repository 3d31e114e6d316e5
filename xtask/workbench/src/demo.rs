//! Shows the main job on a real control plane. Every step is checked, and the demo fails if a step did not really happen.

mod console;
mod farm;

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Instant,
};

use anyhow::{Context, Result, ensure};
use pintle_testbed::{ControlPlane, Look, Patience, eventually};
use roster::GUESTS;

use console::Console;

use crate::{cluster, painted, say};

/// How many lines of a log an error shows.
const LOG_LINES: usize = 12;

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
    /// Ends it. One that does not end is killed, and a line says so.
    pub(crate) fn stop(mut self) -> Result<()> {
        let id = self.process.id().to_string();
        Command::new("kill").args(["-TERM", &id]).status()?;
        let ended = eventually(format!("the {} ends", self.name), || {
            Ok(match self.process.try_wait()? {
                Some(status) => Look::Reached(status),
                None => Look::NotYet(self.last_lines()),
            })
        });
        match ended {
            Ok(status) => {
                ensure!(status.success(), "the {} ended with {status}: {}", self.name, self.last_lines());
            }
            Err(error) => println!("the {} is killed: {error:#}", self.name),
        }
        Ok(())
    }

    /// The address in the line with these words that it logs when it listens.
    pub(crate) fn address(&mut self, words: &str) -> Result<String> {
        eventually(format!("the {} says where it listens", self.name), || {
            // Before the log is read: what it said before it ended is in there.
            let ended = self.process.try_wait()?;
            let said = fs::read_to_string(&self.log).unwrap_or_default();
            if let Some(address) = address(&said, words) {
                return Ok(Look::Reached(address));
            }
            ensure!(ended.is_none(), "the {} has ended: {}", self.name, self.last_lines());
            Ok(Look::NotYet(self.last_lines()))
        })
    }

    /// What it logged last.
    pub(crate) fn last_lines(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let last = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n");
        format!("the end of {}:\n{last}", self.log.display())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process has already ended if `stop` ran, as a rule. Otherwise a step failed, and nothing of the server may stay.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The address in the first line of a log that has these words, once the line is whole.
fn address(log: &str, words: &str) -> Option<String> {
    let (whole, _) = log.rsplit_once('\n')?;
    let line = whole.lines().find(|line| line.contains(words))?;
    let address = line.split_whitespace().find_map(|word| word.strip_prefix("address="))?;
    Some(address.trim_matches('"').to_owned())
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
            self.succeeds("wait --for=condition=Ready --timeout=10s darkroom/darkroom-sample webserver/webserver-sample configmonitor/flakapp-config-monitor")
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
            self.succeeds("rollout status deployment/webserver-sample --timeout=10s")
        })?;
        self.wait("the WebServer to say so", || {
            self.succeeds("wait --for=condition=Ready --timeout=10s webserver/webserver-sample")
        })?;
        self.kubectl("get deployment webserver-sample -o wide")?;

        say("deleting its Service");
        let uid = "get service webserver-sample-service --ignore-not-found -o jsonpath={.metadata.uid}";
        let before = self.output(uid)?;
        ensure!(!before.is_empty(), "the Service was never there");
        self.kubectl("get service webserver-sample-service")?;
        self.kubectl("delete service webserver-sample-service")?;
        self.wait("it to be back", || match self.output(uid) {
            Ok(now) => Look::reached_if(!now.is_empty() && now != before, || format!("its uid is {now:?}")),
            Err(error) => Look::NotYet(format!("{error:#}")),
        })?;
        self.kubectl("get service webserver-sample-service")?;

        say("editing the ConfigMap that the Deployment frontend uses: its ConfigMonitor restarts it");
        let rollout = "rollout status deployment/frontend --timeout=10s";
        self.wait("the frontend to run", || self.succeeds(rollout))?;
        let revision = r"get deployment frontend -o jsonpath={.metadata.annotations.deployment\.kubernetes\.io/revision}";
        ensure!(self.output(revision)? == "1", "nothing has restarted the frontend so far");
        self.quiet(
            r#"patch configmap flaskapp-config --type=merge -p {"data":{"config.cfg":"MSG=\"Hello\""}}"#,
        )?;
        self.wait("its Pods to be replaced", || match self.reads(revision, "2") {
            Look::Reached(()) => self.succeeds(rollout),
            not_yet => not_yet,
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
            self.succeeds("wait --for=condition=Ready --timeout=10s darkroom/darkroom-sample")
        })?;
        self.kubectl("get reconcilers")?;
        self.kubectl("get darkrooms -o wide")?;
        Ok(())
    }

    fn wait(&self, what: &str, mut look: impl FnMut() -> Look<()>) -> Result<()> {
        let started = Instant::now();
        eventually(what, || Ok(look())).inspect_err(|_| {
            let _ = self.kubectl("get modules,reconcilers,darkrooms,webservers,configmonitors -o yaml");
        })?;
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

    /// Whether kubectl succeeds. What it complains of may pass.
    fn succeeds(&self, line: &str) -> Look<()> {
        match self.output(line) {
            Ok(_) => Look::Reached(()),
            Err(error) => Look::NotYet(format!("{error:#}")),
        }
    }

    /// Whether kubectl prints this.
    fn reads(&self, line: &str, wanted: &str) -> Look<()> {
        match self.output(line) {
            Ok(found) => Look::reached_if(found == wanted, || format!("kubectl {line}: {found:?}")),
            Err(error) => Look::NotYet(format!("{error:#}")),
        }
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
        let mut command = Command::new(&self.pintle);
        command.args(arguments).env("KUBECONFIG", self.plane.kubeconfig());
        if arguments.contains(&"--wait") {
            command.args(["--timeout", &format!("{}s", Patience::default().whole().as_secs())]);
        }
        let status = command.status()?;
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
    fn a_server_says_where_it_listens_in_a_whole_line_with_these_words() {
        let log = "INFO run: Waits address=1.1.1.1:1\nINFO run: It starts version=\"1\" address=\"127.0.0.1:80\" tls=false\n";
        assert_eq!(address(log, "It starts").as_deref(), Some("127.0.0.1:80"));
        assert_eq!(address(log, "It ends"), None);
        assert_eq!(address("INFO run: It starts address=127.0.0.1:8", "It starts"), None, "it may be 80");
    }

    #[test]
    fn what_is_shown_can_be_pasted_into_a_shell() {
        assert_eq!(pasted("get modules,reconcilers"), "get modules,reconcilers");
        let patch = r#"patch ws/a --type=merge -p {"spec":{"replicas":4}}"#;
        assert_eq!(pasted(patch), r#"patch ws/a --type=merge -p '{"spec":{"replicas":4}}'"#);
    }
}
