//! Runs scenarios on a cluster in memory: what a scenario does to the cluster, and what it reads from it.

use std::{sync::Arc, time::Duration};

use anyhow::Context;
use pintle_modules::Budget;
use pintle_preview::{Caller, Preview};
use pintle_runtime::{Spawner, clock};
use pintle_simulator::{Act, Failure, Record, Verb};
use pintle_wit::ObjectRef;
use serde_json::Value;

use super::{
    meddling::named,
    script::{is_about_hosts, is_host},
    world::World,
};
use crate::{
    acts,
    scenario::{Backend, Call, Cascade, Mark, Stop},
};

/// How long a user waits between two actions, so that the later one has a later time.
const USER_TAKES: Duration = Duration::from_millis(1100);
/// The memory of a preview, in bytes.
const PREVIEW_BYTES: u64 = 1 << 30;

impl Backend for World {
    async fn apply(&self, object: &Value) -> anyhow::Result<()> {
        self.as_user(&acts::apply(object)).await
    }

    async fn patch(&self, object: &ObjectRef, patch: &Value) -> anyhow::Result<()> {
        self.as_user(&acts::merge(object, patch.clone())).await
    }

    async fn delete(&self, object: &ObjectRef, cascade: Cascade) -> anyhow::Result<()> {
        let cascade = match cascade {
            Cascade::Background => pintle_simulator::Cascade::Background,
            Cascade::Orphan => pintle_simulator::Cascade::Orphan,
            Cascade::Foreground => pintle_simulator::Cascade::Foreground,
        };
        self.as_user(&Act::Delete { target: object.clone(), cascade }).await
    }

    async fn get(&self, object: &ObjectRef) -> anyhow::Result<Option<Value>> {
        Ok(self.server.object(object).map(|object| Value::clone(&object)))
    }

    async fn events(&self, object: &ObjectRef) -> anyhow::Result<Vec<String>> {
        let snapshot = self.server.snapshot();
        let events = snapshot.objects.iter().filter(|(name, _)| name.api_version == "events.k8s.io/v1");
        let about = events.map(|(_, event)| event).filter(|event| {
            let regarding = &event["regarding"];
            regarding["kind"] == object.kind.as_str() && regarding["name"] == object.name.as_str()
        });
        Ok(about.filter_map(|event| Some(event["reason"].as_str()?.to_owned())).collect())
    }

    async fn stop_host(&self, how: Stop) -> anyhow::Result<()> {
        self.say("user", format!("stops the host: {how:?}").to_lowercase());
        for (life, host) in self.take() {
            match how {
                Stop::Killed => life.kill(),
                Stop::Gracefully => host.stop(&life).await,
            }
        }
        Ok(())
    }

    async fn start_host(&self) -> anyhow::Result<()> {
        self.start().await.context("starting the host")
    }

    async fn preview<T>(
        &self,
        look: impl AsyncFnOnce(&Preview, &Caller) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let clock = Arc::new(clock::Virtual::new(self.now(), self.seed));
        let spawner = Spawner::simulated(Arc::clone(&clock));
        let preview = Preview::new(self.own.engine.clone(), None, Budget::fixed(PREVIEW_BYTES), spawner);
        let client = kube::Client::new(self.server.service("planner"), "default");
        let caller = Caller { user: client.clone(), modules: client };
        clock.scope(async { look(&preview, &caller).await }).await
    }

    async fn advance(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    fn mark(&self) -> Mark {
        Mark(self.origin.elapsed())
    }

    async fn calls_since(&self, mark: Mark) -> anyhow::Result<Option<Vec<Call>>> {
        let calls = self.with_records(|records| {
            let script = self.script();
            let is_since = |number: &u64| script.times.get(number).is_some_and(|time| *time >= mark.0);
            let counts = |record: &&Record| {
                let request = &record.seen;
                is_host(&request.client)
                    && request.verb.is_mutating()
                    && !is_about_hosts(request)
                    && is_since(&request.number)
            };
            records.iter().filter(counts).map(call).collect()
        });
        Ok(Some(calls))
    }

    fn host_log(&self, _: &[&str], lines: usize) -> Vec<String> {
        let script = self.script();
        let from = script.steps.len().saturating_sub(lines);
        script.steps.iter().skip(from).map(ToString::to_string).collect()
    }
}

/// A request in the form in which scenarios count it.
fn call(record: &Record) -> Call {
    let request = &record.seen;
    let subresource = request.subresource.as_ref().map_or_else(String::new, |name| format!("/{name}"));
    Call {
        verb: match request.verb {
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Delete => "delete",
            Verb::DeleteCollection => "deletecollection",
            _ => "patch",
        }
        .into(),
        resource: format!("{}{subresource}", request.resource),
        namespace: request.namespace.clone(),
        name: request.name.clone(),
        acting_as: (request.actor != request.client).then(|| request.actor.clone()),
        code: record.code,
        forbidden: record.code == 403,
    }
}

impl World {
    async fn as_user(&self, act: &Act) -> anyhow::Result<()> {
        tokio::time::sleep(USER_TAKES).await;
        self.say("user", named(act));
        let refused =
            |failure: Failure| anyhow::anyhow!("{} ({}): {}", failure.reason, failure.code, failure.message);
        self.act("user", act).map(drop).map_err(refused)
    }
}
