//! One run: what it is of, and what it comes to.

use std::{
    collections::BTreeSet,
    fmt::{self, Debug, Display},
    time::Duration,
};

use jiff::Timestamp;
use pintle_api::GATEWAY_SERVICE;
use pintle_engine::Digest;
use pintle_runtime::clock;
use pintle_simulator::Snapshot;
use serde_json::Value;

use crate::plan::{AnyFault, Plan};

/// The time at which the first cluster is made. It is far from the present, so that a time of the operating system would be noticed.
pub(crate) const EPOCH: Timestamp = Timestamp::constant(946_684_800, 0);

/// The seed of settings. It is never the seed of a run, or two objects could have the same uid.
pub(crate) const SETTING: u64 = 0x5eed_f0a4_0000_0001;

/// The word for the start of a process in a trace.
pub(crate) const STARTS: &str = "starts";

/// The processes that are simulated: hosts, or gateways.
pub trait Replicas: Sized + 'static {
    /// What goes wrong with them.
    type Fault: AnyFault;
    /// What a search counts faults by.
    type Class: Ord + Display + Send;
    /// What must hold in every run.
    type Property: Copy + Eq + Debug + Display + Send + Sync;
    /// What else is known of a run.
    type Evidence: Send + Sync;

    /// What the name of each of them begins with.
    const PREFIX: &'static str;
    /// The property that the same seed and plan lead to the same run, which does not use the operating system's time or random numbers.
    const REPEATABLE: Self::Property;

    /// Whether this is the name of one of them.
    fn has(name: &str) -> bool {
        name.starts_with(Self::PREFIX)
    }

    /// All classes.
    fn classes() -> Vec<Self::Class>;

    /// The classes of a plan of these faults.
    fn classes_of(faults: &[Self::Fault]) -> Vec<Self::Class>;
}

/// What can be run with plans.
pub trait Simulate: Sized + Sync {
    /// Its processes.
    type Replicas: Replicas;

    /// Its name in lines to replay.
    fn name(&self) -> &str;

    /// Runs a plan. The reference is its run without faults, unless this is that run.
    ///
    /// # Errors
    /// When the machine lacks the resources for a run.
    fn outcome(
        &self,
        seed: u64,
        plan: &Plan<FaultOf<Self>>,
        reference: Option<&RunOutcome<Self::Replicas>>,
    ) -> anyhow::Result<RunOutcome<Self::Replicas>>;
}

/// What goes wrong in the runs of a simulation.
pub type FaultOf<S> = <<S as Simulate>::Replicas as Replicas>::Fault;

/// Something that happened in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceEntry {
    /// When, since the run began.
    pub at: Duration,
    /// Who did it: a process, somebody, or the plan.
    pub who: String,
    /// What was done.
    pub what: String,
}

impl Display for TraceEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>9.3} s  {:<8} {}", self.at.as_secs_f64(), self.who, self.what)
    }
}

/// A property that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken<P> {
    /// The property.
    pub property: P,
    /// When it was seen, since the run began.
    pub at: Option<Duration>,
    /// What was found instead.
    pub what: String,
}

impl<P> Broken<P> {
    pub(crate) fn new(property: P, what: impl Into<String>) -> Self {
        Self { property, at: None, what: what.into() }
    }

    pub(crate) fn at(property: P, at: Duration, what: String) -> Self {
        Self { property, at: Some(at), what }
    }
}

impl<P: Display> Display for Broken<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.property, self.what.trim_end())?;
        self.at.map_or(Ok(()), |at| write!(f, "\n  at {:.3} s", at.as_secs_f64()))
    }
}

/// The outcome of a run.
pub struct RunOutcome<R: Replicas> {
    /// How many requests the processes made while the plan happened.
    pub requests: u32,
    /// Which of them write, counted from 1.
    pub writes: Vec<u32>,
    /// How many events their watches brought.
    pub events: u32,
    /// The faults of the plan that happened.
    pub hit: BTreeSet<R::Fault>,
    /// The first property that did not hold.
    pub broken: Option<Broken<R::Property>>,
    /// Everything that happened.
    pub steps: Vec<TraceEntry>,
    /// What else is known of it.
    pub evidence: R::Evidence,
    /// All objects at the end.
    pub(crate) left: Snapshot,
}

impl<R: Replicas> RunOutcome<R> {
    /// A text that is equal for two runs exactly if the same happened in both. Each call makes it anew, because few runs are compared.
    pub fn hash(&self) -> String {
        let steps = self.steps.iter().map(|step| format!("{step}\n"));
        // A gateway's Events are kube's recorder's, which names and dates them by the operating system. The steps say when each was written.
        let is_kubes = |object: &Value| object["reportingController"] == GATEWAY_SERVICE;
        let left = self.left.objects.iter();
        let left = left.filter(|(reference, object)| reference.kind != "Event" || !is_kubes(object));
        let left = left.map(|(reference, object)| format!("{reference} {object}\n"));
        Digest::of(steps.chain(left).collect::<String>().as_bytes()).to_string()
    }

    /// The steps until a property was seen to be broken.
    pub fn until_broken(&self) -> &[TraceEntry] {
        let at = self.broken.as_ref().and_then(|broken| broken.at).unwrap_or(Duration::MAX);
        &self.steps[..self.steps.partition_point(|step| step.at <= at)]
    }

    /// The steps that led to the broken property, for people: the actions of the plan and of users, and this many of the last steps.
    pub fn last_steps(&self, last: usize) -> String {
        let steps = self.until_broken();
        let from = steps.len().saturating_sub(last);
        let mut text = String::new();
        let mut is_left_out = false;
        for (index, step) in steps.iter().enumerate() {
            if index >= from || matches!(step.who.as_str(), "plan" | "user" | "somebody") {
                if std::mem::take(&mut is_left_out) {
                    text.push_str("  ...\n");
                }
                text.push_str(&format!("  {step}\n"));
            } else {
                is_left_out = true;
            }
        }
        text
    }
}

/// Runs a future on one thread whose time stands still while there is anything to do.
pub(crate) fn in_stopped_time<T>(future: impl Future<Output = T>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    Ok(runtime.block_on(future))
}

/// Carries out a run, which must not depend on the operating system.
pub(crate) fn repeatable<R: Replicas>(
    run: impl Future<Output = RunOutcome<R>>,
) -> anyhow::Result<RunOutcome<R>> {
    clock::forbid();
    let outcome = in_stopped_time(run);
    let touched = clock::touched();
    let mut outcome = outcome?;
    if let Some(touched) = touched {
        let what = format!("a process asked the operating system for {touched}");
        outcome.broken = Some(Broken::new(R::REPEATABLE, what));
    }
    Ok(outcome)
}
