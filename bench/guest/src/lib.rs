//! The logic that the benchmark gives to all contestants: a Bench (`bench.pintle.dev/v1`) is a ConfigMap of fifteen keys, a
//! Deployment, a Service, an Ingress, and a status.
//!
//! Pintle runs it as a guest, FLOOR applies what [`children`] returns, and `bench/native` says the same in Go; a run of the
//! benchmark compares what each left in the cluster.

mod children;
mod resource;

pub use children::{LOGIC, children, host_name};
pub use resource::{BenchSpec, BenchStatus, Root};

use pintle_guest::{
    Child, ChildKind, Failure, Guest, Kind, Manifest, NoConfig, Request, Response, Rollout, status,
};

/// The guest.
pub struct Bench;

pintle_guest::export!(Bench);

impl Guest for Bench {
    type Root = Root;
    type Config = NoConfig;

    fn manifest() -> Manifest {
        Manifest {
            children: vec![
                ChildKind::new("v1", "ConfigMap"),
                ChildKind::new("apps/v1", "Deployment").observed(),
                ChildKind::new("v1", "Service"),
                ChildKind::new("networking.k8s.io/v1", "Ingress"),
            ],
            ..Manifest::new("bench", env!("CARGO_PKG_VERSION"), Kind::new("bench.pintle.dev/v1", "Bench"))
        }
    }

    fn reconcile(request: Request<Root, NoConfig>) -> Result<Response, Failure> {
        let root = &request.object;
        let name = &root.metadata.name;
        let rollout = Rollout::of(request.child("Deployment", name));
        let ids = ["config", "deployment", "service", "ingress"];
        let objects = children(name, &root.spec, LOGIC);
        Ok(Response {
            children: ids.into_iter().zip(objects).map(|(id, object)| Child::new(id, object)).collect(),
            status: status(&BenchStatus {
                message: root.spec.message.clone(),
                url: format!("http://{}/", host_name(name)),
                ready_replicas: rollout.ready,
            }),
            ..Response::default()
        })
    }
}
