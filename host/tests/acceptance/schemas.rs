//! A module with the worst schema of a config, beside one that is well.

use kit::{Look, eventually, host::or_error};
use pintle_api::module_objects;
use pintle_engine::{Digest, fixtures};
use pintle_simulation::scenario::{Backend, Cascade};
use pintle_wit::ObjectRef;
use serde_json::{Map, Value, json};

use crate::real::Real;

pub(crate) const NAME: &str = "a module with the worst schema is refused, and its neighbours do not feel it";

/// How often the neighbour is edited once the module is refused.
const EDITS: usize = 5;

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

/// With the host that runs them.
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
    real.wait_until_ready(&root).await?;
    let mut edits = 0;
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
        let before = edits;
        let mut edit = async || {
            edits += 1;
            arrives(real, &root, &child, edits % 3).await
        };
        eventually(format!("{module} is refused"), async || {
            edit().await?;
            or_error(real.get(&module).await.map(|live| {
                let said = live.unwrap_or_default()["status"]["conditions"].to_string();
                let is_refused = said.contains("ConfigSchemaInvalid") && said.contains("configSchema.");
                Look::reached_if(is_refused, || said)
            }))
        })
        .await?;
        for _ in 0..EDITS {
            edit().await?;
        }
        eventually("its Reconciler says so", async || {
            or_error(real.get(&reconciler).await.map(|live| {
                let said = live.unwrap_or_default()["status"]["conditions"].to_string();
                Look::reached_if(said.contains("ModuleNotReady"), || said)
            }))
        })
        .await?;
        println!("        {name}: {} edits of a neighbour arrived meanwhile", edits - before);
        real.delete(&reconciler, Cascade::Background).await?;
    }
    real.delete_namespace(namespace)
}

/// An edit of the neighbour arrives at its child, and the host says that it is well.
async fn arrives(
    real: &Real<'_>,
    root: &ObjectRef,
    child: &ObjectRef,
    replicas: usize,
) -> anyhow::Result<()> {
    real.patch(root, &json!({"spec": {"replicas": replicas}})).await?;
    eventually("an edit of the neighbour arrives", async || {
        or_error(real.get(child).await.map(|live| {
            let live = live.unwrap_or_default()["spec"]["replicas"].clone();
            Look::reached_if(live == replicas, || format!("its child has {live} replicas, not {replicas}"))
        }))
    })
    .await?;
    for path in ["/healthz", "/readyz"] {
        eventually(format!("{path} says that all is well"), async || {
            or_error(real.ask_host(path, None).map(|reply| {
                Look::reached_if(reply.starts_with("HTTP/1.1 200"), || reply.replace("\r\n", " "))
            }))
        })
        .await?;
    }
    Ok(())
}
