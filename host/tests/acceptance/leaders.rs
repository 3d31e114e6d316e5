//! Several hosts, of which one leads: who writes when, by the audit log.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use pintle_simulation::scenario::{Backend, Mark, Stop};
use serde_json::json;

use crate::{
    audit::{Entry, is_leadership},
    host::Host,
    real::{Real, is_ready, wait},
};

/// The checks, by name.
pub(crate) const NAMES: [&str; 3] = [
    "a killed leader hands over while roots are made, and nothing is lost or made twice",
    "a leader that is asked to stop hands over at once, and a host in turn rewrites nothing",
    "a leader that stood still writes nothing once another has taken over",
];

/// How many roots are made; each has two children.
const ROOTS: usize = 50;
const CHILDREN: [&str; 2] = ["deployments", "services"];

/// Carries a check out. The run's own host has ended before.
pub(crate) async fn run(name: &str, real: &Real<'_>) -> anyhow::Result<()> {
    match NAMES.iter().position(|known| *known == name) {
        Some(0) => killed(real).await,
        Some(1) => stopped(real).await,
        _ => stood_still(real).await,
    }
}

/// A host, and what its calls and log lines are known by.
struct Contender {
    host: Host,
    name: &'static str,
}

impl Contender {
    async fn start(real: &Real<'_>, name: &'static str) -> anyhow::Result<Self> {
        let mut host = Host::start_as(real.kubeconfig(), &log(real, name), Some(name))?;
        wait(Duration::from_secs(40), &format!("{name} is ready"), async || host.is_ready()).await?;
        Ok(Self { host, name })
    }

    async fn leads_within(&mut self, within: Duration) -> anyhow::Result<Duration> {
        let begun = Instant::now();
        wait(within, &format!("{} leads", self.name), async || self.host.leads()).await?;
        Ok(begun.elapsed())
    }

    /// Its calls that can change something, but for those by which it stands for election.
    fn writes(&self, real: &Real<'_>, since: Mark) -> anyhow::Result<Vec<Entry>> {
        let calls = real.entries_since(since)?.into_iter();
        Ok(calls
            .filter(|entry| entry.is_by(self.name) && entry.is_mutating() && !is_leadership(&entry.call))
            .collect())
    }
}

fn log(real: &Real<'_>, name: &str) -> PathBuf {
    real.directory().join(format!("{name}.log"))
}

async fn make_roots(real: &Real<'_>, namespace: &str, numbers: std::ops::Range<usize>) -> anyhow::Result<()> {
    for number in numbers {
        let root = json!({
            "apiVersion": "my.domain/v1", "kind": "WebServer",
            "metadata": {"name": format!("root-{number}"), "namespace": namespace},
            "spec": {"image": "nginx:1.23.1", "replicas": 0, "nodePort": 0},
        });
        real.apply(&root).await?;
    }
    Ok(())
}

async fn make_namespace(real: &Real<'_>, name: &str) -> anyhow::Result<()> {
    real.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).await
}

/// Waits until every root is ready, and sees that each child was made by exactly one call that succeeded.
async fn all_made_once(real: &Real<'_>, namespace: &str, since: Mark) -> anyhow::Result<()> {
    wait(Duration::from_secs(40), "every root is ready", async || {
        let roots = real.kubectl_json(&["get", "webservers", "-n", namespace])?;
        let roots = roots["items"].as_array().context("a list")?;
        Ok(roots.len() == ROOTS && roots.iter().all(is_ready))
    })
    .await?;
    // The last lines of the audit log may be on their way.
    tokio::time::sleep(Duration::from_millis(600)).await;
    let mut made: BTreeMap<(String, String), usize> = BTreeMap::new();
    for entry in real.entries_since(since)? {
        let call = entry.call;
        if call.code == 201
            && call.namespace.as_deref() == Some(namespace)
            && CHILDREN.contains(&call.resource.as_str())
        {
            *made.entry((call.resource, call.name.unwrap_or_default())).or_default() += 1;
        }
    }
    ensure!(made.len() == ROOTS * CHILDREN.len(), "{} children were made", made.len());
    let twice: Vec<_> = made.iter().filter(|(_, times)| **times != 1).collect();
    ensure!(twice.is_empty(), "made more than once: {twice:?}");
    Ok(())
}

async fn killed(real: &Real<'_>) -> anyhow::Result<()> {
    let namespace = "leader-killed";
    make_namespace(real, namespace).await?;
    let mut first = Contender::start(real, "killed-first").await?;
    first.leads_within(Duration::from_secs(20)).await?;
    let mut second = Contender::start(real, "killed-second").await?;
    let since = real.mark();
    make_roots(real, namespace, 0..ROOTS / 2).await?;
    first.host.stop(Stop::Killed)?;
    let killed = Instant::now();
    let idle = second.writes(real, Mark(Duration::ZERO))?;
    ensure!(idle.is_empty(), "it stood by, and wrote: {idle:?}");
    make_roots(real, namespace, ROOTS / 2..ROOTS).await?;
    second.leads_within(Duration::from_secs(15).saturating_sub(killed.elapsed())).await?;
    println!("        handed over {:.1} s after the kill", killed.elapsed().as_secs_f32());
    all_made_once(real, namespace, since).await?;
    second.host.stop(Stop::Gracefully)?;
    real.delete_namespace(namespace)
}

async fn stopped(real: &Real<'_>) -> anyhow::Result<()> {
    let namespace = "leader-stopped";
    make_namespace(real, namespace).await?;
    let mut first = Contender::start(real, "stopped-first").await?;
    first.leads_within(Duration::from_secs(20)).await?;
    let since = real.mark();
    make_roots(real, namespace, 0..ROOTS).await?;
    all_made_once(real, namespace, since).await?;
    let mut second = Contender::start(real, "stopped-second").await?;
    // The counts of roots in the Reconciler's status are written last.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let handed_over = real.mark();
    let begun = Instant::now();
    first.host.stop(Stop::Gracefully)?;
    second.leads_within(Duration::from_secs(3).saturating_sub(begun.elapsed())).await?;
    println!("        handed over {:.1} s after the signal", begun.elapsed().as_secs_f32());
    // Long enough for a pass over everything.
    tokio::time::sleep(Duration::from_secs(4)).await;
    let rewritten = second.writes(real, handed_over)?;
    ensure!(rewritten.is_empty(), "nothing had changed, and it wrote: {rewritten:?}");
    let lease = real.kubectl_json(&["get", "lease", "pintle", "-n", "pintle-system"])?;
    let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
    ensure!(holder.starts_with("stopped-second_"), "{lease}");
    let events = real.kubectl_json(&["get", "events", "-n", "pintle-system"])?;
    let notes: Vec<&str> = events["items"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|event| event["reason"] == "LeaderElection" && event["involvedObject"]["kind"] == "Lease")
        .filter_map(|event| event["message"].as_str())
        .collect();
    let told =
        |holder: &str| notes.iter().any(|note| note.starts_with(holder) && note.ends_with("became leader"));
    ensure!(told("stopped-first_") && told("stopped-second_"), "{notes:?}");
    second.host.stop(Stop::Gracefully)?;
    real.delete_namespace(namespace)
}

async fn stood_still(real: &Real<'_>) -> anyhow::Result<()> {
    let namespace = "leader-stood-still";
    make_namespace(real, namespace).await?;
    let mut first = Contender::start(real, "still-first").await?;
    first.leads_within(Duration::from_secs(20)).await?;
    let mut second = Contender::start(real, "still-second").await?;
    let since = real.mark();
    make_roots(real, namespace, 0..ROOTS / 2).await?;
    first.host.freeze()?;
    make_roots(real, namespace, ROOTS / 2..ROOTS).await?;
    second.leads_within(Duration::from_secs(15)).await?;
    let taken_over = real.mark();
    first.host.thaw()?;
    // It has everything to do that it had begun, and another host has done.
    all_made_once(real, namespace, since).await?;
    wait(Duration::from_secs(10), "the first stands by", async || {
        Ok(first.host.is_ready()? && !first.host.leads()?)
    })
    .await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let wrote = first.writes(real, taken_over)?;
    ensure!(wrote.is_empty(), "another had taken over, and it wrote: {wrote:?}");
    // It goes on standing by, and takes over in its turn.
    second.host.stop(Stop::Gracefully)?;
    first.leads_within(Duration::from_secs(3)).await?;
    real.apply(&json!({
        "apiVersion": "my.domain/v1", "kind": "WebServer", "metadata": {"name": "root-0", "namespace": namespace},
        "spec": {"image": "nginx:1.23.0", "replicas": 0, "nodePort": 0},
    }))
    .await?;
    wait(Duration::from_secs(10), "it works", async || {
        let deployment = real.kubectl_json(&["get", "deployment", "root-0", "-n", namespace])?;
        Ok(deployment.pointer("/spec/template/spec/containers/0/image") == Some(&json!("nginx:1.23.0")))
    })
    .await?;
    first.host.stop(Stop::Gracefully)?;
    real.delete_namespace(namespace)
}
