//! Several hosts, of which one leads: who writes when, by the audit log. `PINTLE_BEFORE` names the built `pintle` of an earlier version, which
//! runs beside this one.

use std::collections::BTreeMap;

use anyhow::{Context, bail, ensure};
use kit::{
    Look, eventually,
    host::{Host, or_error},
};
use pintle_simulation::scenario::{Backend, Mark, Stop};

use crate::{
    audit::{Entry, is_leadership},
    real::{Real, deployment, image_of, is_ready, web_server},
};

const KILLED: &str = "a killed leader hands over while roots are made, and nothing is lost or written twice";
const STOPPED: &str = "a leader that is asked to stop hands over, and a host in turn rewrites nothing";
const STOOD_STILL: &str = "a leader that stood still writes nothing once another has taken over";
const VERSIONS: &str = "two versions run side by side, and an upgrade and the way back rewrite nothing";

/// The checks, by name.
pub(crate) const NAMES: [&str; 4] = [KILLED, STOPPED, STOOD_STILL, VERSIONS];

/// How many roots are made; each has two children.
pub(crate) const ROOTS: usize = 50;
const CHILDREN: [&str; 2] = ["deployments", "services"];

/// How a host counts its passes over `WebServers`, and how many of them wait for one.
pub(crate) const PASSES: &str = r#"controller_runtime_reconcile_total{controller="webserver","#;
pub(crate) const WAITING: &str = r#"workqueue_depth{name="webserver","#;

/// Carries a check out. The run's own host has ended before.
pub(crate) async fn run(name: &str, real: &Real<'_>) -> anyhow::Result<()> {
    if !real.has_audit_log() {
        println!("        skipped: {name}, no audit log");
        return Ok(());
    }
    match name {
        KILLED => killed(real).await,
        STOPPED => stopped(real).await,
        STOOD_STILL => stood_still(real).await,
        VERSIONS if std::env::var_os("PINTLE_BEFORE").is_none() => {
            println!("        skipped: {name}, PINTLE_BEFORE names no earlier pintle");
            Ok(())
        }
        VERSIONS => versions(real).await,
        other => bail!("there is no check {other:?}"),
    }
}

/// A host, and what its calls and log lines are known by.
struct Contender {
    host: Host,
    name: &'static str,
}

impl Contender {
    async fn start(real: &Real<'_>, name: &'static str) -> anyhow::Result<Self> {
        let log = real.directory().join(format!("{name}.log"));
        Self::ready(Host::start_as(real.kubeconfig(), &log, name)?, name).await
    }

    /// The same of the earlier version.
    async fn start_before(real: &Real<'_>, name: &'static str) -> anyhow::Result<Self> {
        let log = real.directory().join(format!("{name}.log"));
        let pod = format!("POD_NAME={name}");
        // The first word that follows is the pintle of this version.
        let by = ["env", &pod, "sh", "-c", r#"exec "$PINTLE_BEFORE" "$@""#];
        Self::ready(Host::start_through(&by, real.kubeconfig(), &log, &[])?, name).await
    }

    async fn ready(mut host: Host, name: &'static str) -> anyhow::Result<Self> {
        eventually(format!("{name} is ready"), async || host.ready()).await?;
        Ok(Self { host, name })
    }

    async fn wait_until_it_leads(&mut self) -> anyhow::Result<()> {
        eventually(format!("{} leads", self.name), async || self.host.leads()).await
    }

    /// When it first took the Lease since a moment, once the audit log says so.
    async fn took_the_lease(&self, real: &Real<'_>, since: Mark) -> anyhow::Result<Mark> {
        eventually(format!("the audit log says when {} took the Lease", self.name), async || {
            let calls = real.entries_since(since)?;
            let mut own = calls.iter().filter(|entry| entry.is_by(self.name));
            let taken = own.find(|entry| entry.is_write() && entry.call.resource == "leases");
            Ok(taken.map_or_else(
                || Look::NotYet(format!("of {} calls none does", calls.len())),
                |entry| Look::Reached(entry.at),
            ))
        })
        .await
    }

    /// How many passes over `WebServers` it has made, and how many wait.
    fn passes(&self) -> anyhow::Result<(f64, f64)> {
        Ok((self.host.metric(PASSES)?, self.host.metric(WAITING)?))
    }
}

/// What a host has written, but for that by which it stands for election. It is known by its name or by its identity.
pub(crate) fn writes(real: &Real<'_>, who: &str, since: Mark) -> anyhow::Result<Vec<Entry>> {
    let calls = real.entries_since(since)?.into_iter();
    Ok(calls.filter(|entry| entry.is_by(who) && entry.is_write() && !is_leadership(&entry.call)).collect())
}

/// Waits until the audit log has two later calls of a host for the Lease, which it comes back to whatever it does: all that it had begun
/// to write before the first is there too.
pub(crate) async fn comes_back_to_the_lease(real: &Real<'_>, who: &str) -> anyhow::Result<()> {
    let now = real.mark();
    eventually(format!("{who} comes back to the Lease"), async || {
        let calls = real.entries_since(now)?;
        let own = calls.iter().filter(|entry| entry.is_by(who) && entry.call.resource == "leases");
        let count = own.count();
        Ok(Look::reached_if(count >= 2, || format!("it came {count} times")))
    })
    .await
}

pub(crate) async fn make_roots(
    real: &Real<'_>,
    namespace: &str,
    numbers: std::ops::Range<usize>,
) -> anyhow::Result<()> {
    for number in numbers {
        real.apply(&web_server(namespace, &format!("root-{number}"), "nginx:1.23.1")).await?;
    }
    Ok(())
}

/// Waits until every root is ready, and sees that each child was written by exactly one call that succeeded, of whichever host: it is neither
/// made twice nor applied again as it is.
pub(crate) async fn all_written_once(real: &Real<'_>, namespace: &str, since: Mark) -> anyhow::Result<()> {
    eventually("every root is ready", async || {
        let roots = real.kubectl_json(&["get", "webservers", "-n", namespace]);
        or_error(roots.and_then(|roots| {
            let roots = roots["items"].as_array().context("a list")?;
            let ready = roots.iter().filter(|root| is_ready(root)).count();
            Ok(Look::reached_if((roots.len(), ready) == (ROOTS, ROOTS), || {
                format!("{ready} of {} are", roots.len())
            }))
        }))
    })
    .await?;
    let written = eventually("the audit log has how each child was written", async || {
        let mut written: BTreeMap<(String, String), usize> = BTreeMap::new();
        for entry in real.entries_since(since)?.into_iter().filter(Entry::is_write) {
            let call = entry.call;
            if call.namespace.as_deref() == Some(namespace) && CHILDREN.contains(&call.resource.as_str()) {
                *written.entry((call.resource, call.name.unwrap_or_default())).or_default() += 1;
            }
        }
        Ok(match written.len() == ROOTS * CHILDREN.len() {
            true => Look::Reached(written),
            false => Look::NotYet(format!("that of {} of them", written.len())),
        })
    })
    .await?;
    let twice: Vec<_> = written.iter().filter(|(_, times)| **times != 1).collect();
    ensure!(twice.is_empty(), "written more than once: {twice:?}");
    Ok(())
}

/// Sees that a host wrote nothing between a moment and that at which it took the Lease.
pub(crate) fn stood_by(real: &Real<'_>, who: &str, since: Mark, taken: Mark) -> anyhow::Result<()> {
    let writes = writes(real, who, since)?;
    let early: Vec<&Entry> = writes.iter().filter(|entry| entry.at < taken).collect();
    ensure!(early.is_empty(), "it stood by, and wrote: {early:?}");
    Ok(())
}

async fn killed(real: &Real<'_>) -> anyhow::Result<()> {
    let namespace = "leader-killed";
    real.make_namespace(namespace)?;
    let mut first = Contender::start(real, "killed-first").await?;
    first.wait_until_it_leads().await?;
    let since = real.mark();
    let mut second = Contender::start(real, "killed-second").await?;
    make_roots(real, namespace, 0..ROOTS / 2).await?;
    first.host.stop(Stop::Killed)?;
    make_roots(real, namespace, ROOTS / 2..ROOTS).await?;
    second.wait_until_it_leads().await?;
    all_written_once(real, namespace, since).await?;
    let taken = second.took_the_lease(real, since).await?;
    stood_by(real, second.name, since, taken)?;
    second.host.stop(Stop::Gracefully)?;
    real.delete_namespace(namespace)
}

async fn stopped(real: &Real<'_>) -> anyhow::Result<()> {
    let namespace = "leader-stopped";
    real.make_namespace(namespace)?;
    let mut first = Contender::start(real, "stopped-first").await?;
    first.wait_until_it_leads().await?;
    let since = real.mark();
    make_roots(real, namespace, 0..ROOTS).await?;
    all_written_once(real, namespace, since).await?;
    let mut second = Contender::start(real, "stopped-second").await?;
    hands_over(real, namespace, first, &mut second).await?;
    let lease = real.kubectl_json(&["get", "lease", "pintle", "-n", "pintle-system"])?;
    let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
    ensure!(holder.starts_with("stopped-second_"), "{lease}");
    eventually("an Event says of each that it came to lead", async || {
        or_error(real.kubectl_json(&["get", "events", "-n", "pintle-system"]).map(|events| {
            let events = events["items"].as_array().into_iter().flatten();
            let notes: Vec<&str> = events
                .filter(|event| {
                    event["reason"] == "LeaderElection" && event["involvedObject"]["kind"] == "Lease"
                })
                .filter_map(|event| event["message"].as_str())
                .collect();
            let told = |holder: &str| {
                notes.iter().any(|note| note.starts_with(holder) && note.ends_with("became leader"))
            };
            Look::reached_if(told("stopped-first_") && told("stopped-second_"), || format!("{notes:?}"))
        }))
    })
    .await?;
    second.host.stop(Stop::Gracefully)?;
    real.delete_namespace(namespace)
}

/// Has a host take over from another, and sees that it rewrites nothing.
async fn hands_over(
    real: &Real<'_>,
    namespace: &str,
    first: Contender,
    second: &mut Contender,
) -> anyhow::Result<()> {
    // The counts of roots in the Reconciler's status are written last.
    eventually("all roots are counted as ready", async || {
        let counted = real.kubectl_json(&["get", "reconciler", "webserver"]);
        let all = real.kubectl_json(&["get", "webservers", "--all-namespaces"]);
        or_error(counted.and_then(|counted| {
            let all = all?["items"].as_array().map_or(0, Vec::len);
            let roots = &counted["status"]["roots"];
            let is_so = roots["total"] == all && roots["ready"] == all;
            Ok(Look::reached_if(is_so, || format!("of {all}: {roots}")))
        }))
    })
    .await?;
    comes_back_to_the_lease(real, first.name).await?;
    let handed_over = real.mark();
    first.host.stop(Stop::Gracefully)?;
    second.wait_until_it_leads().await?;
    eventually("the second has been over every root", async || {
        or_error(second.passes().map(|(passes, waiting)| {
            Look::reached_if(passes >= ROOTS as f64 && waiting == 0.0, || {
                format!("{passes} passes, {waiting} wait")
            })
        }))
    })
    .await?;
    comes_back_to_the_lease(real, second.name).await?;
    let is_about_them = |entry: &Entry| {
        let name = entry.call.name.as_deref().unwrap_or_default();
        entry.call.namespace.as_deref() == Some(namespace) || name.starts_with("webserver")
    };
    let rewritten: Vec<Entry> =
        writes(real, second.name, handed_over)?.into_iter().filter(is_about_them).collect();
    ensure!(rewritten.is_empty(), "nothing had changed, and it wrote: {rewritten:?}");
    Ok(())
}

async fn versions(real: &Real<'_>) -> anyhow::Result<()> {
    let namespace = "leader-versions";
    real.make_namespace(namespace)?;
    let mut before = Contender::start_before(real, "versions-before").await?;
    before.wait_until_it_leads().await?;
    let since = real.mark();
    make_roots(real, namespace, 0..ROOTS).await?;
    all_written_once(real, namespace, since).await?;
    let mut now = Contender::start(real, "versions-now").await?;
    hands_over(real, namespace, before, &mut now).await?;
    let mut again = Contender::start_before(real, "versions-again").await?;
    hands_over(real, namespace, now, &mut again).await?;
    again.host.stop(Stop::Gracefully)?;
    real.delete_namespace(namespace)
}

async fn stood_still(real: &Real<'_>) -> anyhow::Result<()> {
    let namespace = "leader-stood-still";
    real.make_namespace(namespace)?;
    let mut first = Contender::start(real, "still-first").await?;
    first.wait_until_it_leads().await?;
    let since = real.mark();
    let mut second = Contender::start(real, "still-second").await?;
    make_roots(real, namespace, 0..ROOTS / 2).await?;
    first.host.freeze()?;
    make_roots(real, namespace, ROOTS / 2..ROOTS).await?;
    second.wait_until_it_leads().await?;
    first.host.thaw()?;
    // It has everything to do that it had begun, and another host has done.
    all_written_once(real, namespace, since).await?;
    eventually("the first stands by", async || {
        Ok(match (first.host.ready()?, first.host.leads()?) {
            (Look::NotYet(state), _) => Look::NotYet(state),
            (_, Look::Reached(())) => Look::NotYet("it says that it leads".into()),
            (Look::Reached(_), Look::NotYet(_)) => Look::Reached(()),
        })
    })
    .await?;
    comes_back_to_the_lease(real, first.name).await?;
    let taken = second.took_the_lease(real, since).await?;
    stood_by(real, second.name, since, taken)?;
    let wrote = writes(real, first.name, taken)?;
    ensure!(wrote.is_empty(), "another had taken over, and it wrote: {wrote:?}");
    // It goes on standing by, and takes over in its turn.
    second.host.stop(Stop::Gracefully)?;
    first.wait_until_it_leads().await?;
    real.apply(&web_server(namespace, "root-0", "nginx:1.23.0")).await?;
    let child = deployment(namespace, "root-0");
    real.wait_for("it works", &child, |live| image_of(live) == "nginx:1.23.0").await?;
    first.host.stop(Stop::Gracefully)?;
    real.delete_namespace(namespace)
}
