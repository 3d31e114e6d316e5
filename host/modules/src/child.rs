//! One compiler: a process of this same program with its own limits. The process sets the limits itself, before it reads anything. It
//! ends when its input ends, and therefore with this process, however that ends.

use std::{
    io::{self, Read, Write},
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use pintle_engine::{Allocation, Job, Meter};
use rustix::process::Signal;

/// The limits of one compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The processor time, in whole seconds.
    pub cpu: Duration,
    /// The elapsed time.
    pub wall: Duration,
    /// The memory, in bytes, for a module of size zero, as `RLIMIT_DATA`, which counts private writable memory. `RLIMIT_AS` would also
    /// count the program itself, and memory that the allocator reserves and never touches.
    pub data_bytes: usize,
    /// The most memory for any module, in bytes: what the budget of the process has for one compiler.
    pub data_bytes_max: usize,
}

impl Limits {
    /// The memory, in bytes, of a compiler for a module of this size. It is reserved in the budget of the process.
    pub fn data_bytes_of(&self, module_bytes: usize) -> usize {
        let wanted = self.data_bytes.saturating_add(module_bytes.saturating_mul(DATA_FACTOR));
        wanted.min(self.data_bytes_max)
    }
}

/// The processor time of one compiler. A module of the largest size that consists only of code takes less than 20 s, even if neither the
/// module nor the compiler is optimised.
pub const CPU: Duration = Duration::from_secs(30);

/// The elapsed time of one compiler: four times the processor time, for a busy machine.
pub const WALL: Duration = Duration::from_secs(120);

/// The memory of one compiler, in bytes: this much, and [`DATA_FACTOR`] times the size of the module. A guest in Rust of 228 KB takes less
/// than 100 MiB, and its code repeated to 8 MiB less than 384 MiB. Half of that is never touched, because memory that the allocator has
/// reserved counts too.
pub const DATA_BYTES: usize = 160 << 20;
/// See [`DATA_BYTES`].
pub const DATA_FACTOR: usize = 32;

/// The largest artifact, as a multiple of its module, besides the part that every artifact has.
pub const ARTIFACT_FACTOR: usize = 16;
const ARTIFACT_BYTES_MIN: usize = 1 << 20;

/// The largest artifact of any module, in bytes.
pub const ARTIFACT_BYTES_MAX: usize = 64 << 20;

/// The most threads of one compiler. Each may need the memory that the largest function needs.
const THREADS_MAX: usize = 2;

/// How much of a compiler's error output is kept, in bytes.
const SAID_BYTES_MAX: u64 = 4 << 10;

/// This same program, even if its file was replaced meanwhile.
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
    /// The module cannot be compiled, for this reason.
    Invalid(String),
    /// It used up its processor time.
    TooExpensive,
    /// It used up its elapsed time.
    TooLong,
    /// The artifact is larger than this many bytes.
    TooLarge(usize),
    /// It was killed, nearly always for lack of memory.
    Killed(String),
    /// It could not be run, or it failed for a reason that is not the module's.
    Failed(String),
}

/// Compiles a module in a process of its own, of this program, which must be `pintle`. Blocks until that has ended.
pub fn compile(program: &Path, job: &Job<'_>, limits: &Limits) -> Ended {
    let mut command = command(program, job, limits);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Ended::Failed(format!("it cannot be run: {error}")),
    };
    let followed = follow(&mut child, job.bytes, limits.wall);
    // If all went well, the process has ended already. Otherwise its result is not needed any more.
    if !matches!(followed, Ok((Followed::Read(_), _))) {
        let _ = child.kill();
    }
    let status = child.wait();
    match (followed, status) {
        (Ok((Followed::Read(artifact), said)), Ok(status)) => judge(status, artifact, &said),
        (Ok((Followed::TooLarge, _)), _) => Ended::TooLarge(artifact_bytes_max(job.bytes.len())),
        (Ok((Followed::TooLong, _)), _) => Ended::TooLong,
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
        // Without this, the allocator maps one gibibyte of writable memory, which would use up the limit.
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
}

/// Sends a compiler its module and reads what it writes, until it ends or its time is up. Its input stays open until then.
fn follow(child: &mut Child, module: &[u8], wall: Duration) -> io::Result<(Followed, String)> {
    let (Some(mut input), Some(mut output), Some(errors)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(io::Error::other("it has no pipes"));
    };
    let bytes_max = artifact_bytes_max(module.len());
    let (sender, read) = mpsc::channel();
    thread::scope(|scope| {
        let named = |name: &str| thread::Builder::new().name(format!("compiler-{name}"));
        let start = || {
            // If it does not read all of its input, how it ends says why.
            let writer = named("input").spawn_scoped(scope, move || {
                let _ = input.write_all(module);
                input
            })?;
            let said = named("errors").spawn_scoped(scope, move || heard(errors))?;
            named("output").spawn_scoped(scope, move || {
                let mut artifact = Vec::new();
                let read = output.by_ref().take(bytes_max as u64 + 1).read_to_end(&mut artifact);
                let read = read.map(|read| (read <= bytes_max).then_some(artifact));
                let _ = sender.send(read);
            })?;
            Ok((writer, said))
        };
        let started: io::Result<_> = start();
        let (writer, said) = match started {
            Ok(threads) => threads,
            Err(error) => {
                // The threads that did start end when their pipes end.
                let _ = child.kill();
                return Err(error);
            }
        };
        let followed = match read.recv_timeout(wall) {
            Ok(Ok(Some(artifact))) => Ok(Followed::Read(artifact)),
            Ok(Ok(None)) => Ok(Followed::TooLarge),
            Ok(Err(error)) => Err(error),
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

/// The beginning of a compiler's error output. The rest is read and dropped, or the compiler would wait for ever to write it.
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
        (_, Some(_)) => {
            // The next line of Rust's says how its developers get a backtrace.
            let line = said.lines().next().unwrap_or_default();
            Ended::Killed(format!("{status} {line}").trim().to_owned())
        }
        // The exit code of the command line for a module that is at fault.
        (Some(1), _) => Ended::Invalid(said.trim_start_matches("error: ").to_owned()),
        _ => Ended::Failed(format!("{status} {said}").trim().to_owned()),
    }
}

fn artifact_bytes_max(module_bytes: usize) -> usize {
    (ARTIFACT_BYTES_MIN + module_bytes.saturating_mul(ARTIFACT_FACTOR)).min(ARTIFACT_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compiler_that_a_signal_ended_has_said_one_line() {
        let said =
            "memory allocation of 8 bytes failed\nnote: run with `RUST_BACKTRACE=1` environment variable";
        let Ended::Killed(how) = judge(ExitStatus::from_raw(6), Vec::new(), said) else {
            panic!("a signal ended it")
        };
        assert_eq!(how, "signal: 6 (SIGABRT) memory allocation of 8 bytes failed");
    }
}
