//! The farm behind a gateway: what the phases about views measure.

use anyhow::Result;
use serde_json::{Value, json};
use tokio::task::block_in_place;

use crate::{
    api::Api,
    loader,
    plane::{apply, apply_file, wait_crds},
    stage::Stage,
};

/// What the gateway needs, and the farm without its views.
pub(crate) const MANIFESTS: [&str; 4] = [
    "deploy/install.yaml",
    "deploy/gateway.yaml",
    "deploy/samples/farm/crd.yaml",
    "deploy/samples/farm/rbac.yaml",
];

/// The namespace of the Pods.
const PODS_NAMESPACE: &str = "bench-pods";

/// The group and version of Llamas, as the view shows them.
pub(crate) const LLAMAS: &str = "farm.example.com/v1alpha";

/// The group and version of a CRD of the same schema, which stores them itself.
pub(crate) const TWINS: &str = "twin.example.com/v1alpha";

/// Makes the API server ask the gateway, installs the views and their module, and creates what they show.
pub(crate) async fn open(stage: &mut Stage<'_>) -> Result<()> {
    block_in_place(|| {
        let address = stage.running()?.address("The gateway starts")?;
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/samples/farm/apiservice.yaml");
        let read = ["create", "--dry-run=client", "--output=json", "--filename", file];
        let service: Value = serde_json::from_str(&stage.plane.run_kubectl(&read, None)?)?;
        stage.plane.serve_api_on_loopback(&service, address.port())?;
        apply_file(&stage.plane, "deploy/samples/farm/views.yaml")?;
        stage.push("farm-0.1.0", "farm.wasm")?;
        for (condition, object) in [
            ("--for=condition=Available", "apiservice/v1alpha.farm.example.com"),
            ("--for=condition=Registered", "view/farmpods"),
            ("--for=condition=Registered", "view/llamas"),
        ] {
            stage.plane.run_kubectl(&["wait", condition, object, "--timeout=120s"], None)?;
        }
        anyhow::Ok(())
    })?;
    user(stage).await?.wait(&format!("{}?limit=1", pods_path(true))).await?;
    add_pods(stage).await
}

/// A new client of the user, with connections of its own.
pub(crate) async fn user(stage: &Stage<'_>) -> Result<Api> {
    Api::connect(&stage.user).await
}

/// Makes a CRD of the schema that the view of Llamas shows.
pub(crate) fn add_twin(stage: &Stage<'_>) -> Result<()> {
    block_in_place(|| {
        let read = ["get", "view", "llamas", "--output=jsonpath={.status.served}"];
        let served: Value = serde_json::from_str(&stage.plane.run_kubectl(&read, None)?)?;
        apply(&stage.plane, &[twin(&served)])?;
        wait_crds(&stage.plane)
    })
}

/// Creates the Pods, each as a small service has it. No scheduler takes them, and no kubelet runs them.
async fn add_pods(stage: &Stage<'_>) -> Result<()> {
    add_namespace(stage, PODS_NAMESPACE).await?;
    let template: Value = serde_json::from_str(include_str!("../pod.json"))?;
    let pods = (0..stage.flags.pods).map(|number| {
        let mut pod = template.clone();
        pod["metadata"]["name"] = format!("pod-{number:05}").into();
        pod["metadata"]["labels"]["shard"] = (number % 20).to_string().into();
        pod
    });
    loader::create(&stage.api, pods_path(false), pods).await
}

/// Creates a namespace, and waits until Pods can be made in it.
pub(crate) async fn add_namespace(stage: &Stage<'_>, name: &str) -> Result<()> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    stage.api.create("/api/v1/namespaces", &namespace).await?;
    stage.api.wait(&format!("/api/v1/namespaces/{name}/serviceaccounts/default")).await
}

/// A CRD of what a View serves, under a group of its own.
fn twin(served: &Value) -> Value {
    let mut schema = served["schema"].clone();
    for (field, of) in [("apiVersion", "string"), ("kind", "string"), ("metadata", "object")] {
        schema["properties"][field] = json!({"type": of});
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "llamas.twin.example.com"},
        "spec": {
            "group": "twin.example.com", "scope": "Namespaced",
            "names": {
                "kind": served["kind"], "listKind": served["listKind"],
                "plural": served["plural"], "singular": served["singular"],
            },
            "versions": [{
                "name": "v1alpha", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
                "additionalPrinterColumns": served.get("columns").cloned().unwrap_or_else(|| json!([])),
            }],
        },
    })
}

/// The path of the Llamas of a group and version in a namespace.
pub(crate) fn llamas(api_version: &str, namespace: &str) -> String {
    format!("/apis/{api_version}/namespaces/{namespace}/llamas")
}

/// The name of the Llama with this number.
pub(crate) fn llama_name(number: u32) -> String {
    format!("llama-{number:05}")
}

/// A Llama that weighs one kilogram.
pub(crate) fn llama(api_version: &str, number: u32) -> Value {
    json!({
        "apiVersion": api_version, "kind": "Llama", "metadata": {"name": llama_name(number)},
        "spec": {"weight": 1, "height": 0.5},
    })
}

/// The path of all Pods, as the API server has them or as the view shows them.
pub(crate) fn pods_path(is_view: bool) -> &'static str {
    if is_view {
        "/apis/farm.example.com/v1alpha/namespaces/bench-pods/farmpods"
    } else {
        "/api/v1/namespaces/bench-pods/pods"
    }
}

/// The path of the Pod with this number. The view shows it with a prefix before its name.
pub(crate) fn pod_path(number: u32, is_view: bool) -> String {
    format!("{}/{}pod-{number:05}", pods_path(is_view), if is_view { "farm-" } else { "" })
}
