//! The targets for Pintle, and whether it meets them.

mod views;

use serde::Serialize;

use crate::{
    figures::Figures,
    settings::{Phase, Who},
};

/// A judged target.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Judged {
    pub(crate) phase: &'static str,
    pub(crate) target: &'static str,
    pub(crate) measured: String,
    pub(crate) verdict: TargetStatus,
}

/// Whether a target is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum TargetStatus {
    /// It is.
    Met,
    /// It is not.
    Missed,
    /// A figure that it needs was not measured.
    NotRun,
}

/// A target: what it requires, and how to judge it.
struct Target {
    phase: Phase,
    target: &'static str,
    judge: fn(&Figures) -> Option<(String, bool)>,
}

/// Judges every target by the medians.
pub(crate) fn judge(figures: &Figures) -> Vec<Judged> {
    let judged = TARGETS.iter().chain(&views::TARGETS).map(|target| {
        let (measured, verdict) = match (target.judge)(figures) {
            Some((measured, true)) => (measured, TargetStatus::Met),
            Some((measured, false)) => (measured, TargetStatus::Missed),
            None => ("not run".to_owned(), TargetStatus::NotRun),
        };
        Judged { phase: target.phase.name(), target: target.target, measured, verdict }
    });
    judged.collect()
}

fn pintle(figures: &Figures, phase: Phase, figure: &str) -> Option<f64> {
    figures.median(phase, Who::Pintle, figure)
}

fn native(figures: &Figures, phase: Phase, figure: &str) -> Option<f64> {
    figures.median(phase, Who::Native, figure)
}

fn floor(figures: &Figures, phase: Phase, figure: &str) -> Option<f64> {
    figures.median(phase, Who::Floor, figure)
}

/// Compares Pintle's value with a multiple of another one.
fn at_most(pintle: f64, times: f64, other: f64, name: &str, unit: &str) -> (String, bool) {
    (format!("{pintle:.2} {unit}: {:.2} x {name}'s {other:.2}", pintle / other), pintle <= times * other)
}

/// Adds how fast the machine was for Pintle, compared with the other contestant, if both are known. The verdict does not depend on it.
fn with_speed(figures: &Figures, phase: Phase, other: Who, (text, met): (String, bool)) -> (String, bool) {
    let speed = |who| figures.median(phase, who, "machine_speed");
    match (speed(Who::Pintle), speed(other)) {
        (Some(ours), Some(theirs)) => {
            (format!("{text}; the machine ran at {:.2} x {}'s speed", ours / theirs, other.name()), met)
        }
        _ => (text, met),
    }
}

/// Compares Pintle's value with a limit.
fn limit(pintle: f64, limit: f64, unit: &str) -> (String, bool) {
    (format!("{pintle:.2} {unit}"), pintle <= limit)
}

const TARGETS: [Target; 24] = [
    Target {
        phase: Phase::Create,
        target: "wall at most 1.1 x FLOOR",
        judge: |f| {
            let (ours, floor) =
                (pintle(f, Phase::Create, "converged_s")?, floor(f, Phase::Create, "converged_s")?);
            Some(with_speed(f, Phase::Create, Who::Floor, at_most(ours, 1.1, floor, "FLOOR", "s")))
        },
    },
    Target {
        phase: Phase::Create,
        target: "exactly 5 mutating calls a root",
        judge: |f| {
            let calls = pintle(f, Phase::Create, "mutating_calls_per_root")?;
            Some((format!("{calls:.3}"), (calls - 5.0).abs() < 1e-9))
        },
    },
    Target {
        phase: Phase::Create,
        target: "quiet at once (within 0.1 s)",
        judge: |f| {
            let after = pintle(f, Phase::Create, "quiet_s")? - pintle(f, Phase::Create, "converged_s")?;
            Some(limit(after, 0.1, "s after convergence"))
        },
    },
    Target {
        phase: Phase::Create,
        target: "own CPU at most 0.5 x NATIVE until quiet",
        judge: |f| {
            let (ours, native) = (pintle(f, Phase::Create, "cpu_s")?, native(f, Phase::Create, "cpu_s")?);
            Some(with_speed(f, Phase::Create, Who::Native, at_most(ours, 0.5, native, "NATIVE", "s")))
        },
    },
    Target {
        phase: Phase::Create,
        target: "peak memory at most 45 MiB",
        judge: |f| Some(limit(pintle(f, Phase::Create, "peak_mib")?, 45.0, "MiB")),
    },
    Target {
        phase: Phase::Memory,
        target: "each further 1000 roots at most 6 MiB",
        judge: |f| Some(limit(pintle(f, Phase::Memory, "further_1000_mib")?, 6.0, "MiB")),
    },
    Target {
        phase: Phase::Restart,
        target: "0 mutating calls",
        judge: |f| Some(limit(pintle(f, Phase::Restart, "mutating_calls")?, 0.0, "calls")),
    },
    Target {
        phase: Phase::Restart,
        target: "quiet within 1.5 s",
        judge: |f| Some(limit(pintle(f, Phase::Restart, "quiet_s")?, 1.5, "s")),
    },
    Target {
        phase: Phase::Restart,
        target: "what drifted meanwhile repaired (2 children: 2 mutating calls)",
        judge: |f| {
            let (seconds, calls) = (
                pintle(f, Phase::Restart, "drift_repaired_s")?,
                pintle(f, Phase::Restart, "drift_mutating_calls")?,
            );
            Some((format!("after {seconds:.2} s, {calls:.0} calls"), calls <= 2.0))
        },
    },
    Target {
        phase: Phase::Update,
        target: "to the ConfigMap: p50 at most 1.1 x NATIVE",
        judge: |f| ratio(f, Phase::Update, "config_p50_ms", 1.1),
    },
    Target {
        phase: Phase::Update,
        target: "to the status: p50 at most 0.5 x NATIVE",
        judge: |f| ratio(f, Phase::Update, "status_p50_ms", 0.5),
    },
    Target {
        phase: Phase::Update,
        target: "to the ConfigMap: p99 at most 1.2 x NATIVE",
        judge: |f| ratio(f, Phase::Update, "config_p99_ms", 1.2),
    },
    Target {
        phase: Phase::Update,
        target: "to the status: p99 at most 1.2 x NATIVE",
        judge: |f| ratio(f, Phase::Update, "status_p99_ms", 1.2),
    },
    Target {
        phase: Phase::Update,
        target: "calls: the one child that changed, plus one",
        judge: |f| Some(limit(pintle(f, Phase::Update, "mutating_calls_per_sample")?, 2.0, "calls")),
    },
    Target {
        phase: Phase::Heal,
        target: "p50 at most 0.5 x NATIVE",
        judge: |f| ratio(f, Phase::Heal, "healed_p50_ms", 0.5),
    },
    Target {
        phase: Phase::Heal,
        target: "1 call",
        judge: |f| Some(limit(pintle(f, Phase::Heal, "mutating_calls_per_sample")?, 1.0, "calls")),
    },
    Target {
        phase: Phase::Rest,
        target: "0 calls beyond lease and watch renewals, under 0.1 s CPU a minute",
        judge: |f| {
            let calls = pintle(f, Phase::Rest, "beyond_leases_and_watches")?;
            let seconds = pintle(f, Phase::Rest, "seconds")?;
            let cpu = pintle(f, Phase::Rest, "cpu_s")?;
            let sleeps = pintle(f, Phase::Rest, "sleeps")?;
            let text = format!(
                "{calls:.0} calls, {cpu:.2} s CPU in {seconds:.0} s, its threads slept {:.1} times a second",
                sleeps / seconds
            );
            Some((text, calls == 0.0 && cpu < 0.1 * seconds / 60.0))
        },
    },
    Target {
        phase: Phase::Pods,
        target: "at most 8 mutating calls a root until Ready; every Ready true",
        judge: |f| Some(limit(pintle(f, Phase::Pods, "mutating_calls_per_root")?, 8.0, "calls")),
    },
    Target {
        phase: Phase::Swap,
        target: "one apply a root (plus status), at most 1.3 x what FLOOR needs for those calls",
        judge: |f| {
            let calls = pintle(f, Phase::Swap, "mutating_calls_per_root")?;
            // If Pintle writes statuses, so does FLOOR.
            let figure = if calls > 1.5 { "swap_with_statuses_s" } else { "swap_s" };
            let (text, fast) =
                at_most(pintle(f, Phase::Swap, "swap_s")?, 1.3, floor(f, Phase::Swap, figure)?, "FLOOR", "s");
            Some((format!("{text}, {calls:.2} calls a root"), fast && calls <= 2.0))
        },
    },
    Target {
        phase: Phase::Swap,
        target: "a root created during it within 200 ms at p95",
        judge: |f| Some(limit(pintle(f, Phase::Swap, "created_during_p95_ms")?, 200.0, "ms")),
    },
    Target {
        phase: Phase::Swap,
        target: "an edit during it within 200 ms at p95",
        judge: |f| Some(limit(pintle(f, Phase::Swap, "edited_during_p95_ms")?, 200.0, "ms")),
    },
    Target {
        phase: Phase::Same,
        target: "0 mutating calls on roots and children",
        judge: |f| Some(limit(pintle(f, Phase::Same, "mutating_calls")?, 0.0, "calls")),
    },
    Target {
        phase: Phase::Many,
        target: "converges at FLOOR's rate (within 1.1 x), memory linear, restart quiet within 10 s",
        judge: |f| {
            let (ours, floor) =
                (pintle(f, Phase::Many, "converged_s")?, floor(f, Phase::Many, "converged_s")?);
            let (text, fast) = at_most(ours, 1.1, floor, "FLOOR", "s");
            let (half, all) =
                (pintle(f, Phase::Many, "half_resident_mib")?, pintle(f, Phase::Many, "resident_mib")?);
            let restart = pintle(f, Phase::Many, "restart_quiet_s")?;
            let text = format!(
                "{text}; {half:.0} MiB at half, {all:.0} MiB at the end; restart quiet after {restart:.1} s"
            );
            Some((text, fast && all <= 2.0 * half && restart <= 10.0))
        },
    },
    Target {
        phase: Phase::Neighbour,
        target: "the other reconciler's update p99 at most 2 x what it was",
        judge: |f| {
            let (alone, beside) =
                (pintle(f, Phase::Neighbour, "alone_p99_ms")?, pintle(f, Phase::Neighbour, "beside_p99_ms")?);
            Some((format!("{beside:.1} ms, alone {alone:.1} ms"), beside <= 2.0 * alone))
        },
    },
];

fn ratio(figures: &Figures, phase: Phase, figure: &str, times: f64) -> Option<(String, bool)> {
    let judged =
        at_most(pintle(figures, phase, figure)?, times, native(figures, phase, figure)?, "NATIVE", "ms");
    Some(with_speed(figures, phase, Who::Native, judged))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_run_is_not_met() {
        let judged = judge(&Figures::default());
        assert!(
            judged
                .iter()
                .all(|judged| judged.verdict == TargetStatus::NotRun && judged.measured == "not run")
        );
    }

    #[test]
    fn a_target_is_judged_by_the_median() {
        let mut figures = Figures::default();
        for (run, value) in [(1, 90.0), (2, 44.0), (3, 45.0)] {
            figures.put(run, Phase::Create, Who::Pintle, "peak_mib", value);
        }
        let judged = judge(&figures);
        let memory = judged.iter().find(|judged| judged.target.contains("45 MiB")).unwrap();
        assert_eq!((memory.verdict, memory.measured.as_str()), (TargetStatus::Met, "45.00 MiB"));
    }
}
