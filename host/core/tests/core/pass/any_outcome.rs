//! Whatever comes of its steps, a pass ends, deletes nothing that it did not see to be the root's, and takes nothing over.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use pintle_core::{
    ApiError, Applied, Apply, Duty, Observed, Outcome, Pass, RootMemory, Snapshot, Step, object,
};
use pintle_wit::{Failure, ObjectRef, Refusal, Response};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::pass::{
    api::{cause, error, no_reply, port_taken},
    powers::grant_powers,
    world::{MANAGER, World, answer, config_map, deployment, reference, secret, service},
};

/// The most steps of a pass, from the limits in its code: three rounds of at most ten calls of the guest and as many look-ups, and for
/// each of them two rounds of children, in which one child is tried four times and claimed a few.
const STEPS_MAX: usize = 180;

/// Choices of a driver that may do anything.
struct Driver {
    choices: std::vec::IntoIter<u8>,
    root: String,
    /// Uids that were shown as the root's.
    owned: Vec<(ObjectRef, String)>,
    /// Uids that were shown as free for it to adopt, or as its own without an owner.
    free: Vec<(ObjectRef, String)>,
    /// This pass has read that the root is not going.
    root_stays: bool,
    /// Of the root there is an old list's word alone, so that nothing is to be written before it was read.
    looks_first: bool,
    /// What the last Get showed as the root's.
    last_read: BTreeMap<ObjectRef, String>,
    /// The uids that the last status named.
    evicting: Vec<String>,
}

impl Driver {
    fn choose(&mut self, of: u8) -> u8 {
        self.choices.next().unwrap_or(0) % of
    }

    fn error(&mut self) -> ApiError {
        let mut found = match self.choose(11) {
            0 => error(409, "Conflict", "exists"),
            1 => error(409, "Conflict", "uid mismatch"),
            2 => ApiError { causes: vec![cause("metadata.uid", "immutable")], ..error(422, "Invalid", "m") },
            3 => port_taken(),
            4 => error(422, "Invalid", "no"),
            5 => error(403, "Forbidden", "no"),
            6 => error(404, "NotFound", "no"),
            7 => error(401, "Unauthorized", "no"),
            8 => error(500, "not one word", "no"),
            9 => no_reply(),
            _ => {
                ApiError { retry_after: Some(Duration::from_secs(1)), ..error(429, "TooManyRequests", "no") }
            }
        };
        if self.choose(4) == 0 {
            found.message = format!("{} ({})", found.message, self.choose(255));
        }
        found
    }

    /// Some live object of this name: the root's, an orphan, one to adopt, another's; drifted or not, deleting or not.
    fn live(&mut self, reference: &ObjectRef, sent: Option<&Apply>) -> Observed {
        let mut live = sent.map_or_else(|| json!({"metadata": {}}), |apply| apply.object().clone());
        object::set_kind(&mut live, reference.kind());
        live["metadata"]["name"] = reference.name.as_str().into();
        live["metadata"]["namespace"] = reference.namespace.clone().into();
        live["metadata"]["uid"] = format!("uid-{}", self.choose(3)).into();
        live["metadata"]["resourceVersion"] = self.choose(9).to_string().into();
        let controller = match self.choose(4) {
            0 | 1 => Some(self.root.clone()),
            2 => Some("another".into()),
            _ => None,
        };
        // An orphan is taken back by a label that our own apply set.
        let label = if self.choose(2) == 0 { self.root.clone() } else { "another".into() };
        live["metadata"]["labels"]["pintle.dev/root"] = label.into();
        let entry = json!({"f:metadata": {"f:labels": {"f:pintle.dev/root": {}}}});
        let entry = json!({"manager": MANAGER, "operation": "Apply", "fieldsV1": entry});
        live["metadata"]["managedFields"] = (self.choose(2) == 0).then_some(entry).into_iter().collect();
        let owners = controller.map(|uid| json!({"uid": uid, "controller": true}));
        live["metadata"]["ownerReferences"] = owners.into_iter().collect();
        if self.choose(3) == 0 {
            live["metadata"]["annotations"]["pintle.dev/adopt"] = self.root.as_str().into();
        }
        if self.choose(5) == 0 {
            live["metadata"]["deletionTimestamp"] = "2000-01-01T00:00:00Z".into();
        }
        let observed = Observed::of(&live, MANAGER, false);
        self.shown(&observed);
        observed
    }

    fn owns(&self, observed: &Observed) -> bool {
        observed.is_owned_by(&self.root)
    }

    /// A child of the root's whole, with a foreign port in the place of ours.
    fn whole(&mut self, reference: &ObjectRef) -> Value {
        let entry = json!({"f:spec": {"f:ports": {"k:{\"port\":81}": {".": {}}}}});
        json!({"apiVersion": reference.api_version, "kind": reference.kind,
            "metadata": {"name": reference.name, "uid": "uid-0", "resourceVersion": "1",
                "ownerReferences": [{"uid": self.root, "controller": true}],
                "managedFields": [{"manager": "e", "operation": "Update", "fieldsV1": entry}]},
            "spec": {"ports": [{"port": 81}]}})
    }

    fn shown(&mut self, observed: &Observed) {
        let shown = (observed.reference.clone(), observed.uid.clone());
        if self.owns(observed) {
            self.owned.push(shown);
        } else if observed.may_be_adopted_by(&self.root) || observed.is_labelled_by(&self.root) {
            self.free.push(shown);
        }
    }

    fn answer(&mut self) -> Result<Response, Failure> {
        let port = 30000 + u32::from(self.choose(4));
        let text = ["a", "b"][self.choose(2) as usize];
        match self.choose(12) {
            9 => Ok(Response { needs: self.needs(), ..answer(vec![config_map("page", text)]) }),
            10 => {
                let mut powers = json!({"apiVersion": "guest.pintle.dev/v1",
                    "patches": [{"object": {
                        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "theirs"}, "spec": {"replicas": port}}}],
                    "evictions": {"oneAtATime": self.choose(2) == 0, "pods": [{"name": "p1", "uid": "uid-1"}, {"name": "p2", "uid": "uid-2"}]},
                    "status": {"count": self.choose(3)}, "stamps": {"at": "count"}, "finalized": self.choose(4) == 0});
                powers["needs"] = serde_json::to_value(self.needs()).unwrap();
                Ok(serde_json::from_value(powers).unwrap())
            }
            11 => {
                let needs = vec![pintle_wit::Need::Clock { step_seconds: 0 }];
                Ok(Response { needs, ..answer(vec![config_map("page", text)]) })
            }
            0 => Err(Failure::terminal("InvalidSpec", "bad")),
            1 => Err(Failure::transient("DeadlineExceeded", "slow")),
            2 => Ok(answer(vec![
                json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "not-granted"}}),
            ])),
            3 => Ok(answer(vec![config_map("page", text)])),
            4 => Ok(answer(vec![secret("keys", text), service("web", port)])),
            5 => {
                let mut staged =
                    answer(vec![service("web", port), config_map("page", text), secret("keys", text)]);
                staged.children[0].stage = 2;
                staged.children[1].stage = u32::from(self.choose(3));
                Ok(staged)
            }
            6 => Ok(Response { finalized: self.choose(2) == 0, ..answer(vec![config_map("page", text)]) }),
            _ => Ok(answer(vec![
                deployment("web", &["keys"]),
                secret("keys", text),
                config_map("page", text),
                service("web", port),
            ])),
        }
    }

    /// One of a few sets of needs, so that it is often the one that was given.
    fn needs(&mut self) -> Vec<pintle_wit::Need> {
        let all = vec![
            pintle_wit::Need::Clock { step_seconds: 60 },
            pintle_wit::Need::Objects(pintle_wit::ObjectsNeed {
                api_version: "v1".into(),
                kind: "Pod".into(),
                select: pintle_wit::Select::Name("p1".into()),
                settle_milliseconds: 500,
                ..Default::default()
            }),
        ];
        let count = usize::from(self.choose(3));
        all.into_iter().take(count).collect()
    }

    #[expect(clippy::too_many_lines, reason = "an arm for each step of a pass")]
    fn carry_out(&mut self, step: Step) -> Outcome {
        // A change of the finalizers tests what it replaces.
        let writes = matches!(
            step,
            Step::Apply(_)
                | Step::Patch(_)
                | Step::Claim(_)
                | Step::Delete(_)
                | Step::Evict(_)
                | Step::WriteStatus(_)
        );
        assert!(!(writes && self.looks_first) || self.root_stays, "on an old list's word: {step:?}");
        match step {
            Step::Look(lookups) => {
                let found = lookups.iter().map(|_| match self.choose(4) {
                    0 => Err(Failure::transient("AccessDenied", "no")),
                    1 => Ok(vec![]),
                    uid => Ok(vec![json!({"apiVersion": "v1", "kind": "Pod",
                        "metadata": {"name": "p1", "namespace": "shops", "uid": format!("uid-{uid}")}})]),
                });
                Outcome::Looked(found.collect())
            }
            Step::Patch(patches) => {
                let patched = patches.iter().map(|patch| {
                    let uid = object::text(patch.object(), &["metadata", "uid"]);
                    assert_eq!(
                        uid,
                        Some("uid-0"),
                        "a patch carries the uid that was read, so that it never creates"
                    );
                    if self.choose(2) == 0 { Err(self.error()) } else { Ok(patch.object().clone()) }
                });
                Outcome::Patched(patched.collect())
            }
            Step::Evict(evictions) => {
                for eviction in &evictions {
                    assert!(
                        self.evicting.contains(&eviction.uid().to_owned()),
                        "the status did not name it: {eviction:?}"
                    );
                }
                let evicted =
                    evictions.iter().map(|_| if self.choose(2) == 0 { Err(self.error()) } else { Ok(()) });
                Outcome::Evicted(evicted.collect())
            }
            Step::CallGuest(request) => {
                let mut sorted: Vec<Refusal> = request.refusals.clone();
                sorted.sort_by(|a, b| a.child.cmp(&b.child));
                assert_eq!(sorted, request.refusals, "refusals are sorted");
                Outcome::Answered(self.answer())
            }
            Step::Get(references) => {
                self.last_read.clear();
                let found = references.iter().map(|reference| match self.choose(4) {
                    0 => Err(self.error()),
                    1 => Ok(None),
                    _ => {
                        let live = self.live(reference, None);
                        if self.owns(&live) {
                            self.last_read.insert(reference.clone(), live.uid.clone());
                        }
                        Ok(Some(live))
                    }
                });
                Outcome::Got(found.collect())
            }
            Step::Apply(applies) => {
                assert!(!applies.is_empty());
                let applied = applies.iter().map(|apply| {
                    self.check(apply);
                    if self.choose(2) == 0 {
                        return Err(self.error());
                    }
                    let observed = self.live(apply.reference(), Some(apply));
                    Ok(Applied { created: !apply.force(), observed })
                });
                Outcome::Applied(applied.collect())
            }
            Step::Delete(deletions) => {
                assert!(!deletions.is_empty());
                for deletion in &deletions {
                    let seen = self.last_read.get(deletion.reference());
                    assert_eq!(
                        seen.map(String::as_str),
                        Some(deletion.uid()),
                        "deletes what the last read did not show"
                    );
                }
                let done =
                    deletions.iter().map(|_| if self.choose(2) == 0 { Err(self.error()) } else { Ok(()) });
                Outcome::Deleted(done.collect())
            }
            Step::SetFinalizers(write) => {
                assert_eq!(
                    write.patch()[0]["value"],
                    self.root.as_str(),
                    "of this root, and of no successor"
                );
                Outcome::FinalizersSet(if self.choose(4) == 0 { Err(self.error()) } else { Ok(()) })
            }
            Step::ReadRoot => Outcome::RootRead(match self.choose(5) {
                0 => Err(self.error()),
                1 => Ok(None),
                2 => Ok(Some(json!({"metadata": {"uid": "another"}}))),
                3 => Ok(Some(
                    json!({"metadata": {"uid": self.root, "deletionTimestamp": "2000-01-01T00:00:00Z"}}),
                )),
                _ => {
                    self.root_stays = true;
                    Ok(Some(json!({"metadata": {"uid": self.root, "generation": 1, "resourceVersion": "1"}})))
                }
            }),
            Step::Inspect(references) => {
                let found = references.iter().map(|reference| match self.choose(4) {
                    0 => Err(self.error()),
                    1 => Ok(None),
                    _ => Ok(Some(self.whole(reference))),
                });
                Outcome::Inspected(found.collect())
            }
            Step::Claim(claims) => {
                let claimed = claims.iter().map(|claim| {
                    let operations = claim.patch().as_array().expect("a patch");
                    let touched = operations.iter().filter(|operation| operation["op"] == "replace");
                    let touched: Vec<&Value> = touched.map(|operation| &operation["path"]).collect();
                    assert_eq!(touched, ["/metadata/managedFields", "/metadata/resourceVersion"]);
                    if self.choose(2) == 0 {
                        Err(self.error())
                    } else {
                        Ok(self.live(claim.reference(), None))
                    }
                });
                Outcome::Claimed(claimed.collect())
            }
            Step::WriteStatus(write) => {
                for condition in write.object()["status"]["conditions"].as_array().into_iter().flatten() {
                    let reason = condition["reason"].as_str().unwrap_or_default();
                    assert!(!reason.is_empty() && reason.chars().all(char::is_alphanumeric), "{condition}");
                }
                if self.choose(4) == 0 {
                    return Outcome::StatusWritten(Err(self.error()));
                }
                let evicting = write.object().pointer("/status/pintle/evicting").and_then(Value::as_array);
                let uids = evicting.into_iter().flatten().filter_map(|uid| uid.as_str().map(Into::into));
                self.evicting = uids.collect();
                Outcome::StatusWritten(Ok(()))
            }
            Step::Emit(events) => {
                assert!(!events.is_empty());
                Outcome::Emitted
            }
            Step::Done(_) => unreachable!("the loop ends there"),
        }
    }

    /// An apply is create-only, or aims at an object that was shown as the root's, or as free for a root that was seen to stay.
    fn check(&self, apply: &Apply) {
        assert!(!format!("{apply:?}").contains("data"), "steps are logged, and a Secret is no log line");
        let text = |key: &str| object::text(apply.object(), &["metadata", key]);
        if apply.force() {
            let uid = text("uid").expect("a forced apply carries a uid").to_owned();
            let aim = (apply.reference().clone(), uid);
            let may_adopt = self.root_stays && self.free.contains(&aim);
            assert!(self.owned.contains(&aim) || may_adopt, "takes over {apply:?}");
            assert_eq!(text("resourceVersion"), None);
        } else {
            assert_eq!((text("resourceVersion"), text("uid")), (Some("1"), None));
        }
    }
}

/// A few passes over one root, each handing its memory to the next.
fn run(choices: Vec<u8>, root: &Value, world: &World) {
    let binding = Arc::new(world.binding.clone());
    let uid = object::uid(root).to_owned();
    let mut driver = Driver {
        choices: choices.into_iter(),
        root: uid,
        owned: vec![],
        free: vec![],
        root_stays: false,
        looks_first: false,
        last_read: BTreeMap::new(),
        evicting: vec![],
    };
    let mut memory = RootMemory::default();
    for now in 0..3 {
        driver.root_stays = false;
        let mut children = Vec::new();
        for (kind, name) in
            [("ConfigMap", "page"), ("Service", "web"), ("Deployment", "web"), ("ConfigMap", "old")]
        {
            if driver.choose(2) == 0 {
                children.push(driver.live(&reference(kind, name), None));
            }
        }
        let now = jiff::Timestamp::from_second(now).unwrap();
        let root_listed_at = (driver.choose(4) == 0).then(|| "1".to_owned());
        // A host that remembers has seen what it did itself; and what is being deleted stays so.
        driver.looks_first =
            root_listed_at.is_some() && now == jiff::Timestamp::UNIX_EPOCH && !object::is_deleting(root);
        let snapshot = Snapshot {
            binding: Arc::clone(&binding),
            root: Arc::new(root.clone()),
            root_listed_at,
            children,
            memory,
            now,
        };
        let (mut pass, mut outcome, mut steps) = (Pass::new(snapshot), Outcome::Start, 0);
        memory = loop {
            steps += 1;
            assert!(steps <= STEPS_MAX, "the pass does not end");
            match pass.step(outcome) {
                Step::Done(done) => break done.memory,
                step => outcome = driver.carry_out(step),
            }
        };
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_pass_ends_and_harms_nobody_whatever_its_driver_answers(
        choices in prop::collection::vec(any::<u8>(), 0..800),
        recorded in any::<bool>(),
        (deleting, released) in any::<(bool, bool)>(),
        duty in prop::sample::select(vec![Duty::Full, Duty::Full, Duty::CleanUp, Duty::Release]),
    ) {
        let mut world = World::new();
        world.binding.manifest.finalizer = true;
        grant_powers(&mut world.binding);
        world.binding.duty = duty;
        let mut root = world.api.objects[&world.root].clone();
        if recorded {
            let entry = |name: &str| json!({"apiVersion": "v1", "kind": "Secret", "name": name});
            root["status"]["pintle"]["unwatched"] = json!([entry("keys"), entry("old-keys")]);
            root["metadata"]["finalizers"] = json!(["pintle.dev/guest"]);
        }
        if deleting {
            root["metadata"]["deletionTimestamp"] = "2000-01-01T00:00:00Z".into();
        }
        if released {
            root["metadata"]["annotations"]["pintle.dev/release"] = "true".into();
        }
        run(choices, &root, &world);
    }
}

#[test]
fn a_driver_that_answers_another_step_or_too_little_ends_the_pass_with_an_error() {
    for outcome in [Outcome::Emitted, Outcome::Applied(vec![])] {
        let mut world = World::new();
        let shop = answer(vec![config_map("page", "a")]);
        world.settle(&shop);
        let snapshot = Snapshot {
            binding: Arc::new(World::new().binding),
            root: Arc::new(World::new().api.objects[&world.root].clone()),
            root_listed_at: None,
            children: vec![],
            memory: RootMemory::default(),
            now: jiff::Timestamp::UNIX_EPOCH,
        };
        let mut pass = Pass::new(snapshot);
        assert!(matches!(pass.step(Outcome::Start), Step::CallGuest(_)));
        assert!(matches!(pass.step(Outcome::Answered(Ok(shop))), Step::Apply(_)));
        let Step::Done(done) = pass.step(outcome) else { panic!("not done") };
        assert_eq!(done.error.as_deref(), Some("DriverError"));
        assert!(done.wake.retry.is_some() && !done.ready);
    }
}
