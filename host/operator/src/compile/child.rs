//! One compiler: a process of this very program, with limits of its own. It sets them itself, before it reads anything, and ends when
//! its input does: with this process, however that ends.

use std::{
    io::{self, Read, Write},
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Mutex, PoisonError,
        mpsc::{self, RecvTimeoutError, Sender},
    },
    thread,
    time::Duration,
};

use pintle_engine::{Allocation, Job, Meter};
use rustix::process::Signal;

/// What one compiler may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Of processors' time, in whole seconds.
    pub cpu: Duration,
    /// Of time on the wall.
    pub wall: Duration,
    /// Of memory, in bytes, for a module without size: `RLIMIT_DATA`, which counts what can be written and is nobody else's.
    /// `RLIMIT_AS` would also count what the allocator reserves and never touches, and the program itself.
    pub data_bytes: usize,
    /// The most of it for any module, in bytes: what the process's budget has for one compiler.
    pub data_bytes_max: usize,
}

impl Limits {
    /// The memory of a compiler of a module of so many bytes, in bytes: what it reserves of the process's budget.
    pub fn data_bytes_of(&self, module_bytes: usize) -> usize {
        let wanted = self.data_bytes.saturating_add(module_bytes.saturating_mul(DATA_FACTOR));
        wanted.min(self.data_bytes_max)
    }
}

/// The processors' time of one compiler: a module as large as may be, all of it code, takes less than 20 s even where neither it nor the
/// compiler is optimised.
pub const CPU: Duration = Duration::from_secs(30);

/// The time on the wall of one compiler: four times as much, for a machine that does much else.
pub const WALL: Duration = Duration::from_secs(120);

/// The memory of one compiler, in bytes: so much, and [`DATA_FACTOR`] times the module. A guest in Rust of 228 KB takes less than
/// 100 MiB, and its code repeated to 8 MiB less than 384. Half of that is never touched: what the allocator has set aside counts.
pub const DATA_BYTES: usize = 160 << 20;
/// See [`DATA_BYTES`].
pub const DATA_FACTOR: usize = 32;

/// How many times its module the largest artifact is, beside what every artifact has.
pub const ARTIFACT_FACTOR: usize = 16;
const ARTIFACT_BYTES_MIN: usize = 1 << 20;

/// What no artifact is larger than, in bytes.
pub const ARTIFACT_BYTES_MAX: usize = 64 << 20;

/// On how many threads one compiler works at most. Each may need the memory that the largest function needs.
const THREADS_MAX: usize = 2;

/// How much of what a compiler says is kept, in bytes.
const SAID_BYTES_MAX: u64 = 4 << 10;

/// This very program, also when its file was replaced meanwhile.
pub const THIS_PROGRAM: &str = "/proc/self/exe";

impl Default for Limits {
    fn default() -> Self {
        Self { cpu: CPU, wall: WALL, data_bytes: DATA_BYTES, data_bytes_max: usize::MAX }
    }
}

/// How a compiler ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    /// With an artifact.
    Made(Vec<u8>),
    /// The module cannot be compiled; why.
    Invalid(String),
    /// It used up its processors' time.
    TooExpensive,
    /// It used up its time on the wall.
    TooLong,
    /// The artifact is larger than this many bytes.
    TooLarge(usize),
    /// It was killed: for want of memory, nearly always.
    Killed(String),
    /// It could not be run, or not for reasons of its own.
    Failed(String),
    /// It was asked to end.
    Stopped,
}

enum Event {
    Read(io::Result<Option<Vec<u8>>>),
    Stop,
}

/// Asks a compiler to end, or one that has not begun yet not to.
#[derive(Debug, Default)]
pub struct Stop(Mutex<(bool, Option<Sender<Event>>)>);

impl Stop {
    /// Asks.
    pub fn request(&self) {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.0 = true;
        if let Some(events) = inner.1.take() {
            // Nobody listens any more where it has just ended.
            let _ = events.send(Event::Stop);
        }
    }

    /// Whether it was asked.
    pub fn is_requested(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    fn tells(&self, events: Sender<Event>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1 = Some(events);
    }
}

/// Compiles a module in a process of its own, of this program, which must be `pintle`. Blocks until that has ended.
pub fn compile(program: &Path, job: &Job<'_>, limits: &Limits, stop: &Stop) -> Ended {
    let mut command = command(program, job, limits);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Ended::Failed(format!("it cannot be run: {error}")),
    };
    let followed = follow(&mut child, job.bytes, limits.wall, stop);
    // It has ended already where all went well; otherwise nobody wants it any more.
    if !matches!(followed, Ok((Followed::Read(_), _))) {
        let _ = child.kill();
    }
    let status = child.wait();
    match (followed, status) {
        (Ok((Followed::Read(artifact), said)), Ok(status)) => judge(status, artifact, &said),
        (Ok((Followed::TooLarge, _)), _) => Ended::TooLarge(artifact_bytes_max(job.bytes.len())),
        (Ok((Followed::TooLong, _)), _) => Ended::TooLong,
        (Ok((Followed::Stopped, _)), _) => Ended::Stopped,
        (Err(error), _) | (_, Err(error)) => Ended::Failed(error.to_string()),
    }
}

fn command(program: &Path, job: &Job<'_>, limits: &Limits) -> Command {
    let target = job.target;
    let allocation = match target.allocation {
        Allocation::Pool => "pool",
        Allocation::OnDemand => "on-demand",
    };
    let meter = match target.meter {
        Meter::Deadline => "deadline",
        Meter::Fuel => "fuel",
    };
    let threads = thread::available_parallelism().map_or(1, |threads| threads.get().min(THREADS_MAX));
    let mut command = Command::new(program);
    command
        .args(["compile", "--allocation", allocation, "--meter", meter])
        .args(["--memory-bytes-max", &target.memory_bytes_max.to_string()])
        .args(["--module-bytes", &job.bytes.len().to_string()])
        .args(["--cpu-seconds", &limits.cpu.as_secs().to_string()])
        .args(["--data-bytes", &limits.data_bytes_of(job.bytes.len()).to_string()])
        .env_clear()
        .env("RAYON_NUM_THREADS", threads.to_string())
        // Otherwise the allocator maps a gibibyte that can be written, and none of its limits would be left.
        .env("MIMALLOC_ARENA_EAGER_COMMIT", "0")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

enum Followed {
    Read(Vec<u8>),
    TooLarge,
    TooLong,
    Stopped,
}

/// Gives a compiler its module and reads what it writes, until it ends or its time is up. Its input is open for as long.
fn follow(child: &mut Child, module: &[u8], wall: Duration, stop: &Stop) -> io::Result<(Followed, String)> {
    let (Some(mut input), Some(mut output), Some(errors)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(io::Error::other("it has no pipes"));
    };
    let bytes_max = artifact_bytes_max(module.len());
    let (events, happened) = mpsc::channel();
    stop.tells(events.clone());
    if stop.is_requested() {
        return Ok((Followed::Stopped, String::new()));
    }
    thread::scope(|scope| {
        let named = |name: &str| thread::Builder::new().name(format!("compiler-{name}"));
        let start = || {
            // What it does not read it does not want: how it ended says why.
            let writer = named("input").spawn_scoped(scope, move || {
                let _ = input.write_all(module);
                input
            })?;
            let said = named("errors").spawn_scoped(scope, move || heard(errors))?;
            named("output").spawn_scoped(scope, move || {
                let mut artifact = Vec::new();
                let read = output.by_ref().take(bytes_max as u64 + 1).read_to_end(&mut artifact);
                let read = read.map(|read| (read <= bytes_max).then_some(artifact));
                let _ = events.send(Event::Read(read));
            })?;
            Ok((writer, said))
        };
        let started: io::Result<_> = start();
        let (writer, said) = match started {
            Ok(threads) => threads,
            Err(error) => {
                // Those that did start find the ends of their pipes.
                let _ = child.kill();
                return Err(error);
            }
        };
        let followed = match happened.recv_timeout(wall) {
            Ok(Event::Read(read)) => match read {
                Ok(Some(artifact)) => Ok(Followed::Read(artifact)),
                Ok(None) => Ok(Followed::TooLarge),
                Err(error) => Err(error),
            },
            Ok(Event::Stop) => Ok(Followed::Stopped),
            Err(RecvTimeoutError::Timeout) => Ok(Followed::TooLong),
            Err(error) => Err(io::Error::other(error)),
        };
        if !matches!(followed, Ok(Followed::Read(_))) {
            let _ = child.kill();
        }
        drop(writer.join());
        let said = said.join().unwrap_or_default();
        Ok((followed?, said))
    })
}

/// The beginning of what a compiler says. The rest is read and forgotten, or it would wait for ever to be.
fn heard(mut errors: impl Read) -> String {
    let mut said = Vec::new();
    let _ = errors.by_ref().take(SAID_BYTES_MAX).read_to_end(&mut said);
    let _ = io::copy(&mut errors, &mut io::sink());
    String::from_utf8_lossy(&said).trim().to_owned()
}

fn judge(status: ExitStatus, artifact: Vec<u8>, said: &str) -> Ended {
    if status.success() {
        return Ended::Made(artifact);
    }
    match (status.code(), status.signal()) {
        (_, Some(signal)) if signal == Signal::XCPU.as_raw() => Ended::TooExpensive,
        (_, Some(_)) => Ended::Killed(format!("{status} {said}").trim().to_owned()),
        // As the command line has it for a module that is at fault.
        (Some(1), _) => Ended::Invalid(said.trim_start_matches("error: ").to_owned()),
        _ => Ended::Failed(format!("{status} {said}").trim().to_owned()),
    }
}

fn artifact_bytes_max(module_bytes: usize) -> usize {
    (ARTIFACT_BYTES_MIN + module_bytes.saturating_mul(ARTIFACT_FACTOR)).min(ARTIFACT_BYTES_MAX)
}
