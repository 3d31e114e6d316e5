//! The table and the JSON.

use std::fs;

use anyhow::{Context, Result};
use clap::ValueEnum as _;
use serde_json::json;

use crate::{
    phases::Outcome,
    settings::{Flags, Phase, Who, name},
    targets,
};

/// Prints the median of every figure, Pintle's divided by those of the others, and the judged targets.
pub(crate) fn print(outcome: &Outcome) {
    println!(
        "\nThe medians of all runs, and Pintle's divided by those of the others; the JSON has every value."
    );
    for phase in Phase::value_variants().iter().copied() {
        print_phase(outcome, phase);
    }
    println!();
    for judged in targets::judge(&outcome.figures) {
        let verdict = if judged.is_met { "met" } else { "MISSED" };
        let (phase, figure, value, limit) = (name(judged.phase), judged.figure, judged.value, judged.limit);
        println!("{verdict:<8}{phase:<12}{figure:<24}{value:>9.2}, at most {limit:.2}");
    }
    for failure in &outcome.failures {
        println!("not measured: {failure}");
    }
}

fn print_phase(outcome: &Outcome, phase: Phase) {
    let names = outcome.figures.names(phase);
    if names.is_empty() {
        return;
    }
    let who = Who::value_variants();
    let columns = who.iter().map(|who| name(*who));
    let ratios = who.iter().filter(|who| **who != Who::Pintle).map(|who| format!("/ {}", name(*who)));
    println!("\n{:<26}{}", name(phase), cells(columns.chain(ratios)));
    for figure in names {
        let medians: Vec<Option<f64>> =
            who.iter().map(|who| outcome.figures.median(phase, *who, figure)).collect();
        let ours = outcome.figures.median(phase, Who::Pintle, figure);
        let ratios = medians.iter().take(who.len() - 1).map(|other| Some(ours? / (*other)?));
        let values =
            medians.iter().copied().chain(ratios.map(|ratio| ratio.filter(|ratio| ratio.is_finite())));
        let values = values.map(|value| value.map_or("-".to_owned(), |value| format!("{value:.2}")));
        println!("  {figure:<24}{}", cells(values));
    }
}

fn cells(cells: impl Iterator<Item = String>) -> String {
    cells.map(|cell| format!("{cell:>10}")).collect::<Vec<_>>().concat()
}

/// Writes all results.
pub(crate) fn write_json(flags: &Flags, outcome: &Outcome) -> Result<()> {
    let report = json!({
        "flags": flags,
        "targets": targets::judge(&outcome.figures),
        "figures": outcome.figures.records,
        "failures": outcome.failures,
    });
    if let Some(folder) = flags.json.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(&flags.json, format!("{report:#}\n"))
        .with_context(|| format!("writing {}", flags.json.display()))
}
