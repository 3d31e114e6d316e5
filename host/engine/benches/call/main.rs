//! What a call costs: `cargo bench -p pintle-engine`.
//!
//! Needs compiled guests: those of `cargo xtask guests` in `target/guests`, or of the folder that `PINTLE_GUEST_DIR` names. The
//! same function is measured natively beside them. One run measures one thread and two in turns, since machines change their mind.

mod requests;

use std::{
    env, fs, hint,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use guest_darkroom::Darkroom;
use guest_webserver::WebServer;
use pintle_engine::{CallLimits, Engine, EngineConfig, Meter, Module, fixtures};
use pintle_guest::Guest;

/// How long each turn lasts, and how many there are: long enough for a median, short enough for a shared machine.
const TURN: Duration = Duration::from_millis(300);
const TURNS: usize = 9;

/// How often a module is loaded.
const LOADS: usize = 15;

#[allow(clippy::disallowed_methods, reason = "a benchmark is about time on the wall")]
fn now() -> Instant {
    Instant::now()
}

fn main() {
    let folder = env::var_os("PINTLE_GUEST_DIR").map_or_else(default_folder, PathBuf::from);
    floor();
    guest::<WebServer>("webserver", &folder, requests::webserver());
    guest::<Darkroom>("darkroom", &folder, requests::darkroom());
    long_requests(&folder);
}

/// How long a call takes for each KiB of a long request, beside what a call of a view may.
fn long_requests(folder: &Path) {
    let Ok(bytes) = fs::read(folder.join("webserver.wasm")) else { return };
    println!("webserver.wasm, long requests, on one thread");
    let guest = reconciling(&module(&engine(Meter::Deadline), &bytes));
    for (name, request) in requests::long() {
        let kibibytes = request.len() >> 10;
        let limits = CallLimits::default();
        let (may, limits) =
            (limits.for_request(request.len()).timeout, CallLimits { timeout: TURN * 100, ..limits });
        let mut took = Vec::new();
        for _ in 0..TURNS {
            let began = now();
            or_exit(guest.reconcile(&request, &limits));
            took.push(began.elapsed());
        }
        took.sort_unstable();
        let (median, most) = (took[TURNS / 2], took[TURNS - 1]);
        let each = median / u32::try_from(kibibytes).unwrap_or(1);
        println!(
            "  {name}, {kibibytes} KiB: p50 {median:.1?}, most {most:.1?}, {each:.1?} a KiB; such a call of a view may take {may:.0?}"
        );
    }
}

fn guest<G: Guest>(name: &str, folder: &Path, requests: Vec<(&str, String)>) {
    let Ok(bytes) = fs::read(folder.join(format!("{name}.wasm"))) else {
        println!("no {name}.wasm in {}: run `cargo xtask guests`", folder.display());
        return;
    };
    println!("{name}.wasm, {} bytes", bytes.len());
    load(&bytes);
    for (name, request) in requests {
        println!("{name}, a request of {} bytes", request.len());
        let native = || pintle_guest::call::reconcile::<G>(&request).map(|text| text.len());
        print_row("native", 1, &median_run(1, &native));
        for meter in [Meter::Deadline, Meter::Fuel] {
            measure(meter, &reconciling(&module(&engine(meter), &bytes)), &request);
        }
    }
}

/// The cost of a sandbox in which nothing is done.
fn floor() {
    let manifest = fixtures::manifest("nothing", "example.com/v1", "Nothing", &[]);
    let bytes = fixtures::answers(&manifest, r#"{"apiVersion":"guest.pintle.dev/v1"}"#);
    println!("a guest that answers nothing, {} bytes", bytes.len());
    measure(Meter::Deadline, &reconciling(&module(&engine(Meter::Deadline), &bytes)), "{}");
}

fn default_folder() -> PathBuf {
    let target = env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target")), PathBuf::from);
    target.join("guests")
}

fn engine(meter: Meter) -> Engine {
    let start = now();
    let config = EngineConfig { concurrent_calls: 2, ..EngineConfig::new(meter, move || start.elapsed()) };
    or_exit(Engine::new(config))
}

fn module(engine: &Engine, bytes: &[u8]) -> Module {
    or_exit(engine.load(bytes, None))
}

fn reconciling(module: &Module) -> pintle_engine::Guest {
    or_exit(module.guest().ok_or("the module reconciles nothing"))
}

fn or_exit<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| {
        eprintln!("{error}");
        std::process::exit(1)
    })
}

fn load(bytes: &[u8]) {
    let engine = engine(Meter::Deadline);
    let mut loads = Vec::new();
    let mut compiles = Vec::new();
    for _ in 0..LOADS {
        let started = now();
        // Dropped at once, or the next load would find it.
        let module = module(&engine, bytes);
        loads.push(started.elapsed());
        compiles.push(module.compile_duration());
    }
    loads.sort_unstable();
    compiles.sort_unstable();
    println!("  load     p50 {:>9.1?}, of which compiling {:.1?}", loads[LOADS / 2], compiles[LOADS / 2]);
}

fn measure(meter: Meter, guest: &pintle_engine::Guest, request: &str) {
    let limits = CallLimits::default();
    let call = || guest.reconcile(request, &limits).map(|answer| answer.text.len());
    let stats = or_exit(guest.reconcile(request, &limits)).stats;
    let name = match meter {
        Meter::Deadline => "deadline",
        Meter::Fuel => "fuel",
    };
    let mut ratios = Vec::new();
    let mut runs = [Vec::new(), Vec::new()];
    for _ in 0..TURNS {
        let [one, two] = [1, 2].map(|threads| run(threads, &call));
        ratios.push(two.per_second / one.per_second);
        runs[0].push(one);
        runs[1].push(two);
    }
    for (runs, threads) in runs.into_iter().zip(1..) {
        print_row(name, threads, &median(runs));
    }
    ratios.sort_unstable_by(f64::total_cmp);
    let (median, best) = (ratios[TURNS / 2], ratios[TURNS - 1]);
    let fuel = stats.fuel.map_or(String::new(), |fuel| format!(", fuel {fuel}"));
    let memory_kib = stats.peak_memory_bytes / 1024;
    println!(
        "           2 threads : 1 = {median:.2} (best {best:.2}); answer {} bytes, memory {memory_kib} KiB{fuel}",
        stats.response_bytes
    );
}

/// One turn.
struct Run {
    p50: Duration,
    p99: Duration,
    per_second: f64,
}

fn median_run<T, E: std::fmt::Debug>(threads: usize, call: &(impl Fn() -> Result<T, E> + Sync)) -> Run {
    median((0..TURNS).map(|_| run(threads, call)).collect())
}

fn median(mut runs: Vec<Run>) -> Run {
    runs.sort_unstable_by_key(|run| run.p50);
    runs.swap_remove(runs.len() / 2)
}

fn run<T, E: std::fmt::Debug>(threads: usize, call: &(impl Fn() -> Result<T, E> + Sync)) -> Run {
    let started = now();
    let mut durations: Vec<Duration> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let mut durations = Vec::with_capacity(100_000);
                    while started.elapsed() < TURN {
                        let start = now();
                        let answer = hint::black_box(call());
                        durations.push(start.elapsed());
                        assert!(answer.is_ok(), "{:?}", answer.err());
                    }
                    durations
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    });
    let per_second = durations.len() as f64 / started.elapsed().as_secs_f64();
    durations.sort_unstable();
    Run { p50: durations[durations.len() / 2], p99: durations[durations.len() * 99 / 100], per_second }
}

fn print_row(name: &str, threads: usize, run: &Run) {
    let Run { p50, p99, per_second } = run;
    println!("  {name:<8} {threads} thread(s): p50 {p50:>9.1?}  p99 {p99:>9.1?}  {per_second:>7.0}/s");
}
