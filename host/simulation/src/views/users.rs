//! What users do: they write through the view and on what is stored, and read by name. All of it follows from a seed.

use std::{sync::Arc, time::Duration};

use pintle_runtime::clock::Random;
use pintle_simulator::{Act, Cascade};
use pintle_wit::{ObjectRef, names::ANNOTATION_SUSPEND};
use serde_json::{Value, json};

use super::{
    NAMESPACE, collection,
    gateways::Request,
    objects::{GROWN, LABEL, NAMES, new_record, owned, owner_reference, record},
    world::{AWHILE, LATE_CALLS, World, Written, view},
};
use crate::acts::{delete, merge, reference};

/// How long two steps are apart at most, in milliseconds.
const PAUSE: u64 = 1_500;

/// How long what a Llama owns is held by its finalizer, if it has one.
const HELD: Duration = Duration::from_secs(6);

/// The finalizer by which somebody holds an object.
const HOLD: &str = "example.com/held";

/// A choice of a user. All numbers are drawn whatever becomes of them, so that a step does not depend on what came of others.
#[derive(Clone, Copy, Debug)]
struct Choice {
    number: u32,
    what: u64,
    name: &'static str,
    amount: u64,
    variant: u64,
}

/// Makes so many steps. What a step does may last longer than the step.
pub(super) async fn act(world: Arc<World>, seed: u64, steps: u32) {
    let mut random = Random::new(seed);
    let mut deeds = Vec::new();
    for number in 1..=steps {
        let pause = random.below(PAUSE);
        let name = NAMES.get(random.below(4) as usize).copied().unwrap_or("a");
        let choice = Choice {
            number,
            what: random.below(26),
            name,
            amount: 1 + random.below(50),
            variant: random.below(4),
        };
        tokio::time::sleep(Duration::from_millis(pause)).await;
        let world = Arc::clone(&world);
        deeds.push(tokio::spawn(async move { choice.act(&world).await }));
    }
    for deed in deeds {
        // Longer than any request waits.
        let _ = tokio::time::timeout(Duration::from_secs(400), deed).await;
    }
}

/// Reads one name after the other, until it is ended.
pub(super) async fn read(world: Arc<World>, seed: u64) {
    let mut random = Random::new(seed ^ 0x7ead);
    loop {
        tokio::time::sleep(Duration::from_millis(150 + random.below(300))).await;
        let name = NAMES.get(random.below(4) as usize).copied().unwrap_or("a");
        let path = match random.below(3) {
            0 => format!("{}/farm-{name}", collection("farmpods")),
            _ => format!("{}/{name}", collection("llamas")),
        };
        let world = Arc::clone(&world);
        tokio::spawn(async move { drop(world.ask(Request::get(path)).await) });
    }
}

/// Tries to change the measures of a Llama that is grown, at first while its guest is late with what they were.
pub(super) async fn change_grown(world: &World) {
    let name = "grown";
    world.own.guests.be_late(LATE_CALLS);
    let view = world.server.object(&view("llamas")).unwrap_or_default();
    let stored = world.act("keeper", &Act::Create(new_record(name, GROWN + 1)));
    let (Some(epoch), Ok(stored)) = (view["status"]["active"]["epoch"].as_u64(), stored) else { return };
    let version = stored["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    let body = json!({"apiVersion": "farm.example.com/v1alpha", "kind": "Llama",
        "metadata": {"name": name, "resourceVersion": format!("{version}{epoch:06}")},
        "spec": {"weight": GROWN + 2, "height": GROWN + 2}});
    for _ in 0..3 {
        replace(world, name, "grower", body.clone()).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
}

/// Writes what one module showed when another is in force: in each run, since few users hold an object long enough to meet a swap.
pub(super) async fn write_across_swap(world: &World) {
    let name = "kept";
    world.as_keeper(Act::Create(new_record(name, 1)));
    tokio::time::sleep(AWHILE).await;
    let path = format!("{}/{name}", collection("llamas"));
    let Some((200, mut object)) = world.ask(Request::get(path)).await else { return };
    world.swap("llamas");
    tokio::time::sleep(AWHILE).await;
    object["spec"]["weight"] = 2.into();
    replace(world, name, "holder", object).await;
}

/// Replaces a Llama.
async fn replace(world: &World, name: &str, agent: &str, object: Value) {
    let request = Request {
        method: "PUT",
        path: format!("{}/{name}", collection("llamas")),
        body: Some(object.clone()),
        agent: agent.into(),
        ..Request::default()
    };
    world.write(Written::of(request, object)).await;
}

fn pod(name: &str) -> ObjectRef {
    reference("v1", "Pod", Some(NAMESPACE), name)
}

/// The label, or that it is taken away.
fn label(amount: u64) -> Value {
    if amount.is_multiple_of(2) { LABEL.1.into() } else { Value::Null }
}

impl Choice {
    async fn act(self, world: &World) {
        match self.what {
            0..=2 => self.create(world).await,
            3..=5 => self.update(world).await,
            6..=9 => self.patch(world).await,
            20 | 21 => self.own(world).await,
            22 | 23 => {
                tokio::join!(self.own(world), async {
                    tokio::time::sleep(Duration::from_millis(400)).await;
                    self.delete(world).await;
                });
            }
            10 | 11 | 24.. => self.delete(world).await,
            _ => {
                world.as_keeper(self.of_keeper(world));
            }
        }
    }

    /// What the one who keeps the farm does to what is stored.
    fn of_keeper(self, world: &World) -> Act {
        let Self { what, name, amount, variant, .. } = self;
        match what {
            12 => Act::Create(new_record(name, amount)),
            13 | 14 => {
                let patch = match variant {
                    0 => json!({"spec": {"colour": format!("c{amount}")}}),
                    // What leaves a selection changes in the same write, so that it must not be taken for what it was before.
                    1 => {
                        json!({"metadata": {"labels": {LABEL.0: label(amount)}}, "spec": {"weight": amount}})
                    }
                    2 => {
                        let suspend = if amount % 4 == 0 { Value::Null } else { json!("true") };
                        json!({"metadata": {"annotations": {"owner.example.com/note": format!("n{amount}"), ANNOTATION_SUSPEND: suspend}}})
                    }
                    _ => json!({"spec": {"weight": amount}}),
                };
                merge(&record(name), patch)
            }
            15 => self.end(world),
            16 | 17 => {
                let containers: Vec<Value> =
                    (0..=variant).map(|at| json!({"name": format!("c{at}"), "image": "i:1"})).collect();
                Act::Create(json!({"apiVersion": "v1", "kind": "Pod",
                    "metadata": {"name": name, "namespace": NAMESPACE}, "spec": {"containers": containers}}))
            }
            18 => delete(&pod(name)),
            _ => merge(&pod(name), json!({"metadata": {"labels": {LABEL.0: format!("v{amount}")}}})),
        }
    }

    /// Makes something that a Llama owns, or two of them. It may hold up their deletion, and be held itself for a while.
    async fn own(self, world: &World) {
        let names: &[&str] = if self.variant == 3 { &NAMES } else { &[self.name] };
        let mut owners = Vec::new();
        for name in names {
            let path = format!("{}/{name}", collection("llamas"));
            if let Some((200, llama)) = world.ask(Request::get(path)).await {
                owners.push(owner_reference(&llama, !self.amount.is_multiple_of(4)));
            }
        }
        let target = owned(&format!("owned-{}", self.number));
        let is_held = self.amount.is_multiple_of(2);
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
            "name": target.name, "namespace": NAMESPACE, "ownerReferences": owners,
            "finalizers": if is_held { json!([HOLD]) } else { json!([]) },
        }});
        if !owners.is_empty() && world.as_keeper(Act::Create(object)) && is_held {
            tokio::time::sleep(HELD).await;
            world.as_keeper(merge(&target, json!({"metadata": {"finalizers": null}})));
        }
    }

    /// Deletes what is stored, or holds it by a finalizer, or lets go of it.
    fn end(self, world: &World) -> Act {
        let target = record(self.name);
        let live = world.server.object(&target).unwrap_or_default();
        let finalizers = live["metadata"]["finalizers"].as_array().into_iter().flatten();
        let others = finalizers.filter(|one| *one != HOLD).cloned();
        let hold = |finalizers: Vec<Value>| merge(&target, json!({"metadata": {"finalizers": finalizers}}));
        match self.variant {
            0 => hold(others.chain([HOLD.into()]).collect()),
            1 => hold(others.collect()),
            2 => Act::Delete { target, cascade: Cascade::Foreground },
            _ => delete(&target),
        }
    }

    /// Whether the user only tries something out.
    fn tries(self) -> bool {
        self.amount.is_multiple_of(5)
    }

    fn request(self, method: &'static str, name: Option<&str>, body: Value) -> Request {
        let collection = collection("llamas");
        let mut path = name.map_or_else(|| collection.clone(), |name| format!("{collection}/{name}"));
        if self.tries() && method != "DELETE" {
            path.push_str("?dryRun=All");
        }
        let agent = format!("user-{}", self.number);
        Request { method, path, body: Some(body), agent, ..Request::default() }
    }

    async fn create(self, world: &World) {
        let metadata = match self.variant {
            0 => json!({"generateName": "g-"}),
            1 => json!({"name": self.name, "labels": {LABEL.0: LABEL.1}}),
            2 => {
                json!({"name": self.name, "annotations": {"example.com/dropped": "x", ANNOTATION_SUSPEND: "true",
                "kubectl.kubernetes.io/last-applied-configuration": "{}"}})
            }
            _ => match self.amount % 3 {
                0 => json!({"name": self.name}),
                1 => json!({"name": self.name, "finalizers": ["orphan"]}),
                _ => json!({"name": self.name, "finalizers": ["foregroundDeletion"]}),
            },
        };
        let body = json!({"apiVersion": "farm.example.com/v1alpha", "kind": "Llama", "metadata": metadata,
            "spec": {"weight": self.amount, "height": self.amount + 200}});
        world.write(Written::of(self.request("POST", None, body.clone()), body)).await;
    }

    /// Reads, changes and writes; sometimes after a while, and again with what it read.
    async fn update(self, world: &World) {
        let path = format!("{}/{}", collection("llamas"), self.name);
        let Some((200, mut object)) = world.ask(Request::get(path)).await else { return };
        if self.variant == 0 {
            tokio::time::sleep(Duration::from_secs(4)).await;
        }
        object["spec"]["weight"] = self.amount.into();
        if self.variant == 1 {
            object["metadata"]["labels"][LABEL.0] = LABEL.1.into();
        }
        let request = self.request("PUT", Some(self.name), object.clone());
        let code = world.write(Written::of(request.clone(), object.clone())).await;
        if self.variant == 2 && code.is_some_and(|code| code < 300) {
            tokio::time::sleep(Duration::from_millis(300)).await;
            let request = Request { agent: format!("again-{}", self.number), ..request };
            world.write(Written::of(request, object)).await;
        }
    }

    async fn patch(self, world: &World) {
        let patch = match self.variant {
            0 => {
                json!({"metadata": {"labels": {LABEL.0: label(self.amount)}}})
            }
            1 => json!({"spec": {"height": self.amount}}),
            2 => {
                let suspend = if self.amount.is_multiple_of(3) { json!("no") } else { Value::Null };
                json!({"spec": {"weight": self.amount},
                    "metadata": {"labels": {LABEL.0: label(self.amount)}, "annotations": {ANNOTATION_SUSPEND: suspend}}})
            }
            _ => json!({"spec": {"weight": self.amount, "height": self.amount}}),
        };
        let request = Request {
            content_type: Some("application/merge-patch+json"),
            ..self.request("PATCH", Some(self.name), patch.clone())
        };
        world.write(Written::of(request, patch)).await;
    }

    /// Deletes: with each policy and with none; one object, one with this uid or version alone, or all. Some who name a uid do it again when
    /// another object has the name.
    async fn delete(self, world: &World) {
        let policies = [None, Some("Background"), Some("Orphan"), Some("Foreground")];
        let policy = policies.get((self.amount % 4) as usize).copied().flatten();
        let mut options = policy.map_or_else(|| json!({}), |policy| json!({"propagationPolicy": policy}));
        if self.variant == 3 && self.amount > 40 {
            let request = self.request("DELETE", None, options.clone());
            world.write(Written::of(request, options)).await;
            return;
        }
        if self.variant > 0 {
            let path = format!("{}/{}", collection("llamas"), self.name);
            let Some((200, object)) = world.ask(Request::get(path)).await else { return };
            options["preconditions"]["uid"] = object["metadata"]["uid"].clone();
            if self.variant == 2 {
                options["preconditions"]["resourceVersion"] = object["metadata"]["resourceVersion"].clone();
            }
        }
        let request = self.request("DELETE", Some(self.name), options.clone());
        let code = world.write(Written::of(request.clone(), options.clone())).await;
        if self.variant == 3 && code.is_some_and(|code| code < 300) {
            world.as_keeper(Act::Create(new_record(self.name, self.amount)));
            let request = Request { agent: format!("again-{}", self.number), ..request };
            world.write(Written::of(request, options)).await;
        }
    }
}
