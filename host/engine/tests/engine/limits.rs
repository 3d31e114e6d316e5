//! What bounds a call: deadline, fuel and memory, and that one guest cannot hold up another.

use std::{
    thread,
    time::{Duration, Instant},
};

use pintle_engine::{CallLimits, Compiler, Engine, EngineConfig, Meter, TICK, fixtures};
use pintle_wit::reasons;

use crate::support::{EMPTY_RESPONSE, call_error, config, engine, load_guest, long_limits, manifest};

#[allow(clippy::disallowed_methods, reason = "these tests are about time on the wall")]
fn now() -> Instant {
    Instant::now()
}

#[allow(clippy::disallowed_methods, reason = "these tests are about time on the wall")]
fn rest(duration: Duration) {
    thread::sleep(duration);
}

#[test]
fn an_endless_loop_ends_at_its_deadline_and_not_before() {
    let engine = engine(Meter::Deadline);
    let guest = load_guest(&engine, &fixtures::loops(&manifest()));
    for milliseconds in [0, 1, 20, 100] {
        let limits = CallLimits { timeout: Duration::from_millis(milliseconds), ..CallLimits::default() };
        let error = call_error(&guest, &limits);
        assert_eq!(error.failure.reason, reasons::DEADLINE);
        assert!(error.failure.retry);
        assert!(error.failure.message.contains(&format!(" {milliseconds} ms")), "{error}");
        assert!(error.stats.duration >= limits.timeout, "{error:?}");
    }
}

#[test]
fn a_deadline_fires_right_after_rest() {
    for rest_milliseconds in [0, 30] {
        let engine = engine(Meter::Deadline);
        let guest = load_guest(&engine, &fixtures::loops(&manifest()));
        rest(Duration::from_millis(rest_milliseconds));
        let error = call_error(&guest, &CallLimits::default());
        assert_eq!(error.failure.reason, reasons::DEADLINE);
    }
}

#[test]
fn every_engine_proves_that_its_limit_holds() {
    for meter in [Meter::Deadline, Meter::Fuel] {
        engine(meter).self_test(Compiler::Here).unwrap();
    }
}

#[test]
#[ignore = "tier two: it counts ticks of the real clock"]
fn the_ticker_stands_still_while_no_call_runs() {
    let engine = engine(Meter::Deadline);
    let healthy = load_guest(&engine, &fixtures::answers(&manifest(), EMPTY_RESPONSE));
    let loops = load_guest(&engine, &fixtures::loops(&manifest()));
    for _ in 0..2 {
        let before = engine.ticks();
        call_error(&loops, &CallLimits::default());
        let during = engine.ticks() - before;
        assert!(during >= 50, "{during} ticks in 100 ms");
        healthy.reconcile("{}", &long_limits()).unwrap();

        assert_eq!(engine.calls_in_flight(), 0);
        // A tick that was on its way may still arrive.
        rest(2 * TICK);
        let before = engine.ticks();
        rest(25 * TICK);
        assert_eq!(engine.ticks(), before);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_ticker_ends_with_the_engine() {
    let count = || {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm"));
        tasks.filter_map(|task| name(task.ok()?).ok()).filter(|name| name == "pintle-ticker\n").count()
    };
    // A thread takes its name, and leaves the list, a moment after it began and ended.
    let eventually = |met: &dyn Fn() -> bool| {
        let started = now();
        while !met() {
            assert!(started.elapsed() < Duration::from_secs(180), "{} tickers", count());
            rest(TICK);
        }
    };
    // Other tests have tickers too, so many engines are made, and fewer threads than that must be left.
    let engines: Vec<Engine> = (0..100).map(|_| engine(Meter::Deadline)).collect();
    eventually(&|| count() >= 100);
    drop(engines);
    eventually(&|| count() < 100);
}

#[test]
fn the_offline_meter_needs_no_ticks() {
    let engine = engine(Meter::Fuel);
    let guest = load_guest(&engine, &fixtures::loops(&manifest()));
    let limits = CallLimits { fuel: 1_000_000, ..CallLimits::default() };
    let error = call_error(&guest, &limits);
    assert_eq!(error.failure.reason, reasons::FUEL);
    assert!(!error.failure.retry, "the same fuel is spent every time");
    assert_eq!(error.stats.fuel, Some(1_000_000));
    assert_eq!(engine.ticks(), 0);
}

#[test]
fn equal_requests_have_equal_answers_and_equal_fuel() {
    let request =
        format!(r#"{{"apiVersion":"guest.pintle.dev/v1","status":{{"a":"{}"}}}}"#, "x".repeat(5000));
    let bytes = fixtures::echoes(&manifest());
    let first = load_guest(&engine(Meter::Fuel), &bytes).reconcile(&request, &long_limits()).unwrap();
    let engine = engine(Meter::Fuel);
    let guest = load_guest(&engine, &bytes);
    for _ in 0..100 {
        let answer = guest.reconcile(&request, &long_limits()).unwrap();
        assert_eq!(answer.text, first.text);
        assert_eq!(answer.stats.fuel, first.stats.fuel);
        assert_eq!(answer.stats.peak_memory_bytes, first.stats.peak_memory_bytes);
    }
}

#[test]
fn a_thousand_failures_leak_nothing() {
    let config = EngineConfig { concurrent_calls: 2, ..config(Meter::Deadline) };
    let engine = Engine::new(config).unwrap();
    let healthy = load_guest(&engine, &fixtures::answers(&manifest(), EMPTY_RESPONSE));
    let bad = [
        fixtures::traps(&manifest()),
        fixtures::recurses(&manifest()),
        fixtures::allocates(&manifest()),
        fixtures::out_of_bounds(&manifest()),
        fixtures::invalid_utf8(&manifest()),
        fixtures::returns_big(&manifest(), 2 << 20),
        fixtures::loops(&manifest()),
    ]
    .map(|bytes| load_guest(&engine, &bytes));
    let limits =
        CallLimits { timeout: Duration::from_millis(1), memory_bytes: 8 << 20, ..CallLimits::default() };
    for n in 0..1000 {
        call_error(&bad[n % bad.len()], &limits);
    }
    assert_eq!(engine.calls_in_flight(), 0);
    assert!(healthy.reconcile("{}", &long_limits()).is_ok());
}

#[test]
fn a_guest_never_sees_what_another_call_left_in_memory() {
    // One slot, so that all calls share it.
    let config = EngineConfig { concurrent_calls: 1, ..config(Meter::Deadline) };
    let engine = Engine::new(config).unwrap();
    let writes = load_guest(&engine, &fixtures::echoes(&manifest()));
    let reads = load_guest(&engine, &fixtures::reads_unwritten(&manifest()));
    let secret =
        format!(r#"{{"apiVersion":"guest.pintle.dev/v1","status":{{"a":"{}"}}}}"#, "s".repeat(200_000));
    let own_secret = "s".repeat(400_000);
    for _ in 0..10 {
        writes.reconcile(&secret, &long_limits()).unwrap();
        for _ in 0..2 {
            let error = call_error(&reads, &long_limits());
            // A byte that is not zero would be text that gets counted as JSON, or be named.
            assert_eq!(error.failure.reason, reasons::INVALID_JSON);
            assert_eq!(error.failure.message, "the response: expected value at line 1 column 1");
            assert_eq!(error.stats.response_bytes, 60_000);
            // Fills its memory, and then looks behind it.
            let error = reads.reconcile(&own_secret, &long_limits()).unwrap_err();
            assert_eq!(error.failure.reason, reasons::OUT_OF_BOUNDS);
        }
    }
}

#[test]
fn calls_from_many_threads_wait_their_turn() {
    for (slots, threads) in [(4, 4), (1, 4)] {
        let config = EngineConfig { concurrent_calls: slots, ..config(Meter::Deadline) };
        let engine = Engine::new(config).unwrap();
        let guest = load_guest(&engine, &fixtures::echoes(&manifest()));
        let traps = load_guest(&engine, &fixtures::traps(&manifest()));
        thread::scope(|scope| {
            for thread in 0..threads {
                let (engine, guest, traps) = (&engine, &guest, &traps);
                scope.spawn(move || {
                    let request =
                        format!(r#"{{"apiVersion":"guest.pintle.dev/v1","status":{{"a":{thread}}}}}"#);
                    for _ in 0..500 {
                        let answer = guest.reconcile(&request, &long_limits()).unwrap();
                        assert_eq!(answer.text, request);
                        assert_eq!(call_error(traps, &long_limits()).failure.reason, reasons::TRAP);
                        assert!(engine.calls_in_flight() <= slots);
                    }
                });
            }
        });
        assert_eq!(engine.calls_in_flight(), 0);
    }
}

#[test]
#[ignore = "tier two: it counts ticks of the real clock"]
fn a_call_at_once_gives_up_a_guest_that_takes_long_and_leaves_it_alone_for_a_while() {
    let engine = engine(Meter::Deadline);
    let loops = load_guest(&engine, &fixtures::loops(&manifest()));
    let limits = CallLimits { timeout: Duration::from_secs(5), ..CallLimits::default() };
    assert!(loops.reconcile_at_once("{}", &limits).is_none());
    let tries = (0..1000).filter(|_| {
        let before = engine.ticks();
        assert!(loops.reconcile_at_once("{}", &limits).is_none());
        engine.ticks() > before
    });
    // One after 1, 2, 4, .. 64 further calls, and then one of a hundred.
    assert!(tries.count() <= 16);
    // A deadline that is no longer than the moment is the guest's failure, not a reason to try elsewhere.
    let engine = Engine::new(config(Meter::Deadline)).unwrap();
    let loops = load_guest(&engine, &fixtures::loops(&manifest()));
    let limits = CallLimits { timeout: Duration::from_millis(1), ..CallLimits::default() };
    let error = loops.reconcile_at_once("{}", &limits).unwrap().unwrap_err();
    assert_eq!(error.failure.reason, reasons::DEADLINE);
}

/// Does something while a guest loops: ten times at most, since the loop may end first on a machine that pauses.
fn beside_a_loop(engine: &Engine, work: impl Fn()) {
    let loops = load_guest(engine, &fixtures::loops(&manifest()));
    let limits = CallLimits { timeout: Duration::from_secs(2), ..CallLimits::default() };
    let ends_first = || {
        thread::scope(|scope| {
            let looping = scope.spawn(|| call_error(&loops, &limits));
            while engine.calls_in_flight() == 0 && !looping.is_finished() {
                thread::yield_now();
            }
            work();
            let ends_first = !looping.is_finished();
            assert_eq!(looping.join().unwrap().failure.reason, reasons::DEADLINE);
            ends_first
        })
    };
    assert!((0..10).any(|_| ends_first()), "it waits for the guest that loops");
}

#[test]
fn a_call_at_once_does_not_wait_for_calls_that_take_long() {
    let engine = Engine::new(EngineConfig { concurrent_calls: 1, ..config(Meter::Deadline) }).unwrap();
    let healthy = load_guest(&engine, &fixtures::answers(&manifest(), EMPTY_RESPONSE));
    beside_a_loop(&engine, || {
        // An attempt may fail on a machine that does much else. The next ones are then left out.
        let answered = (0..1000).find_map(|_| healthy.reconcile_at_once("{}", &long_limits()));
        assert_eq!(answered.unwrap().unwrap().text, EMPTY_RESPONSE);
    });
}

#[test]
fn a_call_that_takes_much_memory_or_has_a_large_answer_is_not_made_at_once() {
    let engine = engine(Meter::Deadline);
    let limits = CallLimits { timeout: Duration::from_secs(5), ..CallLimits::default() };
    let entry = r#"{"":0},"#;
    let large = |times| {
        fixtures::repeats(
            &manifest(),
            r#"{"apiVersion":"guest.pintle.dev/v1","status":{"a":["#,
            entry,
            "0]}}",
            times * entry.len(),
        )
    };
    for bytes in [
        // Its memory is filled by one instruction, which no deadline interrupts.
        fixtures::fills(&manifest(), 32 << 20, EMPTY_RESPONSE),
        // A long answer.
        fixtures::answers(&manifest(), &format!("{EMPTY_RESPONSE}{}", " ".repeat(300 << 10))),
        // An answer that takes much memory when it is parsed.
        large(5_000),
    ] {
        let guest = load_guest(&engine, &bytes);
        assert!(guest.reconcile_at_once("{}", &limits).is_none());
        assert!(guest.reconcile("{}", &limits).is_ok());
    }
    // Where the Reconciler's own limit is as low, it is the guest's failure.
    let low = CallLimits { memory_bytes: 2 << 20, ..limits };
    let fills = load_guest(&engine, &fixtures::fills(&manifest(), 32 << 20, EMPTY_RESPONSE));
    let tried = (0..1000).find_map(|_| fills.reconcile_at_once("{}", &low));
    let error = tried.unwrap().unwrap_err();
    assert_eq!(error.failure.reason, reasons::MEMORY);
}

#[test]
fn under_fuel_no_call_is_made_at_once() {
    let engine = engine(Meter::Fuel);
    let healthy = load_guest(&engine, &fixtures::answers(&manifest(), EMPTY_RESPONSE));
    assert!(healthy.reconcile_at_once("{}", &long_limits()).is_none());
}

#[test]
fn a_neighbour_answers_while_a_guest_loops() {
    let engine = engine(Meter::Deadline);
    let healthy = load_guest(&engine, &fixtures::answers(&manifest(), EMPTY_RESPONSE));
    beside_a_loop(&engine, || drop(healthy.reconcile("{}", &long_limits()).unwrap()));
}
