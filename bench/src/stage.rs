//! One contestant on its own control plane, and its measurements.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    ops::Range,
    path::PathBuf,
    process::Command,
};

use anyhow::{Context, Result, bail};
use futures::future::try_join_all;
use guest_bench::{BenchSpec, children};
use jiff::Timestamp;
use pintle_testbed::{ControlPlane, Look, Server, asynchronous::eventually, output};
use serde::Deserialize as _;
use serde_json::{Value, json};
use tokio::task::block_in_place;

use crate::{
    api::{Api, CHILDREN, ROOTS},
    calls::{Audit, tally},
    farm,
    figures::Figures,
    loader, plane,
    process::{Meter, Usage},
    settings::{Flags, Part, Phase, Who, built, name},
};

/// A contestant on its control plane.
pub(crate) struct Stage<'a> {
    pub(crate) flags: &'a Flags,
    pub(crate) who: Who,
    /// The administrator.
    pub(crate) api: Api,
    /// The logic of NATIVE. Pintle's logic comes from the cluster.
    pub(crate) logic: u32,
    run: u32,
    part: Part,
    figures: &'a mut Figures,
    kubeconfig: PathBuf,
    /// The kubeconfig of whoever reads through views and writes.
    pub(crate) user: PathBuf,
    /// The calls of the contestant.
    pub(crate) audit: Audit,
    running: Option<Server>,
    // After the contestant, so that it is dropped later.
    pub(crate) plane: ControlPlane,
}

impl<'a> Stage<'a> {
    /// Starts the control plane and the contestant, and waits until it is ready.
    pub(crate) async fn start(
        flags: &'a Flags,
        run: u32,
        who: Who,
        part: Part,
        figures: &'a mut Figures,
    ) -> Result<Self> {
        let plane = block_in_place(|| plane::start(part))?;
        let api = Api::connect(plane.kubeconfig()).await?;
        // For a moment after a CRD is established, the API server answers that the storage of its objects is being initialized.
        api.wait(ROOTS).await?;
        block_in_place(|| match (who, part) {
            (Who::Floor | Who::Native, _) => Ok(()),
            (_, Part::Views) => plane::install(&plane, &farm::MANIFESTS),
            (_, Part::Operator) => {
                plane::install(&plane, &["deploy/install.yaml"])?;
                plane::bind_roles(&plane, &flags.program(who)?)
            }
        })?;
        let (namespace, account) = plane::account(who, part);
        let kubeconfig = plane.kubeconfig_for_service_account(namespace, account)?;
        let user = plane.kubeconfig_for_service_account(plane::ACCOUNTS, "user")?;
        let audit_log = plane.audit_log().context("an existing cluster shows no audit log")?;
        let audit = Audit::new(audit_log, format!("system:serviceaccount:{namespace}:{account}"));
        let (logic, running) = (1, None);
        let mut stage =
            Self { flags, who, api, logic, run, part, figures, kubeconfig, user, audit, running, plane };
        stage.open().await.with_context(|| stage.end_of_log())?;
        Ok(stage)
    }

    async fn open(&mut self) -> Result<()> {
        self.start_contestant()?;
        if self.part == Part::Views {
            return farm::open(self).await;
        }
        if self.who.is_pintle() {
            block_in_place(|| {
                self.push("bench", "bench.wasm")?;
                plane::apply_file(&self.plane, "bench/reconciler.yaml")?;
                let ready = ["wait", "--for=condition=Ready", "reconciler/bench", "--timeout=60s"];
                self.plane.run_kubectl(&ready, None)
            })?;
        }
        self.wait_watching(Timestamp::UNIX_EPOCH).await?;
        self.audit.wait_quiet(Timestamp::now()).await.map(drop)
    }

    pub(crate) fn stop(mut self) -> Result<()> {
        self.stop_contestant()?;
        block_in_place(|| self.plane.stop())
    }

    /// The command line of the contestant.
    fn command(&self) -> Result<Command> {
        let mut command = Command::new(self.flags.program(self.who)?);
        command.env("KUBECONFIG", &self.kubeconfig);
        match (self.who, self.part) {
            (Who::Floor, _) => command.arg("floor"),
            (Who::Native, _) => {
                command.arg("--health-probe-bind-address=0").arg(format!("--logic={}", self.logic))
            }
            (_, Part::Operator) => command.args(["operator", "--bind=127.0.0.1:0"]),
            (_, Part::Views) => {
                command.args(["gateway", "--aggregated-bind=127.0.0.1:0", "--health-bind=127.0.0.1:0"])
            }
        };
        Ok(command)
    }

    pub(crate) fn start_contestant(&mut self) -> Result<()> {
        let mut command = self.command()?;
        self.running = Some(self.plane.start_server(&name(self.who), &mut command)?);
        Ok(())
    }

    pub(crate) fn stop_contestant(&mut self) -> Result<()> {
        block_in_place(|| self.running.take().map(Server::stop).transpose().map(drop))
    }

    /// Makes the calls of a swap as FLOOR, in a process of their own.
    pub(crate) fn swap_floor(&self) -> Result<()> {
        let mut command = self.command()?;
        block_in_place(|| output(command.arg("--swap"), None)).map(drop)
    }

    pub(crate) fn running(&mut self) -> Result<&mut Server> {
        self.running.as_mut().context("the contestant does not run")
    }

    /// What the contestant has used; nothing while it is down.
    pub(crate) fn usage(&mut self) -> Result<Usage> {
        let Some(running) = &mut self.running else { return Ok(Usage::default()) };
        running.check()?;
        Usage::of(running.id())
    }

    /// The sum of the operator's samples whose name and labels begin like this.
    pub(crate) fn metric(&mut self, begins: &str) -> Result<f64> {
        let mut stream = TcpStream::connect(self.running()?.address("Pintle starts")?)?;
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut reply = String::new();
        stream.read_to_string(&mut reply)?;
        let samples = reply.lines().filter(|line| line.starts_with(begins));
        Ok(samples.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum())
    }

    /// Begins a phase. The contestant may be down.
    pub(crate) fn begin(&mut self) -> Result<Meter> {
        Ok(Meter::start(self.usage()?))
    }

    /// Waits until the contestant is quiet, and records the figures that every phase has. `of` is the number of roots or samples, for each
    /// of which the writes are counted. Returns when the last call was answered, and what the contestant has used.
    pub(crate) async fn end(&mut self, phase: Phase, begun: &Meter, of: u32) -> Result<(Timestamp, Usage)> {
        let quiet = self.audit.wait_quiet(begun.at).await?;
        let usage = self.usage()?;
        let calls = self.audit.since(begun.at)?;
        let writes = calls.iter().filter(|call| call.is_mutating()).count();
        println!("    calls: {:?}", tally(&calls));
        self.put(phase, "quiet_s", quiet.duration_since(begun.at).as_secs_f64());
        self.put(phase, "writes", writes as f64 / f64::from(of));
        self.put(phase, "cpu_s", usage.cpu_seconds - begun.usage.cpu_seconds);
        self.put(phase, "peak_mib", usage.peak_mib);
        self.put(phase, "machine_speed", begun.speed());
        Ok((quiet, usage))
    }

    pub(crate) fn put(&mut self, phase: Phase, figure: &'static str, value: f64) {
        self.put_of(self.who, phase, figure, value);
    }

    /// Records a figure of another contestant that was measured beside this one.
    pub(crate) fn put_of(&mut self, who: Who, phase: Phase, figure: &'static str, value: f64) {
        println!("    {} {figure}: {value:.2}", name(who));
        self.figures.put(self.run, phase, who, figure, value);
    }

    /// Waits until the contestant has begun, since a moment, to watch everything that it needs.
    pub(crate) async fn wait_watching(&mut self, since: Timestamp) -> Result<()> {
        let kinds = ["benches", "configmaps", "deployments", "services", "ingresses"];
        let kinds = if self.who == Who::Floor { &kinds[..1] } else { &kinds[..] };
        eventually(format!("{} watches", name(self.who)), async || {
            self.running()?.check()?;
            let calls = self.audit.since(since)?;
            let watches = |kind: &&str| calls.iter().any(|call| call.is_watch() && call.resource == *kind);
            Ok(Look::reached_if(kinds.iter().all(watches), || format!("{:?}", tally(&calls))))
        })
        .await
    }

    /// Compares every child of these roots with what the logic returns.
    pub(crate) async fn check_children(&self, roots: Range<u32>, logic: &str) -> Result<()> {
        let live_roots = self.api.list(ROOTS).await?;
        let live = try_join_all(CHILDREN.map(|collection| self.api.list(collection))).await?;
        for name in roots.map(loader::name) {
            let root = live_roots.get(&name).with_context(|| format!("root {name} is gone"))?;
            let spec = BenchSpec::deserialize(&root["spec"])?;
            let owner = json!([{"uid": root["metadata"]["uid"], "controller": true}]);
            let wanted = children(&name, &spec, logic).into_iter().zip(CHILDREN);
            for ((mut wanted, collection), live) in wanted.zip(&live) {
                if let Some(fields) = wanted.as_object_mut() {
                    // Items of a list have neither.
                    fields.retain(|field, _| field != "apiVersion" && field != "kind");
                }
                wanted["metadata"]["ownerReferences"] = owner.clone();
                let found = live.get(&name).with_context(|| format!("{collection}/{name} is missing"))?;
                if let Some(difference) = difference("", &wanted, found) {
                    bail!("{collection}/{name} is not right: {difference}");
                }
            }
        }
        Ok(())
    }

    /// Uploads a module with `pintle push`, and waits until the host, if one runs, has loaded it.
    pub(crate) fn push(&self, module: &str, file: &str) -> Result<()> {
        let mut push = Command::new(self.flags.program(self.who)?);
        push.args(["push", module]).arg(built("../guests")?.join(file));
        push.args((self.part == Part::Operator).then_some("--wait"));
        push.env("KUBECONFIG", self.plane.kubeconfig());
        block_in_place(|| output(&mut push, None)).map(drop)
    }

    pub(crate) fn end_of_log(&self) -> String {
        self.running.as_ref().map(Server::end_of_log).unwrap_or_default()
    }
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
