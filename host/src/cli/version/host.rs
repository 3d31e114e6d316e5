//! What a cluster tells of itself and of the host in it.

use std::time::Duration;

use jiff::Timestamp;
use pintle_kubernetes::connect::Connect;
use pintle_runtime::clock;
use serde::Serialize;

use super::super::{host, live, problem::Problem};

/// How long a cluster may take to tell.
const PATIENCE: Duration = Duration::from_secs(5);

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
        self.host = Some(told(&host::Host::read(&client, namespace).await, clock::now())?);
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

/// What the host's Deployment and Lease tell.
///
/// # Errors
/// When one of them cannot be read, or when there is neither.
fn told(read: &host::Host, now: Timestamp) -> Result<Host, Problem> {
    let namespace = &read.namespace;
    let about = |kind: &str, why: &String| {
        Problem::new(format!("{kind} {namespace}/{} cannot be read: {why}", host::NAME))
    };
    let deployment = read.deployment.as_ref().map_err(|why| about("Deployment", why))?;
    read.lease.as_ref().map_err(|why| about("Lease", why))?;
    if !read.is_installed() {
        return Err(Problem::new(format!(
            "there is neither a Deployment nor a Lease {namespace}/{}; if the host is in another namespace, set --namespace",
            host::NAME
        )));
    }
    let pods = deployment.as_ref().map(host::Pods::of);
    Ok(Host::of(pods.unwrap_or_default(), read.leader(now)))
}

impl Host {
    fn of(pods: host::Pods, leader: Option<&str>) -> Self {
        Self {
            version: pods.image.as_deref().and_then(tag).map(str::to_owned),
            image: pods.image,
            replicas: pods.wanted,
            ready_replicas: pods.ready,
            leader: leader.map(Into::into),
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, from_value, json};

    #[test]
    fn the_version_of_the_host_is_the_tag_of_its_image() {
        assert_eq!(tag("pintle:0.1.0"), Some("0.1.0"));
        assert_eq!(tag("registry.example.com:5000/a/pintle:0.1.0@sha256:ab"), Some("0.1.0"));
        assert_eq!(tag("registry.example.com:5000/a/pintle"), None);
        assert_eq!(tag("pintle@sha256:ab"), None);
    }

    #[test]
    fn a_host_is_told_by_its_deployment_and_its_lease() {
        let deployment = json!({
            "spec": {"replicas": 2, "selector": {}, "template": {"spec": {"containers": [
                {"name": "proxy", "image": "proxy:9"}, {"name": "pintle", "image": "pintle:0.2.0"}]}}},
            "status": {"readyReplicas": 1},
        });
        let lease = json!({"spec": {
            "holderIdentity": "pintle-a", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z",
        }});
        let read = |deployment: Value, lease: Value| host::Host {
            namespace: "pintle-system".into(),
            lease: Ok(from_value(lease).unwrap()),
            deployment: Ok(from_value(deployment).unwrap()),
        };
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let here = told(&read(deployment, lease.clone()), at("2026-01-01T00:00:10Z")).unwrap();
        assert_eq!(here.said(), "0.2.0 (image pintle:0.2.0, 1 of 2 Pods ready)");
        assert_eq!(here.leader.as_deref(), Some("pintle-a"));
        let elsewhere = read(Value::Null, lease);
        let soon = told(&elsewhere, at("2026-01-01T00:00:40Z")).unwrap();
        assert!(soon.leader.is_some() && soon.said().starts_with("no Deployment"), "clocks differ");
        assert_eq!(told(&elsewhere, at("2026-01-01T00:01:00Z")).unwrap().leader, None);

        let none = told(&read(Value::Null, Value::Null), at("2026-01-01T00:00:10Z")).unwrap_err();
        assert!(
            none.message().starts_with("there is neither a Deployment nor a Lease pintle-system/pintle;")
        );
        let unread = host::Host { lease: Err("forbidden".into()), ..elsewhere };
        let unread = told(&unread, at("2026-01-01T00:00:10Z")).unwrap_err();
        assert_eq!(unread.message(), "Lease pintle-system/pintle cannot be read: forbidden");
    }
}
