//! What can be told of the host from outside: its Lease and its Deployment.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::{apps::v1::Deployment, coordination::v1::Lease};
use kube::{Api, Client};

use super::live;

/// The name of the host's Lease, of its Deployment, and of the container in it.
pub(super) const NAME: &str = "pintle";

/// How much the clock of the host and that of whoever asks may differ.
const CLOCK_DIFFERENCE: SignedDuration = SignedDuration::from_secs(30);

/// What was read of the host. An error says why something could not be read.
#[derive(Clone, Debug)]
pub(super) struct Host {
    /// The namespace of the host.
    pub(super) namespace: String,
    /// Its Lease.
    pub(super) lease: Result<Option<Lease>, String>,
    /// Its Deployment.
    pub(super) deployment: Result<Option<Deployment>, String>,
}

impl Host {
    /// Reads what can be read.
    pub(super) async fn read(client: &Client, namespace: &str) -> Self {
        let lease = Api::<Lease>::namespaced(client.clone(), namespace);
        let deployment = Api::<Deployment>::namespaced(client.clone(), namespace);
        Self {
            namespace: namespace.into(),
            lease: lease.get_opt(NAME).await.map_err(|error| live::said(&error)),
            deployment: deployment.get_opt(NAME).await.map_err(|error| live::said(&error)),
        }
    }

    /// Whether a host was ever installed in the namespace, or has ever led there, as far as that can be told.
    pub(super) fn is_installed(&self) -> bool {
        !matches!((&self.lease, &self.deployment), (Ok(None), Ok(None)))
    }

    /// Who leads, as far as that can be told: nobody does whose Lease has run out or was given up.
    pub(super) fn leader(&self, now: Timestamp) -> Option<&str> {
        held(self.lease.as_ref().ok()?.as_ref()?, now)
    }
}

/// Who holds a Lease, unless it has run out.
fn held(lease: &Lease, now: Timestamp) -> Option<&str> {
    let spec = lease.spec.as_ref()?;
    let holder = spec.holder_identity.as_deref().filter(|holder| !holder.is_empty())?;
    let duration = SignedDuration::from_secs(spec.lease_duration_seconds.unwrap_or_default().into());
    let silent = now.duration_since(spec.renew_time.as_ref()?.0);
    (silent <= duration + CLOCK_DIFFERENCE).then_some(holder)
}

/// The Pods of a Deployment, and what they run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pods {
    /// The image of the container that matters.
    pub(super) image: Option<String>,
    /// How many Pods are wanted.
    pub(super) wanted: i32,
    /// How many are ready.
    pub(super) ready: i32,
}

impl Pods {
    /// What a Deployment says. The container that matters is the host's, or else the first.
    pub(super) fn of(deployment: &Deployment) -> Self {
        let spec = deployment.spec.as_ref();
        let pod = spec.and_then(|spec| spec.template.spec.as_ref());
        let containers = pod.map_or(&[][..], |pod| &pod.containers);
        let named = containers.iter().find(|one| one.name == NAME).or(containers.first());
        let status = deployment.status.as_ref();
        Self {
            image: named.and_then(|container| container.image.clone()),
            wanted: spec.and_then(|spec| spec.replicas).unwrap_or(1),
            ready: status.and_then(|status| status.ready_replicas).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_lease_that_was_given_up_or_has_run_out_is_held_by_nobody() {
        let holds = |holder: &str, now: &str| {
            let lease = json!({"spec": {"holderIdentity": holder, "leaseDurationSeconds": 10,
                "renewTime": "2000-01-01T01:00:00.000000Z"}});
            held(&serde_json::from_value(lease).unwrap(), now.parse().unwrap()).is_some()
        };
        assert!(holds("one", "2000-01-01T01:00:02Z"));
        assert!(holds("one", "2000-01-01T01:00:40Z"), "clocks differ");
        assert!(holds("one", "2000-01-01T00:59:00Z"), "clocks differ");
        assert!(!holds("one", "2000-01-01T01:05:00Z"));
        assert!(!holds("", "2000-01-01T01:00:02Z"));
    }
}
