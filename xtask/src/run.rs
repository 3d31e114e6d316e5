//! Runs programs, with errors that say which one failed and how.

use std::{
    env,
    error::Error,
    ffi::OsStr,
    fs, io,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use xtask::root;

/// An error is a text for people.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Cargo's target folder.
pub(crate) fn target() -> PathBuf {
    root().join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// A program to be run in the workspace.
pub(crate) struct Program(Command);

/// The script of the watchdog, which leads the process group of a program that runs beside this one. It reads a pipe whose other end only
/// this process holds: the end of that pipe means that this process is gone, however it died. go removes what it has begun on SIGINT.
const WATCHDOG: &str = "trap '' TERM INT HUP QUIT; read -r _; kill -INT 0; sleep 2; kill -KILL 0";

/// A program that runs beside this one. It ends with this value.
pub(crate) struct Background {
    program: Program,
    child: Child,
    watchdog: Child,
}

/// Cargo, with these arguments.
pub(crate) fn cargo<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Program {
    program(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()), arguments)
}

/// The compiler, with these arguments.
pub(crate) fn rustc<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Program {
    program(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()), arguments)
}

/// A program, with these arguments.
pub(crate) fn program<S: AsRef<OsStr>>(
    name: impl AsRef<OsStr>,
    arguments: impl IntoIterator<Item = S>,
) -> Program {
    let mut command = Command::new(name);
    command.args(arguments).current_dir(root());
    // What cargo says of this package to whatever it runs. A build script that looks at it, as that of ring does, would run again with each
    // change between `cargo xtask` and cargo itself, and all that depends on it would be built again.
    for (variable, _) in env::vars_os() {
        let name = variable.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&variable);
        }
    }
    Program(command)
}

impl Program {
    pub(crate) fn env(mut self, key: &str, value: impl AsRef<OsStr>) -> Self {
        self.0.env(key, value);
        self
    }

    pub(crate) fn args<S: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.0.args(arguments);
        self
    }

    pub(crate) fn folder(mut self, folder: &Path) -> Self {
        self.0.current_dir(folder);
        self
    }

    /// Runs it with its output shown.
    pub(crate) fn go(mut self) -> Result<()> {
        let status = self.0.status().map_err(|error| self.cannot_run(&error))?;
        self.judge(status)
    }

    /// Runs it with its output shown, and ends it with all its descendants once the time is over.
    pub(crate) fn within(mut self, limit: Duration) -> Result<()> {
        let mut child = self.0.spawn().map_err(|error| self.cannot_run(&error))?;
        let began = Instant::now();
        while began.elapsed() < limit {
            if let Some(status) = child.try_wait()? {
                return self.judge(status);
            }
            thread::sleep(Duration::from_millis(50));
        }
        end(child.id());
        child.wait()?;
        Err(format!("ended after {} minutes: {}", limit.as_secs() / 60, self.line()).into())
    }

    /// Starts it beside this process, with its output shown. With this process it ends, and all that it has started.
    pub(crate) fn begin(mut self) -> Result<Background> {
        let watchdog =
            Command::new("sh").args(["-c", WATCHDOG]).stdin(Stdio::piped()).process_group(0).spawn()?;
        self.0.stdin(Stdio::null()).process_group(i32::try_from(watchdog.id())?);
        let child = self.0.spawn().map_err(|error| self.cannot_run(&error))?;
        Ok(Background { program: self, child, watchdog })
    }

    /// Runs it and takes its output.
    pub(crate) fn output(mut self) -> Result<String> {
        let output = self.0.stderr(Stdio::inherit()).output().map_err(|error| self.cannot_run(&error))?;
        self.judge(output.status)?;
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Its output, if it can be run and succeeds. Its error output is ignored.
    pub(crate) fn asked(mut self) -> Option<String> {
        let output = self.0.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
        String::from_utf8(output.stdout).ok().filter(|_| output.status.success())
    }

    /// Replaces this process by the program. Returns only if that fails.
    pub(crate) fn replace(mut self) -> Result<()> {
        let error = self.0.exec();
        Err(self.cannot_run(&error))
    }

    fn judge(&self, status: ExitStatus) -> Result<()> {
        if status.success() { Ok(()) } else { Err(format!("failed ({status}): {}", self.line()).into()) }
    }

    fn cannot_run(&self, error: &io::Error) -> Box<dyn Error + Send + Sync> {
        format!("cannot run {}: {error}", self.line()).into()
    }

    fn line(&self) -> String {
        let words = std::iter::once(self.0.get_program()).chain(self.0.get_args());
        words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }
}

impl Background {
    /// Waits until it has ended.
    pub(crate) fn join(mut self) -> Result<()> {
        let status = self.child.wait()?;
        self.program.judge(status)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            end(self.child.id());
            let _ = self.child.wait();
        }
        let _ = self.watchdog.kill();
        let _ = self.watchdog.wait();
    }
}

/// Ends a process and all that it has started, as far as /proc tells. Each is stopped first, so that it neither starts another nor goes on
/// when one that it waits for is gone.
fn end(process: u32) {
    signal("STOP", process);
    for child in children(process) {
        end(child);
    }
    signal("KILL", process);
}

fn children(process: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    for thread in threads {
        let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        found.extend(children.split_whitespace().filter_map(|id| id.parse::<u32>().ok()));
    }
    found
}

/// Sends a signal, or none to a process that has ended by itself.
fn signal(name: &str, process: u32) {
    let line = format!("kill -{name} {process}");
    drop(program("sh", ["-c", &line]).asked());
}

/// The CPU time of the processes that this one has started and that have ended, as /proc tells it: in ticks, of which Linux has a hundred
/// a second for every program. Zero where there is no /proc.
pub(crate) fn cpu_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The second field, the program's name in parentheses, may contain spaces. See proc_pid_stat(5): cutime is field 16, cstime field 17.
    let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ').skip(13).take(2);
    let ticks: u64 = fields.filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(10 * ticks)
}

/// The path of a built binary.
pub(crate) fn built(name: &str) -> PathBuf {
    target().join("debug").join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait_until(is_so: impl Fn() -> bool) {
        let began = Instant::now();
        while !is_so() {
            assert!(began.elapsed() < Duration::from_secs(60), "it is not so within a minute");
            thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn a_program_that_takes_too_long_is_ended() {
        let error = program("sleep", ["600"]).within(Duration::from_millis(100)).unwrap_err();
        assert!(error.to_string().starts_with("ended after"), "{error}");
        program("true", [""; 0]).within(Duration::from_secs(60)).unwrap();
        assert!(program("false", [""; 0]).within(Duration::from_secs(60)).is_err());
    }

    #[test]
    fn a_program_that_runs_beside_is_waited_for_or_ended() {
        program("true", [""; 0]).begin().unwrap().join().unwrap();
        assert!(program("false", [""; 0]).begin().unwrap().join().is_err());
        let beside = program("sleep", ["600"]).begin().unwrap();
        let process = format!("/proc/{}", beside.child.id());
        drop(beside);
        assert!(!Path::new(&process).exists());
    }

    #[test]
    fn a_program_that_runs_beside_ends_with_this_process() {
        let mut beside = program("sleep", ["600"]).begin().unwrap();
        // As when this process is gone.
        drop(beside.watchdog.stdin.take());
        assert!(beside.join().is_err());
    }

    #[test]
    fn a_process_is_ended_with_its_descendants() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("process");
        let script = format!("sh -c 'echo $$ > {}; exec sleep 600' & wait", file.display());
        let mut child = Command::new("sh").args(["-c", &script]).spawn().unwrap();
        let written = || fs::read_to_string(&file).unwrap_or_default();
        wait_until(|| written().ends_with('\n'));
        end(child.id());
        child.wait().unwrap();
        // In a container nobody may ask how it ended; then a zombie is left of it.
        let stat = format!("/proc/{}/stat", written().trim());
        wait_until(|| fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z ")));
    }

    #[test]
    fn the_cpu_time_of_children_is_counted() {
        let before = cpu_time();
        program("sh", ["-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"]).go().unwrap();
        assert!(cpu_time() > before);
    }
}
