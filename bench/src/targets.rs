//! The targets for Pintle, and whether it meets them.

use serde::Serialize;

use crate::{
    figures::Figures,
    settings::{
        Phase::{
            self, Create, Heal, Idle, Memory, Restart, Swap, Update, ViewEvent, ViewGet, ViewList, ViewWrite,
        },
        Who::{self, Floor, Native, Pintle},
    },
};

/// What a figure may be at most: so many times the same figure of another contestant, if there is one, and so much more.
type Target = (Phase, &'static str, Option<(f64, Who)>, f64);

static TARGETS: [Target; 31] = [
    (Create, "converged_s", Some((1.1, Floor)), 0.0),
    (Create, "writes", None, 5.0),
    (Create, "cpu_s", Some((0.5, Native)), 0.0),
    (Create, "peak_mib", None, 45.0),
    (Restart, "writes", None, 0.0),
    (Restart, "quiet_s", None, 1.5),
    (Update, "config_p50_ms", Some((1.1, Native)), 0.0),
    (Update, "config_p99_ms", Some((1.2, Native)), 0.0),
    (Update, "status_p50_ms", Some((0.5, Native)), 0.0),
    (Update, "status_p99_ms", Some((1.2, Native)), 0.0),
    (Update, "writes", None, 2.0),
    (Heal, "healed_p50_ms", Some((0.5, Native)), 0.0),
    (Heal, "writes", None, 1.0),
    (Idle, "requests", None, 0.0),
    (Idle, "cpu_s", None, 0.1),
    (Memory, "growth_mib", None, 6.0),
    (Swap, "swap_s", Some((1.3, Floor)), 0.0),
    (Swap, "writes", None, 2.0),
    (Swap, "created_p95_ms", None, 200.0),
    (Swap, "edited_p95_ms", None, 200.0),
    (ViewList, "p50_ms", Some((1.6, Floor)), 0.0),
    (ViewList, "together_p50_ms", Some((2.0, Floor)), 0.0),
    (ViewList, "first_cpu_us_a_pod", None, 60.0),
    (ViewList, "cpu_us_a_pod", None, 60.0),
    (ViewList, "together_cpu_us_a_pod", None, 60.0),
    (ViewGet, "same_p50_ms", Some((1.0, Floor)), 1.5),
    (ViewGet, "distinct_p50_ms", Some((1.0, Floor)), 3.0),
    (ViewEvent, "p50_ms", Some((1.0, Floor)), 1.5),
    (ViewEvent, "p99_ms", Some((2.0, Floor)), 5.0),
    (ViewWrite, "p50_ms", Some((1.0, Floor)), 1.5),
    (ViewWrite, "p99_ms", Some((2.0, Floor)), 5.0),
];

/// A judged target.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Judged {
    pub(crate) phase: Phase,
    pub(crate) figure: &'static str,
    pub(crate) value: f64,
    pub(crate) limit: f64,
    pub(crate) is_met: bool,
}

/// Judges every target, of which all figures were measured, by the medians.
pub(crate) fn judge(figures: &Figures) -> Vec<Judged> {
    let judged = TARGETS.iter().map(|&(phase, figure, other, more)| {
        let value = figures.median(phase, Pintle, figure)?;
        let base = match other {
            Some((times, who)) => times * figures.median(phase, who, figure)?,
            None => 0.0,
        };
        let limit = base + more;
        Some(Judged { phase, figure, value, limit, is_met: value <= limit })
    });
    judged.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_judged_by_the_median_once_all_its_figures_are_there() {
        let mut figures = Figures::default();
        let judged = |figures: &Figures| {
            let all = judge(figures).into_iter();
            all.map(|judged| (judged.figure, judged.limit, judged.is_met)).collect::<Vec<_>>()
        };
        for (run, value) in [(1, 90.0), (2, 44.0), (3, 45.0)] {
            figures.put(run, Create, Pintle, "peak_mib", value);
        }
        figures.put(1, ViewEvent, Pintle, "p50_ms", 5.75);
        assert_eq!(judged(&figures), [("peak_mib", 45.0, true)]);
        figures.put(1, ViewEvent, Floor, "p50_ms", 4.0);
        assert_eq!(judged(&figures), [("peak_mib", 45.0, true), ("p50_ms", 5.5, false)]);
    }
}
