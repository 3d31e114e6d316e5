//! Views, as people and controllers meet them: the farm, served by two gateways behind the API server. What needs nothing but commands is in
//! `commands/farm.txt`.

mod identity;
mod large;

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context, ensure};
use kit::{
    Look,
    host::{or_error, tail},
    process,
};
use kube::core::{ApiResource, GroupVersionKind};
use pintle_testbed::{ControlPlane, Relay, Server, eventually};
use serde_json::Value;

use crate::{beside, commands, informers::Informers, repository};

pub(crate) const NAME: &str = "the farm is an API like any other, to people and to controllers";

/// See [`large_lists`].
pub(crate) const LARGE: &str = "a small gateway lives through large lists";

/// What is seen of it in tier one.
pub(crate) const SMOKE: &str = "the farm is served, and kubectl is answered";

/// What is seen of it on Kubernetes 1.35.
pub(crate) const OLDER: &str = "a view that acts as its caller says what an older API server lacks";

const NAMESPACE: &str = "farm";

/// Group, version, kind and plural.
const LLAMAS: [&str; 4] = ["farm.example.com", "v1alpha", "Llama", "llamas"];

/// A gateway, as a process of its own.
struct Gateway {
    server: Server,
    address: SocketAddr,
}

impl Gateway {
    fn start(address: SocketAddr, kubeconfig: &Path, log: &Path) -> anyhow::Result<Self> {
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
        let address = address.to_string();
        let words = ["gateway", "--aggregated-bind", &address];
        let mut server = process::start(by, &[&words[..], flags].concat(), kubeconfig, log, &[])?;
        let address = server.address("The gateway starts")?;
        Ok(Self { server, address })
    }
}

fn any_port() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

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

pub(crate) async fn on_an_older_server(plane: &ControlPlane) -> anyhow::Result<()> {
    let work = async |farm: &mut Farm<'_>| {
        farm.says(OLDER)?;
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
        commands::farm(plane, "records of llamas can be stored")?;
        let kubeconfig = plane.kubeconfig_for_service_account("pintle-system", "pintle-gateway")?;
        let log = plane.directory().join("gateway.log");
        let start = || Gateway::start(any_port(), &kubeconfig, &log);
        let gateways = [start()?, start()?];
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
        let error = error.context(tail(&self.log, &[], 20).join("\n"));
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
        let namespaces = format!("{NAMESPACE} farm-2 farm-3 large tickets");
        self.run(&format!("delete namespace --ignore-not-found --timeout=180s {namespaces}"), None)?;
        self.run("delete clusterrolebinding --ignore-not-found large", None).map(drop)
    }

    /// What commands say of the farm: a case of `commands/farm.txt`.
    fn says(&self, claim: &'static str) -> anyhow::Result<()> {
        commands::farm(self.plane, claim)
    }

    fn is_served(&self) -> anyhow::Result<()> {
        self.says("the API server has the farm from the gateways")
    }

    /// The next check begins with what is missing.
    fn leaves_nothing_behind(&self) -> anyhow::Result<()> {
        self.run("delete views --all --timeout=180s", None)?;
        self.run("delete module farm-0.1.0 tickets-0.1.0 --ignore-not-found --timeout=180s", None).map(drop)
    }

    async fn check(&mut self) -> anyhow::Result<()> {
        self.says("a view says what is missing")?;
        self.is_served()?;
        self.kubectl_is_answered()?;
        self.says("what names Llamas sees no write, and what names LlamaRecords sees every one")?;
        self.callers_are_who_the_api_server_says().await.context("identity")?;
        self.says("a Llama and what it owns are deleted in the way that was asked for")?;
        self.two_versions_of_one_resource_are_served().await.context("two versions")?;
        self.one_object_holds_up_nobody().await.context("one object among many")?;
        self.informers_stay_in_step().await?;
        self.a_namespace_waits_for_the_gateway()
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

    fn kubectl_is_answered(&self) -> anyhow::Result<()> {
        self.says("people have their rights")?;
        self.says("kubectl is answered as by any other API")?;
        self.says("a watch shows a change, and who waits for the end of an object is told of it")?;
        self.says("what leaves a selection is not taken for what it was")?;
        self.the_audit_log_names_the_person()
    }

    /// What kubectl says in the namespace of the farm, and whether it succeeds.
    fn kubectl(&self, words: &str) -> anyhow::Result<(bool, String)> {
        let mut command = self.plane.kubectl_command();
        command.args(words.split(' ')).args(["--namespace", NAMESPACE]).stdin(Stdio::null());
        let output = command.output()?;
        let said = [output.stdout, output.stderr].concat();
        Ok((output.status.success(), String::from_utf8_lossy(&said).into_owned()))
    }

    /// Whether kubectl succeeds, as in [`Self::kubectl`], or what it says instead.
    fn succeeds(&self, words: &str) -> anyhow::Result<Look<()>> {
        let (succeeds, said) = self.kubectl(words)?;
        Ok(Look::reached_if(succeeds, || said))
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

    async fn informers(&self, resource: [&str; 4], namespace: &str) -> anyhow::Result<Informers> {
        let [group, version, kind, plural] = resource;
        let kind = GroupVersionKind::gvk(group, version, kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, plural);
        Informers::start(self.plane.kubeconfig(), &resource, Some(namespace)).await
    }

    /// Two versions of Ticket over what the first one stores: no farm, with defaults, a label selector, and objects that cannot be shown.
    async fn two_versions_of_one_resource_are_served(&self) -> anyhow::Result<()> {
        for version in ["v1", "v2"] {
            let file = repository().join(format!("host/tests/tickets/deploy/apiservice-{version}.yaml"));
            self.serve(&file.to_string_lossy())?;
        }
        self.says("two versions of a resource are served")?;
        let tickets = ["tickets.example.com", "v2", "Ticket", "tickets"];
        let mut informers = self.informers(tickets, "tickets").await?;
        for step in commands::tickets() {
            step.run(self.plane)?;
            // After each, since an informer that was late would see the first and the last state alone.
            informers.wait_until_in_step().await.with_context(|| format!("after {}", step.steps))?;
        }
        for told in informers.told("tickets/a") {
            let is_told = told.iter().any(|event| event == "delete");
            ensure!(is_told, "nobody was told that it was not shown: {told:?}");
        }
        drop(informers);
        self.says("an object that no version can show is named, and its namespace can be deleted")
    }

    /// One big object holds up nobody, and one that cannot be shown only where the View says so.
    async fn one_object_holds_up_nobody(&self) -> anyhow::Result<()> {
        self.says("one object holds up nobody")?;
        let mut informers = self.informers(LLAMAS, NAMESPACE).await.context("informers")?;
        informers.wait_until_in_step().await.context("beside one that cannot be shown")?;
        self.says("what can be shown and what cannot change places")?;
        informers.wait_until_in_step().await.context("after they changed places")?;
        self.says("lists tell of it")
    }

    /// While nobody can be asked, a namespace stays, and so does what a Llama owns.
    fn a_namespace_waits_for_the_gateway(&mut self) -> anyhow::Result<()> {
        self.says("a namespace has a llama, and a llama owns something")?;
        let addresses: Vec<_> = self.gateways.drain(..).flatten().map(|gateway| gateway.address).collect();
        self.says("while nobody can be asked, a namespace stays, and so does what a Llama owns")?;
        for address in addresses {
            self.gateways.push(Some(Gateway::start(address, &self.kubeconfig, &self.log)?));
        }
        self.says("what is stored outlives the gateways and the view")
    }

    /// Informers believe what is shown, through a swap, the loss of a gateway, and its return.
    async fn informers_stay_in_step(&mut self) -> anyhow::Result<()> {
        let mut informers = self.informers(LLAMAS, NAMESPACE).await?;
        self.write_llamas(0..10)?;
        informers.wait_until_in_step().await.context("after ten llamas were made")?;
        self.says("another module comes into force")?;
        self.write_llamas(5..15)?;
        informers.wait_until_in_step().await.context("after a swap")?;
        let lost = self.gateways.first_mut().and_then(Option::take).context("two gateways")?;
        let address = lost.address;
        drop(lost);
        self.write_llamas(10..20)?;
        informers.wait_until_in_step().await.context("after a gateway was lost")?;
        self.gateways.push(Some(Gateway::start(address, &self.kubeconfig, &self.log)?));
        self.write_llamas(0..5)?;
        self.run(&format!("delete llamas llama-7 llama-8 --namespace={NAMESPACE}"), None)?;
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

fn in_deploy(file: &str) -> String {
    repository().join("deploy").join(file).to_string_lossy().into_owned()
}
