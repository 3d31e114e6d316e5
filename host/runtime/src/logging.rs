//! Logging of a process: its flags, and its start.

use std::io::{self, IsTerminal};

use tracing::Level;
use tracing_subscriber::{
    EnvFilter, Registry, filter::filter_fn, layer::SubscriberExt, util::SubscriberInitExt,
};

/// The flags of logging.
#[derive(Clone, Debug, clap::Args)]
pub struct LogFlags {
    /// Log level (error, warn, info, debug or trace) or tracing directives
    #[arg(id = "log", long = "log", env = "PINTLE_LOG", default_value = "info", value_name = "LEVEL")]
    level: String,
    /// Log format
    #[arg(
        id = "log_format",
        long = "log-format",
        env = "PINTLE_LOG_FORMAT",
        default_value = "json",
        value_name = "FORMAT"
    )]
    format: LogFormat,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// One JSON object a line
    Json,
    /// Text for people
    Text,
}

/// Whether log lines for people have colours: not in a file, and not where NO_COLOR is set.
fn wants_colour() -> bool {
    let is_allowed = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    is_allowed && io::stderr().is_terminal()
}

/// Whether a line of a library is about an error that the host logs itself, with the object that it is about and what comes next. The
/// library names neither.
fn says_the_host(target: &str, level: Level) -> bool {
    let libraries = ["kube_client::client", "kube_runtime::watcher"];
    level <= Level::WARN && libraries.iter().any(|library| target.starts_with(library))
}

impl LogFlags {
    /// Starts logging.
    pub fn start(&self) {
        let filter = EnvFilter::try_new(&self.level).unwrap_or_else(|_| EnvFilter::new("info"));
        let logs = tracing_subscriber::fmt::layer().with_writer(io::stderr).with_ansi(wants_colour());
        let registry = Registry::default()
            .with(filter)
            .with(filter_fn(|line| !says_the_host(line.target(), *line.level())));
        // A second initialisation is a test that runs two operators in one process; the first one's format stays.
        let _ = match self.format {
            LogFormat::Json => registry.with(logs.json().flatten_event(true)).try_init(),
            LogFormat::Text => registry.with(logs).try_init(),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_librarys_line_about_an_error_is_left_to_the_host_and_everything_else_is_logged() {
        assert!(says_the_host("kube_client::client::builder", Level::ERROR), "a refusal of a typed patch");
        assert!(says_the_host("kube_runtime::watcher", Level::WARN), "a watch that fails");
        assert!(!says_the_host("kube_client::client::builder", Level::DEBUG), "somebody asked for it");
        assert!(!says_the_host("kube_client::config", Level::WARN), "the host says nothing of these");
        assert!(!says_the_host("pintle_operator::intake", Level::ERROR));
    }
}
