//! Reconciles WebServer (`my.domain/v1`) into a Deployment and a Service at a port of every node.

mod config;
mod resource;
#[cfg(test)]
mod tests;

pub use config::{Config, Resources};
pub use resource::{DEFAULT_NODE_PORT, MAX_NAME, Root, WebServerSpec, WebServerStatus};

use pintle_guest::{
    Child, ChildKind, Event, Failure, Guest, GuestCondition, Kind, Manifest, Refusal, Request, Response,
    Rollout, Value, dns_1035_label, json, reasons, status,
};

/// The node port, as the API server names it in a refusal of the Service.
const NODE_PORT: &str = "spec.ports[0].nodePort";

/// The guest.
pub struct WebServer;

pintle_guest::export!(WebServer);

impl Guest for WebServer {
    type Root = Root;
    type Config = Config;

    fn manifest() -> Manifest {
        Manifest {
            children: vec![
                ChildKind::new("apps/v1", "Deployment").observed(),
                ChildKind::new("v1", "Service").observed(),
            ],
            ..Manifest::new("webserver", env!("CARGO_PKG_VERSION"), Kind::new("my.domain/v1", "WebServer"))
        }
    }

    fn reconcile(request: Request<Root, Config>) -> Result<Response, Failure> {
        let root = &request.object;
        let name = root.metadata.name.as_str();
        check(root)?;

        let service_name = format!("{name}-service");
        let service = request.child("Service", &service_name);
        let rollout = Rollout::of(request.child("Deployment", name));
        let conflict =
            request.refusal("Service", &service_name).and_then(|refusal| node_port_conflict(root, refusal));
        // What is wrong with the node port has a condition of its own.
        let other = request.refusals.iter().find(|refusal| refusal.cause(NODE_PORT).is_none());

        let status = status(&WebServerStatus {
            replicas: rollout.replicas,
            ready_replicas: rollout.ready,
            updated_replicas: rollout.updated,
            selector: format!("app=webserver,webserver_cr={name}"),
            node_port: service.and_then(|service| service["spec"]["ports"][0]["nodePort"].as_i64()),
        });
        let events =
            conflict.iter().map(|conflict| Event::warning(&conflict.reason, &conflict.message)).collect();
        let degraded = other.map_or_else(|| rollout.degraded(), Rollout::degraded_by);
        let mut conditions = vec![rollout.progressing(), degraded];
        conditions.extend(conflict);
        Ok(Response {
            children: vec![
                Child::new("deployment", deployment(root, &request.config)),
                Child::new("service", service_object(root, &service_name)),
            ],
            status,
            conditions,
            events,
            ..Response::default()
        })
    }
}

/// What the CRD refuses too. It is checked again because an object may be older than the rule.
fn check(root: &Root) -> Result<(), Failure> {
    let invalid = |path: &str, message: &str| Err(Failure::terminal(reasons::INVALID_SPEC, message).at(path));
    let (name, spec) = (&root.metadata.name, &root.spec);
    if name.len() > MAX_NAME || !dns_1035_label(name) {
        return invalid(
            "metadata.name",
            "must be at most 55 lower-case letters, digits and '-', beginning with a letter: a Service is named after it",
        );
    }
    if spec.replicas < 0 {
        return invalid("spec.replicas", "must not be negative");
    }
    if spec.image.is_empty() {
        return invalid("spec.image", "must name a container image");
    }
    if spec.node_port != 0 && !(30000..=32767).contains(&spec.node_port) {
        return invalid(
            "spec.nodePort",
            "must lie between 30000 and 32767, or be 0 to leave the choice to Kubernetes",
        );
    }
    Ok(())
}

/// The labels of the operator that this guest replaces. A Deployment's selector cannot be changed, so they must stay as they are.
fn labels(name: &str) -> Value {
    json!({"app": "webserver", "webserver_cr": name})
}

fn deployment(root: &Root, config: &Config) -> Value {
    let name = &root.metadata.name;
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": root.spec.replicas,
            "selector": {"matchLabels": labels(name)},
            "template": {
                "metadata": {"labels": labels(name)},
                "spec": {
                    "automountServiceAccountToken": false,
                    // A stock nginx starts as root, binds port 80 and writes its cache: so neither another user nor a
                    // read-only file system.
                    "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
                    "containers": [{
                        "name": "webserver",
                        "image": root.spec.image,
                        "ports": [{"name": "http", "containerPort": 80, "protocol": "TCP"}],
                        "readinessProbe": {"httpGet": {"path": "/", "port": "http"}},
                        "resources": config.resources,
                        "securityContext": {"allowPrivilegeEscalation": false},
                    }],
                },
            },
        },
    })
}

fn service_object(root: &Root, service_name: &str) -> Value {
    let mut port = json!({"port": 80, "protocol": "TCP", "targetPort": "http"});
    // Without a port Kubernetes allocates one, and keeps the one that the Service has.
    if root.spec.node_port != 0 {
        port["nodePort"] = json!(root.spec.node_port);
    }
    let labels = labels(&root.metadata.name);
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": service_name, "labels": labels},
        "spec": {"type": "NodePort", "selector": labels, "ports": [port]},
    })
}

/// What the API server says about the node port, in words that say what to do.
fn node_port_conflict(root: &Root, refusal: &Refusal) -> Option<GuestCondition> {
    let cause = refusal.cause(NODE_PORT)?;
    let port = root.spec.node_port;
    // The same field is named when the port lies outside the range that this cluster's API server was given.
    let (reason, message) = if cause.message.contains("already allocated") {
        (
            "NodePortTaken",
            format!(
                "node port {port} is taken by another Service; set spec.nodePort to a free one, or to 0 for any"
            ),
        )
    } else {
        ("NodePortRefused", format!("node port {port} was refused: {}", cause.message))
    };
    Some(GuestCondition::new("NodePortConflict", true, reason, message).blocking())
}
