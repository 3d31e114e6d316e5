//! The table and the JSON.

use std::{fs, thread};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::{
    figures::{HOW, how},
    phases::Measurements,
    settings::{Flags, Part, Phase, Who},
    targets::{self, TargetStatus},
};

/// Prints every median, the calls of the first run, and the judged targets.
pub(crate) fn print(flags: &Flags, outcome: &Measurements) {
    println!();
    println!("Medians of {} runs; the JSON has every value, and how each is measured.", flags.runs);
    for phase in Phase::ALL {
        let figures = HOW.iter().map(|(figure, _)| *figure);
        let rows: Vec<(&str, [Option<f64>; 3])> = figures
            .map(|figure| (figure, Who::ALL.map(|who| outcome.figures.median(phase, who, figure))))
            .filter(|(_, medians)| medians.iter().any(Option::is_some))
            .collect();
        if rows.is_empty() {
            continue;
        }
        println!();
        println!("{:<30}{:>12}{:>12}{:>12}", phase.name(), "FLOOR", "NATIVE", "Pintle");
        for (figure, medians) in rows {
            let cells = medians.map(|median| median.map_or("-".to_owned(), |value| format!("{value:.2}")));
            println!("  {figure:<28}{:>12}{:>12}{:>12}", cells[0], cells[1], cells[2]);
        }
        for calls in
            outcome.figures.calls.iter().filter(|calls| calls.phase == phase.name() && calls.run == 1)
        {
            let list = |tally: &std::collections::BTreeMap<String, usize>| {
                let all: Vec<String> = tally.iter().map(|(call, count)| format!("{count} {call}")).collect();
                if all.is_empty() { "none".to_owned() } else { all.join(", ") }
            };
            let part = if calls.part.is_empty() { String::new() } else { format!(" ({})", calls.part) };
            println!("  calls of {}{part}: {}; apart: {}", calls.who, list(&calls.calls), list(&calls.apart));
        }
    }
    if flags.runs_part(Part::Operator) {
        println!();
        let tried: Vec<String> = outcome
            .floor_tried
            .iter()
            .map(|(concurrency, seconds)| format!("{concurrency}: {seconds:.2} s"))
            .collect();
        println!("FLOOR has {} requests in flight (tried: {})", outcome.floor_concurrency, tried.join(", "));
        if flags.floor_marked {
            println!("FLOOR sends what the host sends on top; the targets mean FLOOR without that.");
        }
    }
    println!();
    let judged = targets::judge(&outcome.figures);
    for target in &judged {
        let verdict = match target.verdict {
            TargetStatus::Met => "met",
            TargetStatus::Missed => "MISSED",
            TargetStatus::NotRun => "-",
        };
        println!("{verdict:<8}{:<15}{:<82} {}", target.phase, target.target, target.measured);
    }
    let with = |verdict: TargetStatus| judged.iter().filter(|judged| judged.verdict == verdict).count();
    println!(
        "{} met, {} missed, {} not run",
        with(TargetStatus::Met),
        with(TargetStatus::Missed),
        with(TargetStatus::NotRun)
    );
    for failure in &outcome.failures {
        println!("not measured: {failure}");
    }
}

/// Writes all results.
pub(crate) fn write_json(flags: &Flags, outcome: &Measurements) -> Result<()> {
    let measured =
        |figure: &&(&str, &str)| outcome.figures.records.iter().any(|record| record.figure == figure.0);
    let how: serde_json::Map<String, Value> = HOW
        .iter()
        .filter(measured)
        .map(|(figure, _)| ((*figure).to_owned(), json!(how(figure).unwrap_or_default())))
        .collect();
    let report = json!({
        "machine": {
            "cores": thread::available_parallelism().map_or(0, usize::from),
            "cpu": cpu_model(),
            "memoryKiB": meminfo(),
            "kernel": fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim(),
        },
        "settings": {"runs": flags.runs, "roots": flags.roots, "many": flags.many, "samples": flags.samples,
            "pods": flags.pods, "morePods": flags.more_pods, "watches": flags.watches, "watchSeconds": flags.watch_seconds, "llamas": flags.llamas},
        "floor": {"concurrency": outcome.floor_concurrency, "tried": outcome.floor_tried, "marked": flags.floor_marked},
        "targets": targets::judge(&outcome.figures),
        "how": how,
        "figures": outcome.figures.records,
        "calls": outcome.figures.calls,
        "failures": outcome.failures,
    });
    if let Some(folder) = flags.json.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(&flags.json, format!("{report:#}\n"))
        .with_context(|| format!("writing {}", flags.json.display()))
}

fn cpu_model() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("model name"));
    line.and_then(|line| line.split_once(": ")).map(|(_, model)| model.to_owned()).unwrap_or_default()
}

fn meminfo() -> Option<u64> {
    fs::read_to_string("/proc/meminfo").ok()?.lines().next()?.split_whitespace().nth(1)?.parse().ok()
}
