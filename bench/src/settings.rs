//! The settings of a run.

use std::{path::PathBuf, time::Duration};

/// The flags of the benchmark.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Flags {
    /// The phases to run, separated by commas [default: all]
    #[arg(long = "phase", value_name = "PHASE", value_delimiter = ',')]
    phases: Vec<Phase>,
    /// Run only the phases of this part
    #[arg(long, value_name = "PART")]
    part: Option<Part>,
    /// How often to measure; targets are judged by the median
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=99))]
    pub(crate) runs: u32,
    /// Who takes part, separated by commas [default: all]
    #[arg(long = "contestant", value_name = "NAME", value_delimiter = ',')]
    contestants: Vec<Who>,
    /// How many roots are created at once
    #[arg(long, default_value_t = 1000, value_name = "N", value_parser = clap::value_parser!(u32).range(20..=20_000))]
    pub(crate) roots: u32,
    /// How many roots the phase `many` has
    #[arg(long, default_value_t = 10_000, value_name = "N", value_parser = clap::value_parser!(u32).range(20..=20_000))]
    pub(crate) many: u32,
    /// How many samples a latency has
    #[arg(long, default_value_t = 500, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) samples: u32,
    /// How long the rest is, in seconds
    #[arg(long, default_value_t = 60, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    rest_seconds: u64,
    /// How many Pods the phases about views have
    #[arg(long, default_value_t = 5000, value_name = "N", value_parser = clap::value_parser!(u32).range(20..=50_000))]
    pub(crate) pods: u32,
    /// How many Pods the second part of the phase `view-watch` has
    #[arg(long, default_value_t = 20_000, value_name = "N", value_parser = clap::value_parser!(u32).range(20..=50_000))]
    pub(crate) more_pods: u32,
    /// How many watches the phase `view-watch` has
    #[arg(long, default_value_t = 200, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=450))]
    pub(crate) watches: u32,
    /// How long the changes of the phase `view-watch` last, in seconds
    #[arg(long, default_value_t = 60, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) watch_seconds: u64,
    /// How many Llamas the phases `view-finalizer` and `view-namespace` have
    #[arg(long, default_value_t = 1000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) llamas: u32,
    /// How many requests FLOOR has in flight [default: the fastest number, which is tried out first]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) floor_concurrency: Option<u32>,
    /// FLOOR sends what the host sends in addition: its labels and hash on children, its conditions and digest in statuses. This shows how
    /// much of a difference comes from that; the targets are for FLOOR without it
    #[arg(long)]
    pub(crate) floor_marked: bool,
    /// Where the figures go, as JSON
    #[arg(long, default_value = "target/bench.json", value_name = "FILE")]
    pub(crate) json: PathBuf,
    /// A folder for CPU profiles of the API server while each contestant creates, for `go tool pprof`. Profiling slows the API server down
    /// a little
    #[arg(long, value_name = "DIR")]
    pub(crate) profiles: Option<PathBuf>,
    /// The binary `pintle`
    #[arg(long, value_name = "FILE")]
    pub(crate) pintle: PathBuf,
    /// The binary of bench/native
    #[arg(long, value_name = "FILE")]
    pub(crate) native: Option<PathBuf>,
    /// The folder of bench.wasm, bench-next.wasm and farm.wasm
    #[arg(long, value_name = "DIR")]
    pub(crate) guests: PathBuf,
}

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Phase {
    /// All roots are created at once, until every child and every status is right; the other phases use these roots
    Create,
    /// The operator stops and starts over converged roots, without and with drift
    Restart,
    /// One field of one root is changed, until its ConfigMap and its status show it
    Update,
    /// A child is deleted, of each kind in turn, until it is back
    Heal,
    /// Nothing happens
    Rest,
    /// Another logic, which changes one child of each root
    Swap,
    /// Another module with the same answers
    Same,
    /// As many roots again, to measure the memory of each
    Memory,
    /// With controller-manager, scheduler and kwok: three Pods for each root, until it is ready
    Pods,
    /// Ten thousand roots
    Many,
    /// Beside a Reconciler whose guest loops forever
    Neighbour,
    /// All Pods are listed through a view, by one client and by sixteen
    ViewList,
    /// One Pod is read through a view: the same, and another one each time
    ViewGet,
    /// A Pod is changed, until a client that watches the view is shown it
    ViewEvent,
    /// A Llama is changed through its view, until a client that watches is shown it; and the same with a CRD of the same schema
    ViewWrite,
    /// A thousand Llamas are created and deleted under a controller that gives each a finalizer and takes it off; and the same with a CRD
    ViewFinalizer,
    /// Two hundred clients watch a view while Pods change
    ViewWatch,
    /// A namespace is deleted with a thousand objects of a view
    ViewNamespace,
}

/// A part of the benchmark that is measured on control planes of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// The operator, beside FLOOR and NATIVE
    Operator,
    /// Views through the gateway, beside the same requests for what they show
    Views,
}

impl Phase {
    pub(crate) const ALL: [Self; 18] = [
        Self::Create,
        Self::Restart,
        Self::Update,
        Self::Heal,
        Self::Rest,
        Self::Swap,
        Self::Same,
        Self::Memory,
        Self::Pods,
        Self::Many,
        Self::Neighbour,
        Self::ViewList,
        Self::ViewGet,
        Self::ViewEvent,
        Self::ViewWrite,
        Self::ViewFinalizer,
        Self::ViewWatch,
        Self::ViewNamespace,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Restart => "restart",
            Self::Update => "update",
            Self::Heal => "heal",
            Self::Rest => "rest",
            Self::Swap => "swap",
            Self::Same => "same",
            Self::Memory => "memory",
            Self::Pods => "pods",
            Self::Many => "many",
            Self::Neighbour => "neighbour",
            Self::ViewList => "view-list",
            Self::ViewGet => "view-get",
            Self::ViewEvent => "view-event",
            Self::ViewWrite => "view-write",
            Self::ViewFinalizer => "view-finalizer",
            Self::ViewWatch => "view-watch",
            Self::ViewNamespace => "view-namespace",
        }
    }

    fn part(self) -> Part {
        match self {
            Self::ViewList
            | Self::ViewGet
            | Self::ViewEvent
            | Self::ViewWrite
            | Self::ViewFinalizer
            | Self::ViewWatch
            | Self::ViewNamespace => Part::Views,
            _ => Part::Operator,
        }
    }
}

/// Who is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Who {
    /// A raw client that makes only the necessary calls
    Floor,
    /// An operator in Go with the same logic
    Native,
    /// The host
    Pintle,
}

impl Who {
    pub(crate) const ALL: [Self; 3] = [Self::Floor, Self::Native, Self::Pintle];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Floor => "FLOOR",
            Self::Native => "NATIVE",
            Self::Pintle => "Pintle",
        }
    }
}

impl Flags {
    pub(crate) fn runs_phase(&self, phase: Phase) -> bool {
        let is_of_part = self.part.is_none_or(|part| part == phase.part());
        is_of_part && (self.phases.is_empty() || self.phases.contains(&phase))
    }

    /// Whether any phase of a part is selected.
    pub(crate) fn runs_part(&self, part: Part) -> bool {
        Phase::ALL.into_iter().any(|phase| phase.part() == part && self.runs_phase(phase))
    }

    /// Whether a selected phase works on the thousand roots, so that they must be created.
    pub(crate) fn needs_the_roots(&self) -> bool {
        use Phase::{Create, Heal, Memory, Rest, Restart, Same, Swap, Update};
        [Create, Restart, Update, Heal, Rest, Swap, Same, Memory]
            .into_iter()
            .any(|phase| self.runs_phase(phase))
    }

    pub(crate) fn takes_part(&self, who: Who) -> bool {
        self.contestants.is_empty() || self.contestants.contains(&who)
    }

    pub(crate) fn rest(&self) -> Duration {
        Duration::from_secs(self.rest_seconds)
    }
}
