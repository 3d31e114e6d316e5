//! Events. Losing one loses nothing that is not also in a status, so that nothing fails because an Event did.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{self, Event, EventType, Reporter};
use pintle_wit::ObjectRef;
use tracing::debug;

use crate::kubernetes::{Cluster, Hold, REQUEST_TIMEOUT};

/// Publishes Events under the host's name, as long as it may write. Repeated ones are counted instead of written anew.
pub(crate) struct Recorder {
    recorder: events::Recorder,
    hold: Hold,
}

impl Recorder {
    pub(crate) fn new(cluster: &Cluster, instance: &str) -> Self {
        let reporter = Reporter { controller: "pintle.dev/operator".into(), instance: Some(instance.into()) };
        Self { recorder: events::Recorder::new(cluster.client(), reporter), hold: cluster.hold().clone() }
    }

    async fn publish(&self, event: &Event, regarding: &ObjectReference) -> Result<(), String> {
        let published = tokio::time::timeout(REQUEST_TIMEOUT, self.recorder.publish(event, regarding));
        match self.hold.guard(published).await {
            Ok(Ok(published)) => published.map_err(|error| error.to_string()),
            Ok(Err(late)) => Err(late.to_string()),
            Err(_) => Err("this host does not hold the lease".into()),
        }
    }

    /// Publishes events about an object; `related` is the other object that they are about, if there is one. Events that differ in
    /// it are told apart, where else a second one of the same reason would only be counted.
    pub(crate) async fn emit(
        &self,
        about: &ObjectRef,
        uid: &str,
        related: Option<&ObjectRef>,
        events: &[pintle_wit::Event],
    ) {
        let regarding = ObjectReference {
            api_version: Some(about.api_version.clone()),
            kind: Some(about.kind.clone()),
            namespace: about.namespace.clone(),
            name: Some(about.name.clone()),
            uid: Some(uid.into()),
            ..ObjectReference::default()
        };
        for event in events {
            let event = Event {
                type_: match event.r#type {
                    pintle_wit::EventType::Normal => EventType::Normal,
                    pintle_wit::EventType::Warning => EventType::Warning,
                },
                reason: event.reason.clone(),
                note: Some(event.message.clone()),
                action: "Reconcile".into(),
                secondary: related.map(|related| ObjectReference {
                    api_version: Some(related.api_version.clone()),
                    kind: Some(related.kind.clone()),
                    namespace: related.namespace.clone(),
                    name: Some(related.name.clone()),
                    ..ObjectReference::default()
                }),
            };
            match self.publish(&event, &regarding).await {
                Ok(()) => {}
                Err(error) => {
                    debug!(object = %about, reason = event.reason, error, "An Event was not published")
                }
            }
        }
    }
}
