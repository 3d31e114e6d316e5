//! The flags of `pintle operator`.

use std::{net::SocketAddr, time::Duration};

use pintle_api as api;
use pintle_kubernetes::connect::Connect;
use pintle_modules::{child, memory_limit};
use pintle_runtime::{clock, logging::LogFlags};

/// The flags of `pintle operator`.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// Address of /healthz, /readyz and /metrics
    #[arg(long, env = "PINTLE_BIND", default_value = "0.0.0.0:8080", value_name = "ADDRESS")]
    pub(crate) bind: SocketAddr,
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
    /// The largest custom resource that is reconciled, as JSON
    // Most of what etcd takes of an object, and more than any that is written by hand.
    #[arg(long, env = "PINTLE_MAX_ROOT_SIZE", default_value = "1Mi", value_name = "AMOUNT", value_parser = memory_limit::size)]
    pub(crate) max_root_size: u64,
    /// How much of all custom resources together is kept, as JSON, and how much of what guests ask to see. If omitted, it is a quarter of the
    /// memory that this process may use
    #[arg(long, env = "PINTLE_MAX_ROOTS_SIZE", value_name = "AMOUNT", value_parser = memory_limit::size)]
    pub(crate) max_roots_size: Option<u64>,
    #[command(flatten)]
    pub(crate) log: LogFlags,
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
        clock::process_name("pintle")
    }
}
