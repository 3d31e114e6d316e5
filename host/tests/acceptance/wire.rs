//! A host whose way to the API server is not as it should be: replies that never come, and writes that take long while there is much
//! to do.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use pintle_simulation::scenario::{Backend, Cascade, Stop};
use pintle_wit::ObjectRef;
use serde_json::{Value, json};

use crate::{
    host::{self, Host},
    install,
    proxy::{Asked, Lost, Proxy, Read},
    real::{Real, is_ready, wait},
};

/// The checks, by name.
pub(crate) const NAMES: [&str; 3] = [
    "children are watched once for all Reconcilers, by label, in pages, and as long as anybody needs them; Secrets never",
    "a write whose reply is lost is made once, and what it made is nobody else's",
    "a flood of edits or a swap holds up no edit of another root",
];

/// Carries a check out. The run's own host has ended before.
pub(crate) async fn run(name: &str, real: &Real<'_>) -> anyhow::Result<()> {
    match NAMES.iter().position(|known| *known == name) {
        Some(0) => watches(real).await,
        Some(1) => lost_replies(real).await,
        _ => lanes(real).await,
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

fn web_server(namespace: &str, name: &str, image: &str) -> Value {
    json!({
        "apiVersion": "my.domain/v1", "kind": "WebServer", "metadata": {"name": name, "namespace": namespace},
        "spec": {"image": image, "replicas": 0, "nodePort": 0},
    })
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

async fn make_namespace(real: &Real<'_>, name: &str) -> anyhow::Result<()> {
    real.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).await
}

async fn all_ready(real: &Real<'_>, roots: &[ObjectRef]) -> anyhow::Result<bool> {
    for root in roots {
        if !real.get(root).await?.is_some_and(|root| is_ready(&root)) {
            return Ok(false);
        }
    }
    Ok(true)
}

async fn watches(real: &Real<'_>) -> anyhow::Result<()> {
    let namespace = "watches";
    make_namespace(real, namespace).await?;
    let behind = Behind::start(real, namespace).await?;
    // Both have a Deployment and a Service.
    let roots = [web_server(namespace, "web", "nginx:1.23.1"), darkroom(namespace, "dark", &["watches"])];
    for root in &roots {
        real.apply(root).await?;
    }
    let roots = roots.map(|root| pintle_core::object::reference(&root));
    wait(Duration::from_secs(60), "every root is ready", async || all_ready(real, &roots).await)
        .await
        .with_context(|| behind.said())?;
    let reads = behind.proxy.reads();
    let is_about_children = |read: &&Read| read.query.contains("labelSelector=pintle.dev");
    let open = behind.proxy.open();
    for (path, metadata) in [
        ("/api/v1/configmaps", true),
        ("/api/v1/services", false),
        ("/apis/apps/v1/deployments", false),
        ("/apis/networking.k8s.io/v1/ingresses", true),
    ] {
        // A Reconciler that comes has the children of its kinds read anew, by its own eyes.
        let watches: Vec<&Read> =
            open.iter().filter(is_about_children).filter(|read| read.path == path).collect();
        ensure!(watches.len() == 1, "{path}: {watches:?}");
        ensure!(
            watches[0].accept.contains("PartialObjectMetadata") == metadata,
            "{path}: {}",
            watches[0].accept
        );
        let lists = reads.iter().filter(is_about_children).filter(|read| read.path == path);
        let lists: Vec<&Read> = lists.filter(|read| !read.query.contains("watch=true")).collect();
        ensure!(
            !lists.is_empty() && lists.iter().all(|read| read.query.contains("limit=")),
            "{path}: {lists:?}"
        );
    }
    let secrets: Vec<&Read> = reads.iter().filter(|read| read.path.ends_with("/secrets")).collect();
    ensure!(secrets.is_empty(), "{secrets:?}");

    // Both need Deployments, and one of them ConfigMaps.
    let open = |path: &str| {
        let all = behind.proxy.open().into_iter();
        all.filter(|read| read.path == path && read.query.contains("labelSelector=pintle.dev")).count()
    };
    ensure!(
        (open("/apis/apps/v1/deployments"), open("/api/v1/configmaps")) == (1, 1),
        "{:?}",
        behind.proxy.open()
    );
    real.delete(&roots[1], Cascade::Background).await?;
    let reconciler = ObjectRef {
        api_version: "pintle.dev/v1alpha1".into(),
        kind: "Reconciler".into(),
        namespace: None,
        name: "darkroom".into(),
    };
    real.delete(&reconciler, Cascade::Background).await?;
    let ended = wait(Duration::from_secs(20), "the watch that nobody needs any more ends", async || {
        Ok((open("/apis/apps/v1/deployments"), open("/api/v1/configmaps")) == (1, 0))
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
    make_namespace(real, namespace).await?;
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
    wait(Duration::from_secs(60), "every root is ready", async || all_ready(real, &roots).await)
        .await
        .with_context(|| behind.said())?;
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
/// How long each write takes meanwhile, so that all that is to be done takes some seconds.
const SLOW: Duration = Duration::from_millis(150);
/// How many writes of the flood may begin between an edit and its own first write. Sixteen passes are in work at a time.
const BEFORE_MAX: usize = 32;
/// How many must come after it, or there was no flood.
const AFTER_MIN: usize = 100;

async fn lanes(real: &Real<'_>) -> anyhow::Result<()> {
    let namespace = "lanes";
    make_namespace(real, namespace).await?;
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
    quiet(&behind, 90).await?;

    behind.proxy.slow_down(SLOW);
    edit_all("nginx:1.23.1").await?;
    let edited = behind.proxy.asked().len();
    real.apply(&darkroom(namespace, "calm", &["calm", "quiet"])).await?;
    comes_first(&behind, "another Reconciler's edit", edited, "/ingresses/calm", "/deployments/flood-")
        .await?;
    quiet(&behind, 90).await?;

    let reconciler = ObjectRef {
        api_version: "pintle.dev/v1alpha1".into(),
        kind: "Reconciler".into(),
        namespace: None,
        name: "webserver".into(),
    };
    let config = json!({"resources": {"requests": {"cpu": "40m"}, "limits": {"memory": "256Mi"}}});
    let swapped = behind.proxy.asked().len();
    real.patch(&reconciler, &json!({"spec": {"config": config}})).await?;
    let is_flood = |asked: &Asked| asked.path.contains("/deployments/flood-");
    wait(Duration::from_secs(20), "the swap begins", async || {
        Ok(behind.proxy.asked()[swapped..].iter().filter(|asked| is_flood(asked)).count() > 4)
    })
    .await?;
    let done: Vec<Asked> = behind.proxy.asked().split_off(swapped);
    let untouched = (0..FLOOD).map(name).rev().find(|name| {
        let path = format!("/deployments/{name}");
        !done.iter().any(|asked| asked.path.ends_with(&path))
    });
    let untouched = untouched.context("the swap is over already")?;
    let edited = behind.proxy.asked().len();
    real.apply(&web_server(namespace, &untouched, "nginx:1.23.2")).await?;
    let path = format!("/deployments/{untouched}");
    comes_first(&behind, "an edit during a swap", edited, &path, "/deployments/flood-").await?;
    real.patch(&reconciler, &json!({"spec": {"config": null}})).await?;
    behind.host.stop(Stop::Gracefully)?;
    real.delete_namespace(namespace)
}

/// Waits for the first write to a path, and sees that few of the flood's came before it and many after.
async fn comes_first(
    behind: &Behind,
    what: &str,
    since: usize,
    path: &str,
    flood: &str,
) -> anyhow::Result<()> {
    let position = || {
        behind.proxy.asked()[since..].iter().position(|asked| asked.path.ends_with(path)).map(|at| since + at)
    };
    let begun = Instant::now();
    wait(Duration::from_secs(60), what, async || Ok(position().is_some())).await?;
    let took = begun.elapsed();
    let of_flood = |asked: &[Asked]| asked.iter().filter(|asked| asked.path.contains(flood)).count();
    let at = position().context("it was there")?;
    let before = of_flood(&behind.proxy.asked()[since..at]);
    println!("        {what}: after {before} writes of the flood, {:.2} s", took.as_secs_f32());
    ensure!(before <= BEFORE_MAX, "{what} came after {before} writes of the flood");
    wait(Duration::from_secs(60), "many writes of the flood come after it", async || {
        Ok(of_flood(&behind.proxy.asked()[at..]) >= AFTER_MIN)
    })
    .await?;
    Ok(())
}

/// Waits until the host has written nothing for two seconds, the Lease aside.
async fn quiet(behind: &Behind, seconds: u64) -> anyhow::Result<()> {
    let count = || behind.proxy.asked().iter().filter(|asked| !asked.path.contains("/leases/")).count();
    let (mut last, mut since) = (count(), Instant::now());
    wait(Duration::from_secs(seconds), "the host becomes quiet", async || {
        let now = count();
        if now != last {
            (last, since) = (now, Instant::now());
        }
        Ok(since.elapsed() > Duration::from_secs(2))
    })
    .await
}
