//! The phases, in order.

mod events;
mod reads;
mod roots;
mod single;
mod swap;

use std::time::Instant;

use anyhow::{Context, Result};
use clap::ValueEnum as _;

use crate::{
    figures::{Figures, percentile},
    report,
    settings::{Flags, Part, Phase, Who, name},
    stage::Stage,
};

/// Runs the selected phases, prints the table, and writes the JSON. Fails if a phase could not be measured, but not if a target is missed.
pub(crate) async fn run(flags: &Flags) -> Result<()> {
    let parts = [(Part::Operator, flags.runs), (Part::Views, 1)];
    for who in parts.iter().flat_map(|(part, _)| flags.contestants(*part)) {
        flags.program(who)?;
    }
    let mut figures = Figures::default();
    for (part, runs) in parts {
        let mut contestants = flags.contestants(part);
        for run in 1..=runs {
            for who in contestants.iter().copied() {
                if let Err(error) = measure(flags, run, who, part, &mut figures).await {
                    let failure = format!("{} in run {run} of {}: {error:#}", name(who), name(part));
                    eprintln!("FAILED: {failure}");
                    figures.failures.push(failure);
                }
                // After every turn, so that an interrupted run leaves its results.
                report::write_json(flags, &figures)?;
            }
            // The contestants take turns, and each run begins with another one, because the speed of a machine changes.
            let first = contestants.len().min(1);
            contestants.rotate_left(first);
        }
    }
    report::print(&figures);
    anyhow::ensure!(figures.failures.is_empty(), "not measured:\n{}", figures.failures.join("\n"));
    Ok(())
}

/// All phases of one contestant in one run.
async fn measure(flags: &Flags, run: u32, who: Who, part: Part, figures: &mut Figures) -> Result<()> {
    let mut stage = Stage::start(flags, run, who, part, figures).await?;
    for phase in Phase::value_variants().iter().copied().filter(|phase| is_due(flags, run, who, part, *phase))
    {
        println!("  {}: {}", name(phase), name(who));
        let outcome = run_phase(&mut stage, phase).await;
        outcome.with_context(|| format!("{}\n{}", stage.end_of_log(), name(phase)))?;
    }
    stage.stop()
}

/// All other phases of the operator work on the roots of the first. FLOOR only makes calls.
fn is_due(flags: &Flags, run: u32, who: Who, part: Part, phase: Phase) -> bool {
    phase.part() == part
        && (phase == Phase::Create || flags.runs_phase(phase))
        && (who != Who::Floor || [Phase::Create, Phase::Swap].contains(&phase))
        && (phase != Phase::Idle || run == 1)
}

async fn run_phase(stage: &mut Stage<'_>, phase: Phase) -> Result<()> {
    let roots = stage.flags.roots;
    match phase {
        Phase::Create => roots::create(stage, phase, 0..roots).await,
        Phase::Restart => roots::restart(stage).await,
        Phase::Update => single::update(stage).await,
        Phase::Heal => single::heal(stage).await,
        Phase::Idle => roots::idle(stage).await,
        Phase::Memory => roots::create(stage, phase, roots..2 * roots).await,
        Phase::Swap if stage.who == Who::Floor => swap::floor(stage),
        Phase::Swap => swap::run(stage).await,
        Phase::ViewList => reads::list(stage).await,
        Phase::ViewGet => reads::get(stage).await,
        Phase::ViewEvent => events::pod_event(stage).await,
        Phase::ViewWrite => events::llama_event(stage).await,
    }
}

/// The time between two moments in milliseconds. The benchmark's watch may show an effect before its own reply comes; that counts as zero.
fn milliseconds(later: Instant, earlier: Instant) -> f64 {
    later.saturating_duration_since(earlier).as_secs_f64() * 1000.0
}

/// Latencies of the same request, directly and through a view, in milliseconds.
#[derive(Debug, Default)]
struct Pairs {
    direct: Vec<f64>,
    view: Vec<f64>,
}

impl Pairs {
    /// Measures both, the view where the argument is true. Which comes first changes with each sample.
    async fn add(
        &mut self,
        sample: u32,
        mut measure: impl AsyncFnMut(bool) -> Result<Vec<f64>>,
    ) -> Result<()> {
        let is_first = sample % 2 == 1;
        for is_view in [is_first, !is_first] {
            let latencies = if is_view { &mut self.view } else { &mut self.direct };
            latencies.extend(measure(is_view).await?);
        }
        Ok(())
    }

    /// Records a percentile of each. What is direct counts as FLOOR's.
    fn put(&self, stage: &mut Stage<'_>, phase: Phase, figure: &'static str, percent: f64) {
        stage.put_of(Who::Floor, phase, figure, percentile(&self.direct, percent));
        stage.put(phase, figure, percentile(&self.view, percent));
    }
}
