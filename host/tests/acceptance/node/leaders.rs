//! Two Pods of the operator, of which one leads: what becomes of the work when it ends, in whatever way, and when all Pods are replaced. Who
//! writes when is read in the audit log, whose times are the API server's.

use std::{collections::BTreeMap, process::Command, time::Duration};

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
use xtask::CHART;

use super::{NAMESPACE, OPERATOR, process_of, ready_pods};
use crate::{
    Check, chart, check,
    leaders::{PASSES, ROOTS, WAITING, all_made_once, comes_back_to_the_lease, make_roots, stood_by, writes},
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
        "when the leader's Pod is deleted, the other goes on within 15 s, and nothing is made twice",
        Way::Deleted,
    ),
    (
        "when the leader's process is killed, the other goes on within 15 s, and nothing is made twice",
        Way::Killed,
    ),
    (
        "when the leader's Pod is evicted, the other goes on within 15 s, and nothing is made twice",
        Way::Evicted,
    ),
    (
        "when the leader is cut off for 20 s, the other goes on within 15 s, and the first writes nothing any more",
        Way::CutOff,
    ),
];

const UPGRADE: &str = "an upgrade to another image and the way back lose no edit, and rewrite nothing";

pub(super) fn checks<'a>(plane: &'a ControlPlane, real: &'a Real<'a>) -> Vec<Check<'a>> {
    let ways = WAYS.into_iter().map(|(name, way)| check(name, move || hands_over(way, plane, real)));
    ways.chain([check(UPGRADE, move || upgrade(plane, real))]).collect()
}

/// In how much time another goes on: that is what the chart promises. By the constants of `host/operator/src/lease.rs` a leader that is gone
/// without a word is replaced after 12 s at most: another has seen its last renewal within RETRY (2 s), and that expires after DURATION
/// (10 s). One that can still say so gives the Lease up, and another looks within RETRY. The rest is for a busy machine.
const WITHIN: Duration = Duration::from_secs(15);

/// For how long a leader is cut off.
const CUT: Duration = Duration::from_secs(20);

/// How long after the cut what a leader had sent before may still arrive. A request that gets no answer is sent again by TCP after 0.2, 0.6,
/// 1.4, 3.0, 6.2, 12.6 and 25.4 s, also if nobody waits for the answer any more; the last one of a leader was made within 7 s (RENEW_DEADLINE).
const LATE: Duration = Duration::from_secs(15);

/// How many roots are left until another leads, so that it has something to write.
const LEFT: usize = 5;

/// The host in a Pod that holds the Lease, or that has held it.
struct Leader {
    /// What it is known by in the Lease and in the audit log. A container that is started anew has another one.
    identity: String,
    pod: Value,
}

impl Leader {
    /// The one that leads now, of two that are ready.
    async fn find(real: &Real<'_>) -> anyhow::Result<Self> {
        let pods = ready_pods(real, NAMESPACE, OPERATOR, 2).await?;
        eventually("one of the Pods holds the Lease", async || {
            or_error(real.kubectl_json(&["get", "lease", "pintle", "-n", NAMESPACE]).map(|lease| {
                let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
                let pod = pods.iter().find(|pod| holder.starts_with(&format!("{}_", object::name(pod))));
                match pod.cloned() {
                    Some(pod) => Look::Reached(Self { identity: holder.to_owned(), pod }),
                    None => Look::NotYet(format!("{holder:?} does")),
                }
            }))
        })
        .await
    }

    fn metric(&self, real: &Real<'_>, series: &str) -> anyhow::Result<f64> {
        let pod = object::name(&self.pod);
        let path = format!("/api/v1/namespaces/{NAMESPACE}/pods/{pod}:8080/proxy/metrics");
        sum_of(&real.kubectl(&["get", "--raw", &path], None)?, series)
    }

    /// Brings its end about. Returns the moment before, and the cut where there is one.
    async fn ends<'a>(
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

/// Ends a leader in this way while roots are made, and sees that another goes on in time and that each child is made once.
async fn hands_over(way: Way, plane: &ControlPlane, real: &Real<'_>) -> anyhow::Result<()> {
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
    let (end, cut) = old.ends(way, plane, real).await?;
    let mut made = ROOTS / 2;
    let (new, taken) =
        eventually(format!("another host than {} takes the Lease", old.identity), async || {
            // One with each look.
            if made < ROOTS - LEFT {
                make_roots(real, namespace, made..made + 1).await?;
                made += 1;
            }
            let calls = real.entries_since(end)?;
            let mut taken = calls.iter().filter(|entry| {
                entry.call.resource == "leases" && entry.is_write() && !entry.is_by(&old.identity)
            });
            Ok(taken.next().map_or_else(
                || Look::NotYet(format!("of {} calls none does", calls.len())),
                |entry| Look::Reached((entry.identity().to_owned(), entry.at)),
            ))
        })
        .await?;
    make_roots(real, namespace, made..ROOTS).await?;
    let first = eventually(format!("{new} writes"), async || {
        let own = writes(real, &new, taken)?;
        let mut own = own.iter().filter(|entry| entry.call.namespace.as_deref() == Some(namespace));
        Ok(own.next().map_or_else(|| Look::NotYet("nothing yet".into()), |entry| Look::Reached(entry.at)))
    })
    .await?;
    let after = |mark: Mark| mark.0.saturating_sub(end.0);
    let times = format!(
        "another host had the Lease after {:.1} s, and wrote after {:.1} s",
        after(taken).as_secs_f32(),
        after(first).as_secs_f32()
    );
    println!("        {times}");
    if let Some(cut) = cut {
        real.advance(CUT.saturating_sub(after(real.mark()))).await;
        cut.heal()?;
        real.advance(LATE).await;
        // It has everything to do that it had begun.
        comes_back_to_the_lease(real, &old.identity).await?;
    }
    all_made_once(real, namespace, since).await?;
    stood_by(real, &new, since, taken)?;
    let mut late = writes(real, &old.identity, taken)?;
    // An Event that was on its way is no harm. Whatever else was is refused, since another has been there.
    late.retain(|entry| entry.call.resource != "events");
    ensure!(late.is_empty(), "another had taken over, and it wrote: {late:?}");
    ensure!(after(first) <= WITHIN, "{times}");
    ready_pods(real, NAMESPACE, OPERATOR, 2).await?;
    real.delete_namespace(namespace)
}

/// Upgrades the release to another image and back while some roots are edited and others are not.
async fn upgrade(plane: &ControlPlane, real: &Real<'_>) -> anyhow::Result<()> {
    const EACH: usize = 5;
    let (edited, untouched) = ("upgrade-edited", "upgrade-untouched");
    for namespace in [edited, untouched] {
        real.make_namespace(namespace)?;
        make_roots(real, namespace, 0..EACH).await?;
        for number in 0..EACH {
            let root = web_server(namespace, &format!("root-{number}"), "");
            real.wait_until_ready(&object::reference(&root)).await?;
        }
    }
    let release =
        real.get(&deployment(NAMESPACE, "pintle")).await?.context("a Deployment of the operator")?;
    let before = image_of(&release).as_str().context("an image")?.to_owned();
    let next = "pintle:next";
    ensure!(before != next, "an earlier try has left the release at {next}");
    chart::until_quiet(real).await?;

    let helm = pintle_testbed::helm(&mut |line| println!("{line}"))?;
    let since = real.mark();
    let mut edit = 0;
    let there = ["upgrade", "pintle", CHART, "--reuse-values", "--set=image.tag=next"];
    for (words, image) in [(&there[..], next), (&["rollback", "pintle"][..], before.as_str())] {
        let begun = real.mark();
        chart::helm(&helm, plane, words)?;
        let first = edit;
        let mut images: BTreeMap<String, String> = BTreeMap::new();
        eventually(format!("both Pods run {image}"), async || {
            // One with each look, and one more when that is so.
            let (root, nginx) = (format!("root-{}", edit % EACH), format!("nginx:1.23.{edit}"));
            let reference = object::reference(&web_server(edited, &root, ""));
            real.patch(&reference, &json!({"spec": {"image": nginx}})).await?;
            images.insert(root, nginx);
            edit += 1;
            or_error(real.kubectl_json(&["get", "pods", "-n", NAMESPACE, "-l", OPERATOR]).map(|list| {
                let pods = list["items"].as_array().into_iter().flatten();
                let states: Vec<(&Value, bool)> =
                    pods.map(|pod| (&pod["spec"]["containers"][0]["image"], is_ready(pod))).collect();
                let is_so = states.len() == 2 && states.iter().all(|(runs, ready)| *runs == image && *ready);
                Look::reached_if(is_so, || format!("{states:?}"))
            }))
        })
        .await?;
        for (root, nginx) in &images {
            let child = deployment(edited, root);
            real.wait_for("its last edit", &child, |live| image_of(live) == nginx.as_str()).await?;
        }
        let leader = Leader::find(real).await?;
        let all = real.kubectl_json(&["get", "webservers", "--all-namespaces"])?;
        let all = all["items"].as_array().map_or(0, Vec::len);
        eventually("the new leader has been over every root", async || {
            or_error(leader.metric(real, PASSES).and_then(|passes| {
                let waiting = leader.metric(real, WAITING)?;
                Ok(Look::reached_if(passes >= all as f64 && waiting == 0.0, || {
                    format!("of {all} roots: {passes} passes, {waiting} wait")
                }))
            }))
        })
        .await?;
        comes_back_to_the_lease(real, &leader.identity).await?;
        let took = real.mark().0.saturating_sub(begun.0).as_secs_f32();
        println!(
            "        {image}: {} edits while the Pods were replaced, all of it in {took:.1} s",
            edit - first
        );
    }
    let wrote = chart::written(real, untouched, since).await?;
    ensure!(wrote.is_empty(), "nothing was to be done, and it wrote: {wrote:?}");
    for namespace in [edited, untouched] {
        real.delete_namespace(namespace)?;
    }
    Ok(())
}
