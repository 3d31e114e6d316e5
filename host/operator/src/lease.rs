//! Leader election with the Lease `pintle` in the host's namespace: which of several hosts may write.
//!
//! The rules are client-go's:
//!
//! * A record may be taken once it has not changed for its duration *since this host saw it change*. So no wall clock matters.
//! * Every write of the record names the version that it replaces, so that only one of two candidates succeeds.
//! * A holder gives the Lease up [`RENEW_DEADLINE`] after its last successful renewal *began*. Others count from the moment when they saw
//!   the renewal, so none of them can take the Lease earlier. Writes that are under way must end in the time between this deadline and the
//!   duration.

use std::{sync::Arc, time::Duration};

use pintle_core::{ApiError, object, reasons};
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

/// How long others wait after a holder's last sign of life before they take its place. A hand-over takes less than 15 s after a crash: at
/// most 2 s until the last renewal is seen, and 10 s until it has expired.
const DURATION: Duration = Duration::from_secs(10);
/// How long after its last renewal a holder still writes. On a healthy cluster the API server needs less than the margin of three seconds
/// for a write that has reached it.
const RENEW_DEADLINE: Duration = Duration::from_secs(7);
/// How often a holder renews, and a candidate looks.
const RETRY: Duration = Duration::from_secs(2);
/// How long one request about the Lease may take: two fit in before the deadline.
const ATTEMPT_TIMEOUT: Duration = Duration::from_millis(3_500);

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
            seen: None,
            held_until: None,
            held: held_sender,
            leader: holder_sender,
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
            let _ = tokio::time::timeout(RENEW_DEADLINE, self.task).await;
        }
    }
}

struct Standing {
    cluster: Cluster,
    recorder: Recorder,
    identity: String,
    namespace: String,
    /// The Lease as it was last seen; none if there is none, or if it is not known what it says now.
    seen: Option<Seen>,
    /// Until when this host holds the Lease.
    held_until: Option<Duration>,
    held: watch::Sender<Held>,
    leader: watch::Sender<String>,
    leads: bool,
    /// The last error, so that it is logged once.
    trouble: Option<String>,
}

/// The Lease as it was seen.
struct Seen {
    lease: Value,
    /// Since when its record has been the same.
    since: Duration,
}

impl Seen {
    fn record(&self) -> &Value {
        &self.lease["spec"]
    }

    /// Who holds it; nobody when empty.
    fn holder(&self) -> &str {
        self.record()["holderIdentity"].as_str().unwrap_or_default()
    }

    /// When it may be taken from its holder, if it stays as it is.
    fn expires(&self) -> Duration {
        if self.holder().is_empty() {
            return self.since;
        }
        let seconds = self.record()["leaseDurationSeconds"].as_u64().filter(|seconds| *seconds > 0);
        self.since.saturating_add(seconds.map_or(DURATION, Duration::from_secs))
    }
}

impl Standing {
    async fn run(mut self, stop: Arc<Notify>) {
        loop {
            let due = self.attempt().await;
            self.tell().await;
            loop {
                let now = clock::monotonic();
                // If the Lease lapses meanwhile, that must be announced at that moment.
                let wait = due.min(self.held_until(now).unwrap_or(due)).saturating_sub(now);
                if tokio::time::timeout(wait, stop.notified()).await.is_ok() {
                    return self.release().await;
                }
                self.tell().await;
                if clock::monotonic() >= due {
                    break;
                }
            }
        }
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

    /// Who holds the Lease, as far as is known; nobody when empty.
    fn holder(&self) -> &str {
        self.seen.as_ref().map_or("", Seen::holder)
    }

    fn held_until(&self, now: Duration) -> Option<Duration> {
        self.held_until.filter(|until| *until > now)
    }

    /// Tries once to get or to renew the Lease, and returns when to try again.
    async fn attempt(&mut self) -> Duration {
        // A holder writes onto what it wrote last. It reads only what came of a write that did not succeed.
        if self.holder() != self.identity {
            if let Some(due) = self.look().await {
                return due;
            }
            // If somebody had taken it meanwhile, this host's term has ended.
            self.tell().await;
        }
        let began = clock::monotonic();
        let written = self.in_time(self.write(self.record())).await;
        let now = clock::monotonic();
        match written {
            Ok(lease) => {
                self.take(lease, now);
                // From when it began: others can have seen it from then on.
                self.held_until = Some(began + RENEW_DEADLINE);
                began + RETRY
            }
            Err(error) => {
                let existed = self.seen.take().is_some();
                // What it says now must be known before anything else; if it is still ours, this host goes on.
                // If the namespace does not exist, the API server answers a create with 404.
                if error.code == 409 || error.code == 404 && existed {
                    return now;
                }
                self.failed(&error);
                (began + RETRY).max(now + RETRY / 4)
            }
        }
    }

    /// Reads the Lease. Returns when to try again, if it cannot be taken now.
    async fn look(&mut self) -> Option<Duration> {
        let found = self.in_time(self.cluster.get(&resource(), &self.reference())).await;
        let now = clock::monotonic();
        let lease = match found {
            Ok(Some(lease)) => lease,
            Ok(None) => {
                (self.seen, self.held_until) = (None, None);
                return None;
            }
            // This changes nothing that is known.
            Err(error) => {
                self.failed(&error);
                return Some(now + RETRY);
            }
        };
        // Only another record is a sign of life. The version alone also changes when somebody sets a label.
        let same = self.seen.as_ref().filter(|seen| *seen.record() == lease["spec"]);
        let since = same.map_or(now, |seen| seen.since);
        self.take(lease, since);
        if self.holder() == self.identity {
            return None;
        }
        // If this host held it, somebody took it by force, before its time.
        self.held_until = None;
        let expires = self.seen.as_ref().map_or(now, Seen::expires);
        (expires > now).then_some(expires.min(now + RETRY))
    }

    /// Writes a record onto the Lease that was seen, or creates it.
    async fn write(&self, record: Value) -> Result<Value, ApiError> {
        let Some(Seen { lease, .. }) = &self.seen else {
            let lease = json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": NAME, "namespace": self.namespace}, "spec": record,
            });
            return self.cluster.create(&resource(), &lease).await;
        };
        let version = &lease["metadata"]["resourceVersion"];
        let patch = json!({"metadata": {"resourceVersion": version}, "spec": record});
        self.cluster.merge(self.path(), &patch).await
    }

    /// The record that makes this host the holder, or says that it still is. Its times are the wall clock's: for people, and to tell one
    /// record from the next. They are never compared with a clock.
    fn record(&self) -> Value {
        let now = wall_time();
        let before = self.seen.as_ref().map(Seen::record);
        let mine = before.filter(|_| self.holder() == self.identity);
        let transitions = before
            .map_or(0, |before| before["leaseTransitions"].as_u64().unwrap_or(0) + u64::from(mine.is_none()));
        json!({
            "holderIdentity": self.identity, "leaseDurationSeconds": DURATION.as_secs(), "renewTime": now,
            "acquireTime": mine.map_or_else(|| json!(now), |mine| mine["acquireTime"].clone()),
            "leaseTransitions": transitions,
        })
    }

    async fn in_time<T>(&self, request: impl Future<Output = Result<T, ApiError>>) -> Result<T, ApiError> {
        tokio::time::timeout(ATTEMPT_TIMEOUT, request).await.unwrap_or_else(|_| {
            let message = format!("nothing came within {} ms", ATTEMPT_TIMEOUT.as_millis());
            Err(ApiError { message, ..ApiError::default() })
        })
    }

    fn take(&mut self, lease: Value, since: Duration) {
        if self.trouble.take().is_some() {
            info!(lease = %self.path(), "The Lease is within reach again");
        }
        self.seen = Some(Seen { lease, since });
    }

    fn failed(&mut self, error: &ApiError) {
        let error = error.to_string();
        if self.trouble.as_ref() != Some(&error) {
            warn!(
                lease = %self.path(), error,
                "The Lease can be neither read nor written, and without it nothing is written; it is tried again every {} s. \
                 Is deploy/install.yaml applied?",
                RETRY.as_secs()
            );
        }
        self.trouble = Some(error);
    }

    /// Announces what changed.
    async fn tell(&mut self) {
        let now = clock::monotonic();
        let until = self.held_until(now);
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
        let holder = self.holder().to_owned();
        let new_holder = self.leader.send_if_modified(|before| {
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
        let uid = self.seen.as_ref().map_or("", |seen| object::uid(&seen.lease));
        let published = self.recorder.emit(&lease, uid, None, std::slice::from_ref(&event));
        let _ = tokio::time::timeout(RETRY / 2, published).await;
    }

    async fn release(mut self) {
        if self.held_until(clock::monotonic()).is_none() || self.holder() != self.identity {
            return;
        }
        self.held_until = None;
        self.held.send_modify(|held| held.until = Duration::ZERO);
        let mut record = self.record();
        record["holderIdentity"] = "".into();
        // The API server does not take 0.
        record["leaseDurationSeconds"] = 1.into();
        match self.in_time(self.write(record)).await {
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

#[cfg(test)]
mod tests;
