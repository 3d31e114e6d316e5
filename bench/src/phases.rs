//! The phases, in order.

mod create;
mod many;
mod neighbour;
mod pods;
mod rest;
mod restart;
mod single;
mod swap;
mod views;

use anyhow::{Context, Result};

use crate::{
    figures::Figures,
    report,
    settings::{Flags, Part, Phase, Who},
    stage::Stage,
};

/// The results of the phases.
pub(crate) struct Measurements {
    pub(crate) figures: Figures,
    /// The concurrencies that were tried for FLOOR, each with the seconds that the load took.
    pub(crate) floor_tried: Vec<(u32, f64)>,
    pub(crate) floor_concurrency: u32,
    /// Errors, with their phases. A failed phase has no figures.
    pub(crate) failures: Vec<String>,
}

/// Runs the selected phases, prints the table, and writes the JSON. Fails if a phase could not be measured, but not if a target is missed.
pub(crate) async fn run(flags: &Flags) -> Result<()> {
    let mut outcome = Measurements {
        figures: Figures::default(),
        floor_tried: Vec::new(),
        floor_concurrency: 16,
        failures: Vec::new(),
    };
    match flags.floor_concurrency {
        Some(concurrency) => outcome.floor_concurrency = concurrency,
        None if flags.takes_part(Who::Floor) && flags.runs_part(Part::Operator) => {
            let tried = create::try_floor(flags).await.context("finding FLOOR's concurrency")?;
            let best = tried.iter().min_by(|(_, one), (_, other)| one.total_cmp(other));
            outcome.floor_concurrency = best.map_or(16, |(concurrency, _)| *concurrency);
            outcome.floor_tried = tried;
        }
        None => {}
    }
    let runs = if flags.runs_part(Part::Operator) { flags.runs } else { 0 };
    for run in 1..=runs {
        // The contestants take turns, and each run begins with another one, because the speed of a machine changes.
        for turn in 0..Who::ALL.len() {
            let who = Who::ALL[(turn + run as usize - 1) % Who::ALL.len()];
            if flags.takes_part(who) {
                one_turn(flags, run, who, &mut outcome).await;
                // After every turn, so that an interrupted run leaves its results.
                report::write_json(flags, &outcome)?;
            }
        }
    }
    if flags.runs_part(Part::Views)
        && flags.takes_part(Who::Pintle)
        && let Err(error) = views::run(flags, 1, &mut outcome.figures).await
    {
        eprintln!("the views FAILED: {error:#}");
        outcome.failures.push(format!("the views: {error:#}"));
    }
    report::print(flags, &outcome);
    report::write_json(flags, &outcome)?;
    anyhow::ensure!(outcome.failures.is_empty(), "not measured:\n{}", outcome.failures.join("\n"));
    Ok(())
}

/// All phases of one contestant in one run. The phases that are not judged by a median are only in the first run.
async fn one_turn(flags: &Flags, run: u32, who: Who, outcome: &mut Measurements) {
    let concurrency = outcome.floor_concurrency;
    let figures = &mut outcome.figures;
    let mut failed = |what: &str, result: Result<()>| {
        if let Err(error) = result {
            eprintln!("{what} of {} in run {run} FAILED: {error:#}", who.name());
            outcome.failures.push(format!("{what} of {} in run {run}: {error:#}", who.name()));
        }
    };
    if flags.needs_the_roots() {
        failed("the roots", the_roots(flags, run, who, concurrency, figures).await);
    }
    if run > 1 {
        return;
    }
    if flags.runs_phase(Phase::Pods) && who != Who::Floor {
        failed("pods", pods::run(flags, run, who, figures).await);
    }
    if flags.runs_phase(Phase::Many) && who != Who::Native {
        failed("many", many::run(flags, run, who, concurrency, figures).await);
    }
    if flags.runs_phase(Phase::Neighbour) && who == Who::Pintle {
        failed("neighbour", neighbour::run(flags, run, figures).await);
    }
}

/// The phases that work on the same thousand roots.
async fn the_roots(flags: &Flags, run: u32, who: Who, concurrency: u32, figures: &mut Figures) -> Result<()> {
    let mut stage = Stage::start(flags, run, who, false, concurrency, figures).await?;
    create::run(&mut stage).await.context("create")?;
    if who == Who::Floor {
        if flags.runs_phase(Phase::Swap) {
            swap::floor(&mut stage).await.context("swap")?;
        }
        return stage.stop().await;
    }
    if flags.runs_phase(Phase::Restart) {
        restart::run(&mut stage).await.context("restart")?;
    }
    if flags.runs_phase(Phase::Update) {
        single::update(&mut stage).await.context("update")?;
    }
    if flags.runs_phase(Phase::Heal) {
        single::heal(&mut stage).await.context("heal")?;
    }
    if flags.runs_phase(Phase::Rest) && run == 1 {
        rest::run(&mut stage).await.context("rest")?;
    }
    if flags.runs_phase(Phase::Memory) {
        create::further(&mut stage).await.context("memory")?;
    }
    if flags.runs_phase(Phase::Same) && who == Who::Pintle {
        swap::same(&mut stage).await.context("same")?;
    }
    if flags.runs_phase(Phase::Swap) {
        swap::run(&mut stage).await.context("swap")?;
    }
    stage.stop().await
}
