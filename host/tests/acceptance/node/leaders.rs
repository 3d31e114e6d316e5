//! Two Pods of the operator, of which one leads: what becomes of the work when it ends, in whatever way, and when all Pods are replaced. Who
//! writes when is read in the audit log, whose times are the API server's.

use std::{collections::BTreeMap, path::Path, process::Command, time::Duration};

use anyhow::{Context, ensure};
use kit::{
    Look, eventually,
    host::{or_error, sum_of},
};
use pintle_core::object;
use pintle_simulation::scenario::{Backend, Mark};
use pintle_testbed::{ControlPlane, output};
use pintle_wit::ObjectRef;
use serde_json::{Value, json};
use xtask::{CHART, NEXT_IMAGE};

use super::{NAMESPACE, OPERATOR, process_of, ready_pods};
use crate::{
    Check,
    audit::Entry,
    chart, check,
    leaders::{
        PASSES, ROOTS, WAITING, all_written_once, comes_back_to_the_lease, make_roots, stood_by, writes,
    },
    real::{Real, deployment, image_of, is_ready, web_server},
};

/// How a leader comes to its end, or to that of its term.
#[derive(Clone, Copy)]
enum Way {
    Deleted,
    Killed,
    Evicted,
    CutOff,
}

const WAYS: [(&str, Way); 4] = [
    (
        "when the leader's Pod is deleted, the other goes on within 15 s, and nothing is written twice",
        Way::Deleted,
    ),
    (
        "when the leader's process is killed, the other goes on within 15 s, and nothing is written twice",
        Way::Killed,
    ),
    (
        "when the leader's Pod is evicted, the other goes on within 15 s, and nothing is written twice",
        Way::Evicted,
    ),
    (
        "when the leader is cut off for 20 s, the other goes on within 15 s, and nothing is written twice",
        Way::CutOff,
    ),
];

const UPGRADE: &str = "an upgrade to another image and the way back lose no edit, and rewrite nothing";

pub(super) fn checks<'a>(plane: &'a ControlPlane, real: &'a Real<'a>) -> Vec<Check<'a>> {
    let ways = WAYS.into_iter().map(|(name, way)| check(name, move || hand_over(way, plane, real)));
    ways.chain([check(UPGRADE, move || upgrade(plane, real))]).collect()
}

/// In how much time the other goes on. Tests have no bounds on time, since a machine may be slow; this one is what the chart promises, and
/// timers take most of it. By the constants of `host/operator/src/lease.rs` a leader that is gone without a word is replaced after 12 s at
/// most: another has seen its last renewal within RETRY (2 s), and that expires after DURATION (10 s). One that can still say so gives the
/// Lease up, and another looks within RETRY. The rest, 3 s, is for a busy machine.
const WITHIN: Duration = Duration::from_secs(15);

/// For how long a leader is cut off.
const CUT: Duration = Duration::from_secs(20);

/// How long after a renewal a leader is killed; the next one would be due after 2 s. The other host has seen the renewal before a container that
/// is started anew sees it, and so is the first that may take the Lease.
const AFTER_RENEWAL: Duration = Duration::from_millis(1_500);

/// How long after the cut what a leader had sent before may still arrive. A request that gets no answer is sent again by TCP after 0.2, 0.6,
/// 1.4, 3.0, 6.2, 12.6 and 25.4 s, also if nobody waits for the answer any more; the last one of a leader was made within 7 s (RENEW_DEADLINE).
const LATE: Duration = Duration::from_secs(15);

/// How many roots are left until another leads, so that it has something to write.
const LEFT: usize = 5;

/// The roots of the upgrade: those that are edited meanwhile, those that are not, and how many there are of each.
const EDITED: &str = "upgrade-edited";
const UNTOUCHED: &str = "upgrade-untouched";
const EACH: usize = 5;

/// The words by which helm goes back to the release before.
const ROLLBACK: [&str; 2] = ["rollback", "pintle"];

/// The host in a Pod that holds the Lease, or that has held it.
pub(super) struct Leader {
    /// What it is known by in the Lease and in the audit log. A container that is started anew has another one.
    identity: String,
    pod: Value,
    /// The name of the other Pod.
    standby: String,
}

impl Leader {
    /// The one that leads now, of two that are ready.
    pub(super) async fn find(real: &Real<'_>) -> anyhow::Result<Self> {
        let pods = ready_pods(real, NAMESPACE, OPERATOR, 2).await?;
        eventually("one of the Pods holds the Lease", async || {
            or_error(real.kubectl_json(&["get", "lease", "pintle", "-n", NAMESPACE]).map(|lease| {
                let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
                let (leading, others): (Vec<&Value>, Vec<&Value>) =
                    pods.iter().partition(|pod| is_in(holder, object::name(pod)));
                match (leading.as_slice(), others.as_slice()) {
                    ([pod], [standby]) => Look::Reached(Self {
                        identity: holder.to_owned(),
                        pod: (*pod).clone(),
                        standby: object::name(standby).to_owned(),
                    }),
                    _ => Look::NotYet(format!("{holder:?} does")),
                }
            }))
        })
        .await
    }

    /// Waits until it renews the Lease, and then for [`AFTER_RENEWAL`].
    async fn wait_for_renewal(&self, real: &Real<'_>) -> anyhow::Result<()> {
        let now = real.mark();
        eventually(format!("{} renews the Lease", self.identity), async || {
            let calls = real.entries_since(now)?;
            let renews = |entry: &Entry| {
                entry.call.resource == "leases" && entry.is_write() && entry.is_by(&self.identity)
            };
            Ok(Look::reached_if(calls.iter().any(renews), || format!("of {} calls none does", calls.len())))
        })
        .await?;
        real.advance(AFTER_RENEWAL).await;
        Ok(())
    }

    /// Brings its end about. Returns the moment before, and the cut where there is one.
    async fn end<'a>(
        &self,
        way: Way,
        plane: &'a ControlPlane,
        real: &Real<'_>,
    ) -> anyhow::Result<(Mark, Option<Cut<'a>>)> {
        let pod = object::name(&self.pod);
        let budget = ObjectRef {
            api_version: "policy/v1".into(),
            kind: "PodDisruptionBudget".into(),
            namespace: Some(NAMESPACE.into()),
            name: "pintle".into(),
        };
        real.wait_for("one Pod may go", &budget, |live| live["status"]["disruptionsAllowed"] == 1).await?;
        if let Way::Killed = way {
            self.wait_for_renewal(real).await?;
        }
        let before = real.mark();
        let mut cut = None;
        match way {
            Way::Deleted => {
                real.kubectl(&["delete", "pod", pod, "-n", NAMESPACE, "--wait=false"], None)?;
            }
            Way::Killed => {
                let process = process_of(&self.pod)?.to_string();
                output(Command::new("sh").args(["-c", r#"kill -KILL "$0""#, &process]), None)?;
            }
            Way::Evicted => {
                let eviction = json!({
                    "apiVersion": "policy/v1", "kind": "Eviction",
                    "metadata": {"name": pod, "namespace": NAMESPACE},
                });
                let path = format!("/api/v1/namespaces/{NAMESPACE}/pods/{pod}/eviction");
                real.kubectl(&["create", "--raw", &path, "-f", "-"], Some(&eviction.to_string()))?;
            }
            Way::CutOff => {
                let address = self.pod["status"]["podIP"].as_str().context("a Pod without an address")?;
                cut = Some(Cut::make(plane, address)?);
            }
        }
        Ok((before, cut))
    }
}

/// Whether the host with this identity runs in this Pod: behind the name of the Pod it has digits of its own.
fn is_in(identity: &str, pod: &str) -> bool {
    identity.rsplit_once('_').is_some_and(|(name, _)| name == pod)
}

/// The node gets no new Pods, until this is dropped: one that comes in the place of the leader's takes a free Lease as soon as it starts, and
/// may be faster than the other, which looks every two seconds.
struct Cordon<'a>(&'a ControlPlane);

impl<'a> Cordon<'a> {
    fn make(plane: &'a ControlPlane) -> anyhow::Result<Self> {
        let cordon = Self(plane);
        plane.run_kubectl(&["cordon", "node-0"], None)?;
        Ok(cordon)
    }
}

impl Drop for Cordon<'_> {
    fn drop(&mut self) {
        // What waits for Pods fails if this does.
        let _ = self.0.run_kubectl(&["uncordon", "node-0"], None);
    }
}

/// Nothing passes between a Pod and what is outside of the node, until this is dropped. The kubelet's probes pass.
struct Cut<'a>(&'a ControlPlane);

impl<'a> Cut<'a> {
    fn make(plane: &'a ControlPlane, address: &str) -> anyhow::Result<Self> {
        let chain = format!(
            "chain forward {{ type filter hook forward priority filter; ip saddr {address} drop; ip daddr {address} drop; }}"
        );
        // From now on, also if only a part of it should be there.
        let cut = Self(plane);
        plane.in_node("nft", &[&format!("table inet pintle-cut {{ {chain}; }}")])?;
        Ok(cut)
    }

    fn heal(&self) -> anyhow::Result<()> {
        self.0.in_node("nft", &["delete", "table", "inet", "pintle-cut"]).map(drop)
    }
}

impl Drop for Cut<'_> {
    fn drop(&mut self) {
        // It is gone already where nothing has failed.
        let _ = self.heal();
    }
}

/// The term of the host that goes on.
struct Term {
    identity: String,
    /// When it took the Lease.
    start: Mark,
    /// When it first wrote for one of the roots.
    first_write: Mark,
}

/// Ends a leader in this way while roots are made, and sees that the other goes on in time and that each child is written once.
async fn hand_over(way: Way, plane: &ControlPlane, real: &Real<'_>) -> anyhow::Result<()> {
    let namespace = match way {
        Way::Deleted => "leader-deleted",
        Way::Killed => "leader-process-killed",
        Way::Evicted => "leader-evicted",
        Way::CutOff => "leader-cut-off",
    };
    real.make_namespace(namespace)?;
    let old = Leader::find(real).await?;
    let since = real.mark();
    make_roots(real, namespace, 0..ROOTS / 2).await?;
    let cordon = Cordon::make(plane)?;
    let (end, cut) = old.end(way, plane, real).await?;
    let term = next_term(real, namespace, &old, end).await?;
    drop(cordon);

    let after = |mark: Mark| mark.0.saturating_sub(end.0);
    let times = format!(
        "another host had the Lease after {:.1} s, and wrote after {:.1} s",
        after(term.start).as_secs_f32(),
        after(term.first_write).as_secs_f32()
    );
    println!("        {times}");
    if let Some(cut) = cut {
        real.advance(CUT.saturating_sub(after(real.mark()))).await;
        cut.heal()?;
        real.advance(LATE).await;
        // It has everything to do that it had begun.
        comes_back_to_the_lease(real, &old.identity).await?;
    }
    // From here on the old Pod is gone, or its host stands by.
    ready_pods(real, NAMESPACE, OPERATOR, 2).await?;
    see_single_writes(real, namespace, &old, &term, since).await?;
    ensure!(after(term.first_write) <= WITHIN, "{times}");
    real.delete_namespace(namespace)
}

/// Makes the rest of the roots, and waits until the Pod that stood by goes on.
async fn next_term(real: &Real<'_>, namespace: &str, old: &Leader, end: Mark) -> anyhow::Result<Term> {
    let mut count = ROOTS / 2;
    let (identity, start) =
        eventually(format!("another host than {} takes the Lease", old.identity), async || {
            // One with each look.
            if count < ROOTS - LEFT {
                make_roots(real, namespace, count..count + 1).await?;
                count += 1;
            }
            let calls = real.entries_since(end)?;
            let mut others = calls.iter().filter(|entry| {
                entry.call.resource == "leases" && entry.is_write() && !entry.is_by(&old.identity)
            });
            Ok(others.next().map_or_else(
                || Look::NotYet(format!("of {} calls none does", calls.len())),
                |entry| Look::Reached((entry.identity().to_owned(), entry.at)),
            ))
        })
        .await?;
    ensure!(is_in(&identity, &old.standby), "{} stood by, and {identity} has the Lease", old.standby);
    make_roots(real, namespace, count..ROOTS).await?;
    let first_write = eventually(format!("{identity} writes"), async || {
        let own = writes(real, &identity, start)?;
        let mut own = own.iter().filter(|entry| entry.call.namespace.as_deref() == Some(namespace));
        Ok(own.next().map_or_else(|| Look::NotYet("nothing yet".into()), |entry| Look::Reached(entry.at)))
    })
    .await?;
    Ok(Term { identity, start, first_write })
}

/// Sees that each child is written once, by the one that leads, also when the new leader has been over all roots.
///
/// That is so where the leader was cut off, too. An apply of its that was carried out, and whose reply was lost, is not made again: the other
/// finds the child as it should be. One that arrives later is refused: it is for a child that does not exist.
async fn see_single_writes(
    real: &Real<'_>,
    namespace: &str,
    old: &Leader,
    term: &Term,
    since: Mark,
) -> anyhow::Result<()> {
    go_over_every_root(real, &term.identity, &old.standby).await?;
    all_written_once(real, namespace, since).await?;
    stood_by(real, &term.identity, since, term.start)?;
    real.catch_up().await?;
    let mut late = writes(real, &old.identity, term.start)?;
    // An Event that was on its way is no harm. Whatever else was is refused, since another has been there.
    late.retain(|entry| entry.call.resource != "events");
    ensure!(late.is_empty(), "another had taken over, and it wrote: {late:?}");
    Ok(())
}

/// Waits until a leader has been over every root, and what it wrote then is in the audit log.
async fn go_over_every_root(real: &Real<'_>, identity: &str, pod: &str) -> anyhow::Result<()> {
    let path = format!("/api/v1/namespaces/{NAMESPACE}/pods/{pod}:8080/proxy/metrics");
    let all = real.kubectl_json(&["get", "webservers", "--all-namespaces"])?;
    let all = all["items"].as_array().map_or(0, Vec::len);
    eventually(format!("{identity} has been over every root"), async || {
        or_error(real.kubectl(&["get", "--raw", &path], None).and_then(|metrics| {
            let (passes, waiting) = (sum_of(&metrics, PASSES)?, sum_of(&metrics, WAITING)?);
            Ok(Look::reached_if(passes >= all as f64 && waiting == 0.0, || {
                format!("of {all} roots: {passes} passes, {waiting} wait")
            }))
        }))
    })
    .await?;
    comes_back_to_the_lease(real, identity).await
}

/// Upgrades the release to another image and back while some roots are edited and others are not.
async fn upgrade(plane: &ControlPlane, real: &Real<'_>) -> anyhow::Result<()> {
    let helm = pintle_testbed::helm(&mut |line| println!("{line}"))?;
    let before = first_image(&helm, plane, real).await?;
    for namespace in [EDITED, UNTOUCHED] {
        real.make_namespace(namespace)?;
        make_roots(real, namespace, 0..EACH).await?;
        for number in 0..EACH {
            let root = web_server(namespace, &format!("root-{number}"), "");
            real.wait_until_ready(&object::reference(&root)).await?;
        }
    }
    chart::until_quiet(real).await?;

    let since = real.mark();
    let mut edits = 0;
    let there = ["upgrade", "pintle", CHART, "--reuse-values", "--set=image.tag=next"];
    for (words, image) in [(&there[..], NEXT_IMAGE), (&ROLLBACK[..], before.as_str())] {
        let (begin, first) = (real.mark(), edits);
        chart::helm(&helm, plane, words)?;
        edits = edit_meanwhile(real, image, first).await?;
        let leader = Leader::find(real).await?;
        go_over_every_root(real, &leader.identity, object::name(&leader.pod)).await?;
        let time = real.mark().0.saturating_sub(begin.0).as_secs_f32();
        println!(
            "        {image}: {} edits while the Pods were replaced, all of it in {time:.1} s",
            edits - first
        );
    }
    let writes = chart::written(real, UNTOUCHED, since).await?;
    ensure!(writes.is_empty(), "nothing was to be done, and it wrote: {writes:?}");
    for namespace in [EDITED, UNTOUCHED] {
        real.delete_namespace(namespace)?;
    }
    Ok(())
}

/// The image of the release before the upgrade. Where an earlier try of this check has left the other one, it goes back first.
async fn first_image(helm: &Path, plane: &ControlPlane, real: &Real<'_>) -> anyhow::Result<String> {
    let image = async || -> anyhow::Result<String> {
        let release = real.get(&deployment(NAMESPACE, "pintle")).await?;
        let release = release.context("a Deployment of the operator")?;
        Ok(image_of(&release).as_str().context("an image")?.to_owned())
    };
    let found = image().await?;
    if found != NEXT_IMAGE {
        return Ok(found);
    }
    chart::helm(helm, plane, &ROLLBACK)?;
    let first = image().await?;
    eventually(format!("both Pods run {first}"), async || both_run(real, &first)).await?;
    Ok(first)
}

/// Edits one root after the other until both Pods run this image, and once more. Waits until the last edit of each has come to its child.
/// Counts the edits from `first` on, and returns the next number.
async fn edit_meanwhile(real: &Real<'_>, image: &str, first: usize) -> anyhow::Result<usize> {
    let mut edit = first;
    let mut images: BTreeMap<String, String> = BTreeMap::new();
    eventually(format!("both Pods run {image}"), async || {
        // One with each look.
        let (root, nginx) = (format!("root-{}", edit % EACH), format!("nginx:1.23.{edit}"));
        let reference = object::reference(&web_server(EDITED, &root, ""));
        real.patch(&reference, &json!({"spec": {"image": nginx}})).await?;
        images.insert(root, nginx);
        edit += 1;
        both_run(real, image)
    })
    .await?;
    for (root, nginx) in &images {
        let child = deployment(EDITED, root);
        real.wait_for("its last edit", &child, |live| image_of(live) == nginx.as_str()).await?;
    }
    Ok(edit)
}

/// Whether there are two Pods of the operator and no more, both ready and with this image.
fn both_run(real: &Real<'_>, image: &str) -> anyhow::Result<Look<()>> {
    or_error(real.kubectl_json(&["get", "pods", "-n", NAMESPACE, "-l", OPERATOR]).map(|list| {
        let pods = list["items"].as_array().into_iter().flatten();
        let states: Vec<(&Value, bool)> =
            pods.map(|pod| (&pod["spec"]["containers"][0]["image"], is_ready(pod))).collect();
        let is_so = states.len() == 2 && states.iter().all(|(runs, ready)| *runs == image && *ready);
        Look::reached_if(is_so, || format!("{states:?}"))
    }))
}
