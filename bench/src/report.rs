//! The table and the JSON.

use std::fs;

use anyhow::{Context, Result};
use clap::ValueEnum as _;
use serde_json::json;

use crate::{
    figures::Figures,
    settings::{Flags, Phase, Who, built, name},
    targets,
};

/// Prints the median of every figure, Pintle's divided by those of the others, and the judged targets.
pub(crate) fn print(figures: &Figures) {
    println!(
        "\nThe medians of all runs, and Pintle's divided by those of the others; the JSON has every value."
    );
    for phase in Phase::value_variants().iter().copied() {
        print_phase(figures, phase);
    }
    println!();
    for judged in targets::judge(figures) {
        let verdict = if judged.is_met { "met" } else { "MISSED" };
        let (phase, figure, value, limit) = (name(judged.phase), judged.figure, judged.value, judged.limit);
        println!("{verdict:<8}{phase:<12}{figure:<24}{value:>9.2}, at most {limit:.2}");
    }
    for failure in &figures.failures {
        println!("not measured: {failure}");
    }
}

fn print_phase(figures: &Figures, phase: Phase) {
    let names = figures.names(phase);
    if names.is_empty() {
        return;
    }
    let who = Who::value_variants();
    let others = || who.iter().filter(|who| **who != Who::Pintle);
    let columns = who.iter().map(|who| name(*who)).chain(others().map(|who| format!("/ {}", name(*who))));
    println!("\n{:<26}{}", name(phase), cells(columns));
    for figure in names {
        let median = |who: &Who| figures.median(phase, *who, figure);
        let ratio = |other| Some(median(&Who::Pintle)? / median(other)?).filter(|ratio| ratio.is_finite());
        let values = who.iter().map(median).chain(others().map(ratio));
        let values = values.map(|value| value.map_or("-".to_owned(), |value| format!("{value:.2}")));
        println!("  {figure:<24}{}", cells(values));
    }
}

fn cells(cells: impl Iterator<Item = String>) -> String {
    cells.map(|cell| format!("{cell:>10}")).collect::<Vec<_>>().concat()
}

/// Writes all results.
pub(crate) fn write_json(flags: &Flags, figures: &Figures) -> Result<()> {
    let report = json!({
        "flags": flags,
        "targets": targets::judge(figures),
        "figures": figures.records,
        "failures": figures.failures,
    });
    let file = built("../bench.json")?;
    fs::write(&file, format!("{report:#}\n")).with_context(|| format!("writing {}", file.display()))
}
