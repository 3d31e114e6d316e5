//! Pods of the operator with the memory that the chart gives them: what fits, and what does not.

use std::time::Instant;

use anyhow::ensure;
use futures::{StreamExt, stream};
use kit::{
    Look, eventually,
    group::{LIMIT_BYTES, kills_beside, peak_bytes},
    host::or_error,
};
use pintle_api::module_objects;
use pintle_core::object;
use pintle_engine::fixtures;
use pintle_simulation::scenario::{Backend, CUSTOM_API_VERSION};
use pintle_wit::ObjectRef;
use serde_json::{Value, json};

use super::{NAMESPACE, OPERATOR, process_of, ready_pods};
use crate::{
    Check, check,
    real::{Real, condition, deployment, image_of, is_ready, reconciler, web_server},
};

const ROOTS_FIT: &str = "1,000 roots with a ConfigMap each fit into the chart's limits";
const COMPILER_FAILS: &str = "a module that its compiler needs too much memory for fails by the compiler's own limit, and nothing is OOM-killed";

pub(super) fn checks<'a>(real: &'a Real<'a>) -> Vec<Check<'a>> {
    vec![check(ROOTS_FIT, move || apply_roots(real)), check(COMPILER_FAILS, move || push_bomb(real))]
}

const ROOTS: usize = 1_000;

/// How many are made at once.
const AT_ONCE: usize = 8;

/// Each Pod of the operator, how often its container was started anew, and how many processes in its control group the kernel has killed for
/// want of memory: a compiler that ends like that changes nothing in the Pod's status.
async fn lives(real: &Real<'_>) -> anyhow::Result<Vec<(String, Value, u64)>> {
    let pods = ready_pods(real, NAMESPACE, OPERATOR, 2).await?;
    let life = |pod: &Value| {
        let restarts = pod["status"]["containerStatuses"][0]["restartCount"].clone();
        anyhow::Ok((object::name(pod).to_owned(), restarts, kills_beside(process_of(pod)?)?))
    };
    pods.iter().map(life).collect()
}

async fn apply_roots(real: &Real<'_>) -> anyhow::Result<()> {
    let namespace = "thousand-roots";
    real.make_namespace(namespace)?;
    let before = lives(real).await?;
    let root = |number: usize| {
        let config_map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("root-{number}")},
            "data": {"number": number.to_string()},
        });
        json!({
            "apiVersion": "raw.example.com/v1", "kind": "Raw",
            "metadata": {"name": format!("root-{number}"), "namespace": namespace}, "spec": {"objects": [config_map]},
        })
    };
    let began = Instant::now();
    let mut applies = stream::iter((0..ROOTS).map(root))
        .map(async |root| real.apply(&root).await)
        .buffer_unordered(AT_ONCE);
    while let Some(outcome) = applies.next().await {
        outcome?;
    }
    drop(applies);
    let time_to_apply = began.elapsed().as_secs_f32();
    eventually("every root is ready", async || {
        or_error(real.kubectl_json(&["get", "raws", "-n", namespace]).map(|roots| {
            let roots = roots["items"].as_array().into_iter().flatten();
            let ready = roots.filter(|root| is_ready(root)).count();
            Look::reached_if(ready == ROOTS, || format!("{ready} are"))
        }))
    })
    .await?;
    let time = began.elapsed().as_secs_f32();
    println!("        {ROOTS} roots were applied in {time_to_apply:.1} s, and all ready after {time:.1} s");
    // Not the working set that the kubelet measures: a machine may have paged out what is idle.
    for pod in ready_pods(real, NAMESPACE, OPERATOR, 2).await? {
        let (name, peak) = (object::name(&pod), peak_bytes(process_of(&pod)?)?);
        println!("        {name}: the peak was {} MiB", peak >> 20);
        ensure!(peak < LIMIT_BYTES, "{name} took {peak} bytes");
    }
    let after = lives(real).await?;
    ensure!(after == before, "Pods, restarts and kills were {before:?}, and are {after:?}");
    real.delete_namespace(namespace)
}

async fn push_bomb(real: &Real<'_>) -> anyhow::Result<()> {
    let (namespace, name, kind) = ("hungry-module", "hungry", "Hungry");
    real.make_namespace(namespace)?;
    let neighbour = web_server(namespace, "neighbour", "nginx:1.23.1");
    real.apply(&neighbour).await?;
    let neighbour = object::reference(&neighbour);
    real.wait_until_ready(&neighbour).await?;
    let before = lives(real).await?;

    // One function, within all limits of a module, for which a compiler needs more memory than any is to have.
    let bytes =
        fixtures::compile_bomb(&fixtures::manifest(name, CUSTOM_API_VERSION, kind, &[]), 1, 3_000, 3_000);
    let digest = pintle_engine::Digest::of(&bytes).to_string();
    for object in module_objects(name, &bytes, &digest) {
        real.apply(&object).await?;
    }
    real.apply(&json!({
        "apiVersion": "pintle.dev/v1alpha1", "kind": "Reconciler", "metadata": {"name": name},
        "spec": {"for": {"apiVersion": CUSTOM_API_VERSION, "kind": kind}, "module": name},
    }))
    .await?;
    let module = ObjectRef { kind: "Module".into(), ..reconciler(name) };
    let says = |live: &Value, reason: &str, words: &str| {
        let ready = condition(live, "Ready");
        let message = ready["message"].as_str().unwrap_or_default();
        ready["status"] == "False" && ready["reason"] == reason && message.contains(words)
    };
    // The kernel would have ended it by SIGKILL, which the message would name.
    let lacks_memory =
        |live: &Value| says(live, "CompilerFailed", "memory") && !says(live, "CompilerFailed", "SIGKILL");
    real.wait_for("its compiler had too little memory", &module, lacks_memory).await?;
    let is_unbound = |live: &Value| says(live, "ModuleNotReady", "CompilerFailed");
    real.wait_for("its module is not ready", &reconciler(name), is_unbound).await?;

    // It is tried again meanwhile.
    for edit in 2..5 {
        let image = format!("nginx:1.23.{edit}");
        real.patch(&neighbour, &json!({"spec": {"image": image}})).await?;
        let child = deployment(namespace, &neighbour.name);
        real.wait_for("the neighbour's edit", &child, |live| image_of(live) == image.as_str()).await?;
    }
    let live = real.get(&module).await?.unwrap_or_default();
    println!("        {}", condition(&live, "Ready")["message"].as_str().unwrap_or_default());
    let after = lives(real).await?;
    ensure!(after == before, "Pods, restarts and kills were {before:?}, and are {after:?}");
    real.kubectl(&["delete", "reconciler", name], None)?;
    real.kubectl(&["delete", "module", name], None)?;
    real.delete_namespace(namespace)
}
