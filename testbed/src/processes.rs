//! Runs the components as processes, and makes sure that none of them outlives the test.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::patience::{Look, Patience, eventually};

/// How long a component gets between SIGTERM and SIGKILL. On an idle machine, the API server was seen to take 4 s.
const STOP_WITHIN: Duration = Duration::from_secs(30);

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

/// The components of one instance. None of them outlives this value or this process.
#[derive(Debug)]
pub(crate) struct Processes {
    directory: PathBuf,
    watchdog: Child,
    components: Vec<Component>,
}

#[derive(Debug)]
struct Component {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

/// A component exited or did not become ready, with the end of its log.
#[derive(Debug)]
pub(crate) struct ComponentFailed {
    name: &'static str,
    what: String,
    log: String,
}

impl ComponentFailed {
    /// Whether another process had the port. Then another start with other ports may succeed.
    pub(crate) fn port_was_taken(&self) -> bool {
        self.log.contains("address already in use")
    }
}

impl fmt::Display for ComponentFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}; the end of its log:\n{}", self.name, self.what, self.log)
    }
}

impl std::error::Error for ComponentFailed {}

impl Processes {
    /// Starts only the watchdog. The logs go to `directory`/logs. If this process dies, the watchdog removes `directory`, unless `keep` is
    /// set.
    pub(crate) fn new(directory: &Path, keep: bool) -> Result<Self> {
        let logs = directory.join("logs");
        fs::create_dir(&logs).with_context(|| format!("creating {}", logs.display()))?;
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
    pub(crate) fn start(&mut self, name: &'static str, program: &Path, args: Vec<OsString>) -> Result<()> {
        let log = self.directory.join("logs").join(format!("{name}.log"));
        let out = File::create(&log).with_context(|| format!("creating {}", log.display()))?;
        let child = Command::new(program)
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.directory)
            .current_dir(&self.directory)
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(out)
            .process_group(self.group()?)
            .spawn()
            .with_context(|| format!("starting {name} ({})", program.display()))?;
        self.components.push(Component { name, child, log });
        Ok(())
    }

    /// The process group of the components. It ends with them.
    pub(crate) fn group(&self) -> Result<i32> {
        Ok(i32::try_from(self.watchdog.id())?)
    }

    /// Fails when a component has exited.
    pub(crate) fn check(&mut self) -> Result<()> {
        for component in &mut self.components {
            if let Some(status) = component.child.try_wait()? {
                return Err(component.failed(exited(status)).into());
            }
        }
        Ok(())
    }

    /// Waits until `ready` has reached it. The error names `name`, the component that `ready` waits for, or another component if that one
    /// exited.
    pub(crate) fn wait_until(
        &mut self,
        name: &str,
        what: &str,
        mut ready: impl FnMut() -> Look<()>,
    ) -> Result<()> {
        let waited = eventually(what, || {
            self.check()?;
            let look = ready();
            if matches!(look, Look::Reached(())) {
                // Somebody else may have answered.
                self.check()?;
            }
            Ok(look)
        });
        waited.map_err(|error| match self.components.iter().find(|component| component.name == name) {
            Some(component) if !error.is::<ComponentFailed>() => {
                component.failed(format!("is not usable: {error:#}")).into()
            }
            _ => error,
        })
    }

    /// Stops every component, the last started first, because each needs the earlier ones to stop in order. One that does not end in time
    /// is killed, and a line says so: how long it takes to end says nothing about what it was used for. Fails if one had exited before. All
    /// components have ended in any case.
    pub(crate) fn stop(&mut self) -> Result<()> {
        self.stop_within(STOP_WITHIN)
    }

    fn stop_within(&mut self, within: Duration) -> Result<()> {
        let mut outcome = Ok(());
        while let Some(mut component) = self.components.pop() {
            outcome = component.stop(within).and(outcome);
        }
        outcome
    }
}

impl Drop for Processes {
    /// Kills the components that still run. One that never became ready may ignore SIGTERM.
    fn drop(&mut self) {
        // The watchdog has not been waited for, so its process id is still that of the group.
        if let Some(group) = pid(&self.watchdog) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        for component in &mut self.components {
            let _ = component.child.wait();
        }
        let _ = self.watchdog.wait();
    }
}

impl Component {
    fn stop(&mut self, within: Duration) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            return Err(self.failed(exited(status)).into());
        }
        if let Some(pid) = pid(&self.child) {
            kill_process(pid, Signal::TERM)?;
        }
        let patience = Patience::of(within);
        while patience.pause(Duration::from_millis(10)) {
            if self.child.try_wait()?.is_some() {
                return Ok(());
            }
        }
        eprintln!("{} has not ended within {} s, and is killed", self.name, within.as_secs_f64());
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    fn failed(&self, what: String) -> ComponentFailed {
        let log = fs::read(&self.log).unwrap_or_default();
        ComponentFailed { name: self.name, what, log: last_lines(&String::from_utf8_lossy(&log), 20) }
    }
}

/// The last `count` lines of a text.
pub(crate) fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

fn exited(status: ExitStatus) -> String {
    format!("exited with {status}")
}

fn pid(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

#[cfg(test)]
mod tests;
