//! Reconciles __KIND__ (`__GROUP__/v1`) into a web page: a ConfigMap with the text, and a Deployment that serves it.

mod resource;

pub use resource::{Config, Root, Spec, Status};

use pintle_guest::{
    Child, ChildKind, Failure, Guest, Kind, Manifest, Request, Response, Rollout, Value, json, reasons, sha256_hex, status,
};

/// The guest.
pub struct __KIND__;

pintle_guest::export!(__KIND__);

impl Guest for __KIND__ {
    type Root = Root;
    type Config = Config;

    fn manifest() -> Manifest {
        Manifest {
            // A kind that is observed is shown in `request.children`, as it is in the cluster.
            children: vec![ChildKind::new("v1", "ConfigMap"), ChildKind::new("apps/v1", "Deployment").observed()],
            ..Manifest::new("__NAME__", env!("CARGO_PKG_VERSION"), Kind::new("__GROUP__/v1", "__KIND__"))
        }
    }

    fn reconcile(request: Request<Root, Config>) -> Result<Response, Failure> {
        let root = &request.object;
        if root.spec.text.is_empty() {
            // The CRD refuses this too; it is checked again because an object may be older than the rule.
            return Err(Failure::terminal(reasons::INVALID_SPEC, "must not be empty").at("spec.text"));
        }
        let rollout = Rollout::of(request.child("Deployment", &root.metadata.name));
        // The children that should exist, whole, every time: what is left out is deleted. The host sets the namespace, and makes
        // the root their owner.
        Ok(Response {
            children: vec![
                Child::new("page", page(root)),
                Child::new("deployment", deployment(root, &request.config)),
            ],
            status: status(&Status { ready_replicas: rollout.ready }),
            conditions: vec![rollout.progressing()],
            ..Response::default()
        })
    }
}

fn page(root: &Root) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": root.metadata.name},
        "data": {"index.html": root.spec.text},
    })
}

fn deployment(root: &Root, config: &Config) -> Value {
    let name = &root.metadata.name;
    let labels = json!({"app.kubernetes.io/name": "__NAME__", "app.kubernetes.io/instance": name});
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": root.spec.replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {
                    "labels": labels,
                    // Another text means other Pods, so that all of them show it.
                    "annotations": {"__GROUP__/text-hash": sha256_hex(root.spec.text.as_bytes())},
                },
                "spec": {
                    "automountServiceAccountToken": false,
                    "containers": [{
                        "name": "web",
                        "image": config.image,
                        "ports": [{"name": "http", "containerPort": 80}],
                        "readinessProbe": {"httpGet": {"path": "/", "port": "http"}},
                        "volumeMounts": [{"name": "page", "mountPath": "/usr/share/nginx/html"}],
                    }],
                    "volumes": [{"name": "page", "configMap": {"name": name}}],
                },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a native build a guest is a plain function.
    fn reconcile(text: &str) -> Result<Response, Failure> {
        let mut root = Root::default();
        root.metadata.name = "sample".to_owned();
        root.spec = Spec { text: text.to_owned(), replicas: 2 };
        let config = Config::default();
        __KIND__::reconcile(Request { object: root, config, ..Request::default() })
    }

    #[test]
    fn another_text_means_other_pods() {
        let template = |text: &str| reconcile(text).unwrap().children[1].object["spec"]["template"].clone();
        assert_eq!(template("hello"), template("hello"));
        assert_ne!(template("hello"), template("good morning"));
    }

    #[test]
    fn an_empty_text_is_refused_with_its_path() {
        assert_eq!(reconcile("").unwrap_err().path.as_deref(), Some("spec.text"));
    }
}
