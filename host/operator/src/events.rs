//! Publishes Events. Everything in an Event is also in a status, so nothing fails because an Event could not be published.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use jiff::{SignedDuration, Timestamp};
use pintle_core::text;
use pintle_kubernetes::{Cluster, Resource, builtin};
use pintle_runtime::clock;
use pintle_wit::{EventType, ObjectRef};
use serde_json::{Value, json};
use tracing::debug;

const CONTROLLER: &str = "pintle.dev/operator";

/// For how long a repeated Event is counted instead of written anew, as in client-go. The API server forgets Events after an hour.
const COUNTED_FOR: SignedDuration = SignedDuration::from_mins(6);

/// How much of an object's name goes into the name of an Event about it. Together with the time it must fit into 253 characters.
const NAME_CHARS: usize = 230;

/// Publishes Events under the host's name, as long as it may write. Repeated Events are counted instead of written anew.
pub(crate) struct Recorder {
    cluster: Cluster,
    instance: String,
    recent: Mutex<Recent>,
}

/// The Events of the last minutes, by the fields that make two Events the same.
#[derive(Default)]
struct Recent {
    published: BTreeMap<Key, Published>,
    /// The part that made the last name unique, so that no two Events of this host have the same name.
    last_nanosecond: i128,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    warning: bool,
    reason: String,
    about: ObjectRef,
    uid: String,
    related: Option<ObjectRef>,
}

#[derive(Clone)]
struct Published {
    name: String,
    count: u32,
    at: Timestamp,
}

impl Recent {
    /// The Event to publish now: a known one with a higher count, or a new one.
    fn next(&mut self, key: &Key, now: Timestamp) -> Published {
        self.published.retain(|_, published| now.duration_since(published.at) < COUNTED_FOR);
        if let Some(known) = self.published.get(key) {
            return Published { count: known.count + 1, at: now, ..known.clone() };
        }
        self.last_nanosecond = now.as_nanosecond().max(self.last_nanosecond + 1);
        let about: String = key.about.name.chars().take(NAME_CHARS).collect();
        Published { name: format!("{about}.{:x}", self.last_nanosecond), count: 1, at: now }
    }
}

impl Recorder {
    pub(crate) fn new(cluster: &Cluster, instance: &str) -> Self {
        Self { cluster: cluster.clone(), instance: instance.into(), recent: Mutex::default() }
    }

    /// Publishes events about an object. `related` is the other object that they are about, if there is one. Events with different related
    /// objects count as different, even if their reason is the same.
    pub(crate) async fn emit(
        &self,
        about: &ObjectRef,
        uid: &str,
        related: Option<&ObjectRef>,
        events: &[pintle_wit::Event],
    ) {
        for event in events {
            let key = Key {
                warning: event.r#type == EventType::Warning,
                reason: event.reason.clone(),
                about: about.clone(),
                uid: uid.into(),
                related: related.cloned(),
            };
            let next = self.recent.lock().unwrap_or_else(PoisonError::into_inner).next(&key, clock::now());
            match self.publish(&key, &next, &event.message).await {
                Ok(_) => {
                    let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
                    recent.published.insert(key, next);
                }
                Err(error) => {
                    // The next one is written anew, because the Event whose count would be raised may be gone.
                    self.recent.lock().unwrap_or_else(PoisonError::into_inner).published.remove(&key);
                    debug!(object = %about, reason = event.reason, %error, "An Event was not published");
                }
            }
        }
    }

    async fn publish(
        &self,
        key: &Key,
        event: &Published,
        message: &str,
    ) -> Result<Value, pintle_core::ApiError> {
        // Those about objects of cluster scope are in the namespace `default`.
        let namespace = key.about.namespace.as_deref().unwrap_or("default");
        let at = micro_time(event.at);
        if event.count > 1 {
            let series = json!({"series": {"count": event.count, "lastObservedTime": at}});
            return self.cluster.merge(resource().path(Some(namespace), Some(&event.name)), &series).await;
        }
        let mut regarding = reference(&key.about);
        regarding["uid"] = key.uid.as_str().into();
        let mut object = json!({
            "apiVersion": resource().kind.api_version, "kind": resource().kind.kind,
            "metadata": {"name": event.name, "namespace": namespace},
            "type": if key.warning { "Warning" } else { "Normal" },
            "action": "Reconcile", "reason": key.reason, "note": text::note(message), "eventTime": at,
            "regarding": regarding, "reportingController": CONTROLLER, "reportingInstance": self.instance,
        });
        if let Some(related) = &key.related {
            object["related"] = reference(related);
        }
        self.cluster.create(&resource(), &object).await
    }
}

fn resource() -> Resource {
    builtin("events.k8s.io/v1", "Event", "events", true)
}

fn reference(object: &ObjectRef) -> Value {
    let mut reference = json!({"apiVersion": object.api_version, "kind": object.kind, "name": object.name});
    if let Some(namespace) = &object.namespace {
        reference["namespace"] = namespace.as_str().into();
    }
    reference
}

/// A time with exactly six digits of microseconds, as in Events and Leases.
pub(super) fn micro_time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http_body_util::BodyExt;

    use super::*;

    fn key(reason: &str) -> Key {
        let about = ObjectRef {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            namespace: Some("a".into()),
            name: "b".into(),
        };
        Key { warning: false, reason: reason.into(), about, uid: "u".into(), related: None }
    }

    #[test]
    fn the_same_event_is_counted_for_some_minutes_and_then_written_anew() {
        let (mut recent, start) = (Recent::default(), Timestamp::UNIX_EPOCH);
        let first = recent.next(&key("A"), start);
        recent.published.insert(key("A"), first.clone());
        let again = recent.next(&key("A"), start + SignedDuration::from_mins(5));
        assert_eq!((again.count, &again.name), (2, &first.name));
        let later = recent.next(&key("A"), start + SignedDuration::from_mins(7));
        assert_eq!(later.count, 1);
        assert_ne!(later.name, first.name);
    }

    #[test]
    fn two_events_of_one_moment_have_two_names() {
        let mut recent = Recent::default();
        let names = ["A", "B"].map(|reason| recent.next(&key(reason), Timestamp::UNIX_EPOCH).name);
        assert_ne!(names[0], names[1]);
    }

    #[test]
    fn times_have_six_digits_after_the_second() {
        assert_eq!(micro_time(Timestamp::UNIX_EPOCH), "1970-01-01T00:00:00.000000Z");
    }

    #[tokio::test]
    async fn a_message_of_any_length_becomes_a_note_that_the_api_server_takes() {
        let notes = Arc::new(Mutex::new(Vec::new()));
        let sent = Arc::clone(&notes);
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let sent = Arc::clone(&sent);
            async move {
                let body = request.into_body().collect().await.unwrap().to_bytes();
                let event: Value = serde_json::from_slice(&body).unwrap();
                sent.lock().unwrap().push(event["note"].as_str().unwrap().to_owned());
                Ok::<_, std::io::Error>(http::Response::new(axum::body::Body::from("{}")))
            }
        });
        let recorder = Recorder::new(&Cluster::new(kube::Client::new(service, "default")), "host");
        let (r#type, reason) = (EventType::Warning, "A".into());
        let event = pintle_wit::Event { r#type, reason, message: "ä".repeat(2048) };
        recorder.emit(&key("A").about, "u", None, &[event]).await;
        let notes = notes.lock().unwrap();
        assert!(notes.len() == 1 && notes[0].len() <= 1024 && notes[0].starts_with('ä'), "{notes:?}");
    }
}
