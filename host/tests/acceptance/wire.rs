//! What a host asks the API server for, seen on the way, and replies that never come.

use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use kit::{
    Look, eventually,
    host::{self, Host},
};
use pintle_simulation::scenario::{Backend, Cascade, Stop};
use pintle_wit::ObjectRef;
use serde_json::{Value, json};

use crate::{
    install,
    proxy::{Asked, Lost, Proxy, Read},
    real::{Real, web_server},
};

const WATCHES: &str = "children are watched once for all Reconcilers, by label, in pages, and as long as anybody needs them; Secrets never";
const LOST_REPLIES: &str = "a write whose reply is lost is made once, and what it made is nobody else's";

/// The checks, by name.
pub(crate) const NAMES: [&str; 2] = [WATCHES, LOST_REPLIES];

/// Carries a check out. The run's own host has ended before.
pub(crate) async fn run(name: &str, real: &Real<'_>) -> anyhow::Result<()> {
    match name {
        WATCHES => watches(real).await,
        LOST_REPLIES => lost_replies(real).await,
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

    // Both need Deployments, and one of them Ingresses.
    real.delete(&roots[1], Cascade::Background).await?;
    // It waits until the Reconciler is gone, so that another one can be made.
    real.kubectl(&["delete", "reconciler", "darkroom", "--timeout=180s"], None)?;
    let ended = eventually("the watch that nobody needs any more ends", async || {
        let open = behind.proxy.open();
        let of = |path: &str| open.iter().filter(is_about_children).filter(|read| read.path == path).count();
        let counts = (of("/apis/apps/v1/deployments"), of("/apis/networking.k8s.io/v1/ingresses"));
        Ok(Look::reached_if(counts == (1, 0), || format!("{counts:?} watches of Deployments and Ingresses")))
    })
    .await;
    install::hang("deploy/samples/reconciler-darkroom.yaml", real).await?;
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
