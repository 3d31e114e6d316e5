//! What a cluster tells of itself and of the host in it.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::{
    apps::v1::Deployment,
    coordination::v1::{Lease, LeaseSpec},
};
use kube::{Api, Client};
use pintle_kubernetes::connect::Connect;
use pintle_runtime::clock;
use serde::Serialize;

use super::super::{live, problem::Problem};

/// How long a cluster may take to tell.
const PATIENCE: Duration = Duration::from_secs(5);

/// The name of the host's Deployment, of the container in it, and of the Lease by which one host leads.
const NAME: &str = "pintle";

/// What a cluster tells, or why it does not.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Cluster {
    /// The version of the API server.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<Host>,
    /// Why something is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown: Option<String>,
}

/// The host, as its Deployment and its Lease show it.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Host {
    /// The tag of the image; none where the image is named by its digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// The image; none without a Deployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<String>,
    /// How many of the Deployment's Pods are wanted, and how many are ready.
    replicas: i32,
    ready_replicas: i32,
    /// Who leads; none where the Lease has run out or was given back.
    #[serde(skip_serializing_if = "Option::is_none")]
    leader: Option<String>,
}

impl Cluster {
    /// Asks the cluster. This does not fail: what cannot be found out is said.
    pub(super) async fn ask(connect: &Connect, namespace: &str) -> Self {
        let mut told = Self::default();
        let asked = tokio::time::timeout(PATIENCE, told.fill(connect, namespace)).await;
        told.unknown = match asked {
            Ok(Ok(())) => None,
            Ok(Err(problem)) => Some(problem.message().to_owned()),
            Err(_) => Some(format!("the cluster has not answered within {} s", PATIENCE.as_secs())),
        };
        told
    }

    async fn fill(&mut self, connect: &Connect, namespace: &str) -> Result<(), Problem> {
        // The outermost error says what to do. The ones below list all the places where no kubeconfig is.
        let client = connect.client().await.map_err(|error| Problem::new(error.to_string()))?;
        let server =
            client.apiserver_version().await.map_err(|error| live::problem("the API server", &error))?;
        self.version = Some(server.git_version);
        self.host = Some(host(client, namespace).await?);
        Ok(())
    }

    /// The rows of the table.
    pub(super) fn rows(&self) -> Vec<[String; 2]> {
        let mut rows = Vec::new();
        let mut row = |name: &str, value: String| rows.push([name.to_owned(), value]);
        if let Some(version) = &self.version {
            row("Cluster", format!("Kubernetes {version}"));
        }
        if let Some(host) = &self.host {
            row("Host", host.said());
            row("Leader", host.leader.clone().unwrap_or_else(|| "none".into()));
        }
        if let Some(why) = &self.unknown {
            row("Host", format!("unknown: {why}"));
        }
        rows
    }
}

async fn host(client: Client, namespace: &str) -> Result<Host, Problem> {
    let about = |kind: &str| format!("{kind} {namespace}/{NAME}");
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let deployment =
        deployments.get_opt(NAME).await.map_err(|error| live::problem(about("Deployment"), &error))?;
    let leases: Api<Lease> = Api::namespaced(client, namespace);
    let lease = leases.get_opt(NAME).await.map_err(|error| live::problem(about("Lease"), &error))?;
    if deployment.is_none() && lease.is_none() {
        return Err(Problem::new(format!(
            "there is neither a Deployment nor a Lease {namespace}/{NAME}; if the host is in another namespace, set --namespace"
        )));
    }
    Ok(Host::of(deployment.as_ref(), lease.and_then(|lease| lease.spec).as_ref(), clock::now()))
}

impl Host {
    fn of(deployment: Option<&Deployment>, lease: Option<&LeaseSpec>, now: Timestamp) -> Self {
        let spec = deployment.and_then(|deployment| deployment.spec.as_ref());
        let containers = spec.and_then(|spec| spec.template.spec.as_ref()).map(|pod| &pod.containers[..]);
        let container = containers.and_then(|all| all.iter().find(|one| one.name == NAME).or(all.first()));
        let image = container.and_then(|container| container.image.clone());
        let status = deployment.and_then(|deployment| deployment.status.as_ref());
        Self {
            version: image.as_deref().and_then(tag).map(str::to_owned),
            image,
            replicas: spec.map_or(0, |spec| spec.replicas.unwrap_or(1)),
            ready_replicas: status.and_then(|status| status.ready_replicas).unwrap_or(0),
            leader: lease.and_then(|lease| leader(lease, now)),
        }
    }

    fn said(&self) -> String {
        match &self.image {
            None => "no Deployment; one runs beside the cluster".into(),
            Some(image) => {
                let version = self.version.as_deref().unwrap_or("unknown");
                format!("{version} (image {image}, {} of {} Pods ready)", self.ready_replicas, self.replicas)
            }
        }
    }
}

/// The tag of an image, which may name a registry with a port, and a digest behind the tag.
fn tag(image: &str) -> Option<&str> {
    let named = image.split_once('@').map_or(image, |(named, _)| named);
    let last = named.rsplit_once('/').map_or(named, |(_, last)| last);
    last.split_once(':').map(|(_, tag)| tag)
}

/// Who holds a Lease that has not run out.
fn leader(lease: &LeaseSpec, now: Timestamp) -> Option<String> {
    let holder = lease.holder_identity.as_ref().filter(|holder| !holder.is_empty())?;
    let lasts = SignedDuration::from_secs(lease.lease_duration_seconds.unwrap_or(0).into());
    let ends = lease.renew_time.as_ref()?.0.checked_add(lasts).ok()?;
    (now < ends).then(|| holder.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_value, json};

    #[test]
    fn the_version_of_the_host_is_the_tag_of_its_image() {
        assert_eq!(tag("pintle:0.1.0"), Some("0.1.0"));
        assert_eq!(tag("registry.example.com:5000/a/pintle:0.1.0@sha256:ab"), Some("0.1.0"));
        assert_eq!(tag("registry.example.com:5000/a/pintle"), None);
        assert_eq!(tag("pintle@sha256:ab"), None);
    }

    #[test]
    fn a_host_is_told_by_its_deployment_and_its_lease() {
        let deployment: Deployment = from_value(json!({
            "spec": {"replicas": 2, "selector": {}, "template": {"spec": {"containers": [
                {"name": "proxy", "image": "proxy:9"}, {"name": "pintle", "image": "pintle:0.2.0"}]}}},
            "status": {"readyReplicas": 1},
        }))
        .unwrap();
        let lease: LeaseSpec = from_value(json!({
            "holderIdentity": "pintle-a", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z",
        }))
        .unwrap();
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let host = Host::of(Some(&deployment), Some(&lease), at("2026-01-01T00:00:10Z"));
        assert_eq!(host.said(), "0.2.0 (image pintle:0.2.0, 1 of 2 Pods ready)");
        assert_eq!(host.leader.as_deref(), Some("pintle-a"));
        let late = Host::of(None, Some(&lease), at("2026-01-01T00:00:15Z"));
        assert_eq!((late.leader.as_deref(), late.said().starts_with("no Deployment")), (None, true));
    }
}
