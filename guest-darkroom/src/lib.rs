//! Reconciles Darkroom (`deployments.example.com/v1alpha1`) into an image proxy: its configuration, credentials, Deployment, Service
//! and Ingress; and shows it as a document, for REST.

mod check;
mod children;
mod claims;
mod config;
mod resource;
#[cfg(test)]
mod tests;
mod views;

pub use config::{Config, Resources};
pub use resource::{
    Cache, DEFAULT_VERSION, DarkroomSpec, DarkroomStatus, Root, SecretRef, Source, SourceType,
};
pub use views::{Darkrooms, Document, DocumentSecretRef, DocumentSource, DocumentStatus, Documents};

use claims::Claims;
use pintle_guest::{
    Child, ChildKind, Event, Failure, Guest, Kind, Manifest, NeedKind, Needs, Request, Response, Rollout,
    status,
};

/// The kind of the roots.
const API_VERSION: &str = "deployments.example.com/v1alpha1";
const KIND: &str = "Darkroom";

/// The guest.
pub struct Darkroom;

#[cfg(feature = "export")]
pintle_guest::export!(Darkroom, views: Documents);

impl Guest for Darkroom {
    type Root = Root;
    type Config = Config;
    const READS_NEEDS: bool = true;

    fn manifest() -> Manifest {
        Manifest {
            children: vec![
                ChildKind::new("v1", "ConfigMap"),
                ChildKind::new("v1", "Secret"),
                ChildKind::new("apps/v1", "Deployment").observed(),
                ChildKind::new("v1", "Service"),
                ChildKind::new("networking.k8s.io/v1", "Ingress"),
            ],
            needs: vec![
                NeedKind::new(API_VERSION, KIND).indexed_by(claims::DARKROOMS_BY),
                NeedKind::new("networking.k8s.io/v1", "Ingress").indexed_by(claims::INGRESSES_BY),
            ],
            ..Manifest::new("darkroom", env!("CARGO_PKG_VERSION"), Kind::new(API_VERSION, KIND))
        }
    }

    fn reconcile(request: Request<Root, Config>) -> Result<Response, Failure> {
        let (root, config) = (&request.object, &request.config);
        config.check()?;
        check::check(root)?;

        let environment = children::environment(root, config);
        let credentials = children::credentials(root);
        let mut needs = Needs::new(&request.needs);
        let claims = Claims::of(root, config, &mut needs);
        let conflict = claims.conflict();
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
        // Without a rule and without a default backend an Ingress is invalid.
        if !claims.won.is_empty() || config.default_backend {
            wanted.push(Child::new("ingress", children::ingress(root, config, &claims.won)));
        }

        Ok(Response {
            children: wanted,
            events: conflict
                .iter()
                .map(|conflict| Event::warning(&conflict.reason, &conflict.message))
                .collect(),
            conditions: [rollout.progressing(), degraded].into_iter().chain(conflict).collect(),
            needs: needs.asked(),
            status: status(&DarkroomStatus {
                domains: claims.won,
                replicas: rollout.replicas,
                ready_replicas: rollout.ready,
                updated_replicas: rollout.updated,
            }),
            ..Response::default()
        })
    }
}
