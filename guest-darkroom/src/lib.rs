//! Reconciles Darkroom (`deployments.example.com/v1alpha1`) into an image proxy: its configuration, credentials, Deployment, Service
//! and Ingress.

mod check;
mod children;
mod config;
mod resource;
#[cfg(test)]
mod tests;

pub use config::{Config, Resources};
pub use resource::{DEFAULT_VERSION, DarkroomSpec, DarkroomStatus, Root, SecretRef, Source, SourceType};

use pintle_guest::{Child, ChildKind, Failure, Guest, Kind, Manifest, Request, Response, Rollout, status};

/// The guest.
pub struct Darkroom;

pintle_guest::export!(Darkroom);

impl Guest for Darkroom {
    type Root = Root;
    type Config = Config;

    fn manifest() -> Manifest {
        Manifest {
            children: vec![
                ChildKind::new("v1", "ConfigMap"),
                ChildKind::new("v1", "Secret"),
                ChildKind::new("apps/v1", "Deployment").observed(),
                ChildKind::new("v1", "Service"),
                ChildKind::new("networking.k8s.io/v1", "Ingress"),
            ],
            ..Manifest::new(
                "darkroom",
                env!("CARGO_PKG_VERSION"),
                Kind::new("deployments.example.com/v1alpha1", "Darkroom"),
            )
        }
    }

    fn reconcile(request: Request<Root, Config>) -> Result<Response, Failure> {
        let (root, config) = (&request.object, &request.config);
        config.check()?;
        check::check(root)?;

        let environment = children::environment(root, config);
        let credentials = children::credentials(root);
        let domains = children::domains(root, config);
        let rollout = Rollout::of(request.child("Deployment", &root.metadata.name));

        let degraded = request.refusals.first().map_or_else(|| rollout.degraded(), Rollout::degraded_by);

        let mut wanted = vec![Child::new("config", children::config_map(root, &environment))];
        if let Some(credentials) = &credentials {
            wanted.push(Child::new("credentials", children::secret(root, credentials)));
        }
        wanted.push(Child::new(
            "deployment",
            children::deployment(root, config, &environment, credentials.as_ref()),
        ));
        wanted.push(Child::new("service", children::service(root)));
        wanted.push(Child::new("ingress", children::ingress(root, config, &domains)));

        Ok(Response {
            children: wanted,
            conditions: vec![rollout.progressing(), degraded],
            status: status(&DarkroomStatus {
                domains,
                replicas: rollout.replicas,
                ready_replicas: rollout.ready,
                updated_replicas: rollout.updated,
            }),
            ..Response::default()
        })
    }
}
