//! Views through a gateway, beside the same requests for what they show.

mod event;
mod finalizer;
mod get;
mod list;
mod namespace;
mod watch;
mod write;

use std::time::Instant;

use anyhow::{Context, Result};

use crate::{
    api::Api,
    farm::Farm,
    figures::{Figures, percentile},
    latency::milliseconds,
    settings::{Flags, Phase},
};

/// The selected phases, on one control plane.
pub(crate) async fn run(flags: &Flags, run: u32, figures: &mut Figures) -> Result<()> {
    let mut farm = Farm::start(flags, run, figures).await?;
    if flags.runs_phase(Phase::ViewNamespace) {
        namespace::alone(&mut farm, "bench-before").await.context("view-namespace")?;
    }
    farm.open().await?;
    if flags.runs_phase(Phase::ViewList) {
        list::run(&mut farm).await.context("view-list")?;
    }
    if flags.runs_phase(Phase::ViewGet) {
        get::run(&mut farm).await.context("view-get")?;
    }
    if flags.runs_phase(Phase::ViewEvent) {
        event::run(&mut farm).await.context("view-event")?;
    }
    if flags.runs_phase(Phase::ViewWrite) || flags.runs_phase(Phase::ViewFinalizer) {
        farm.add_twin()?;
        if flags.runs_phase(Phase::ViewWrite) {
            write::run(&mut farm).await.context("view-write")?;
        }
        if flags.runs_phase(Phase::ViewFinalizer) {
            finalizer::run(&mut farm).await.context("view-finalizer")?;
        }
        // The namespaces that are deleted later have no objects of it.
        farm.remove_twin()?;
    }
    if flags.runs_phase(Phase::ViewWatch) {
        watch::run(&mut farm).await.context("view-watch")?;
    }
    if flags.runs_phase(Phase::ViewNamespace) {
        namespace::with_the_view(&mut farm).await.context("view-namespace")?;
    }
    farm.stop().await
}

/// Reads something, and returns how long that took, in milliseconds, and how many bytes it has.
async fn timed(api: &Api, path: &str) -> Result<(f64, usize)> {
    let began = Instant::now();
    let bytes = api.read(path).await?.len();
    Ok((milliseconds(Instant::now(), began), bytes))
}

/// Latencies of the same request, in milliseconds.
#[derive(Debug, Default)]
struct Pairs {
    direct: Vec<f64>,
    view: Vec<f64>,
}

impl Pairs {
    fn percentiles(&self, percent: f64) -> (f64, f64) {
        (percentile(&self.direct, percent), percentile(&self.view, percent))
    }

    /// Reads a pair of paths one after the other. Which comes first changes with each sample.
    async fn sample(&mut self, api: &Api, sample: u32, direct: &str, view: &str) -> Result<()> {
        for turn in [sample % 2, (sample + 1) % 2] {
            match turn {
                0 => self.direct.push(timed(api, direct).await?.0),
                _ => self.view.push(timed(api, view).await?.0),
            }
        }
        Ok(())
    }
}
