//! Views, as people and controllers meet them: the farm, served by two gateways behind the API server.

mod admission;
mod crowds;
mod garbage;
mod identity;
mod large;
mod tickets;
mod unshowable;

use std::{
    fs::{File, OpenOptions},
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context, ensure};
use kit::{
    Look,
    host::{or_error, wait_for_address},
};
use kube::core::{ApiResource, GroupVersionKind};
use pintle_testbed::{ControlPlane, Relay, eventually};
use serde_json::Value;

use crate::{beside, commands, informers::Informers, modules::guests, repository};

pub(crate) const NAME: &str = "the farm is an API like any other, to people and to controllers";

/// See [`large_lists`].
pub(crate) const LARGE: &str = "a small gateway lives through large lists";

/// What is seen of it in tier one.
pub(crate) const SMOKE: &str = "the farm is served, and kubectl is answered";

const NAMESPACE: &str = "farm";

/// A gateway, as a process of its own. Dropping it ends it.
struct Gateway {
    child: Child,
    log: PathBuf,
    /// Where its own lines begin in the log.
    begins: u64,
    address: SocketAddr,
}

impl Gateway {
    fn start(kubeconfig: &Path, log: &Path) -> anyhow::Result<Self> {
        Self::start_at(any_port(), kubeconfig, log)
    }

    fn start_at(address: SocketAddr, kubeconfig: &Path, log: &Path) -> anyhow::Result<Self> {
        Self::start_through(&[], address, kubeconfig, log, &[])
    }

    /// Starts a gateway by way of a command that becomes it, with further flags.
    fn start_through(
        by: &[&str],
        address: SocketAddr,
        kubeconfig: &Path,
        log: &Path,
        flags: &[&str],
    ) -> anyhow::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(log)?;
        let begins = file.metadata()?.len();
        let words: Vec<&str> = by.iter().copied().chain([env!("CARGO_BIN_EXE_pintle"), "gateway"]).collect();
        let (program, words) = words.split_first().context("a program")?;
        let child = Command::new(program)
            .args(words)
            .args(flags)
            .args(["--log-format", "json", "--aggregated-bind", &address.to_string(), "--kubeconfig"])
            .arg(kubeconfig)
            .env_remove("KUBECONFIG")
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .context("starting the gateway")?;
        let mut gateway = Self { child, log: log.to_owned(), begins, address };
        gateway.address = gateway.logged("The gateway starts")?;
        Ok(gateway)
    }

    /// The address of its console.
    fn console(&mut self) -> anyhow::Result<SocketAddr> {
        self.logged("The console is served")
    }

    fn logged(&mut self, message: &str) -> anyhow::Result<SocketAddr> {
        wait_for_address(&mut self.child, &self.log, self.begins, message)
    }
}

fn any_port() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A kubectl that runs. Dropping it ends it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What kubectl reads.
pub(crate) const DOLLY: &str = r#"{"apiVersion": "farm.example.com/v1alpha", "kind": "Llama", "metadata": {"name": "dolly"}, "spec": {"height": 0.5, "weight": 31.4}}"#;

struct Farm<'a> {
    plane: &'a ControlPlane,
    log: PathBuf,
    kubeconfig: PathBuf,
    gateways: Vec<Option<Gateway>>,
    relay: Relay,
}

pub(crate) async fn check(plane: &ControlPlane) -> anyhow::Result<()> {
    with_farm(plane, async |farm| farm.check().await).await
}

/// As [`check`], for what every other claim about views rests on.
pub(crate) async fn smoke(plane: &ControlPlane) -> anyhow::Result<()> {
    let work = async |farm: &mut Farm<'_>| {
        farm.is_served()?;
        farm.people()?;
        farm.kubectl_is_answered()?;
        farm.run(&format!("delete namespace {NAMESPACE} --timeout=180s"), None)?;
        farm.leaves_nothing_behind()
    };
    with_farm(plane, work).await
}

/// Compares Llamas with objects of a CRD: all that can be asked, or what `PINTLE_BESIDE` names. With `PINTLE_BESIDE_LONG`, crowds are large.
pub(crate) async fn beside_a_crd(plane: &ControlPlane) -> anyhow::Result<()> {
    let work = async |farm: &mut Farm<'_>| {
        farm.is_served()?;
        let filter = std::env::var("PINTLE_BESIDE").ok();
        beside::compare(plane, filter.as_deref(), std::env::var_os("PINTLE_BESIDE_LONG").is_some()).await?;
        farm.leaves_nothing_behind()
    };
    with_farm(plane, work).await
}

/// Lists objects as large as they may be.
pub(crate) async fn large_lists(plane: &ControlPlane) -> anyhow::Result<()> {
    let work = async |farm: &mut Farm<'_>| {
        farm.is_served()?;
        farm.a_small_gateway_lives_through_large_lists().await?;
        farm.leaves_nothing_behind()
    };
    with_farm(plane, work).await
}

/// The farm is there for this work.
async fn with_farm(
    plane: &ControlPlane,
    work: impl AsyncFnOnce(&mut Farm<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut farm = Farm::start(plane)?;
    let outcome = work(&mut farm).await;
    farm.ended(outcome)
}

impl<'a> Farm<'a> {
    fn start(plane: &'a ControlPlane) -> anyhow::Result<Self> {
        for file in ["gateway.yaml", "samples/farm/crd.yaml", "samples/farm/rbac.yaml"] {
            plane.run_kubectl(&["apply", "--server-side", "--filename", &in_deploy(file)], None)?;
        }
        let wait = [
            "wait",
            "--for=condition=Established",
            "--timeout=180s",
            "crd/llamarecords.store.farm.example.com",
        ];
        plane.run_kubectl(&wait, None)?;
        let kubeconfig = plane.kubeconfig_for_service_account("pintle-system", "pintle-gateway")?;
        let log = plane.directory().join("gateway.log");
        let gateways = [Gateway::start(&kubeconfig, &log)?, Gateway::start(&kubeconfig, &log)?];
        let relay = Relay::start(&gateways.each_ref().map(|gateway| gateway.address))?;
        let gateways = gateways.into_iter().map(Some).collect();
        let farm = Self { plane, log, kubeconfig, gateways, relay };
        farm.serve(&in_deploy("samples/farm/apiservice.yaml"))?;
        farm.run(&format!("apply --server-side --filename={}", in_deploy("samples/farm/views.yaml")), None)?;
        Ok(farm)
    }

    /// The farm is taken away, and why the work failed is told with the end of the gateways' log.
    fn ended(self, outcome: anyhow::Result<()>) -> anyhow::Result<()> {
        let Err(error) = outcome else { return self.leave() };
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let last: Vec<&str> = log.lines().rev().take(20).collect();
        let error = error.context(last.into_iter().rev().collect::<Vec<_>>().join("\n"));
        match self.leave_all() {
            Ok(()) => Err(error),
            Err(also) => Err(error.context(format!("the next try finds what this one made: {also:#}"))),
        }
    }

    /// The API server asks a group that leads nowhere with everything that it does for a namespace.
    fn leave(&self) -> anyhow::Result<()> {
        let services = "v1alpha.farm.example.com v1.tickets.example.com v2.tickets.example.com";
        self.run(&format!("delete apiservice --ignore-not-found {services}"), None).map(drop)
    }

    /// Work that failed may have left anything behind, and is tried again.
    fn leave_all(&self) -> anyhow::Result<()> {
        self.leaves_nothing_behind()?;
        self.leave()?;
        let namespaces = format!("{NAMESPACE} farm-2 farm-3 farm-4 large tickets");
        self.run(&format!("delete namespace --ignore-not-found --timeout=180s {namespaces}"), None)?;
        self.run("delete clusterrolebinding --ignore-not-found large", None).map(drop)
    }

    /// Waits until the API server has it from the gateways.
    fn is_served(&self) -> anyhow::Result<()> {
        self.push("farm-0.1.0", "farm")?;
        self.run("wait --for=condition=Available --timeout=180s apiservice/v1alpha.farm.example.com", None)?;
        self.run("wait --for=condition=Registered --timeout=180s views --all", None)?;
        // The API server reads the OpenAPI document of a new API when it gets to it.
        eventually("the API server has the OpenAPI document", || self.succeeds("explain llama"))
    }

    /// The next check begins with what is missing.
    fn leaves_nothing_behind(&self) -> anyhow::Result<()> {
        self.run("delete views --all --timeout=180s", None)?;
        self.run("delete module farm-0.1.0 tickets-0.1.0 --ignore-not-found --timeout=180s", None).map(drop)
    }

    async fn check(&mut self) -> anyhow::Result<()> {
        self.a_view_says_what_is_missing()?;
        self.is_served()?;
        self.people()?;
        self.kubectl_is_answered()?;
        self.admission_is_that_of_what_is_stored().context("admission")?;
        self.callers_are_who_they_prove_to_be().await.context("identity")?;
        self.slow_bodies_hold_up_nobody().await.context("slow bodies")?;
        self.garbage_is_collected().context("garbage collection")?;
        self.two_versions_of_one_resource_are_served().await.context("two versions")?;
        self.one_object_holds_up_nobody().await.context("one object among many")?;
        self.informers_stay_in_step().await?;
        self.a_namespace_waits_for_the_gateway().context("a namespace deleted without a gateway")?;
        self.what_is_stored_outlives_the_view().context("the view taken away")
    }

    /// Sends the requests for the API of this file with an APIService to the gateways.
    fn serve(&self, file: &str) -> anyhow::Result<()> {
        let read = self.run(&format!("create --dry-run=client --output=json --filename={file}"), None)?;
        self.plane.serve_api_on_loopback(&serde_json::from_str(&read)?, self.relay.address().port())
    }

    /// What kubectl prints, which must succeed.
    fn run(&self, words: &str, stdin: Option<&str>) -> anyhow::Result<String> {
        self.plane.run_kubectl(&words.split(' ').collect::<Vec<_>>(), stdin)
    }

    /// A field of an object.
    fn field(&self, object: &str, path: &str) -> anyhow::Result<String> {
        self.run(&format!("get {object} --output=jsonpath={{{path}}}"), None)
    }

    fn a_view_says_what_is_missing(&self) -> anyhow::Result<()> {
        let missing = [
            "wait",
            "--for=jsonpath={.status.conditions[?(@.type==\"Ready\")].reason}=ModuleMissing",
            "--timeout=180s",
            "view/llamas",
        ];
        self.plane.run_kubectl(&missing, None).map(drop)
    }

    fn push(&self, name: &str, guest: &str) -> anyhow::Result<()> {
        let pushed = Command::new(env!("CARGO_BIN_EXE_pintle"))
            .args(["push", name])
            .arg(guests().join(format!("{guest}.wasm")))
            .env("KUBECONFIG", self.plane.kubeconfig())
            .output()?;
        ensure!(pushed.status.success(), "{}", String::from_utf8_lossy(&pushed.stderr));
        Ok(())
    }

    /// Ann may edit the namespace; Eve may see the farm, and no Pods; Jane may do nothing.
    fn people(&self) -> anyhow::Result<()> {
        self.plane.run_kubectl(&["create", "namespace", NAMESPACE], None)?;
        for (name, binding) in [("ann", "--clusterrole=edit"), ("eve", "--clusterrole=farm-viewer")] {
            let user = format!("--user={name}");
            self.plane.run_kubectl(
                &["create", "rolebinding", name, binding, &user, "--namespace", NAMESPACE],
                None,
            )?;
        }
        // The roles are aggregated by a controller.
        eventually("ann may list llamas", || self.succeeds("auth can-i list llamas --as=ann"))
    }

    fn kubectl_is_answered(&self) -> anyhow::Result<()> {
        commands::FARM.run(self.plane)?;
        self.kubectl_watches_and_waits()?;
        self.what_leaves_a_selection_is_not_taken_for_what_it_was()?;
        self.the_audit_log_names_the_person()
    }

    /// A watch shows a change, and who waits for the end of an object is told of it.
    fn kubectl_watches_and_waits(&self) -> anyhow::Result<()> {
        self.run(
            &format!("create --namespace={NAMESPACE} --filename=-"),
            Some(&DOLLY.replace("dolly", "molly")),
        )?;
        let file = |name: &str| self.plane.directory().join(name);
        let start = |words: &str, output: &Path, requests: &Path| -> anyhow::Result<Running> {
            let mut command = self.plane.kubectl_command();
            command.args(words.split(' ')).args(["--namespace", NAMESPACE]).stdin(Stdio::null());
            command.stdout(File::create(output)?).stderr(File::create(requests)?);
            Ok(Running(command.spawn()?))
        };
        let (output, requests) = (file("watch.txt"), file("watch-requests.txt"));
        let watch = start("get llama molly --watch", &output, &requests)?;
        eventually("the watch shows her", || says(&output, &["31.4"]))?;
        self.kubectl("patch llama molly --type=merge --patch={\"spec\":{\"weight\":77}}")?;
        eventually("the watch shows what she weighs now", || says(&output, &["77"]))?;
        drop(watch);
        let (output, requests) = (file("wait.txt"), file("wait-requests.txt"));
        let mut wait = start("wait --for=delete llama/molly --timeout=180s --v=6", &output, &requests)?;
        // It says each of its requests, and must have found her before she goes.
        eventually("kubectl has found her", || says(&requests, &["molly", "200 OK"]))?;
        self.kubectl("delete llama molly")?;
        ensure!(wait.0.wait()?.success(), "kubectl does not notice that she is gone");
        let said = std::fs::read_to_string(&output)?;
        ensure!(said.contains("condition met"), "kubectl waited for something else: {said}");
        Ok(())
    }

    /// The event about an object that leaves a selection has the content from before the change, and the version after it.
    fn what_leaves_a_selection_is_not_taken_for_what_it_was(&self) -> anyhow::Result<()> {
        let holly =
            DOLLY.replace("{\"name\": \"dolly\"}", "{\"name\": \"holly\", \"labels\": {\"app\": \"web\"}}");
        self.run(&format!("create --namespace={NAMESPACE} --filename=-"), Some(&holly))?;
        let output = self.plane.directory().join("selected.txt");
        let mut watch = self.plane.kubectl_command();
        watch
            .args(["get", "llamas", "--selector=app=web", "--watch", "--output-watch-events"])
            .args(["--namespace", NAMESPACE])
            .stdin(Stdio::null())
            .stdout(File::create(&output)?);
        let _watch = Running(watch.spawn()?);
        eventually("the watch shows her", || says(&output, &["ADDED"]))?;
        let change = r#"--patch={"metadata":{"labels":{"app":null}},"spec":{"weight":99}}"#;
        self.run(&format!("patch llamarecord holly --namespace={NAMESPACE} --type=merge {change}"), None)?;
        eventually("the watch says that she is none of them", || says(&output, &["DELETED"]))?;
        // Both gateways answer in turns.
        for _ in 0..4 {
            let weight = self.field(&format!("llama holly --namespace={NAMESPACE}"), ".spec.weight")?;
            ensure!(weight == "99", "she weighs 99, and is shown with {weight}");
        }
        let height = r#"--patch={"spec":{"height":2}}"#;
        for _ in 0..2 {
            self.run(&format!("patch llama holly --namespace={NAMESPACE} --type=merge {height}"), None)?;
        }
        let stored = self.field(&format!("llamarecord holly --namespace={NAMESPACE}"), ".spec")?;
        ensure!(stored == r#"{"height":2,"weight":99}"#, "a patch of the height stored {stored}");
        self.run(&format!("delete llama holly --namespace={NAMESPACE}"), None).map(drop)
    }

    /// What kubectl says in the namespace of the farm, and whether it succeeds. Dolly is what it reads.
    fn kubectl(&self, words: &str) -> anyhow::Result<(bool, String)> {
        match words.contains("amespace") || words.starts_with("get --raw") {
            true => self.asked(words, DOLLY),
            false => self.asked(&format!("{words} --namespace={NAMESPACE}"), DOLLY),
        }
    }

    /// Whether kubectl succeeds, as in [`Self::kubectl`], or what it says instead.
    fn succeeds(&self, words: &str) -> anyhow::Result<Look<()>> {
        let (succeeds, said) = self.kubectl(words)?;
        Ok(Look::reached_if(succeeds, || said))
    }

    /// What kubectl says, and whether it succeeds.
    fn asked(&self, words: &str, stdin: &str) -> anyhow::Result<(bool, String)> {
        let mut command = self.plane.kubectl_command();
        command.args(words.split(' ')).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        if let Some(mut pipe) = child.stdin.take() {
            use std::io::Write as _;
            // kubectl reads it only where it is told to.
            let _ = pipe.write_all(stdin.as_bytes());
        }
        let output = child.wait_with_output()?;
        let said = [output.stdout, output.stderr].concat();
        Ok((output.status.success(), String::from_utf8_lossy(&said).into_owned()))
    }

    fn the_audit_log_names_the_person(&self) -> anyhow::Result<()> {
        let Some(log) = self.plane.audit_log() else {
            println!("        skipped: whom the API server takes for who lists Pods, no audit log");
            return Ok(());
        };
        eventually("the audit log says that Ann listed Pods", || {
            let log = std::fs::read_to_string(log)?;
            let of_ann = log.lines().filter(|line| line.contains("\"ann\""));
            let events: Vec<Value> = of_ann.filter_map(|line| serde_json::from_str(line).ok()).collect();
            let is_so = events.iter().any(|event| {
                event["impersonatedUser"]["username"] == "ann" && event["objectRef"]["resource"] == "pods"
            });
            Ok(Look::reached_if(is_so, || format!("{} other events are about her", events.len())))
        })
    }

    /// Informers believe what is shown, through a swap, the loss of a gateway, and its return.
    async fn informers_stay_in_step(&mut self) -> anyhow::Result<()> {
        let llamas = ApiResource::from_gvk_with_plural(
            &GroupVersionKind::gvk("farm.example.com", "v1alpha", "Llama"),
            "llamas",
        );
        let mut informers = Informers::start(self.plane.kubeconfig(), &llamas, Some(NAMESPACE)).await?;
        self.write_llamas(0..10)?;
        informers.wait_until_in_step().await.context("after ten llamas were made")?;
        self.push("farm-again", "farm")?;
        self.plane.run_kubectl(
            &["patch", "view", "llamas", "--type=merge", "--patch", r#"{"spec":{"module":"farm-again"}}"#],
            None,
        )?;
        self.plane.run_kubectl(
            &["wait", "--for=jsonpath={.status.active.module}=farm-again", "--timeout=180s", "view/llamas"],
            None,
        )?;
        self.write_llamas(5..15)?;
        informers.wait_until_in_step().await.context("after a swap")?;
        let lost = self.gateways.first_mut().and_then(Option::take).context("two gateways")?;
        let address = lost.address;
        drop(lost);
        self.write_llamas(10..20)?;
        informers.wait_until_in_step().await.context("after a gateway was lost")?;
        self.gateways.push(Some(Gateway::start_at(address, &self.kubeconfig, &self.log)?));
        self.write_llamas(0..5)?;
        self.plane
            .run_kubectl(&["delete", "llamas", "--namespace", NAMESPACE, "llama-7", "llama-8"], None)?;
        informers.wait_until_in_step().await.context("after the gateway came back")
    }

    fn write_llamas(&self, range: std::ops::Range<u32>) -> anyhow::Result<()> {
        let nanos = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.subsec_nanos();
        let llamas: Vec<String> = range
            .map(|number| {
                let weight = nanos % 1_000 + number + 1;
                format!("{{apiVersion: farm.example.com/v1alpha, kind: Llama, metadata: {{name: llama-{number}, namespace: {NAMESPACE}}}, spec: {{weight: {weight}, height: 1}}}}")
            })
            .collect();
        let llamas = llamas.join("\n---\n");
        eventually("llamas can be written", || {
            let written = self.plane.run_kubectl(&["apply", "--filename=-"], Some(&llamas));
            or_error(written.map(|_| Look::Reached(())))
        })
    }
}

/// Whether a line of a file has all of these in it.
fn says(file: &Path, what: &[&str]) -> anyhow::Result<Look<()>> {
    let text = std::fs::read_to_string(file)?;
    let is_said = text.lines().any(|line| what.iter().all(|what| line.contains(what)));
    Ok(Look::reached_if(is_said, || format!("it says {text:?}")))
}

fn in_deploy(file: &str) -> String {
    repository().join("deploy").join(file).to_string_lossy().into_owned()
}
