//! One contestant on its own control plane, and its measurements.

use std::{
    fs,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use guest_bench::{BenchSpec, children};
use pintle_testbed::ControlPlane;
use serde_json::{Value, json};

use crate::{
    api::{Api, CHILDREN, ROOTS},
    calls::{self, Audit, Call, Moment},
    contestant::{Recipe, Running},
    figures::{Calls, Figures},
    loader,
    observer::Observer,
    plane,
    process::{self, Machine, Usage},
    settings::{Flags, Phase, Who},
};

/// How long a contestant must make no calls to count as quiet.
const STILL: Duration = Duration::from_millis(1500);

/// How long anything that does not depend on the load may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A contestant on its control plane.
pub(crate) struct Stage<'a> {
    pub(crate) flags: &'a Flags,
    pub(crate) run: u32,
    pub(crate) who: Who,
    pub(crate) api: Api,
    pub(crate) recipe: Recipe,
    pub(crate) figures: &'a mut Figures,
    audit: Audit,
    running: Option<Running>,
    // After the contestant, so that it is dropped later.
    pub(crate) plane: ControlPlane,
}

/// What an observer sees besides roots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObserverScope {
    /// Only roots.
    Nothing,
    /// The content of the ConfigMaps.
    Configs,
    /// The metadata of every child.
    Children,
}

/// The beginning of a phase.
pub(crate) struct Begun {
    pub(crate) at: Moment,
    pub(crate) usage: Usage,
    machine: Machine,
    guest_calls: u64,
    /// The speed of the machine.
    speed: f64,
}

/// The end of a phase.
pub(crate) struct Ended {
    pub(crate) calls: Vec<Call>,
    pub(crate) usage: Usage,
    pub(crate) quiet_seconds: f64,
}

impl<'a> Stage<'a> {
    /// Starts the control plane and the contestant, and waits until it watches.
    pub(crate) async fn start(
        flags: &'a Flags,
        run: u32,
        who: Who,
        with_controllers: bool,
        floor_concurrency: u32,
        figures: &'a mut Figures,
    ) -> Result<Self> {
        let plane = tokio::task::block_in_place(|| plane::start(with_controllers))?;
        let api = Api::connect(plane.kubeconfig()).await?;
        wait_served(&api).await?;
        tokio::task::block_in_place(|| match who {
            Who::Pintle => install_pintle(&plane, flags),
            _ => plane::install_account(&plane, who),
        })?;
        let (namespace, account) = plane::account(who);
        let kubeconfig = plane.kubeconfig_for_service_account(namespace, account)?;
        let audit = Audit::new(plane.audit_log().context("no audit log")?, plane::user(who));
        let recipe = Recipe::new(who, flags, kubeconfig, plane.directory(), floor_concurrency)?;
        let mut stage = Self { flags, run, who, api, recipe, figures, audit, running: None, plane };
        stage.start_contestant()?;
        if who == Who::Pintle {
            stage.push("bench", &stage.module("bench")?)?;
            stage
                .api
                .apply(
                    "/apis/pintle.dev/v1alpha1/reconcilers/bench",
                    "bench",
                    &reconciler("bench", "Bench", "bench"),
                )
                .await?;
            stage.wait_reconciler("bench").await?;
        }
        stage.wait_watching().await?;
        Ok(stage)
    }

    pub(crate) async fn stop(mut self) -> Result<()> {
        self.stop_contestant().await?;
        let Self { plane, .. } = self;
        tokio::task::block_in_place(|| plane.stop())
    }

    pub(crate) fn start_contestant(&mut self) -> Result<()> {
        self.running = Some(self.recipe.start()?);
        Ok(())
    }

    pub(crate) async fn stop_contestant(&mut self) -> Result<()> {
        match self.running.take() {
            Some(running) => running.stop().await,
            None => Ok(()),
        }
    }

    fn running(&mut self) -> Result<&mut Running> {
        self.running.as_mut().context("the contestant does not run")
    }

    pub(crate) fn usage(&mut self) -> Result<Usage> {
        let usage = self.running()?.usage();
        usage.with_context(|| format!("{} has gone; it logged:\n{}", self.who.name(), self.recipe.log_tail()))
    }

    pub(crate) fn guest_calls(&mut self) -> Result<u64> {
        self.running()?.guest_calls()
    }

    /// Begins a phase. The contestant may be down.
    pub(crate) fn begin(&mut self) -> Result<Begun> {
        let runs = self.running.is_some();
        let usage = if runs { self.usage()? } else { Usage::default() };
        let guest_calls = if runs { self.running()?.guest_calls()? } else { 0 };
        let speed = tokio::task::block_in_place(process::speed);
        Ok(Begun { at: Moment::now(), usage, machine: Machine::now()?, guest_calls, speed })
    }

    /// Waits until the contestant is quiet, and records the figures that every phase has. If a phase has several parts, `part` names one of
    /// them, and only its calls are recorded.
    pub(crate) async fn end(&mut self, phase: Phase, part: &'static str, begun: Begun) -> Result<Ended> {
        let quiet = self.audit.wait_quiet(begun.at, STILL).await?;
        let ended = self.close(phase, part, begun, quiet)?;
        Ok(ended)
    }

    /// As [`Stage::end`], without waiting.
    pub(crate) fn end_now(&mut self, phase: Phase, part: &'static str, begun: Begun) -> Result<Ended> {
        self.close(phase, part, begun, Moment::now())
    }

    fn close(&mut self, phase: Phase, part: &'static str, begun: Begun, quiet: Moment) -> Result<Ended> {
        let calls = self.audit.since(begun.at)?;
        let usage = self.usage()?;
        let machine = Machine::now()?;
        let seconds = Moment::now().seconds_since(begun.at);
        let quiet_seconds = quiet.seconds_since(begun.at);
        let guest_calls = usize::try_from(self.running()?.guest_calls()? - begun.guest_calls)?;
        let (apart, proper): (Vec<Call>, Vec<Call>) = calls.iter().cloned().partition(Call::is_apart);
        self.figures.calls.push(Calls {
            run: self.run,
            phase: phase.name(),
            who: self.who.name(),
            part,
            calls: calls::tally(&proper),
            apart: calls::tally(&apart),
        });
        if part.is_empty() {
            let mutating = calls.iter().filter(|call| call.is_mutating()).count();
            let reads = proper.iter().filter(|call| matches!(call.verb.as_str(), "get" | "list")).count();
            self.put(phase, "quiet_s", quiet_seconds);
            self.put(phase, "mutating_calls", count(mutating));
            self.put(phase, "reads", count(reads));
            self.put(phase, "cpu_s", usage.cpu_seconds - begun.usage.cpu_seconds);
            self.put(phase, "peak_mib", mebibytes(usage.peak_bytes));
            self.put(phase, "resident_mib", mebibytes(usage.resident_bytes));
            self.put(phase, "sleeps", count(usage.sleeps_since(&begun.usage)));
            self.put(phase, "apiserver_cpu_s", machine.program_since(&begun.machine, "kube-apiserver"));
            self.put(phase, "others_cores", machine.others_since(&begun.machine, seconds));
            let speed = tokio::task::block_in_place(process::speed);
            self.put(phase, "machine_speed", f64::midpoint(begun.speed, speed));
            if self.who == Who::Pintle {
                self.put(phase, "guest_calls", count(guest_calls));
                for (of, figure) in [("roots", "bytes_a_root"), ("children", "bytes_a_child")] {
                    let kept = |metric: &str| format!("pintle_cache_{metric}{{of=\"{of}\"}}");
                    let (bytes, objects) = (kept("bytes"), kept("objects"));
                    let objects = self.running()?.metric(&objects)?;
                    let bytes = self.running()?.metric(&bytes)?;
                    if objects > 0.0 {
                        self.put(phase, figure, bytes / objects);
                    }
                }
            }
        }
        Ok(Ended { calls, usage, quiet_seconds })
    }

    pub(crate) fn put(&mut self, phase: Phase, figure: &'static str, value: f64) {
        self.figures.put(self.run, phase, self.who, figure, value);
    }

    pub(crate) fn calls_since(&mut self, moment: Moment) -> Result<Vec<Call>> {
        self.audit.since(moment)
    }

    pub(crate) async fn wait_quiet(&mut self, since: Moment) -> Result<Moment> {
        self.audit.wait_quiet(since, STILL).await
    }

    /// A new observer of roots. It has seen everything that exists when this returns.
    pub(crate) async fn observer(&self, also: ObserverScope) -> Result<Observer> {
        let client = self.api.client();
        let observer = Observer::of_roots(client.clone());
        let (observer, configs, children) = match also {
            ObserverScope::Nothing => (observer, 0, 0),
            ObserverScope::Configs => {
                (observer.and_configs(client), self.api.list(CHILDREN[0]).await?.len(), 0)
            }
            ObserverScope::Children => {
                let lists = CHILDREN.map(|collection| self.api.list(collection));
                let children = futures::future::try_join_all(lists).await?.iter().map(Vec::len).sum();
                (observer.and_children(&client), 0, children)
            }
        };
        let roots = self.api.list(ROOTS).await?.len();
        observer
            .wait("the benchmark's own watches", PATIENCE, |seen| {
                let all =
                    seen.roots.len() >= roots && seen.configs.len() >= configs && seen.uids.len() >= children;
                all.then_some(())
            })
            .await?;
        // An empty list shows nothing. Its watch follows at once.
        tokio::time::sleep(Duration::from_millis(300)).await;
        Ok(observer)
    }

    /// Waits until the audit log shows that the contestant watches everything that it needs.
    async fn wait_watching(&mut self) -> Result<()> {
        let kinds: &[&str] = match self.who {
            Who::Floor => &["benches"],
            _ => &["benches", "configmaps", "deployments", "services", "ingresses"],
        };
        let until = Instant::now() + PATIENCE;
        loop {
            let calls = self.calls_since(Moment(Duration::ZERO))?;
            let watches = |kind: &&str| calls.iter().any(|call| call.is_watch() && call.resource == **kind);
            if kinds.iter().all(watches) {
                break;
            }
            self.usage()?;
            ensure!(
                Instant::now() < until,
                "{} does not watch; it logged:\n{}",
                self.who.name(),
                self.recipe.log_tail()
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        self.wait_quiet(Moment(Duration::ZERO)).await.map(|_| ())
    }

    /// Compares every child of these roots with what the logic returns.
    pub(crate) async fn check_children(
        &self,
        roots: std::ops::Range<u32>,
        replicas: u32,
        logic: &str,
    ) -> Result<()> {
        let live_roots = self.api.list(ROOTS).await?;
        let spec_of = |name: &str| -> Result<(BenchSpec, Value)> {
            let root = live_roots.iter().find(|root| root["metadata"]["name"] == name);
            let root = root.with_context(|| format!("root {name} is gone"))?;
            Ok((serde::Deserialize::deserialize(&root["spec"])?, root["metadata"]["uid"].clone()))
        };
        let mut kinds = Vec::new();
        for collection in CHILDREN {
            let items = self.api.list(collection).await?;
            let by_name = items
                .into_iter()
                .map(|item| (item["metadata"]["name"].as_str().unwrap_or_default().to_owned(), item));
            kinds.push(by_name.collect::<std::collections::BTreeMap<_, _>>());
        }
        for name in roots.map(loader::name) {
            let (spec, uid) = spec_of(&name)?;
            ensure!(spec.replicas == i32::try_from(replicas)?, "root {name} has other replicas");
            for (mut expected, found) in children(&name, &spec, logic).into_iter().zip(&kinds) {
                let kind = expected["kind"].take();
                // Items of a list have no apiVersion and kind.
                expected["apiVersion"].take();
                if let Some(expected) = expected.as_object_mut() {
                    expected.retain(|_, value| !value.is_null());
                }
                expected["metadata"]["ownerReferences"] = json!([{"uid": uid, "controller": true}]);
                let found = found.get(&name).with_context(|| format!("{kind} {name} is missing"))?;
                let difference = difference("", &expected, found);
                ensure!(
                    difference.is_none(),
                    "{kind} {name} is not right: {}",
                    difference.unwrap_or_default()
                );
            }
        }
        Ok(())
    }

    // === Only for Pintle ===

    /// The bytes of a built guest.
    pub(crate) fn module(&self, name: &str) -> Result<Vec<u8>> {
        let path = self.flags.guests.join(format!("{name}.wasm"));
        fs::read(&path).with_context(|| format!("reading {}", path.display()))
    }

    /// Uploads a module with `pintle push`, and waits until the host has loaded it.
    pub(crate) fn push(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let file = self.plane.directory().join(format!("{name}.wasm"));
        fs::write(&file, bytes)?;
        let mut command = Command::new(&self.flags.pintle);
        command.args(["push", name]).arg(&file).arg("--wait").env("KUBECONFIG", self.plane.kubeconfig());
        let output = tokio::task::block_in_place(|| command.output())?;
        ensure!(
            output.status.success(),
            "pintle push {name}: {}\n{}",
            String::from_utf8_lossy(&output.stderr),
            self.recipe.log_tail()
        );
        Ok(())
    }

    /// Waits until a Reconciler is ready.
    pub(crate) async fn wait_reconciler(&self, name: &str) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        loop {
            let live = self.api.get(&format!("/apis/pintle.dev/v1alpha1/reconcilers/{name}")).await?;
            let mut conditions = live["status"]["conditions"].as_array().into_iter().flatten();
            if conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True") {
                return Ok(());
            }
            ensure!(
                Instant::now() < until,
                "Reconciler {name} is not ready: {}\n{}",
                live["status"],
                self.recipe.log_tail()
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Waits until the API server serves the roots. For a moment after a CRD is established, it answers that their storage is being
/// initialized.
async fn wait_served(api: &Api) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    while let Err(error) = api.list(ROOTS).await {
        ensure!(Instant::now() < until, "the roots are not served: {error:#}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

/// Installs deploy/ and the guest's role as the README describes, with one difference. Without kube-controller-manager nobody fills an
/// aggregated ClusterRole, so the roles that it would combine are bound one by one.
fn install_pintle(plane: &ControlPlane, flags: &Flags) -> Result<()> {
    plane::apply_file(plane, &plane::repository().join("deploy/install.yaml"))?;
    // The host runs beside the control plane, with the same account and roles.
    plane
        .run_kubectl(&["scale", "deployment", "pintle", "--namespace=pintle-system", "--replicas=0"], None)?;
    let role = Command::new(&flags.pintle).arg("rbac").arg(flags.guests.join("bench.wasm")).output()?;
    ensure!(role.status.success(), "pintle rbac: {}", String::from_utf8_lossy(&role.stderr));
    plane.run_kubectl(
        &["apply", "--server-side", "--filename", "-"],
        Some(std::str::from_utf8(&role.stdout)?),
    )?;
    bind_roles(plane)
}

/// Binds every role that the host's aggregated role would combine to the host's account.
pub(crate) fn bind_roles(plane: &ControlPlane) -> Result<()> {
    let selector = "--selector=pintle.dev/aggregate-to-host=true";
    let roles = plane.run_kubectl(&["get", "clusterroles", selector, "--output=name"], None)?;
    let (namespace, account) = plane::account(Who::Pintle);
    let bindings: Vec<Value> = roles
        .lines()
        .filter_map(|line| line.rsplit('/').next())
        .map(|role| plane::binding(&format!("bench-{role}"), role, namespace, account))
        .collect();
    ensure!(!bindings.is_empty(), "deploy/ has no role for the host");
    plane::apply(plane, &bindings)
}

/// A Reconciler that binds a kind of the benchmark to a module.
pub(crate) fn reconciler(name: &str, kind: &str, module: &str) -> Value {
    json!({
        "apiVersion": "pintle.dev/v1alpha1", "kind": "Reconciler", "metadata": {"name": name},
        "spec": {
            "for": {"apiVersion": "bench.pintle.dev/v1", "kind": kind},
            "module": module,
            "grants": {
                "children": [
                    {"apiVersion": "v1", "kinds": ["ConfigMap", "Service"]},
                    {"apiVersion": "apps/v1", "kinds": ["Deployment"]},
                    {"apiVersion": "networking.k8s.io/v1", "kinds": ["Ingress"]},
                ],
                "services": {"types": ["ClusterIP"]},
            },
        },
    })
}

/// Where an object differs from what is expected. It may have more fields, because the API server sets defaults.
fn difference(path: &str, expected: &Value, found: &Value) -> Option<String> {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => expected.iter().find_map(|(key, value)| {
            difference(&format!("{path}.{key}"), value, found.get(key).unwrap_or(&Value::Null))
        }),
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
            expected.iter().zip(found).enumerate().find_map(|(index, (expected, found))| {
                difference(&format!("{path}[{index}]"), expected, found)
            })
        }
        _ => (expected != found).then(|| format!("{path} is {found} instead of {expected}")),
    }
}

/// A count, as a figure.
#[allow(clippy::cast_precision_loss, reason = "counts here are small")]
pub(crate) fn count(count: usize) -> f64 {
    count as f64
}

#[allow(clippy::cast_precision_loss, reason = "what a process uses is far below 2^53 bytes")]
pub(crate) fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_may_have_more_but_not_less_than_expected() {
        let found = json!({"a": {"b": 1, "c": 2}, "d": [{"e": 1, "f": 2}]});
        assert_eq!(difference("", &json!({"a": {"b": 1}, "d": [{"e": 1}]}), &found), None);
        assert_eq!(
            difference("", &json!({"d": []}), &found).as_deref(),
            Some(".d is [{\"e\":1,\"f\":2}] instead of []")
        );
        assert!(difference("", &json!({"a": {"x": 1}}), &found).is_some());
    }
}
