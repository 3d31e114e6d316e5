//! Guests whose answers take as much memory as they can make them take, and a host that is held to what `deploy/` gives it.

use anyhow::ensure;
use futures::future::join_all;
use kit::{
    Look, eventually,
    group::{self, Group, LIMIT_BYTES},
    host::{Host, or_error},
};
use pintle_api::module_objects;
use pintle_engine::fixtures;
use pintle_simulation::scenario::{Backend, CUSTOM_API_VERSION, Cascade, Stop};
use pintle_wit::ObjectRef;
use serde_json::{Value, json};

use crate::real::{Real, condition, deployment, image_of, web_server};

pub(crate) const NAME: &str = "a host of 512 MiB lives through the worst answers, and serves their neighbour";

/// In each of them there is a root of every kind: eighteen in all, more than there are workers.
const NAMESPACES: [&str; 3] = ["memory-0", "memory-1", "memory-2"];

/// How often the neighbour is edited, without the others and beside them.
const EDITS: u32 = 20;

/// A kind whose roots have a bad guest.
struct Bad {
    kind: &'static str,
    /// What `Ready` says in the end; nothing where it may be anything.
    reason: Option<&'static str>,
    limits: Value,
    module: fn(&str) -> Vec<u8>,
}

const HEAD: &str = r#"{"apiVersion":"guest.pintle.dev/v1","#;

fn bads() -> [Bad; 6] {
    [
        Bad {
            kind: "Values",
            reason: Some("ResponseTooComplex"),
            limits: json!({}),
            module: |manifest| maps(manifest, 2 << 20),
        },
        Bad {
            kind: "Maps",
            reason: Some("StatusTooLarge"),
            limits: json!({}),
            // As many values as there may be: of each two a map is made.
            module: |manifest| maps(manifest, 458_000),
        },
        Bad {
            kind: "Wrong",
            reason: Some("EventInvalid"),
            limits: json!({}),
            module: |manifest| wrong(manifest, 1_360_000),
        },
        Bad {
            kind: "Huge",
            reason: Some("MemoryBudgetExceeded"),
            limits: json!({"responseKibibytes": 16384, "memoryMebibytes": 128, "timeoutMilliseconds": 2000}),
            module: |manifest| wrong(manifest, 10 << 20),
        },
        Bad {
            kind: "Legal",
            reason: None,
            limits: json!({}),
            // What is carried out in full, with nearly as many values as an answer may have.
            module: |manifest| {
                let data = |_| (0..14_000).map(|key| (format!("k{key:05}"), Value::from(""))).collect();
                let child = |number: usize| {
                    let data: serde_json::Map<String, Value> = data(number);
                    json!({"id": number.to_string(), "object": {
                        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("legal-{number}")}, "data": data}})
                };
                let children: Vec<Value> = (0..8).map(child).collect();
                let answer = json!({"apiVersion": "guest.pintle.dev/v1", "children": children});
                fixtures::answers(manifest, &answer.to_string())
            },
        },
        Bad {
            kind: "Fills",
            reason: Some("Succeeded"),
            limits: json!({"timeoutMilliseconds": 2000}),
            module: |manifest| fixtures::fills(manifest, 62 << 20, r#"{"apiVersion":"guest.pintle.dev/v1"}"#),
        },
    ]
}

/// Answers with maps in its status, so many bytes of them.
fn maps(manifest: &str, bytes: usize) -> Vec<u8> {
    fixtures::repeats(manifest, &format!(r#"{HEAD}"status":{{"a":["#), r#"{"":0},"#, "0]}}", bytes)
}

/// Answers with wrong events, so many bytes of them.
fn wrong(manifest: &str, bytes: usize) -> Vec<u8> {
    let event = r#"{"type":"Normal","reason":"","message":""}"#;
    fixtures::repeats(
        manifest,
        &format!(r#"{HEAD}"events":["#),
        &format!("{event},"),
        &format!("{event}]}}"),
        bytes,
    )
}

/// The kind, its module and its Reconciler.
async fn install(real: &Real<'_>, bad: &Bad) -> anyhow::Result<()> {
    let singular = bad.kind.to_lowercase();
    let (plural, name) = (format!("{singular}all"), format!("memory-{singular}"));
    let group = CUSTOM_API_VERSION.split('/').next().unwrap_or_default();
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    real.apply(&json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": format!("{plural}.{group}")},
        "spec": {"group": group, "scope": "Namespaced",
            "names": {"kind": bad.kind, "listKind": format!("{}List", bad.kind), "plural": plural, "singular": singular},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": open, "status": open}}}}]},
    }))
    .await?;
    let manifest = fixtures::manifest(&name, CUSTOM_API_VERSION, bad.kind, &["v1/ConfigMap"]);
    let bytes = (bad.module)(&manifest);
    let digest = pintle_engine::Digest::of(&bytes).to_string();
    for object in module_objects(&name, &bytes, &digest) {
        real.apply(&object).await?;
    }
    real.apply(&json!({
        "apiVersion": "pintle.dev/v1alpha1", "kind": "Reconciler", "metadata": {"name": name},
        "spec": {"for": {"apiVersion": CUSTOM_API_VERSION, "kind": bad.kind}, "module": name, "limits": bad.limits,
            "grants": {"children": [{"apiVersion": "v1", "kinds": ["ConfigMap"]}]}},
    }))
    .await
}

/// Runs a host that is held to its limit beside the worst answers, and looks at what becomes of it and of their neighbour.
pub(crate) async fn check(real: &Real<'_>) -> anyhow::Result<()> {
    real.stop_host_if_it_runs().await?;
    for namespace in NAMESPACES {
        real.make_namespace(namespace)?;
    }
    for bad in bads() {
        install(real, &bad).await?;
    }
    let group = Group::make("host");
    let (by, limit) = Group::held(group.as_ref())?;
    let log = real.log();
    let mut host = Host::start_through(&by, real.kubeconfig(), &log, limit)?;
    let outcome = async {
        host.wait_until_it_leads().await?;
        let budget = host.metric(r#"pintle_memory_budget_bytes{of="process"}"#)?;
        ensure!(budget == LIMIT_BYTES as f64, "it takes its limit to be {budget}");
        worst(real, &host).await
    }
    .await;
    group::judge(&mut host.server, group.as_ref(), outcome)?;
    host.stop(Stop::Gracefully)?;
    clean_up(real).await
}

async fn clean_up(real: &Real<'_>) -> anyhow::Result<()> {
    for bad in bads() {
        for namespace in NAMESPACES {
            real.delete(&root(bad.kind, namespace), Cascade::Background).await?;
        }
        let name = format!("memory-{}", bad.kind.to_lowercase());
        real.kubectl(&["delete", "reconciler", &name, "--wait=false"], None)?;
    }
    for namespace in NAMESPACES {
        real.delete_namespace(namespace)?;
    }
    Ok(())
}

async fn worst(real: &Real<'_>, host: &Host) -> anyhow::Result<()> {
    let neighbour = web_server(NAMESPACES[0], "neighbour", "nginx:1.23.1");
    real.apply(&neighbour).await?;
    let neighbour = pintle_core::object::reference(&neighbour);
    edits(real, &neighbour, &[]).await?;

    let mut roots = Vec::new();
    for bad in bads() {
        for namespace in NAMESPACES {
            let root = root(bad.kind, namespace);
            let metadata = json!({"name": root.name, "namespace": namespace});
            real.apply(&json!({"apiVersion": CUSTOM_API_VERSION, "kind": bad.kind, "metadata": metadata, "spec": {}}))
                .await?;
            roots.push(root);
        }
    }
    edits(real, &neighbour, &roots).await?;
    for bad in bads() {
        for namespace in NAMESPACES {
            let wanted = bad.reason.unwrap_or("something");
            let is_said = |live: &Value| {
                let ready = condition(live, "Ready");
                ready.is_object() && bad.reason.is_none_or(|reason| ready["reason"] == reason)
            };
            real.wait_for(wanted, &root(bad.kind, namespace), is_said).await?;
        }
    }
    // All of it was given back, and what was hit is counted.
    eventually("nothing is reserved any more", async || {
        or_error(
            host.metric(r#"pintle_memory_reserved_bytes{purpose="call"}"#)
                .map(|reserved| Look::reached_if(reserved == 0.0, || format!("{reserved} bytes are"))),
        )
    })
    .await?;
    for (kind, limit) in [("values", "answer-values"), ("wrong", "violations"), ("huge", "memory-budget")] {
        let hits = format!(r#"pintle_limits_hit_total{{controller="memory-{kind}",limit="{limit}"}}"#);
        ensure!(host.metric(&hits)? > 0.0, "{hits} was not counted");
    }
    Ok(())
}

fn root(kind: &str, namespace: &str) -> ObjectRef {
    ObjectRef {
        api_version: CUSTOM_API_VERSION.into(),
        kind: kind.into(),
        namespace: Some(namespace.into()),
        name: "bad".into(),
    }
}

/// Edits the neighbour, each time just after these were touched, and waits until its child shows it.
async fn edits(real: &Real<'_>, neighbour: &ObjectRef, others: &[ObjectRef]) -> anyhow::Result<()> {
    let child = deployment(NAMESPACES[0], &neighbour.name);
    for edit in 0..EDITS {
        let touch = json!({"metadata": {"annotations": {"pintle.dev/reconcile-at": edit.to_string()}}});
        for touched in join_all(others.iter().map(|other| real.patch(other, &touch))).await {
            touched?;
        }
        let image = format!("nginx:1.{}.{}", 20 + edit, others.len());
        real.patch(neighbour, &json!({"spec": {"image": image}})).await?;
        real.wait_for("the neighbour's edit", &child, |live| image_of(live) == image.as_str()).await?;
    }
    Ok(())
}
