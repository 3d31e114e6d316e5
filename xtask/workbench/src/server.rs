//! What is started and goes on until it is ended: the host, the gateway, the console, a kubectl that watches.

use std::{
    fs::{self, File},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use pintle_testbed::{ControlPlane, Look, eventually};

/// How many lines of a log an error shows.
const LOG_LINES: usize = 12;

/// A program that runs. It ends with this value, and with the control plane.
pub(crate) struct Server {
    name: &'static str,
    process: Child,
    log: PathBuf,
}

impl Server {
    /// Starts a program. All that it prints goes to a log of this name, among those of the control plane.
    pub(crate) fn start(plane: &ControlPlane, name: &'static str, mut command: Command) -> Result<Self> {
        let logs = plane.directory().join("logs");
        fs::create_dir_all(&logs)?;
        let log = logs.join(format!("{name}.log"));
        let output = File::create(&log)?;
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        plane.takes_in(&mut command)?;
        let process = command.spawn().with_context(|| format!("cannot start {name}"))?;
        Ok(Self { name, process, log })
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// The file with all that it prints.
    pub(crate) fn log(&self) -> std::path::Display<'_> {
        self.log.display()
    }

    /// Waits until this is found in the whole lines of its log.
    pub(crate) fn says<T>(&mut self, what: &str, find: impl Fn(&str) -> Option<T>) -> Result<T> {
        eventually(format!("{} says {what}", self.name), || {
            // Before the log is read: what it said before it ended is in there.
            let ended = self.process.try_wait()?;
            let log = fs::read_to_string(&self.log).unwrap_or_default();
            if let Some(found) = find(whole_lines(&log)) {
                return Ok(Look::Reached(found));
            }
            ensure!(ended.is_none(), "{} has ended: {}", self.name, self.last_lines());
            Ok(Look::NotYet(self.last_lines()))
        })
    }

    /// The address in the line with these words, which it logs when it listens.
    pub(crate) fn address(&mut self, words: &str) -> Result<String> {
        self.says("where it listens", |log| address(log, words))
    }

    /// Ends it. One that does not end is killed, and a line says so.
    pub(crate) fn stop(mut self) -> Result<()> {
        Command::new("kill").args(["-TERM", &self.process.id().to_string()]).status()?;
        let ended = eventually(format!("{} ends", self.name), || {
            Ok(self.process.try_wait()?.map_or_else(|| Look::NotYet(self.last_lines()), Look::Reached))
        });
        match ended {
            Ok(status) => {
                ensure!(status.success(), "{} ended with {status}: {}", self.name, self.last_lines());
            }
            Err(error) => println!("{} is killed: {error:#}", self.name),
        }
        Ok(())
    }

    /// What it printed last.
    fn last_lines(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let last = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n");
        format!("the end of {}:\n{last}", self.log.display())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process has already ended if `stop` ran, as a rule. Otherwise a step failed, and nothing of the server may stay.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A log without a line that is not whole yet.
fn whole_lines(log: &str) -> &str {
    log.rsplit_once('\n').map_or("", |(whole, _)| whole)
}

/// The address in the first line of a log that has these words.
fn address(log: &str, words: &str) -> Option<String> {
    let line = log.lines().find(|line| line.contains(words))?;
    let address = line.split_whitespace().find_map(|word| word.strip_prefix("address="))?;
    Some(address.trim_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_says_where_it_listens_in_a_whole_line_with_these_words() {
        let found = |log, words| address(whole_lines(log), words);
        let log = "INFO run: Waits address=1.1.1.1:1\nINFO run: It starts version=\"1\" address=\"127.0.0.1:80\" tls=false\n";
        assert_eq!(found(log, "It starts").as_deref(), Some("127.0.0.1:80"));
        assert_eq!(found(log, "It ends"), None);
        assert_eq!(found("INFO run: It starts address=127.0.0.1:8", "It starts"), None, "it may be 80");
    }
}
