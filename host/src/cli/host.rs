//! What can be told of the host and of the gateway from outside: the Lease and the Deployments.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::{apps::v1::Deployment, coordination::v1::Lease};
use kube::{Api, Client};
use pintle_core::text;

use super::{live, table::age};

/// The name of the host's Lease, of its Deployment, and of the container in it.
pub(super) const NAME: &str = "pintle";

/// The name of the gateway's Deployment, of the container in it, and of the Service to which APIServices lead.
pub(super) const GATEWAY: &str = "pintle-gateway";

/// How much the clock of the host and that of whoever asks may differ.
const CLOCK_DIFFERENCE: SignedDuration = SignedDuration::from_secs(30);

/// The longest line, in bytes.
const LINE_BYTES_MAX: usize = 1024;

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
        Self {
            namespace: namespace.into(),
            lease: lease.get_opt(NAME).await.map_err(|error| live::said(&error)),
            deployment: deployment(client, namespace, NAME).await,
        }
    }

    /// What is said of the host: a name and a text for each line.
    pub(super) fn lines(&self, now: Timestamp) -> Vec<[String; 2]> {
        // Whoever may write the Lease writes into it what they like.
        let mut lines = vec![["Host".to_owned(), text::clean(&self.who_leads(now), LINE_BYTES_MAX)]];
        match &self.deployment {
            Ok(Some(deployment)) => lines.push(["Deployment".into(), Pods::of(deployment, NAME).text()]),
            // It runs elsewhere, or does not; the Lease says which.
            Ok(None) => {}
            Err(why) => lines.push(["Deployment".into(), format!("cannot be read: {why}")]),
        }
        lines
    }

    /// Whether a host was ever installed in the namespace, or has ever led there, as far as that can be told.
    pub(super) fn is_installed(&self) -> bool {
        !matches!((&self.lease, &self.deployment), (Ok(None), Ok(None)))
    }

    /// Whether a host works, as far as that can be told: none does if its Lease has run out, or if there is neither a Lease nor a Pod
    /// that is ready. A host that was started with `--leader-elect=false` has no Lease.
    pub(super) fn works(&self, now: Timestamp) -> bool {
        match &self.lease {
            Ok(Some(lease)) => held(lease, now).is_some(),
            Ok(None) => match &self.deployment {
                Ok(deployment) => deployment.as_ref().is_some_and(|found| Pods::of(found, NAME).ready > 0),
                Err(_) => true,
            },
            Err(_) => true,
        }
    }

    /// Who leads, as far as that can be told: nobody does whose Lease has run out or was given up.
    pub(super) fn leader(&self, now: Timestamp) -> Option<&str> {
        held(self.lease.as_ref().ok()?.as_ref()?, now)
    }

    fn who_leads(&self, now: Timestamp) -> String {
        let namespace = &self.namespace;
        let lease = match &self.lease {
            _ if !self.is_installed() => {
                return format!(
                    "not installed: the namespace {namespace} has neither its Deployment nor its Lease"
                );
            }
            Ok(Some(lease)) => lease,
            Ok(None) => return format!("no host has made the Lease {namespace}/{NAME}"),
            Err(why) => return format!("the Lease {namespace}/{NAME} cannot be read: {why}"),
        };
        let spec = lease.spec.clone().unwrap_or_default();
        let ago = |time: Option<Timestamp>| time.map_or("an unknown time".into(), |time| age(time, now));
        let renewed = ago(spec.renew_time.map(|time| time.0));
        match held(lease, now) {
            Some(holder) => {
                let since = ago(spec.acquire_time.map(|time| time.0));
                format!("{holder} has led for {since}; it renewed its Lease {renewed} ago")
            }
            None => match spec.holder_identity.filter(|holder| !holder.is_empty()) {
                Some(holder) => format!("nobody leads; {holder} did, and was last heard of {renewed} ago"),
                None => format!("nobody leads; the last host gave its Lease up {renewed} ago"),
            },
        }
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

async fn deployment(client: &Client, namespace: &str, name: &str) -> Result<Option<Deployment>, String> {
    let deployments = Api::<Deployment>::namespaced(client.clone(), namespace);
    deployments.get_opt(name).await.map_err(|error| live::said(&error))
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
    /// What a Deployment says. The container that matters is the one of this name, or else the first.
    pub(super) fn of(deployment: &Deployment, container: &str) -> Self {
        let spec = deployment.spec.as_ref();
        let pod = spec.and_then(|spec| spec.template.spec.as_ref());
        let containers = pod.map_or(&[][..], |pod| &pod.containers);
        let named = containers.iter().find(|one| one.name == container).or(containers.first());
        let status = deployment.status.as_ref();
        Self {
            image: named.and_then(|container| container.image.clone()),
            wanted: spec.and_then(|spec| spec.replicas).unwrap_or(1),
            ready: status.and_then(|status| status.ready_replicas).unwrap_or_default(),
        }
    }

    fn text(&self) -> String {
        let image = self.image.as_deref().unwrap_or("no image");
        format!("{} of {} Pods are ready; image {image}", self.ready, self.wanted)
    }
}

/// What was read of the gateway, which has no Lease: every one of its Pods serves.
#[derive(Clone, Debug)]
pub(super) struct Gateway {
    /// The namespace of the gateway.
    namespace: String,
    /// Its Deployment. An error says why it could not be read.
    deployment: Result<Option<Deployment>, String>,
}

impl Gateway {
    /// Reads what can be read.
    pub(super) async fn read(client: &Client, namespace: &str) -> Self {
        Self { namespace: namespace.into(), deployment: deployment(client, namespace, GATEWAY).await }
    }

    /// What is said of it: a name and a text.
    pub(super) fn line(&self) -> [String; 2] {
        let text = match &self.deployment {
            Ok(Some(deployment)) => Pods::of(deployment, GATEWAY).text(),
            Ok(None) => {
                format!("not installed: the namespace {} has no Deployment {GATEWAY}", self.namespace)
            }
            Err(why) => format!("the Deployment {}/{GATEWAY} cannot be read: {why}", self.namespace),
        };
        ["Gateway".into(), text]
    }

    /// Whether a gateway serves, as far as that can be told: none does if no Pod of its is ready.
    pub(super) fn works(&self) -> bool {
        match &self.deployment {
            Ok(deployment) => deployment.as_ref().is_some_and(|found| Pods::of(found, GATEWAY).ready > 0),
            Err(_) => true,
        }
    }

    /// What helps where none serves.
    pub(super) fn remedy(&self) -> String {
        let namespace = &self.namespace;
        match &self.deployment {
            Ok(None) => "Install it: `kubectl apply --server-side -f deploy/gateway.yaml`. If it is in another namespace, name that with \
                         `--namespace`."
                .into(),
            _ => format!(
                "see why no Pod of the gateway is ready: `kubectl -n {namespace} get pods,events`; while none is, no namespace of the \
                 cluster can be deleted"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn host(lease: Value, deployment: Value) -> Host {
        Host {
            namespace: "pintle-system".into(),
            lease: Ok(serde_json::from_value(lease).unwrap()),
            deployment: Ok(serde_json::from_value(deployment).unwrap()),
        }
    }

    fn lease(holder: &str) -> Value {
        json!({"spec": {"holderIdentity": holder, "leaseDurationSeconds": 10,
            "acquireTime": "2000-01-01T00:00:00.000000Z", "renewTime": "2000-01-01T01:00:00.000000Z"}})
    }

    fn deployment(ready: i32) -> Value {
        let containers =
            json!([{"name": "proxy", "image": "proxy:9"}, {"name": "pintle", "image": "pintle:1"}]);
        json!({"spec": {"replicas": 2, "selector": {}, "template": {"spec": {"containers": containers}}},
            "status": {"readyReplicas": ready}})
    }

    fn at(time: &str) -> Timestamp {
        time.parse().unwrap()
    }

    #[test]
    fn a_host_works_that_renews_its_lease() {
        let host = host(lease("one"), deployment(2));
        let soon = at("2000-01-01T01:00:02Z");
        assert!(host.works(soon));
        assert_eq!(
            host.lines(soon),
            [
                ["Host".to_owned(), "one has led for 60m; it renewed its Lease 2s ago".into()],
                ["Deployment".to_owned(), "2 of 2 Pods are ready; image pintle:1".into()]
            ]
        );
        assert!(host.works(at("2000-01-01T01:00:40Z")), "clocks differ");
        assert!(host.works(at("2000-01-01T00:59:00Z")), "clocks differ");
        let late = at("2000-01-01T01:05:00Z");
        assert!(!host.works(late));
        assert_eq!(host.lines(late)[0][1], "nobody leads; one did, and was last heard of 5m ago");
    }

    #[test]
    fn a_lease_that_was_given_up_is_held_by_nobody() {
        let host = host(lease(""), deployment(2));
        assert!(!host.works(at("2000-01-01T01:00:02Z")));
        assert!(host.lines(at("2000-01-01T01:00:02Z"))[0][1].starts_with("nobody leads; the last host gave"));
    }

    #[test]
    fn without_a_lease_the_pods_tell_and_what_cannot_be_read_proves_nothing() {
        let now = at("2000-01-01T01:00:02Z");
        assert!(host(Value::Null, deployment(1)).works(now));
        assert!(!host(Value::Null, deployment(0)).works(now));
        let nothing = host(Value::Null, Value::Null);
        assert!(!nothing.works(now) && !nothing.is_installed());
        assert!(host(Value::Null, deployment(0)).lines(now)[0][1].starts_with("no host has made the Lease"));
        let unread = Host { lease: Err("forbidden".into()), ..host(Value::Null, Value::Null) };
        assert!(
            unread.works(now)
                && unread.is_installed()
                && unread.lines(now)[0][1].ends_with("cannot be read: forbidden")
        );
    }
    #[test]
    fn a_gateway_serves_of_which_a_pod_is_ready() {
        let gateway = |deployment: Value| Gateway {
            namespace: "pintle-system".into(),
            deployment: Ok(serde_json::from_value(deployment).unwrap()),
        };
        let well = gateway(deployment(1));
        assert!(well.works());
        // No container has its name: the first one is shown.
        assert_eq!(well.line(), ["Gateway".to_owned(), "1 of 2 Pods are ready; image proxy:9".into()]);
        let down = gateway(deployment(0));
        assert!(!down.works() && down.remedy().contains("kubectl -n pintle-system get pods,events"));
        let none = gateway(Value::Null);
        assert!(!none.works() && none.remedy().contains("deploy/gateway.yaml"));
        assert!(none.line()[1].ends_with("the namespace pintle-system has no Deployment pintle-gateway"));
        let unread = Gateway { deployment: Err("forbidden".into()), ..none };
        assert!(unread.works() && unread.line()[1].ends_with("cannot be read: forbidden"));
    }
}
