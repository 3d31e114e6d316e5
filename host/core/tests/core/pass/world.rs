//! An API server, a root, a reconciler, and the driver that carries the steps of a pass out.

use std::sync::Arc;

use pintle_core::{
    Applied, Binding, Done, KindInfo, Observed, Outcome, Pass, RootMemory, Snapshot, Step,
    desired::SealingKey,
    object,
    observed::status_conditions,
    plan::fails_now,
    reconciler::{Grants, Limits},
};
use pintle_wit::{Child, ChildKind, Event, Failure, Kind, Manifest, ObjectRef, Request, Response};
use serde_json::{Value, json};

use crate::pass::api::Api;

pub(crate) const MANAGER: &str = "pintle-shop.example.com";

pub(crate) struct World {
    pub(crate) api: Api,
    pub(crate) binding: Binding,
    pub(crate) root: ObjectRef,
    pub(crate) memory: RootMemory,
    /// The time, in milliseconds.
    pub(crate) now: i64,
    /// The host has just listed the roots.
    pub(crate) root_was_listed: bool,
    /// A pass of more steps does not end.
    pub(crate) steps_max: usize,
    hook: Option<Hook>,
}

/// What others do right before a request.
type Hook = Box<dyn FnMut(&mut Api, &str)>;

/// What a pass did.
pub(crate) struct Run {
    /// Its steps: `call`, `get ..`, `create ..`, `update ..`, `delete ..`, `status`, `emit`.
    pub(crate) steps: Vec<String>,
    pub(crate) requests: Vec<Request>,
    pub(crate) events: Vec<Event>,
    /// What every status write left.
    pub(crate) statuses: Vec<Value>,
    pub(crate) done: Done,
}

impl World {
    pub(crate) fn new() -> Self {
        let mut manifest = Manifest::new("shop", "0.1.0", Kind::new("example.com/v1", "Shop"));
        manifest.observe_status = true;
        manifest.children = vec![
            ChildKind::new("v1", "ConfigMap"),
            ChildKind::new("v1", "Secret"),
            ChildKind::new("v1", "Service"),
            ChildKind::new("apps/v1", "Deployment").observed(),
        ];
        let binding = Binding {
            reconciler: "shop".into(),
            uid: "reconciler-uid".into(),
            generation: 1,
            field_manager: MANAGER.into(),
            grants: Grants::as_declared(&manifest),
            limits: Limits::default(),
            config: json!({"size": 1}).into(),
            digest: "sha256:one".into(),
            kinds: manifest
                .children
                .iter()
                .map(|child| (child.kind(), KindInfo { namespaced: true }))
                .collect(),
            manifest,
            status: pintle_core::StatusSchema::Anything,
            duty: pintle_core::Duty::Full,
            key: SealingKey::new([7; 32]),
            watched_namespaces: Default::default(),
        };
        let mut world = Self {
            api: Api::default(),
            binding,
            root: ObjectRef::default(),
            memory: RootMemory::default(),
            now: 0,
            root_was_listed: false,
            steps_max: 60,
            hook: None,
        };
        world.root = world.add_root("shop");
        world
    }

    pub(crate) fn add_root(&mut self, name: &str) -> ObjectRef {
        self.api.create(json!({
            "apiVersion": "example.com/v1", "kind": "Shop",
            "metadata": {"name": name, "namespace": "shops", "uid": format!("{name}-uid"), "generation": 1},
            "spec": {"replicas": 1},
        }))
    }

    /// The pass over the root, with a guest that gives this answer whatever it is asked.
    pub(crate) fn pass(&mut self, answer: &Response) -> Run {
        self.pass_with(|_| Ok(answer.clone()))
    }

    /// The pass over the root, where others act right before a request.
    pub(crate) fn pass_between(
        &mut self,
        answer: &Response,
        hook: impl FnMut(&mut Api, &str) + 'static,
    ) -> Run {
        self.hook = Some(Box::new(hook));
        let run = self.pass(answer);
        self.hook = None;
        run
    }

    fn begin(&mut self, run: &mut Run, verb: &str, reference: &ObjectRef) {
        let step = format!("{verb} {} {}", reference.kind, reference.name);
        if let Some(hook) = &mut self.hook {
            hook(&mut self.api, &step);
        }
        run.steps.push(step);
    }

    /// A minute after the last pass.
    pub(crate) fn pass_with(&mut self, guest: impl FnMut(&Request) -> Result<Response, Failure>) -> Run {
        self.now += 60_000;
        self.pass_now(guest)
    }

    /// The pass over the root so many milliseconds after the last one.
    pub(crate) fn pass_after(&mut self, milliseconds: i64, answer: &Response) -> Run {
        self.now += milliseconds;
        self.pass_now(|_| Ok(answer.clone()))
    }

    pub(crate) fn pass_now(&mut self, mut guest: impl FnMut(&Request) -> Result<Response, Failure>) -> Run {
        let root = self.api.objects.get(&self.root).expect("the root is there").clone();
        let uid = object::uid(&root).to_owned();
        let version = object::text(&root, &["metadata", "resourceVersion"]);
        let root_listed_at = version.filter(|_| self.root_was_listed).map(Into::into);
        let children = self
            .api
            .objects
            .values()
            .filter(|live| {
                object::text(live, &["metadata", "labels", "pintle.dev/root"]) == Some(&uid)
                    || pintle_core::observed::controller(live) == Some(&uid)
            })
            .filter(|live| self.binding.watches(&object::reference(live)))
            .map(|live| self.observed(live))
            .collect();
        let mut pass = Pass::new(Snapshot {
            binding: Arc::new(self.binding.clone()),
            root: Arc::new(root),
            root_listed_at,
            children,
            memory: std::mem::take(&mut self.memory),
            now: jiff::Timestamp::from_millisecond(self.now).unwrap(),
        });
        let mut run =
            Run { steps: vec![], requests: vec![], events: vec![], statuses: vec![], done: Done::default() };
        let mut outcome = Outcome::Start;
        for _ in 0..self.steps_max {
            outcome = match pass.step(outcome) {
                Step::Done(done) => {
                    let said = run.statuses.last().map(status_conditions).unwrap_or_default();
                    let agrees = done.error.is_some() || fails_now(&said) != Some(true);
                    assert!(agrees, "the root fails for a plan, and not for the operator: {said:?}");
                    self.memory = done.memory.clone();
                    run.done = *done;
                    return run;
                }
                step => self.carry_out(step, &mut run, &mut guest),
            };
        }
        panic!("the pass does not end: {:?}", run.steps);
    }

    fn carry_out(
        &mut self,
        step: Step,
        run: &mut Run,
        guest: &mut impl FnMut(&Request) -> Result<Response, Failure>,
    ) -> Outcome {
        match step {
            Step::CallGuest(request) => {
                run.steps.push("call".into());
                let answer = guest(&request);
                run.requests.push(*request);
                Outcome::Answered(answer)
            }
            Step::Get(references) => {
                let found = references.iter().map(|reference| {
                    self.begin(run, "get", reference);
                    let found = self.api.get(reference)?;
                    Ok(found.map(|live| self.observed(&live)))
                });
                Outcome::Got(found.collect())
            }
            Step::ReadRoot => {
                let root = self.root.clone();
                self.begin(run, "read", &root);
                Outcome::RootRead(self.api.get(&root))
            }
            Step::Apply(applies) => {
                let applied = applies.iter().map(|apply| {
                    self.begin(run, if apply.force() { "update" } else { "create" }, apply.reference());
                    let (created, live) = self.api.apply(apply.object(), apply.manager(), apply.force())?;
                    Ok(Applied { created, observed: self.observed(&live) })
                });
                Outcome::Applied(applied.collect())
            }
            Step::Delete(deletions) => {
                let deleted = deletions.iter().map(|deletion| {
                    self.begin(run, "delete", deletion.reference());
                    self.api.delete(deletion)
                });
                Outcome::Deleted(deleted.collect())
            }
            Step::SetFinalizers(write) => {
                run.steps.push("finalizers".into());
                Outcome::FinalizersSet(self.api.patch_finalizers(write.reference(), &write.patch()))
            }
            Step::Inspect(references) => {
                let found = references.iter().map(|reference| {
                    self.begin(run, "inspect", reference);
                    self.api.get(reference)
                });
                Outcome::Inspected(found.collect())
            }
            Step::Look(lookups) => {
                run.steps.push("look".into());
                let found = lookups.iter().map(|look| {
                    let of_kind = |live: &&Value| object::kind(live) == *look.kind() && look.means(live);
                    Ok(self.api.objects.values().filter(of_kind).cloned().collect())
                });
                Outcome::Looked(found.collect())
            }
            Step::Patch(patches) => {
                let patched = patches.iter().map(|patch| {
                    self.begin(run, "patch", patch.reference());
                    self.api.patch(patch)
                });
                Outcome::Patched(patched.collect())
            }
            Step::Evict(evictions) => {
                let evicted = evictions.iter().map(|eviction| {
                    self.begin(run, "evict", eviction.reference());
                    self.api.evict(eviction)
                });
                Outcome::Evicted(evicted.collect())
            }
            Step::Claim(claims) => {
                let claimed = claims.iter().map(|claim| {
                    self.begin(run, "claim", claim.reference());
                    let live = self.api.claim(claim)?;
                    Ok(self.observed(&live))
                });
                Outcome::Claimed(claimed.collect())
            }
            Step::WriteStatus(write) => {
                run.steps.push("status".into());
                let result = self.api.apply_status(write.object(), write.manager());
                let root = self.api.objects.get(&self.root);
                run.statuses.push(root.and_then(|root| root.get("status")).cloned().unwrap_or_default());
                Outcome::StatusWritten(result)
            }
            Step::Emit(events) => {
                run.steps.push("emit".into());
                run.events.extend(events);
                Outcome::Emitted
            }
            Step::Done(_) => unreachable!("the loop ends there"),
        }
    }

    fn observed(&self, live: &Value) -> Observed {
        let kind = object::kind(live);
        let observe =
            self.binding.manifest.children.iter().any(|child| child.observe && child.kind() == kind);
        Observed::of(live, MANAGER, observe)
    }

    /// Passes until nothing is left to do. Every child's controller says that it is ready.
    pub(crate) fn settle(&mut self, answer: &Response) -> Run {
        for _ in 0..4 {
            let run = self.pass(answer);
            let acted = self.run_controllers();
            if run.steps.is_empty() && !acted {
                return run;
            }
        }
        panic!("the root does not come to rest");
    }

    /// What a Deployment's controller does: it makes them ready. Whether it did anything.
    pub(crate) fn run_controllers(&mut self) -> bool {
        let status =
            json!({"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1});
        let open: Vec<ObjectRef> = self
            .api
            .objects
            .iter()
            .filter(|(reference, live)| reference.kind == "Deployment" && live.get("status") != Some(&status))
            .map(|(reference, _)| reference.clone())
            .collect();
        for reference in &open {
            self.api.edit(reference, "status", status.clone());
        }
        !open.is_empty()
    }

    /// The host starts again: it remembers nothing.
    pub(crate) fn restart(&mut self) {
        self.memory = RootMemory::default();
    }

    pub(crate) fn live(&self, kind: &str, name: &str) -> Option<&Value> {
        self.api.objects.get(&reference(kind, name))
    }

    pub(crate) fn status(&self) -> &Value {
        &self.api.objects[&self.root]["status"]
    }

    pub(crate) fn condition(&self, name: &str) -> Option<Value> {
        condition(self.status(), name)
    }

    pub(crate) fn message(&self, name: &str) -> String {
        self.condition(name).unwrap()["message"].as_str().unwrap().to_owned()
    }

    /// Sees that the message of a condition has each of these.
    pub(crate) fn tells(&self, name: &str, parts: &[&str]) {
        let message = self.message(name);
        let lacks: Vec<&&str> = parts.iter().filter(|part| !message.contains(**part)).collect();
        assert!(lacks.is_empty(), "{name} lacks {lacks:?}: {message}");
    }

    /// Somebody edits the root.
    pub(crate) fn edit_root(&mut self, path: &str, value: Value) {
        let root = self.root.clone();
        self.api.edit(&root, path, value);
    }

    /// Status and reason of a condition.
    pub(crate) fn says(&self, name: &str) -> (String, String) {
        let found = self.condition(name).unwrap_or_default();
        let text = |key: &str| found[key].as_str().unwrap_or("absent").to_owned();
        (text("status"), text("reason"))
    }
}

pub(crate) fn condition(status: &Value, name: &str) -> Option<Value> {
    status["conditions"].as_array()?.iter().find(|condition| condition["type"] == name).cloned()
}

pub(crate) fn yes(reason: &str) -> (String, String) {
    ("True".into(), reason.into())
}

pub(crate) fn no(reason: &str) -> (String, String) {
    ("False".into(), reason.into())
}

pub(crate) fn absent() -> (String, String) {
    ("absent".into(), "absent".into())
}

/// An object in another namespace than the root's.
pub(crate) fn elsewhere(kind: &str, name: &str) -> ObjectRef {
    ObjectRef { namespace: Some("stock".into()), ..reference(kind, name) }
}

pub(crate) fn reference(kind: &str, name: &str) -> ObjectRef {
    let api_version = if kind == "Deployment" { "apps/v1" } else { "v1" };
    ObjectRef {
        api_version: api_version.into(),
        kind: kind.into(),
        namespace: Some("shops".into()),
        name: name.into(),
    }
}

pub(crate) fn answer(children: Vec<Value>) -> Response {
    let children = children
        .into_iter()
        .map(|object| Child::new(format!("{}/{}", object["kind"], object::name(&object)), object))
        .collect();
    let status = json!({"phase": "Up"}).as_object().unwrap().clone();
    Response {
        children,
        status,
        events: vec![Event::normal("Opened", "the shop is open")],
        ..Response::default()
    }
}

pub(crate) fn config_map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": value}})
}

pub(crate) fn secret(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"key": value}})
}

pub(crate) fn service(name: &str, port: u32) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]}})
}

/// A Deployment whose Pods read these Secrets.
pub(crate) fn deployment(name: &str, secrets: &[&str]) -> Value {
    let volumes: Vec<Value> =
        secrets.iter().map(|secret| json!({"name": secret, "secret": {"secretName": secret}})).collect();
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": 1, "template": {"metadata": {"labels": {"app": name}}, "spec": {
            "containers": [{"name": "main", "image": "shop:1"}], "volumes": volumes}}}})
}
