//! Many large roots and many large objects with our labels, as a tenant can make them, and a host that is held to what `deploy/` gives it.

use anyhow::ensure;
use futures::{StreamExt, stream};
use kit::{
    Look, eventually,
    group::{self, Group},
    host::{Host, or_error},
};
use pintle_api::module_objects;
use pintle_engine::fixtures;
use pintle_simulation::scenario::{Backend, CUSTOM_API_VERSION, Stop};
use pintle_wit::ObjectRef;
use serde_json::{Value, json};

use crate::real::{Real, condition, deployment, image_of, web_server};

pub(crate) const NAME: &str = "350 large roots and 550 large ConfigMaps do not stop a host of 512 MiB";

const NAMESPACE: &str = "large-objects";
const ROOTS: usize = 350;
/// Nearly the most that etcd takes of an object.
const ROOT_BYTES: usize = 1_400 << 10;
/// Together more than the host's memory.
const CONFIG_MAPS: usize = 550;
/// Nearly the most that the API server takes as a ConfigMap's data.
const CONFIG_MAP_BYTES: usize = 1_000 << 10;
/// How many are made at once.
const AT_ONCE: usize = 8;

/// The kind, a guest that observes ConfigMaps, and its Reconciler.
async fn install(real: &Real<'_>) -> anyhow::Result<()> {
    let group = CUSTOM_API_VERSION.split('/').next().unwrap_or_default();
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    real.apply(&json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": format!("larges.{group}")},
        "spec": {"group": group, "scope": "Namespaced",
            "names": {"kind": "Large", "listKind": "LargeList", "plural": "larges", "singular": "large"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": open, "status": open}}}}]},
    }))
    .await?;
    let manifest = fixtures::manifest(NAMESPACE, CUSTOM_API_VERSION, "Large", &["v1/ConfigMap"]);
    let mut manifest: Value = serde_json::from_str(&manifest)?;
    manifest["children"][0]["observe"] = true.into();
    let bytes = fixtures::answers(&manifest.to_string(), r#"{"apiVersion":"guest.pintle.dev/v1"}"#);
    let digest = pintle_engine::Digest::of(&bytes).to_string();
    for object in module_objects(NAMESPACE, &bytes, &digest) {
        real.apply(&object).await?;
    }
    real.apply(&json!({
        "apiVersion": "pintle.dev/v1alpha1", "kind": "Reconciler", "metadata": {"name": NAMESPACE},
        "spec": {"for": {"apiVersion": CUSTOM_API_VERSION, "kind": "Large"}, "module": NAMESPACE,
            "grants": {"children": [{"apiVersion": "v1", "kinds": ["ConfigMap"]}]}},
    }))
    .await
}

fn root(number: usize) -> ObjectRef {
    ObjectRef {
        api_version: CUSTOM_API_VERSION.into(),
        kind: "Large".into(),
        namespace: Some(NAMESPACE.into()),
        name: format!("large-{number}"),
    }
}

fn large_root(number: usize) -> Value {
    json!({
        "apiVersion": CUSTOM_API_VERSION, "kind": "Large",
        "metadata": {"name": format!("large-{number}"), "namespace": NAMESPACE},
        "spec": {"text": "x".repeat(ROOT_BYTES)},
    })
}

/// A ConfigMap that carries the labels of a child, which no root owns.
fn large_config_map(number: usize) -> Value {
    let labels = json!({"pintle.dev/reconciler": NAMESPACE, "pintle.dev/root": "00000000-0000-0000-0000-000000000000"});
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": format!("large-{number}"), "namespace": NAMESPACE, "labels": labels},
        "data": {"text": "x".repeat(CONFIG_MAP_BYTES)},
    })
}

/// Runs a host that is held to its limit, beside which a tenant has many large objects, and looks at what becomes of it, of them and of a
/// neighbour.
pub(crate) async fn check(real: &Real<'_>) -> anyhow::Result<()> {
    real.stop_host_if_it_runs().await?;
    real.make_namespace(NAMESPACE)?;
    install(real).await?;
    let objects = (0..ROOTS).map(large_root).chain((0..CONFIG_MAPS).map(large_config_map));
    let mut made =
        stream::iter(objects).map(async |object| real.apply(&object).await).buffer_unordered(AT_ONCE);
    while let Some(made) = made.next().await {
        made?;
    }
    drop(made);
    let group = Group::make("host");
    let (by, limit) = Group::held(group.as_ref())?;
    let mut host = Host::start_through(&by, real.kubeconfig(), &real.log(), limit)?;
    let outcome = async {
        host.wait_until_it_leads().await?;
        beside(real, &host).await
    }
    .await;
    group::judge(&mut host.server, group.as_ref(), outcome)?;
    host.stop(Stop::Gracefully)?;
    real.kubectl(&["delete", "reconciler", NAMESPACE, "--wait=false"], None)?;
    real.delete_namespace(NAMESPACE)
}

async fn beside(real: &Real<'_>, host: &Host) -> anyhow::Result<()> {
    let (image, neighbour) = ("nginx:1.23.1", deployment(NAMESPACE, "neighbour"));
    real.apply(&web_server(NAMESPACE, "neighbour", image)).await?;
    real.wait_for("its neighbour's image", &neighbour, |live| image_of(live) == image).await?;
    for number in 0..ROOTS {
        says(real, &root(number), "RootTooLarge").await?;
    }
    real.patch(&root(0), &json!({"spec": {"text": "x"}})).await?;
    says(real, &root(0), "Succeeded").await?;
    let hits = format!(r#"pintle_limits_hit_total{{controller="{NAMESPACE}",limit="root-size"}}"#);
    ensure!(host.metric(&hits)? >= ROOTS as f64, "{hits} was not counted");
    Ok(())
}

/// Waits until the Ready of a root has this reason. What the root is like is too large to be shown.
async fn says(real: &Real<'_>, root: &ObjectRef, reason: &str) -> anyhow::Result<()> {
    eventually(format!("{root}: {reason}"), async || {
        or_error(real.get(root).await.map(|live| {
            let live = live.unwrap_or_default();
            let ready = condition(&live, "Ready");
            Look::reached_if(ready["reason"] == reason, || ready.to_string())
        }))
    })
    .await
}
