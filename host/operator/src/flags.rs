//! The flags of `pintle operator`.

use std::{
    io::{self, IsTerminal},
    net::SocketAddr,
    time::Duration,
};

use pintle_api as api;
use pintle_kubernetes::connect::Connect;
use pintle_runtime::clock;
use tracing::Level;
use tracing_subscriber::{
    EnvFilter, Registry, filter::filter_fn, layer::SubscriberExt, reload, util::SubscriberInitExt,
};

use super::{admin::LogLevel, compile::child};
use crate::memory_limit;

/// The flags of `pintle operator`.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// Address of /healthz, /readyz and /metrics
    #[arg(long, env = "PINTLE_BIND", default_value = "0.0.0.0:8080", value_name = "ADDRESS")]
    pub(crate) bind: SocketAddr,
    /// Loopback address of PUT /loglevel, which changes the log level. If omitted, it is not served
    #[arg(long, env = "PINTLE_ADMIN_BIND", value_name = "ADDRESS")]
    pub(crate) admin_bind: Option<SocketAddr>,
    /// Namespace of the host, with its key and the ConfigMaps of modules
    #[arg(long, env = "PINTLE_NAMESPACE", default_value = api::NAMESPACE, value_name = "NAME")]
    pub(crate) namespace: String,
    /// If true, write only while holding the Lease `pintle` in the namespace of the host. Use false only if no other host runs
    // A host that is run by hand may have a rival in the cluster without anybody thinking of it.
    #[arg(long, env = "PINTLE_LEADER_ELECT", value_name = "BOOL", default_value_t = true)]
    #[arg(action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) leader_elect: bool,
    /// Number of custom resources that are reconciled at the same time
    // Sixteen passes keep an API server busy that needs 2 ms a write; more only queue there.
    #[arg(long, env = "PINTLE_WORKERS", default_value_t = 16, value_name = "N", value_parser = positive)]
    pub(crate) workers: usize,
    /// Memory that this process may use, such as 512Mi. If omitted, it is the limit of the control group, or half of the memory of the machine
    #[arg(long, env = "PINTLE_MEMORY_BUDGET", value_name = "AMOUNT", value_parser = memory_limit::quantity)]
    pub(crate) memory_budget: Option<u64>,
    /// Log level (error, warn, info, debug or trace) or tracing directives
    #[arg(long, env = "PINTLE_LOG", default_value = "info", value_name = "LEVEL")]
    pub(crate) log: String,
    /// Log format
    #[arg(long, env = "PINTLE_LOG_FORMAT", default_value = "json", value_name = "FORMAT")]
    pub(crate) log_format: LogFormat,
    /// How much of a processor's time compiling one module may take, in seconds
    #[arg(long, env = "PINTLE_COMPILE_CPU_SECONDS", default_value_t = child::CPU.as_secs(), value_name = "N", hide = true)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=600))]
    pub(crate) compile_cpu_seconds: u64,
    // Last, since its heading is taken to be that of every flag after it.
    #[command(flatten)]
    pub(crate) connect: Connect,
}

/// The text is no number of workers.
#[derive(Debug, thiserror::Error)]
#[error("a number from 1 to 1024")]
struct WorkersError;

fn positive(text: &str) -> Result<usize, WorkersError> {
    text.parse().ok().filter(|number| (1..=1024).contains(number)).ok_or(WorkersError)
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

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// One JSON object a line
    Json,
    /// Text for people
    Text,
}

impl Flags {
    /// What each compiler may use.
    pub(crate) fn compile_limits(&self) -> child::Limits {
        child::Limits { cpu: Duration::from_secs(self.compile_cpu_seconds), ..child::Limits::default() }
    }

    /// The name of this process in Leases, Events and audit logs: the Pod's or the machine's, and eight digits that it has to itself.
    /// A container that was restarted has its Pod's name in common with the one before.
    ///
    /// # Errors
    /// When the operating system has no random bytes to give.
    pub(crate) fn identity(&self) -> std::io::Result<String> {
        let from_env = |name| std::env::var(name).ok().filter(|name: &String| !name.is_empty());
        let name = from_env("POD_NAME").or_else(|| from_env("HOSTNAME")).unwrap_or_else(|| "pintle".into());
        // With the digits it must fit into the 128 characters that an Event has for it.
        let name: String = name.chars().take(100).collect();
        Ok(format!("{name}_{:08x}", u32::from_le_bytes(clock::random()?)))
    }

    /// Starts logging, and returns what changes its level.
    pub(crate) fn start_logging(&self) -> LogLevel {
        let filter = EnvFilter::try_new(&self.log).unwrap_or_else(|_| EnvFilter::new("info"));
        let (filter, level) = reload::Layer::new(filter);
        let logs = tracing_subscriber::fmt::layer().with_writer(io::stderr).with_ansi(wants_colour());
        let registry = Registry::default()
            .with(filter)
            .with(filter_fn(|line| !says_the_host(line.target(), *line.level())));
        // A second initialisation is a test that runs two operators in one process; the first one's format stays.
        let started = match self.log_format {
            LogFormat::Json => registry.with(logs.json().flatten_event(true)).try_init(),
            LogFormat::Text => registry.with(logs).try_init(),
        };
        LogLevel(started.is_ok().then_some(level))
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
