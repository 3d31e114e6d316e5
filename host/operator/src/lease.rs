//! Leader election with the Lease `pintle` in the host's namespace: carries out what [`Election`] decides.

use std::{sync::Arc, time::Duration};

use pintle_core::{
    ApiError,
    election::{Act, Election, Record, Timing, Versioned, Wrote},
    reasons,
};
use pintle_kubernetes::{Cluster, Held, Resource, builtin};
use pintle_runtime::{Spawner, clock};
use pintle_wit::{Event, EventType, ObjectRef};
use serde_json::{Value, json};
use tokio::{
    sync::{Notify, watch},
    task::JoinHandle,
};
use tracing::{debug, info, warn};

use super::events::{Recorder, micro_time};

/// The name of the Lease, and of the election in metrics and Events.
pub const NAME: &str = "pintle";

/// A candidate at work. It renews the Lease that it holds until it is told to give it up.
pub(crate) struct Candidate {
    stop: Arc<Notify>,
    task: JoinHandle<()>,
    /// Who holds the Lease, as far as this host knows; nobody when empty.
    pub(crate) holder: watch::Receiver<String>,
    /// The term of leadership that this host holds.
    pub(crate) held: watch::Receiver<Held>,
}

impl Candidate {
    /// Stands for election. `cluster` must not be bound to what the election gives.
    pub(crate) fn stand(spawner: &Spawner, cluster: Cluster, namespace: &str, identity: &str) -> Self {
        let (held_sender, held) = watch::channel(Held::default());
        let (holder_sender, holder) = watch::channel(String::new());
        let stop = Arc::new(Notify::new());
        let recorder = Recorder::new(&cluster, identity);
        let standing = Standing {
            cluster,
            recorder,
            identity: identity.into(),
            namespace: namespace.into(),
            election: Election::new(identity.into(), Timing::DEFAULT),
            held: held_sender,
            holder: holder_sender,
            uid: String::new(),
            leads: false,
            trouble: None,
        };
        let task = spawner.spawn(standing.run(Arc::clone(&stop)));
        Self { stop, task, holder, held }
    }

    /// Ends when this host no longer takes part in the election, which it does for as long as it lives.
    pub(crate) async fn ended(&mut self) {
        let _ = (&mut self.task).await;
    }

    /// Gives up the Lease, so that another host can take over at once.
    pub(crate) async fn release(self) {
        self.stop.notify_one();
        if !self.task.is_finished() {
            let _ = tokio::time::timeout(Timing::DEFAULT.renew_deadline, self.task).await;
        }
    }
}

struct Standing {
    cluster: Cluster,
    recorder: Recorder,
    identity: String,
    namespace: String,
    election: Election,
    held: watch::Sender<Held>,
    holder: watch::Sender<String>,
    /// The Lease's, for Events about it.
    uid: String,
    leads: bool,
    /// The last error, so that it is logged once.
    trouble: Option<String>,
}

impl Standing {
    async fn run(mut self, stop: Arc<Notify>) {
        loop {
            match self.election.next(clock::monotonic(), &wall_time()) {
                Act::Read => self.read().await,
                Act::Write(record, version) => self.write(record, version).await,
                Act::Wait(until) => {
                    // If the Lease lapses meanwhile, that must be announced at that moment.
                    let lapses = self.election.held_until(clock::monotonic()).unwrap_or(until);
                    let wait = until.min(lapses).saturating_sub(clock::monotonic());
                    if tokio::time::timeout(wait, stop.notified()).await.is_ok() {
                        break;
                    }
                }
            }
            self.tell().await;
        }
        self.release().await;
    }

    fn reference(&self) -> ObjectRef {
        ObjectRef {
            api_version: resource().kind.api_version,
            kind: resource().kind.kind,
            namespace: Some(self.namespace.clone()),
            name: NAME.into(),
        }
    }

    fn path(&self) -> String {
        resource().path(Some(&self.namespace), Some(NAME))
    }

    async fn read(&mut self) {
        let reference = self.reference();
        let found = self.attempt(self.cluster.get(&resource(), &reference)).await;
        let found = match found {
            Ok(found) => Some(found.as_ref().map(|lease| self.take(lease))),
            Err(error) => {
                self.failed(&error);
                None
            }
        };
        self.election.read(clock::monotonic(), found);
    }

    async fn write(&mut self, record: Record, version: Option<String>) {
        let began = clock::monotonic();
        let reply = match &version {
            None => {
                let lease = json!({
                    "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                    "metadata": {"name": NAME, "namespace": self.namespace}, "spec": spec(&record),
                });
                let leases = resource();
                self.attempt(self.cluster.create(&leases, &lease)).await
            }
            Some(version) => {
                let patch = json!({"metadata": {"resourceVersion": version}, "spec": spec(&record)});
                self.attempt(self.cluster.merge(self.path(), &patch)).await
            }
        };
        let outcome = match reply {
            Ok(lease) => Wrote::Accepted(self.take(&lease)),
            // If the namespace does not exist, the API server answers a create with 404.
            Err(error) if error.code == 409 || error.code == 404 && version.is_some() => Wrote::Outdated,
            Err(error) => {
                self.failed(&error);
                Wrote::Unknown
            }
        };
        self.election.wrote(began, clock::monotonic(), outcome);
    }

    async fn attempt<T>(&self, request: impl Future<Output = Result<T, ApiError>>) -> Result<T, ApiError> {
        let timeout = Timing::DEFAULT.attempt_timeout();
        tokio::time::timeout(timeout, request).await.unwrap_or_else(|_| {
            let message = format!("nothing came within {} ms", timeout.as_millis());
            Err(ApiError { message, ..ApiError::default() })
        })
    }

    fn take(&mut self, lease: &Value) -> Versioned {
        if self.trouble.take().is_some() {
            info!(lease = %self.path(), "The Lease is within reach again");
        }
        self.uid = pintle_core::object::uid(lease).into();
        versioned(lease)
    }

    fn failed(&mut self, error: &ApiError) {
        let error = error.to_string();
        if self.trouble.as_ref() != Some(&error) {
            warn!(
                lease = %self.path(), error,
                "The Lease can be neither read nor written, and without it nothing is written; it is tried again every {} s. \
                 Is deploy/install.yaml applied?",
                Timing::DEFAULT.retry.as_secs()
            );
        }
        self.trouble = Some(error);
    }

    /// Announces what changed.
    async fn tell(&mut self) {
        let now = clock::monotonic();
        let until = self.election.held_until(now);
        if let Some(until) = until {
            self.held.send_if_modified(|held| {
                let before = *held;
                // If the Lease had lapsed, another host may have held it meanwhile.
                let term = if before.until > now { before.term } else { before.term + 1 };
                *held = Held { term, until };
                before != *held
            });
        } else if self.leads {
            // Code that looks at the term sees by the time that it has ended; code that waits is woken.
            self.held.send_modify(|held| held.until = Duration::ZERO);
        }
        let holder = self.election.holder().to_owned();
        let new_holder = self.holder.send_if_modified(|before| {
            let changed = *before != holder && !holder.is_empty();
            if changed {
                before.clone_from(&holder);
            }
            changed
        });
        match (self.leads, until.is_some()) {
            (false, true) => {
                self.leads = true;
                info!(identity = self.identity, "Leading: this host writes from now on");
                self.publish("became leader").await;
            }
            (true, false) => {
                self.leads = false;
                warn!(
                    identity = self.identity,
                    holder,
                    "The lease is lost: nothing is written until it is won again; reconciles in work end with the error NotLeading"
                );
            }
            (false, false) if new_holder => {
                info!(identity = self.identity, holder, "Standing by, with warm caches: another host leads")
            }
            _ => {}
        }
    }

    async fn publish(&self, what: &str) {
        let event = Event {
            r#type: EventType::Normal,
            reason: reasons::LEADER_ELECTION.into(),
            message: format!("{} {what}", self.identity),
        };
        let lease = self.reference();
        // The next renewal must not wait for an Event.
        let published = self.recorder.emit(&lease, &self.uid, None, std::slice::from_ref(&event));
        let _ = tokio::time::timeout(Timing::DEFAULT.retry / 2, published).await;
    }

    async fn release(mut self) {
        let Some((record, version)) = self.election.release(clock::monotonic(), &wall_time()) else { return };
        self.held.send_modify(|held| held.until = Duration::ZERO);
        let patch = json!({"metadata": {"resourceVersion": version}, "spec": spec(&record)});
        match self.attempt(self.cluster.merge(self.path(), &patch)).await {
            Ok(_) => {
                info!(identity = self.identity, "The lease is given up: another host takes over at once")
            }
            Err(error) => debug!(%error, "The lease was not given up; it expires"),
        }
    }
}

fn resource() -> Resource {
    builtin("coordination.k8s.io/v1", "Lease", "leases", true)
}

/// The time of the wall clock as in a Lease, with exactly six digits of microseconds.
fn wall_time() -> String {
    micro_time(clock::now())
}

fn spec(record: &Record) -> Value {
    json!({
        "holderIdentity": record.holder, "leaseDurationSeconds": record.duration_seconds,
        "acquireTime": record.acquired, "renewTime": record.renewed, "leaseTransitions": record.transitions,
    })
}

/// A Lease as the election sees it. Fields that another writer left out are empty.
fn versioned(lease: &Value) -> Versioned {
    let spec = &lease["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let number = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok()).unwrap_or(0);
    Versioned {
        record: Record {
            holder: text(&spec["holderIdentity"]),
            duration_seconds: number(&spec["leaseDurationSeconds"]),
            acquired: text(&spec["acquireTime"]),
            renewed: text(&spec["renewTime"]),
            transitions: number(&spec["leaseTransitions"]),
        },
        version: text(&lease["metadata"]["resourceVersion"]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_read_as_it_was_written() {
        let record = Record {
            holder: "a".into(),
            duration_seconds: 10,
            acquired: wall_time(),
            renewed: wall_time(),
            transitions: 3,
        };
        let lease = json!({"metadata": {"resourceVersion": "7"}, "spec": spec(&record)});
        assert_eq!(versioned(&lease), Versioned { record, version: "7".into() });
    }

    #[test]
    fn a_lease_that_somebody_made_empty_is_free() {
        let found = versioned(&json!({"metadata": {"resourceVersion": "7"}}));
        assert_eq!((found.record, found.version.as_str()), (Record::default(), "7"));
    }
}
