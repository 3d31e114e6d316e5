//! A module with the worst schema of a config, beside one that is well.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use pintle_api::module_objects;
use pintle_engine::{Digest, fixtures};
use pintle_simulation::scenario::{Backend, Cascade};
use pintle_wit::ObjectRef;
use serde_json::{Map, Value, json};

use crate::real::{Real, is_ready, wait};

pub(crate) const NAME: &str = "a module with the worst schema is refused, and its neighbours do not feel it";

/// How long an edit of a healthy root may take until its child shows it.
const EDIT: Duration = Duration::from_secs(5);

/// Forty levels of two references each, and a chain of 8,000.
fn worst() -> [(&'static str, Value); 2] {
    let to = |name: usize| json!({"$ref": format!("#/$defs/l{name}")});
    let schema = |levels: usize, link: &dyn Fn(usize) -> Value| {
        let definitions: Map<String, Value> = (0..levels)
            .map(|level| (format!("l{level}"), link(level + 1)))
            .chain([(format!("l{levels}"), json!({"type": "object"}))])
            .collect();
        json!({"$ref": "#/$defs/l0", "$defs": definitions})
    };
    [("doubling", schema(40, &|next| json!({"allOf": [to(next), to(next)]}))), ("chain", schema(8000, &to))]
}

/// Beside other scenarios, with the host that runs them.
pub(crate) async fn check(real: &Real<'_>) -> anyhow::Result<()> {
    let namespace = "schemas";
    real.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})).await?;
    let root = json!({
        "apiVersion": "my.domain/v1", "kind": "WebServer", "metadata": {"name": "well", "namespace": namespace},
        "spec": {"image": "nginx:1.23.1", "replicas": 0, "nodePort": 0},
    });
    real.apply(&root).await?;
    let root = pintle_core::object::reference(&root);
    let child = ObjectRef { api_version: "apps/v1".into(), kind: "Deployment".into(), ..root.clone() };
    wait(Duration::from_secs(20), "the neighbour is ready", async || {
        Ok(real.get(&root).await?.is_some_and(|root| is_ready(&root)))
    })
    .await?;
    for (name, schema) in worst() {
        let name = format!("schemas-{name}");
        let kind = json!({"apiVersion": "schemas.example.com/v1", "kind": "Worst"});
        let mut manifest: Value =
            serde_json::from_str(&fixtures::manifest("worst", "schemas.example.com/v1", "Worst", &[]))?;
        manifest["configSchema"] = schema;
        let bytes = fixtures::answers(&manifest.to_string(), r#"{"apiVersion":"guest.pintle.dev/v1"}"#);
        for object in module_objects(&name, &bytes, &Digest::of(&bytes).to_string()) {
            real.apply(&object).await?;
        }
        let reconciler = json!({"apiVersion": "pintle.dev/v1alpha1", "kind": "Reconciler", "metadata": {"name": name},
            "spec": {"for": kind, "module": name, "config": {"a": 1}}});
        real.apply(&reconciler).await?;
        let reconciler = pintle_core::object::reference(&reconciler);
        let module = ObjectRef { kind: "Module".into(), ..reconciler.clone() };
        let begun = Instant::now();
        let mut edits = 0;
        // The neighbour is edited until the module is refused, and for a while after that.
        let mut refused = None;
        while refused.is_none_or(|at: Instant| at.elapsed() < Duration::from_secs(5)) {
            ensure!(begun.elapsed() < Duration::from_secs(60), "{module} is not refused");
            edits += 1;
            let replicas = edits % 3;
            real.patch(&root, &json!({"spec": {"replicas": replicas}})).await?;
            wait(EDIT, "an edit of the neighbour arrives", async || {
                let live = real.get(&child).await?.context("the child is gone")?;
                Ok(live.pointer("/spec/replicas") == Some(&json!(replicas)))
            })
            .await?;
            for path in ["/healthz", "/readyz"] {
                let reply = real.ask_host(path, None)?;
                ensure!(reply.starts_with("HTTP/1.1 200"), "{path}: {reply}");
            }
            let live = real.get(&module).await?.unwrap_or_default();
            let said = live["status"]["conditions"].to_string();
            if refused.is_none() && said.contains("ConfigSchemaInvalid") {
                ensure!(said.contains("configSchema."), "where: {said}");
                refused = Some(Instant::now());
            }
        }
        let said = real.get(&reconciler).await?.unwrap_or_default();
        ensure!(said["status"]["conditions"].to_string().contains("ModuleNotReady"), "{said}");
        println!("        {name}: {edits} edits of a neighbour arrived meanwhile");
        real.delete(&reconciler, Cascade::Background).await?;
    }
    real.delete_namespace(namespace)
}
