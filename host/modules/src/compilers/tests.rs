//! Tests of the places to compile in and of what is tried again, with compilers that only pretend.

use futures::FutureExt;
use pintle_engine::{Allocation, Meter, Target};

use super::*;

fn digest(n: u8) -> Digest {
    Digest::of(&[n])
}

fn job(n: u8) -> Job<'static> {
    let target = Target { allocation: Allocation::Pool, meter: Meter::Deadline, memory_bytes_max: 1 };
    Job { bytes: b"", digest: digest(n), target }
}

/// Compilers that end like this, and report the limits that are hit.
fn that_end(hits: &Arc<Hits>, ended: fn(&Limits) -> Ended) -> Arc<Compilers> {
    let hits = Arc::clone(hits) as Arc<dyn Report>;
    Compilers::run_by(Box::new(move |_, limits| ended(limits)), Limits::default(), hits)
}

/// What is reported: the limits that were hit, and for whom.
#[derive(Default)]
struct Hits(Mutex<Vec<(String, Limit)>>);

impl Report for Hits {
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

/// The place of a module, if there is one at once.
fn place(compilers: &Compilers, n: u8) -> Option<Place> {
    compilers.place(&digest(n)).now_or_never()
}

#[test]
fn what_is_too_expensive_also_with_all_the_time_there_is_is_refused_for_good_and_counted() {
    let hits = Arc::new(Hits::default());
    let compilers = that_end(&hits, |_| Ended::TooExpensive);
    let fresh = place(&compilers, 1).unwrap();
    assert!(compilers.compile_in(&fresh, &job(1), "r", usize::MAX).unwrap_err().retry);
    assert!(fresh.was_too_slow() && hits.told().is_empty() && compilers.refusal(&digest(1)).is_none());
    let slow = place(&compilers, 1).unwrap();
    let failure = compilers.compile_in(&slow, &job(1), "r", usize::MAX).unwrap_err();
    assert_eq!((failure.reason.as_str(), failure.retry), (reasons::COMPILE_TOO_EXPENSIVE, false));
    assert!(failure.message.contains("more than 30 s") && !slow.was_too_slow(), "{failure}");
    assert_eq!(compilers.refusal(&digest(1)), Some(failure));
    assert_eq!(compilers.refusal(&digest(2)), None, "other bytes");
    assert_eq!(hits.told(), [("r".to_owned(), Limit::CompileCpu)]);
}

#[test]
fn memory_time_and_signals_are_tried_again_and_no_longer_where_cheap_ones_are() {
    let killed: fn(&Limits) -> Ended = |_| Ended::Killed("signal: 6".into());
    let too_long: fn(&Limits) -> Ended = |_| Ended::TooLong;
    let failed: fn(&Limits) -> Ended = |_| Ended::Failed("no such file".into());
    for (ended, limit) in
        [(killed, Some(Limit::CompileMemory)), (too_long, Some(Limit::CompileTime)), (failed, None)]
    {
        let hits = Arc::new(Hits::default());
        let compilers = that_end(&hits, ended);
        compilers.known().remember_slow(digest(1));
        let failure =
            compilers.compile_in(&place(&compilers, 1).unwrap(), &job(1), "r", usize::MAX).unwrap_err();
        assert_eq!((failure.reason.as_str(), failure.retry), (reasons::COMPILER_FAILED, true), "{failure}");
        assert_eq!(compilers.refusal(&digest(1)), None);
        let limits: Vec<Limit> = hits.told().into_iter().map(|(_, limit)| limit).collect();
        assert_eq!(limits, Vec::from_iter(limit));
        let again = place(&compilers, 1).unwrap();
        assert!(!again.is_fresh && place(&compilers, 2).is_some(), "each in a place of its own");
    }
    let fails = reasons::COMPILER_FAILED;
    assert_eq!([0, 60].map(|failures| retry_after(fails, failures).as_secs()), [2, 300]);
}

#[test]
fn a_cheap_module_has_its_turn_while_bombs_have_theirs() {
    let compilers = that_end(&Arc::default(), |_| Ended::TooExpensive);
    let mut bombs = Vec::new();
    for bomb in [1, 2] {
        let fresh = place(&compilers, bomb).unwrap();
        assert!(place(&compilers, 3).is_none(), "one at a time");
        assert!(compilers.compile_in(&fresh, &job(bomb), "", usize::MAX).is_err() && fresh.was_too_slow());
        drop(fresh);
        bombs.push(place(&compilers, bomb));
    }
    assert!(bombs[0].is_some() && bombs[1].is_none(), "the second one waits for the first one");
    assert!(place(&compilers, 3).is_some_and(|cheap| cheap.is_fresh));
}
