//! The compiler as a process: what it makes, and what becomes of it when a module costs too much.
#![allow(clippy::disallowed_methods, reason = "processes are waited for in real time")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "what helps a test may fail it")]

use std::{
    env, fs,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use pintle_engine::{Allocation, Compiler, Digest, Engine, EngineConfig, Job, Meter, fixtures};
use pintle_modules::child::{self, Ended, Limits};
use pintle_runtime::clock;
use pintle_wit::Failure;

const PINTLE: &str = env!("CARGO_BIN_EXE_pintle");
const ANSWER: &str = r#"{"apiVersion":"guest.pintle.dev/v1"}"#;

fn manifest() -> String {
    fixtures::manifest("fixture", "example.com/v1", "Thing", &[])
}

fn engine(allocation: Allocation) -> Engine {
    let config = EngineConfig::new(Meter::Deadline, clock::monotonic);
    // A hundred thousand slots are beyond what 47 bits address.
    let concurrent_calls = if allocation == Allocation::OnDemand { 100_000 } else { config.concurrent_calls };
    let engine = Engine::new(EngineConfig { concurrent_calls, ..config }).unwrap();
    assert_eq!(engine.allocation(), allocation);
    engine
}

fn compile(bytes: &[u8], limits: &Limits) -> Ended {
    let job = Job { bytes, digest: Digest::of(bytes), target: engine(Allocation::Pool).target() };
    child::compile(Path::new(PINTLE), &job, limits)
}

/// Has another process write a program: what this one has open for writing, a process that another test starts now has open too, and then
/// nobody can run it.
fn write_program(path: &Path, text: &str) {
    let write = r#"printf %s "$1" > "$0" && chmod 755 "$0""#;
    assert!(Command::new("sh").args(["-c", write]).arg(path).arg(text).status().unwrap().success());
}

/// Takes a processor minutes, and little memory.
fn expensive() -> Vec<u8> {
    fixtures::compile_bomb(&manifest(), 1000, 60, 60)
}

/// Takes more memory than any compiler is to have.
fn hungry() -> Vec<u8> {
    fixtures::compile_bomb(&manifest(), 1, 3000, 3000)
}

/// The most memory that this process has had, in bytes.
fn peak_bytes() -> u64 {
    kit::group::peak_bytes(std::process::id()).unwrap()
}

#[test]
fn what_a_compiler_without_room_for_the_pool_makes_fits_a_host_that_has_it_and_one_that_has_not() {
    let bytes = fixtures::answers(&manifest(), ANSWER);
    for allocation in [Allocation::Pool, Allocation::OnDemand] {
        let engine = engine(allocation);
        let program = env::temp_dir().join(format!("pintle-in-2-GiB-{}-{allocation:?}", std::process::id()));
        let script = format!("#!/bin/sh\nulimit -v 2000000\nexec {PINTLE} \"$@\"\n");
        write_program(&program, &script);
        let precompile = |job: Job<'_>| match child::compile(&program, &job, &Limits::default()) {
            Ended::Made(artifact) => Ok(artifact),
            other => Err(Failure::terminal("NotMade", format!("{other:?}"))),
        };
        engine.self_test(Compiler::Elsewhere(&precompile)).unwrap();
        let module = engine.load_by(Compiler::Elsewhere(&precompile), &bytes, None).unwrap();
        assert_eq!(module.guest().unwrap().manifest_text(), manifest());
        fs::remove_file(program).unwrap();
    }
}

#[test]
fn a_module_that_takes_a_processor_too_long_is_told_from_one_that_takes_too_much_memory() {
    let (expensive, hungry) = (expensive(), hungry());
    let before = peak_bytes();
    let limits = Limits { cpu: Duration::from_secs(1), ..Limits::default() };
    assert_eq!(compile(&expensive, &limits), Ended::TooExpensive);
    let ended = compile(&hungry, &Limits::default());
    assert!(matches!(ended, Ended::Killed(_) | Ended::Failed(_)), "{ended:?}");
    let grown = peak_bytes() - before;
    assert!(grown < 32 << 20, "this process grew by {grown} bytes");
}

#[test]
fn a_module_that_is_no_component_is_the_modules_fault() {
    let core = fixtures::core_module();
    assert!(matches!(compile(&core[..20], &Limits::default()), Ended::Invalid(_)));
}

#[test]
fn a_compiler_ends_when_its_time_is_up() {
    let limits = Limits { wall: Duration::from_millis(200), ..Limits::default() };
    assert_eq!(compile(&expensive(), &limits), Ended::TooLong);
}

#[test]
fn a_program_that_is_no_compiler_is_told_and_cannot_fill_the_memory() {
    let bytes = fixtures::answers(&manifest(), ANSWER);
    let job = Job { bytes: &bytes, digest: Digest::of(&bytes), target: engine(Allocation::Pool).target() };
    let run = |program: &str| child::compile(Path::new(program), &job, &Limits::default());
    assert!(matches!(run("/nonexistent"), Ended::Failed(_)));
    assert!(matches!(run("/bin/false"), Ended::Invalid(_) | Ended::Failed(_)));
    let program = env::temp_dir().join(format!("pintle-that-writes-{}", std::process::id()));
    write_program(&program, "#!/bin/sh\nexec cat /dev/zero\n");
    let ended = run(&program.to_string_lossy());
    assert!(matches!(ended, Ended::TooLarge(bytes) if bytes < 2 << 20), "{ended:?}");
    fs::remove_file(program).unwrap();
}

/// In a process with this in its environment the test below is the host that is killed.
const IS_HOST: &str = "PINTLE_TEST_IS_HOST";

#[test]
fn a_compiler_ends_with_a_host_that_is_killed() {
    if env::var_os(IS_HOST).is_some() {
        compile(&expensive(), &Limits::default());
        return;
    }
    let mut host = Command::new(env::current_exe().unwrap())
        .args(["--exact", "a_compiler_ends_with_a_host_that_is_killed"])
        .env(IS_HOST, "1")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    let wait = |what: &str, met: &mut dyn FnMut() -> bool| {
        while !met() {
            assert!(Instant::now() < until, "{what}");
            thread::sleep(Duration::from_millis(10));
        }
    };
    let mut compiler = None;
    wait("a compiler runs", &mut || {
        compiler = child_of(host.id());
        // It has the module, and is at work.
        compiler.is_some_and(|pid| threads_of(pid) > 2)
    });
    host.kill().unwrap();
    host.wait().unwrap();
    wait("it ended", &mut || threads_of(compiler.unwrap()) == 0);
}

fn child_of(parent: u32) -> Option<u32> {
    fs::read_dir("/proc").unwrap().find_map(|entry| {
        let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        status.contains(&format!("PPid:\t{parent}\n")).then_some(pid)
    })
}

/// How many threads a process has; none where it has ended.
fn threads_of(pid: u32) -> usize {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let is_zombie = stat.rsplit(')').next().is_none_or(|rest| rest.trim_start().starts_with('Z'));
    if stat.is_empty() || is_zombie {
        0
    } else {
        fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count)
    }
}
