//! Runs programs with logs, and makes sure that no component of a control plane outlives the test.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
pub use rustix::process::Signal;
use rustix::process::{Pid, kill_process, kill_process_group};

use crate::patience::{Look, eventually};

/// How long a program gets between SIGTERM and SIGKILL. On an idle machine, the API server was seen to take 4 s.
const STOP_WITHIN: Duration = Duration::from_secs(30);

/// How many lines of a log an error shows.
const LOG_LINES: usize = 20;

/// The watchdog's script. Its argument is the folder to remove. The watchdog leads the process group of all components, and reads a pipe
/// whose other end only this process holds: the end of that pipe means that this process is gone, however it died. The components get a
/// moment to stop, so that none writes into the folder while it is removed; while one does, that is tried again. `kill 0` means the whole
/// group, including the watchdog.
const WATCHDOG: &str = "trap '' TERM INT HUP QUIT
while read -r _; do :; done
kill -TERM 0
sleep 2
for _ in 1 2 3 4 5 6 7 8 9; do [ -z \"$1\" ] || rm -rf -- \"$1\" && break; sleep 1; done
kill -KILL 0";

/// A program that runs, with a log of all that it prints: a component of a control plane, or what works on one. It is killed when this value
/// is dropped.
#[derive(Debug)]
pub struct Server {
    name: String,
    child: Child,
    log: PathBuf,
    /// Where its own lines begin in the log.
    begins: usize,
}

impl Server {
    /// Starts a program. What it prints is added to this log.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(name: &str, command: &mut Command, log: &Path) -> Result<Self> {
        Self::start_with_input(name, command.stdin(Stdio::null()), log)
    }

    /// The same, of a program with an input.
    fn start_with_input(name: &str, command: &mut Command, log: &Path) -> Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(log);
        let file = file.with_context(|| format!("opening {}", log.display()))?;
        let begins = usize::try_from(file.metadata()?.len())?;
        command.stdout(file.try_clone()?).stderr(file);
        let child = command.spawn();
        let child =
            child.with_context(|| format!("starting {name} ({})", command.get_program().display()))?;
        Ok(Self { name: name.to_owned(), child, log: log.to_owned(), begins })
    }

    /// The number of its process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The file with all that it prints.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Checks that it still runs.
    ///
    /// # Errors
    /// When it has ended. The error ends with what it logged last.
    pub fn check(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("{} exited with {status}; {}", self.name, self.end_of_log());
        }
        Ok(())
    }

    /// Waits until this is found in the whole lines that it has printed.
    ///
    /// # Errors
    /// When it is not found in time, or the program ends.
    pub fn says<T>(&mut self, what: &str, find: impl Fn(&str) -> Option<T>) -> Result<T> {
        eventually(format!("{} says {what}", self.name), || {
            // Before the log is read: what it said before it ended is in there.
            let alive = self.check();
            let said = self.said();
            match said.rsplit_once('\n').and_then(|(whole, _)| find(whole)) {
                Some(found) => Ok(Look::Reached(found)),
                None => alive.map(|()| Look::NotYet(self.end_of_log())),
            }
        })
    }

    /// The address in the first line with these words, which it logs when it listens.
    ///
    /// # Errors
    /// As [`Server::says`].
    pub fn address(&mut self, words: &str) -> Result<SocketAddr> {
        self.says("where it listens", |log| address(log, words))
    }

    /// The same, if it has been logged by now.
    #[must_use]
    pub fn address_so_far(&self, words: &str) -> Option<SocketAddr> {
        address(self.said().rsplit_once('\n')?.0, words)
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// When it cannot be sent.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        Ok(kill_process(Pid::from_child(&self.child), signal)?)
    }

    /// Asks it to end, and waits until it has. One that does not end within 30 seconds is killed, and a line on stderr says so, which is no
    /// error: how long it takes to end says nothing about what it was used for.
    ///
    /// # Errors
    /// When it had ended before.
    pub fn stop(mut self) -> Result<Ended> {
        self.stop_within(STOP_WITHIN)
    }

    fn stop_within(&mut self, within: Duration) -> Result<Ended> {
        self.check()?;
        match self.child.stdin.take() {
            // It ends with this pipe.
            Some(pipe) => drop(pipe),
            None => self.signal(Signal::TERM)?,
        }
        let began = Instant::now();
        while began.elapsed() < within {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Ended::WithStatus(status));
            }
            thread::sleep(Duration::from_millis(2));
        }
        eprintln!("{} has not ended within {} s, and is killed", self.name, within.as_secs_f64());
        self.child.kill()?;
        self.child.wait()?;
        Ok(Ended::Killed)
    }

    /// What it printed last, for an error.
    #[must_use]
    pub fn end_of_log(&self) -> String {
        format!("the end of its log:\n{}", last_lines(&self.said(), LOG_LINES))
    }

    fn said(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(log.get(self.begins..).unwrap_or_default()).into_owned()
    }
}

/// How a program ended that was asked to.
#[derive(Clone, Copy, Debug)]
pub enum Ended {
    /// By itself.
    WithStatus(ExitStatus),
    /// It took too long.
    Killed,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has already ended if `stop` ran, as a rule. What ends with a pipe has something to clean up.
        if self.child.stdin.is_some() {
            let _ = self.stop_within(STOP_WITHIN);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The components of one instance. None of them outlives this value or this process.
#[derive(Debug)]
pub(crate) struct Processes {
    directory: PathBuf,
    watchdog: Child,
    components: Vec<Server>,
}

impl Processes {
    /// Starts only the watchdog. If this process dies, the watchdog removes `directory`, unless `keep` is set.
    pub(crate) fn new(directory: &Path, keep: bool) -> Result<Self> {
        let watchdog = Command::new("/bin/sh")
            .args(["-c", WATCHDOG, "pintle-testbed-watchdog"])
            .arg(if keep { OsString::new() } else { directory.as_os_str().to_owned() })
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .context("starting the watchdog with /bin/sh")?;
        Ok(Self { directory: directory.to_owned(), watchdog, components: Vec::new() })
    }

    /// Starts a component. It gets no environment variables of this process, because etcd and others read settings from them.
    pub(crate) fn start(&mut self, name: &str, program: &Path, flags: &[String]) -> Result<()> {
        let mut command = self.command(program, flags);
        command.stdin(Stdio::null()).process_group(self.group()?);
        self.add(name, command)
    }

    /// Starts a component that ends with the pipe that it reads, when it is stopped or this process is gone, and then cleans up. The
    /// watchdog leaves it the time: it is in a group of its own.
    pub(crate) fn start_with_pipe(&mut self, name: &str, program: &Path, flags: &[String]) -> Result<()> {
        let mut command = self.command(program, flags);
        command.stdin(Stdio::piped()).process_group(0);
        self.add(name, command)
    }

    fn command(&self, program: &Path, flags: &[String]) -> Command {
        let mut command = Command::new(program);
        command
            .args(flags)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.directory)
            .current_dir(&self.directory);
        command
    }

    fn add(&mut self, name: &str, mut command: Command) -> Result<()> {
        let log = self.directory.join(format!("logs/{name}.log"));
        self.components.push(Server::start_with_input(name, &mut command, &log)?);
        Ok(())
    }

    /// The process of the component of this name.
    pub(crate) fn id(&self, name: &str) -> Option<u32> {
        self.components.iter().find(|component| component.name == name).map(Server::id)
    }

    /// The process group of the components. It ends with them.
    pub(crate) fn group(&self) -> Result<i32> {
        Ok(i32::try_from(self.watchdog.id())?)
    }

    /// Fails when a component has exited.
    pub(crate) fn check(&mut self) -> Result<()> {
        self.components.iter_mut().try_for_each(Server::check)
    }

    /// Waits until `ready` has reached it. The error shows the log of the component of this name, for which it waits, or of one that exited.
    pub(crate) fn wait_until(
        &mut self,
        name: &str,
        what: &str,
        mut ready: impl FnMut() -> Look<()>,
    ) -> Result<()> {
        eventually(format!("{name} is usable: {what}"), || {
            let look = ready();
            // Somebody else may have answered.
            self.check()?;
            let component = self.components.iter().find(|component| component.name == name);
            let log = component.map(Server::end_of_log).unwrap_or_default();
            Ok(match look {
                Look::NotYet(state) => Look::NotYet(format!("{state}; {log}")),
                Look::Reached(()) => Look::Reached(()),
            })
        })
    }

    /// Stops every component, the last started first, because each needs the earlier ones to stop in order. Fails if one had exited before,
    /// or one that ends with a pipe did not end with success. All components have ended in any case.
    pub(crate) fn stop(&mut self) -> Result<()> {
        self.stop_within(STOP_WITHIN)
    }

    fn stop_within(&mut self, within: Duration) -> Result<()> {
        let mut outcome = Ok(());
        while let Some(mut component) = self.components.pop() {
            let cleans_up = component.child.stdin.is_some();
            let stop = component.stop_within(within).and_then(|ended| {
                let is_clean = matches!(ended, Ended::WithStatus(status) if status.success());
                ensure!(
                    is_clean || !cleans_up,
                    "{} has not cleaned up; {}",
                    component.name,
                    component.end_of_log()
                );
                Ok(())
            });
            outcome = stop.and(outcome);
        }
        outcome
    }
}

impl Drop for Processes {
    /// Kills the components that still run. One that never became ready may ignore SIGTERM.
    fn drop(&mut self) {
        // The watchdog has not been waited for, so its process id is still that of the group.
        let _ = kill_process_group(Pid::from_child(&self.watchdog), Signal::KILL);
        self.components.clear();
        let _ = self.watchdog.wait();
    }
}

/// The last `count` lines of a text.
pub(crate) fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

/// The first address in the first line of a log with these words, in either format of our logs.
fn address(log: &str, words: &str) -> Option<SocketAddr> {
    let line = log.lines().find(|line| line.contains(words))?;
    line.split([' ', '=', '"']).find_map(|word| word.parse().ok())
}

#[cfg(test)]
mod tests;
