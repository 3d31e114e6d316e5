//! The election by a Lease under slow, lost and late messages, on virtual time.

use std::{
    convert::Infallible,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use http_body_util::BodyExt;
use jiff::Timestamp;
use kube::client::Body;
use pintle_runtime::clock::{Random, Virtual};
use tokio::{sync::oneshot, time::Instant};

use super::*;

const TICK: Duration = Duration::from_millis(100);
/// How long things go wrong, and how long they then go well, in ticks.
const BAD: u32 = 900;
const GOOD: u32 = 300;

/// How long a request takes to the server, and its reply back; a reply may be lost.
type Delays = (Duration, Option<Duration>);

/// An API server with one Lease at most.
#[derive(Default)]
struct Server {
    lease: Option<Value>,
    writes: u64,
}

impl Server {
    fn answer(&mut self, method: &str, body: &Value) -> (u16, Value) {
        let version = self.lease.as_ref().map(|lease| lease["metadata"]["resourceVersion"].clone());
        match (method, &version) {
            ("GET", Some(_)) => (200, self.lease.clone().unwrap_or_default()),
            ("GET" | "PATCH", None) => (404, Value::Null),
            ("PATCH", Some(version)) if *version == body["metadata"]["resourceVersion"] => {
                (200, self.store(&body["spec"]))
            }
            ("POST", None) => (201, self.store(&body["spec"])),
            _ => (409, Value::Null),
        }
    }

    fn store(&mut self, record: &Value) -> Value {
        self.writes += 1;
        let metadata = json!({"name": NAME, "uid": "u", "resourceVersion": self.writes.to_string()});
        let lease = json!({"metadata": metadata, "spec": record});
        self.lease = Some(lease.clone());
        lease
    }

    fn record(&self) -> Value {
        self.lease.as_ref().unwrap()["spec"].clone()
    }
}

/// The way to a server, whose requests take so long each.
fn cluster(server: &Arc<Mutex<Server>>, delays: impl Fn() -> Delays + Send + 'static) -> Cluster {
    let server = Arc::clone(server);
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (server, (there, back)) = (Arc::clone(&server), delays());
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let body: Value = serde_json::from_slice(&body).unwrap_or_default();
            let (reply, replied) = oneshot::channel();
            // What was sent arrives, also where nobody waits for the reply any more.
            tokio::spawn(async move {
                tokio::time::sleep(there).await;
                // Whoever becomes leader publishes an Event.
                let answer = if head.uri.path().contains("/leases") {
                    server.lock().unwrap().answer(head.method.as_str(), &body)
                } else {
                    (201, json!({}))
                };
                if let Some(back) = back {
                    tokio::time::sleep(back).await;
                    let _ = reply.send(answer);
                }
            });
            let Ok((code, answer)) = replied.await else { return std::future::pending().await };
            let mut response = http::Response::new(Body::from(answer.to_string().into_bytes()));
            *response.status_mut() = http::StatusCode::from_u16(code).unwrap();
            Ok::<_, Infallible>(response)
        }
    });
    Cluster::new(kube::Client::new(service, "default"))
}

/// A process with a clock of its own, which began now.
fn process() -> (Arc<Virtual>, Spawner) {
    let clock = Arc::new(Virtual::new(Timestamp::UNIX_EPOCH, 0));
    (Arc::clone(&clock), Spawner::simulated(clock))
}

/// A candidate for whom all goes well.
fn candidate(server: &Arc<Mutex<Server>>, name: &str) -> Candidate {
    Candidate::stand(&process().1, cluster(server, || (TICK, Some(TICK))), "team", name)
}

/// Waits until a candidate leads, and returns for how long.
async fn leads(candidate: &mut Candidate) -> Duration {
    let began = Instant::now();
    let led = tokio::time::timeout(Duration::from_secs(60), candidate.held.wait_for(|held| held.term > 0));
    assert!(led.await.is_ok_and(|led| led.is_ok()), "it never leads");
    began.elapsed()
}

fn theirs(renewed: &str) -> Value {
    json!({"holderIdentity": "other", "leaseDurationSeconds": 10, "renewTime": renewed})
}

async fn run_election(seed: u64) {
    let server = Arc::<Mutex<Server>>::default();
    let (chance, well) = (Arc::new(Mutex::new(Random::new(seed))), Arc::new(AtomicBool::new(false)));
    let mut all = Vec::new();
    for index in 0..2 + seed % 2 {
        // Each clock shows another time.
        let later = chance.lock().unwrap().below(5_000);
        tokio::time::sleep(Duration::from_millis(later)).await;
        let (chance, well) = (Arc::clone(&chance), Arc::clone(&well));
        let delays = move || {
            let mut chance = chance.lock().unwrap();
            if well.load(Ordering::Relaxed) {
                return (TICK, Some(TICK));
            }
            let mut slow = || {
                let most = if chance.below(4) == 0 { 9_000 } else { 400 };
                Duration::from_millis(chance.below(most))
            };
            let (there, back) = (slow(), slow());
            (there, (chance.below(4) != 0).then_some(back))
        };
        let (clock, spawner) = process();
        let cluster = cluster(&server, delays);
        let candidate = Candidate::stand(&spawner, cluster, "team", &format!("host-{index}"));
        all.push((clock, spawner, candidate));
    }
    // Until when the last other one held it, to see the margin.
    let mut last: Option<(usize, Instant)> = None;
    let mut holders = Vec::new();
    for tick in 0..BAD + GOOD {
        well.store(tick >= BAD, Ordering::Relaxed);
        tokio::time::sleep(TICK).await;
        let now = Instant::now();
        let left = |(clock, _, candidate): &(Arc<Virtual>, Spawner, Candidate)| {
            candidate.held.borrow().until.saturating_sub(clock.during(clock::monotonic))
        };
        let held = all.iter().map(left).enumerate().filter(|(_, left)| !left.is_zero());
        holders = held.map(|(index, left)| (index, now + left)).collect();
        assert!(holders.len() <= 1, "seed {seed}: {holders:?}");
        let Some((holder, until)) = holders.first().copied() else { continue };
        if let Some((before, ended)) = last.filter(|(before, _)| *before != holder) {
            // A write of the one before that ended in time was answered this long before anybody else's can begin.
            let margin = DURATION - RENEW_DEADLINE - TICK;
            assert!(ended + margin <= now, "seed {seed}: {holder} holds it too early after {before}");
        }
        last = Some((holder, until));
    }
    assert_eq!(holders.len(), 1, "seed {seed}: somebody holds it in the end");
    all.iter().for_each(|(_, spawner, _)| spawner.end_all());
}

#[tokio::test(start_paused = true)]
async fn no_two_hold_the_lease_at_once_and_one_does_when_all_is_well() {
    for seed in 0..60 {
        run_election(seed).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_renewed_is_left_to_its_holder_however_old_its_times_are() {
    let server = Arc::<Mutex<Server>>::default();
    server.lock().unwrap().store(&theirs("1999-01-01T00:00:00Z"));
    let candidate = candidate(&server, "me");
    for second in 0..60 {
        server.lock().unwrap().store(&theirs(&format!("1999-01-01T00:00:{second:02}Z")));
        tokio::time::sleep(RETRY).await;
    }
    assert_eq!((candidate.held.borrow().term, candidate.holder.borrow().as_str()), (0, "other"));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_stands_still_is_taken_when_its_duration_has_passed_whatever_is_set_beside_it() {
    let server = Arc::<Mutex<Server>>::default();
    server.lock().unwrap().store(&theirs("1999-01-01T00:00:00Z"));
    let mut candidate = candidate(&server, "me");
    tokio::time::sleep(Duration::from_secs(5)).await;
    // A label was set: the version moved, the record did not.
    server.lock().unwrap().store(&theirs("1999-01-01T00:00:00Z"));
    let waited = Duration::from_secs(5) + leads(&mut candidate).await;
    assert!((DURATION..DURATION + RETRY).contains(&waited), "{waited:?}");
    let record = server.lock().unwrap().record();
    assert_eq!((&record["holderIdentity"], &record["leaseTransitions"]), (&json!("me"), &json!(1)));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_made_is_renewed_and_one_that_is_given_up_is_taken_at_once() {
    let server = Arc::<Mutex<Server>>::default();
    let mut first = candidate(&server, "first");
    leads(&mut first).await;
    let made = server.lock().unwrap().record();
    tokio::time::sleep(DURATION * 2).await;
    let renewed = server.lock().unwrap().record();
    assert_eq!((&made["acquireTime"], &made["leaseTransitions"]), (&renewed["acquireTime"], &json!(0)));
    assert_ne!(made["renewTime"], renewed["renewTime"]);
    assert_eq!(first.held.borrow().term, 1, "without interruption");
    let mut next = candidate(&server, "next");
    tokio::time::sleep(RETRY * 2).await;
    first.release().await;
    let waited = leads(&mut next).await;
    assert!(waited < RETRY * 2, "{waited:?}");
}
