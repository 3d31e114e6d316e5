//! Beside a Reconciler whose guest loops forever.

use std::fs;

use anyhow::Result;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::json;

use super::create;
use crate::{
    figures::{Figures, percentile},
    latency, loader, plane,
    settings::{Flags, Phase, Who},
    stage::{self, ObserverScope, Stage},
};

/// The collection of the neighbour's roots.
const NEIGHBOURS: &str = "/apis/bench.pintle.dev/v1/namespaces/bench/neighbours";

pub(crate) async fn run(flags: &Flags, run: u32, figures: &mut Figures) -> Result<()> {
    let mut stage = Stage::start(flags, run, Who::Pintle, false, 16, figures).await?;
    create::load(&mut stage, Phase::Neighbour, 0..flags.roots, 0).await?;
    let alone = p99(&mut stage, "alone").await?;
    install(&mut stage).await?;
    let beside = p99(&mut stage, "beside").await?;
    stage.put(Phase::Neighbour, "alone_p99_ms", alone);
    stage.put(Phase::Neighbour, "beside_p99_ms", beside);
    stage.stop().await
}

async fn p99(stage: &mut Stage<'_>, part: &'static str) -> Result<f64> {
    let observer = stage.observer(ObserverScope::Configs).await?;
    let begun = stage.begin()?;
    let updates = latency::updates(&stage.api, &observer, stage.flags.roots, stage.flags.samples).await?;
    stage.end_now(Phase::Neighbour, part, begun)?;
    let p99 = percentile(&updates.config, 99.0);
    println!("    {part}: ConfigMap {:.1} / {p99:.1} ms (p50 / p99)", percentile(&updates.config, 50.0));
    Ok(p99)
}

/// Installs another kind of the same shape with as many roots, and a guest that never answers.
async fn install(stage: &mut Stage<'_>) -> Result<()> {
    let crd = fs::read_to_string(plane::repository().join("bench/guest/crd.yaml"))?;
    let crd = crd.replace("benches", "neighbours").replace("kind: Bench", "kind: Neighbour");
    let crd = crd
        .replace("listKind: BenchList", "listKind: NeighbourList")
        .replace("singular: bench", "singular: neighbour");
    stage.plane.run_kubectl(&["apply", "--server-side", "--filename", "-"], Some(&crd))?;
    let established = ["wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"];
    stage.plane.run_kubectl(&established, None)?;
    plane::apply(
        &stage.plane,
        &[json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "pintle-guest-neighbour", "labels": {"pintle.dev/aggregate-to-host": "true"}},
            "rules": [
                {"apiGroups": ["bench.pintle.dev"], "resources": ["neighbours"], "verbs": ["get", "list", "watch"]},
                {"apiGroups": ["bench.pintle.dev"], "resources": ["neighbours/status"], "verbs": ["get", "patch"]},
                {"apiGroups": ["bench.pintle.dev"], "resources": ["neighbours/finalizers"], "verbs": ["update"]},
            ],
        })],
    )?;
    stage::bind_roles(&stage.plane)?;
    stage.push("neighbour", &stage.module("bench-loop")?)?;
    let path = "/apis/pintle.dev/v1alpha1/reconcilers/neighbour";
    stage.api.apply(path, "bench", &stage::reconciler("neighbour", "Neighbour", "neighbour")).await?;
    stage.wait_reconciler("neighbour").await?;
    let api = &stage.api;
    stream::iter(0..stage.flags.roots)
        .map(|number| async move {
            let mut root = loader::root(&loader::name(number), 0, "");
            root["kind"] = "Neighbour".into();
            api.create(NEIGHBOURS, &root).await
        })
        .buffer_unordered(16)
        .try_collect::<()>()
        .await
}
