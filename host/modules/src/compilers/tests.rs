//! Tests of the queue of compilers: retries, priorities and stopping, with compilers that only pretend.

use std::sync::mpsc;

use pintle_engine::{Allocation, Meter, Target};

use super::*;

fn digest(n: u8) -> Digest {
    Digest::of(&[n])
}

fn job(n: u8) -> Job<'static> {
    let target = Target { allocation: Allocation::Pool, meter: Meter::Deadline, memory_bytes_max: 1 };
    Job { bytes: b"", digest: digest(n), target }
}

fn compilers(run: impl Fn(&Job<'_>, &Limits, &Stop) -> Ended + Send + Sync + 'static) -> Arc<Compilers> {
    reporting(Arc::default(), run)
}

/// Compilers that report the limits that are hit.
fn reporting(
    hits: Arc<Hits>,
    run: impl Fn(&Job<'_>, &Limits, &Stop) -> Ended + Send + Sync + 'static,
) -> Arc<Compilers> {
    Compilers::new(Limits::default(), Box::new(run), hits)
}

/// Compilers that end like this.
fn that_end(ended: fn() -> Ended) -> Arc<Compilers> {
    compilers(move |_, _, _| ended())
}

/// What is reported: the limits that were hit, and for whom.
#[derive(Default)]
struct Hits(Mutex<Vec<(String, Limit)>>);

impl Report for Hits {
    fn compiles(&self, _: usize, _: usize) {}

    fn compiled(&self, _: &'static str, _: Duration) {}

    fn limit_hit(&self, counted_for: &str, limit: Limit) {
        self.0.lock().unwrap().push((counted_for.to_owned(), limit));
    }
}

impl Hits {
    fn told(&self) -> Vec<(String, Limit)> {
        self.0.lock().unwrap().clone()
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_too_expensive_is_refused_for_good_and_counted() {
    let hits = Arc::new(Hits::default());
    let compilers = reporting(Arc::clone(&hits), |_, _, _| Ended::TooExpensive);
    let ticket = compilers.want(digest(1), true);
    assert!(ticket.has_begun());
    let failure = ticket.compile(&job(1), "r", usize::MAX).unwrap_err();
    assert_eq!((failure.reason.as_str(), failure.retry), (reasons::COMPILE_TOO_EXPENSIVE, false));
    assert!(failure.message.contains("more than 30 s"), "{failure}");
    assert_eq!(compilers.refusal(&digest(1)), Some(failure));
    assert_eq!(compilers.refusal(&digest(2)), None, "other bytes");
    assert_eq!(hits.told(), [("r".to_owned(), Limit::CompileCpu)]);
}

#[tokio::test(start_paused = true)]
async fn memory_time_and_signals_are_tried_again_and_no_longer_where_cheap_ones_are() {
    for (ended, limit) in [
        (Ended::Killed("signal: 6".into()), Some(Limit::CompileMemory)),
        (Ended::TooLong, Some(Limit::CompileTime)),
        (Ended::Failed("no such file".into()), None),
    ] {
        let ended = Mutex::new(Some(ended));
        let hits = Arc::new(Hits::default());
        let compilers = reporting(Arc::clone(&hits), move |_, _, _| ended.lock().unwrap().take().unwrap());
        let ticket = compilers.want(digest(1), true);
        let failure = ticket.compile(&job(1), "r", usize::MAX).unwrap_err();
        assert_eq!((failure.reason.as_str(), failure.retry), (reasons::COMPILER_FAILED, true), "{failure}");
        assert_eq!(compilers.refusal(&digest(1)), None);
        let limits: Vec<Limit> = hits.told().into_iter().map(|(_, limit)| limit).collect();
        assert_eq!(limits, Vec::from_iter(limit));
        drop(ticket);
        let again = compilers.want(digest(1), true);
        let cheap = compilers.want(digest(2), false);
        assert!(again.has_begun() && cheap.has_begun(), "each in a place of its own");
    }
    let fails = reasons::COMPILER_FAILED;
    assert_eq!([0, 60].map(|failures| retry_after(fails, failures).as_secs()), [2, 300]);
}

#[tokio::test(start_paused = true)]
async fn a_cheap_module_has_its_turn_while_bombs_have_theirs() {
    let compilers = that_end(|| Ended::Stopped);
    let bomb = compilers.want(digest(1), true);
    let second = compilers.want(digest(2), true);
    assert!(bomb.has_begun() && !second.has_begun());
    // A compilation that is no longer fresh makes room, without any other event.
    second.begun().await;
    let cheap = compilers.want(digest(3), true);
    assert!(!cheap.has_begun());
    while !second.was_stopped() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(!bomb.was_stopped() && !cheap.has_begun(), "its compiler has not ended yet");
    assert!(second.compile(&job(2), "", usize::MAX).unwrap_err().retry);
    drop(second);
    assert!(cheap.has_begun());
    drop(cheap);
    let second = compilers.want(digest(2), true);
    assert!(!second.has_begun(), "it waits for the bomb");
    drop(bomb);
    assert!(second.has_begun());
}

#[tokio::test(start_paused = true)]
async fn what_somebody_uses_comes_first_also_when_that_is_said_later() {
    let compilers = that_end(|| Ended::TooLong);
    let first = compilers.want(digest(1), false);
    let unused = compilers.want(digest(2), false);
    let used = compilers.want(digest(3), false);
    compilers.uses(|| BTreeSet::from([digest(3)]));
    drop(first);
    assert!(used.has_begun() && !unused.has_begun());
}

#[tokio::test(start_paused = true)]
async fn who_gives_up_waiting_is_not_begun() {
    let compilers = that_end(|| Ended::TooLong);
    let first = compilers.want(digest(1), false);
    drop(compilers.want(digest(2), false));
    let third = compilers.want(digest(3), false);
    drop(first);
    assert!(third.has_begun());
    assert_eq!(compilers.inner().tickets.len(), 1);
}

#[tokio::test]
async fn a_compiler_that_runs_is_told_to_stop() {
    let (stopped, stops) = mpsc::channel();
    let stopped = Mutex::new(stopped);
    let compilers = compilers(move |_, _, stop| {
        stopped.lock().unwrap().send(stop.is_requested()).unwrap();
        Ended::Stopped
    });
    let ticket = compilers.want(digest(1), false);
    ticket.turn.stop.request();
    assert!(ticket.was_stopped());
    assert!(ticket.compile(&job(1), "", usize::MAX).is_err());
    assert!(stops.recv().unwrap());
}
