//! A host whose way to the API server is not as it should be: replies that never come, and writes that are held up while there is much
//! to do.

use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use kit::{
    Look, eventually,
    host::{self, Host, or_error},
};
use pintle_simulation::scenario::{Backend, Cascade, Stop};
use pintle_wit::ObjectRef;
use serde_json::{Value, json};

use crate::{
    install,
    proxy::{Asked, Lost, Proxy, Read},
    real::{Real, is_ready, reconciler, web_server},
};

const WATCHES: &str = "children are watched once for all Reconcilers, by label, in pages, and as long as anybody needs them; Secrets never";
const LOST_REPLIES: &str = "a write whose reply is lost is made once, and what it made is nobody else's";
const LANES: &str = "a flood of edits or a swap holds up no edit of another root";

/// The checks, by name.
pub(crate) const NAMES: [&str; 3] = [WATCHES, LOST_REPLIES, LANES];

/// Carries a check out. The run's own host has ended before.
pub(crate) async fn run(name: &str, real: &Real<'_>) -> anyhow::Result<()> {
    match name {
        WATCHES => watches(real).await,
        LOST_REPLIES => lost_replies(real).await,
        LANES => lanes(real).await,
        other => bail!("there is no check {other:?}"),
    }
}

/// A host behind a proxy.
struct Behind {
    proxy: Proxy,
    host: Host,
    log: PathBuf,
}

impl Behind {
    async fn start(real: &Real<'_>, name: &str) -> anyhow::Result<Self> {
        let through = real.directory().join(format!("{name}.kubeconfig"));
        let proxy = Proxy::start(real.kubeconfig(), &through).await?;
        let log = real.directory().join(format!("{name}.log"));
        let host = host::start_ready(&through, &log).await.with_context(|| format!("behind {proxy}"))?;
        Ok(Self { proxy, host, log })
    }

    /// The writes to a path that ends like this.
    fn asked(&self, path: &str) -> Vec<Asked> {
        self.proxy.asked().into_iter().filter(|asked| asked.path.ends_with(path)).collect()
    }

    fn said(&self) -> String {
        host::tail(&self.log, &["WARN", "ERROR"], 12).join("\n")
    }
}

fn darkroom(namespace: &str, name: &str, hosts: &[&str]) -> Value {
    json!({
        "apiVersion": "deployments.example.com/v1alpha1", "kind": "Darkroom",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "source": {"type": "S3", "bucket": "photos", "region": "eu-central-1", "accessKey": "key", "secretKey": "secret"},
            "subDomains": hosts,
        },
    })
}

async fn all_ready(real: &Real<'_>, behind: &Behind, roots: &[ObjectRef]) -> anyhow::Result<()> {
    for root in roots {
        real.wait_until_ready(root).await.with_context(|| behind.said())?;
    }
    Ok(())
}

async fn watches(real: &Real<'_>) -> anyhow::Result<()> {
    let namespace = "watches";
    real.make_namespace(namespace)?;
    let behind = Behind::start(real, namespace).await?;
    // Both have a Deployment and a Service.
    let roots = [web_server(namespace, "web", "nginx:1.23.1"), darkroom(namespace, "dark", &["watches"])];
    for root in &roots {
        real.apply(root).await?;
    }
    let roots = roots.map(|root| pintle_core::object::reference(&root));
    all_ready(real, &behind, &roots).await?;
    let is_about_children = |read: &&Read| read.query.contains("labelSelector=pintle.dev");
    for (path, metadata) in [
        ("/api/v1/configmaps", true),
        ("/api/v1/services", false),
        ("/apis/apps/v1/deployments", false),
        ("/apis/networking.k8s.io/v1/ingresses", true),
    ] {
        // A Reconciler that comes has the children of its kinds read anew, by its own eyes.
        let watch = eventually(format!("{path} is watched once"), async || {
            let open = behind.proxy.open();
            let mut watches: Vec<&Read> =
                open.iter().filter(is_about_children).filter(|read| read.path == path).collect();
            Ok(match (watches.len(), watches.pop()) {
                (1, Some(watch)) => Look::Reached(watch.clone()),
                (_, last) => Look::NotYet(format!("{last:?} and {watches:?}")),
            })
        })
        .await?;
        ensure!(watch.accept.contains("PartialObjectMetadata") == metadata, "{path}: {}", watch.accept);
        let reads = behind.proxy.reads();
        let lists = reads.iter().filter(is_about_children).filter(|read| read.path == path);
        let lists: Vec<&Read> = lists.filter(|read| !read.query.contains("watch=true")).collect();
        ensure!(
            !lists.is_empty() && lists.iter().all(|read| read.query.contains("limit=")),
            "{path}: {lists:?}"
        );
    }
    let reads = behind.proxy.reads();
    let secrets: Vec<&Read> = reads.iter().filter(|read| read.path.ends_with("/secrets")).collect();
    ensure!(secrets.is_empty(), "{secrets:?}");

    // Both need Deployments, and one of them ConfigMaps.
    real.delete(&roots[1], Cascade::Background).await?;
    real.delete(&reconciler("darkroom"), Cascade::Background).await?;
    let ended = eventually("the watch that nobody needs any more ends", async || {
        let open = behind.proxy.open();
        let of = |path: &str| open.iter().filter(is_about_children).filter(|read| read.path == path).count();
        let counts = (of("/apis/apps/v1/deployments"), of("/api/v1/configmaps"));
        Ok(Look::reached_if(counts == (1, 0), || format!("{counts:?} watches of Deployments and ConfigMaps")))
    })
    .await;
    install::hang("darkroom", real).await?;
    ended?;
    behind.host.stop(Stop::Gracefully)?;
    real.delete_namespace(namespace)
}

/// A status write without its times, which differ from one to the next.
fn without_times(asked: &Asked) -> Value {
    let mut status = asked.body["status"].clone();
    for condition in status["conditions"].as_array_mut().into_iter().flatten() {
        condition["lastTransitionTime"].take();
    }
    status
}

async fn lost_replies(real: &Real<'_>) -> anyhow::Result<()> {
    let namespace = "lost-replies";
    real.make_namespace(namespace)?;
    let behind = Behind::start(real, namespace).await?;
    let mut roots = Vec::new();
    let mut lost = Vec::new();
    for (how, word) in [(Lost::Closed, "closed"), (Lost::Silent, "silent")] {
        // A child that is watched, one that is not, and a status.
        let (child, secret, status) = (format!("web-{word}"), format!("dark-{word}"), format!("said-{word}"));
        for path in [
            format!("/deployments/{child}"),
            format!("/secrets/{secret}"),
            format!("/webservers/{status}/status"),
        ] {
            behind.proxy.lose(&path, how);
            lost.push((path, how));
        }
        roots.extend([
            web_server(namespace, &child, "nginx:1.23.1"),
            darkroom(namespace, &secret, &[&secret]),
            web_server(namespace, &status, "nginx:1.23.1"),
        ]);
    }
    for root in &roots {
        real.apply(root).await?;
    }
    let roots: Vec<ObjectRef> = roots.iter().map(pintle_core::object::reference).collect();
    all_ready(real, &behind, &roots).await?;
    for (path, how) in &lost {
        let asked = behind.asked(path);
        let losses: Vec<&Asked> = asked.iter().filter(|asked| asked.lost.is_some()).collect();
        ensure!(losses.len() == 1 && losses[0].lost == Some(*how), "{path}: {losses:?}");
        let accepted: Vec<&Asked> = asked.iter().filter(|asked| asked.is_accepted()).collect();
        if path.ends_with("/status") {
            let mut said: Vec<String> =
                accepted.iter().map(|asked| without_times(asked).to_string()).collect();
            let all = said.len();
            said.sort();
            said.dedup();
            ensure!(said.len() == all, "{path} was written twice: {accepted:?}");
        } else {
            ensure!(accepted.len() == 1, "{path} was written {} times: {accepted:?}", accepted.len());
        }
    }
    for root in &roots {
        let events = real.events(root).await?;
        ensure!(!events.iter().any(|event| event == "AdoptionConflict"), "{root}: {events:?}");
    }
    behind.host.stop(Stop::Gracefully)?;
    real.delete_namespace(namespace)
}

/// How many roots are edited, or swapped, at once.
const FLOOD: usize = 300;
/// How many writes of the flood must come after an edit's, or the edit came at its end. Sixteen passes are in work at a time.
const AFTER_MIN: usize = 100;
/// What the writes of the flood, and of the edit, have in their paths.
const HELD: &str = "/namespaces/lanes/";

async fn lanes(real: &Real<'_>) -> anyhow::Result<()> {
    let namespace = "lanes";
    real.make_namespace(namespace)?;
    let behind = Behind::start(real, namespace).await?;
    let name = |number: usize| format!("flood-{number}");
    let edit_all = async |image: &str| -> anyhow::Result<()> {
        stream::iter(0..FLOOD)
            .map(|number| async move { real.apply(&web_server(namespace, &name(number), image)).await })
            .buffer_unordered(16)
            .try_collect()
            .await
    };
    edit_all("nginx:1.23.0").await?;
    real.apply(&darkroom(namespace, "calm", &["calm"])).await?;
    at_rest(real, &behind, namespace).await?;

    // All that is to be done waits, and so does the edit. Then the order shows who was let through.
    behind.proxy.hold(HELD);
    edit_all("nginx:1.23.1").await?;
    waits(&behind, "webserver", FLOOD / 2, None).await?;
    let edited = behind.proxy.asked().len();
    real.apply(&darkroom(namespace, "calm", &["calm", "quiet"])).await?;
    waits(&behind, "darkroom", 1, Some(("/ingresses/calm", edited))).await?;
    behind.proxy.release();
    comes_before_the_flood(&behind, "another Reconciler's edit", edited, "/ingresses/calm").await?;
    at_rest(real, &behind, namespace).await?;

    let config = json!({"resources": {"requests": {"cpu": "40m"}, "limits": {"memory": "256Mi"}}});
    behind.proxy.hold(HELD);
    let swapped = behind.proxy.asked().len();
    real.patch(&reconciler("webserver"), &json!({"spec": {"config": config}})).await?;
    let done = eventually("the swap begins", async || {
        let asked = behind.proxy.asked().split_off(swapped);
        let count = asked.iter().filter(|asked| asked.path.contains("/deployments/flood-")).count();
        Ok(if count > 4 { Look::Reached(asked) } else { Look::NotYet(format!("{count} writes")) })
    })
    .await?;
    let untouched = (0..FLOOD).map(name).rev().find(|name| {
        let path = format!("/deployments/{name}");
        !done.iter().any(|asked| asked.path.ends_with(&path))
    });
    let untouched = untouched.context("it held up no write of the swap")?;
    let edited = behind.proxy.asked().len();
    real.apply(&web_server(namespace, &untouched, "nginx:1.23.2")).await?;
    let path = format!("/deployments/{untouched}");
    waits(&behind, "webserver", 1, Some((&path, edited))).await?;
    behind.proxy.release();
    comes_before_the_flood(&behind, "an edit during a swap", edited, &path).await?;
    real.patch(&reconciler("webserver"), &json!({"spec": {"config": null}})).await?;
    behind.host.stop(Stop::Gracefully)?;
    real.delete_namespace(namespace)
}

/// Waits until the host knows of edits that it cannot carry out yet: so many wait in a lane, or a worker has come to them, and a write to
/// this path is held up, which came after so many others.
async fn waits(behind: &Behind, lane: &str, count: usize, held: Option<(&str, usize)>) -> anyhow::Result<()> {
    let series = format!(r#"workqueue_depth{{name="{lane}",controller="{lane}",priority="0"}}"#);
    eventually(format!("{count} edits wait in the lane {lane}"), async || {
        or_error(behind.host.metric(&series).map(|waiting| {
            let is_held = held.is_some_and(|(path, since)| {
                behind.proxy.asked()[since..].iter().any(|asked| asked.path.ends_with(path))
            });
            Look::reached_if(waiting >= count as f64 || is_held, || format!("{waiting} do"))
        }))
    })
    .await
    .with_context(|| behind.said())
}

/// Waits for the first write to a path, and sees that much of the flood comes after it.
async fn comes_before_the_flood(behind: &Behind, what: &str, since: usize, path: &str) -> anyhow::Result<()> {
    let at = eventually(what, async || {
        let asked = behind.proxy.asked().split_off(since);
        let at = asked.iter().position(|asked| asked.path.ends_with(path));
        Ok(at.map_or_else(|| Look::NotYet(format!("not among {} writes", asked.len())), Look::Reached))
    })
    .await
    .with_context(|| behind.said())?;
    let of_flood =
        |asked: &[Asked]| asked.iter().filter(|asked| asked.path.contains("/deployments/flood-")).count();
    let before = of_flood(&behind.proxy.asked()[since..since + at]);
    println!("        {what}: after {before} writes of the flood");
    eventually(format!("{what} comes before {AFTER_MIN} writes of the flood"), async || {
        let after = of_flood(&behind.proxy.asked()[since + at..]);
        Ok(Look::reached_if(after >= AFTER_MIN, || format!("{after} came after it, and {before} before")))
    })
    .await
}

/// Waits until every root has what was last asked for, and nothing waits.
async fn at_rest(real: &Real<'_>, behind: &Behind, namespace: &str) -> anyhow::Result<()> {
    eventually("the host has done all", async || {
        let roots = real.kubectl_json(&["get", "webservers,darkrooms", "-n", namespace]);
        or_error(roots.and_then(|roots| {
            let roots = roots["items"].as_array().context("a list")?;
            let is_done = |root: &&Value| {
                is_ready(root) && root["status"]["observedGeneration"] == root["metadata"]["generation"]
            };
            let done = roots.iter().filter(is_done).count();
            let waiting = behind.host.metric("workqueue_depth{")?;
            Ok(Look::reached_if((done, waiting) == (FLOOD + 1, 0.0), || {
                format!("{done} of {} roots are done, {waiting} wait", roots.len())
            }))
        }))
    })
    .await
    .with_context(|| behind.said())
}
