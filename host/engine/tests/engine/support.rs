//! Engines, modules and limits that these tests share.

use std::time::{Duration, Instant};

use pintle_engine::{
    CallError, CallLimits, CallStats, Engine, EngineConfig, Guest, Meter, Module, Origin, fixtures,
};
use pintle_wit::Failure;

pub(crate) const EMPTY_RESPONSE: &str = r#"{"apiVersion":"guest.pintle.dev/v1"}"#;

/// A clock for the durations in stats.
#[allow(
    clippy::disallowed_methods,
    reason = "the engine takes its clock from outside, and a test is outside"
)]
pub(crate) fn monotonic() -> impl Fn() -> Duration + Send + Sync + 'static {
    let start = Instant::now();
    move || start.elapsed()
}

pub(crate) fn config(meter: Meter) -> EngineConfig {
    EngineConfig { concurrent_calls: 4, ..EngineConfig::new(meter, monotonic()) }
}

/// Those of every call, but for the time: a test that is not about it passes on a machine that pauses too.
pub(crate) fn long_limits() -> CallLimits {
    CallLimits { timeout: Duration::from_secs(60), ..CallLimits::default() }
}

pub(crate) fn engine(meter: Meter) -> Engine {
    Engine::new(config(meter)).unwrap()
}

pub(crate) fn manifest() -> String {
    fixtures::manifest("fixture", "example.com/v1", "Thing", &["v1/ConfigMap", "apps/v1/Deployment"])
}

pub(crate) fn load(engine: &Engine, bytes: &[u8]) -> Module {
    engine.load(bytes, None).unwrap()
}

/// The guest of a module that reconciles.
pub(crate) fn load_guest(engine: &Engine, bytes: &[u8]) -> Guest {
    load(engine, bytes).guest().unwrap()
}

pub(crate) fn refused(bytes: &[u8]) -> Failure {
    let failure = engine(Meter::Deadline).load(bytes, None).unwrap_err();
    assert!(failure.message.len() <= 1024, "{failure}");
    failure
}

/// What the engine says of a guest that cannot be called, under both meters.
pub(crate) fn fails_with(bytes: &[u8], reason: &str) -> (Failure, CallStats) {
    let [by_time, by_fuel] = [Meter::Deadline, Meter::Fuel].map(|meter| {
        let error = call_error(&load_guest(&engine(meter), bytes), &long_limits());
        assert_eq!(error.origin, Origin::Engine, "{error}");
        assert_eq!(error.failure.reason, reason, "{error}");
        assert!(error.stats.duration > Duration::ZERO);
        assert_eq!(error.stats.fuel.is_some(), meter == Meter::Fuel);
        error
    });
    assert_eq!(by_time.failure, by_fuel.failure);
    (*by_fuel.failure, by_fuel.stats)
}

pub(crate) fn call_error(guest: &Guest, limits: &CallLimits) -> CallError {
    guest.reconcile("{}", limits).unwrap_err()
}
