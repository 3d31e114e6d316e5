//! The targets for views.

use super::{Target, pintle};
use crate::{figures::Figures, settings::Phase};

/// Compares what a view takes with a multiple of what the same takes directly, and a constant on top.
fn beside(
    figures: &Figures,
    phase: Phase,
    [view, direct]: [&str; 2],
    times: f64,
    more: f64,
    unit: &str,
) -> Option<(String, bool)> {
    let (view, direct) = (pintle(figures, phase, view)?, pintle(figures, phase, direct)?);
    let text = format!(
        "{view:.2} {unit}; direct {direct:.2} {unit}: {:.2} x, {:+.2} {unit}",
        view / direct,
        view - direct
    );
    Some((text, view <= times * direct + more))
}

/// Compares figures of the gateway with the same limit.
fn each(figures: &Figures, phase: Phase, names: &[&str], limit: f64, unit: &str) -> Option<(String, bool)> {
    let values: Option<Vec<f64>> = names.iter().map(|name| pintle(figures, phase, name)).collect();
    let values = values?;
    let said: Vec<String> = values.iter().map(|value| format!("{value:.1}")).collect();
    Some((format!("{} {unit}", said.join(" and ")), values.iter().all(|value| *value <= limit)))
}

pub(super) const TARGETS: [Target; 16] = [
    Target {
        phase: Phase::ViewList,
        target: "one client: p50 at most 1.6 x the direct list",
        judge: |f| beside(f, Phase::ViewList, ["view_p50_ms", "direct_p50_ms"], 1.6, 0.0, "ms"),
    },
    Target {
        phase: Phase::ViewList,
        target: "sixteen clients: p50 at most 2.0 x the direct list",
        judge: |f| {
            let figures = ["view_together_p50_ms", "direct_together_p50_ms"];
            beside(f, Phase::ViewList, figures, 2.0, 0.0, "ms")
        },
    },
    Target {
        phase: Phase::ViewList,
        target: "own CPU at most 60 us a Pod: the first list, one client, sixteen",
        judge: |f| {
            let names = ["first_cpu_us_a_pod", "cpu_us_a_pod", "together_cpu_us_a_pod"];
            each(f, Phase::ViewList, &names, 60.0, "us")
        },
    },
    Target {
        phase: Phase::ViewGet,
        target: "the same name: p50 at most direct + 1.5 ms",
        judge: |f| beside(f, Phase::ViewGet, ["same_view_p50_ms", "same_direct_p50_ms"], 1.0, 1.5, "ms"),
    },
    Target {
        phase: Phase::ViewGet,
        target: "distinct names: p50 at most direct + 3 ms",
        judge: |f| {
            let figures = ["distinct_view_p50_ms", "distinct_direct_p50_ms"];
            beside(f, Phase::ViewGet, figures, 1.0, 3.0, "ms")
        },
    },
    Target {
        phase: Phase::ViewEvent,
        target: "p50 at most direct + 1.5 ms",
        judge: |f| beside(f, Phase::ViewEvent, ["view_p50_ms", "direct_p50_ms"], 1.0, 1.5, "ms"),
    },
    Target {
        phase: Phase::ViewEvent,
        target: "p99 at most 2 x direct + 5 ms",
        judge: |f| beside(f, Phase::ViewEvent, ["view_p99_ms", "direct_p99_ms"], 2.0, 5.0, "ms"),
    },
    Target {
        phase: Phase::ViewWrite,
        target: "p50 of an event at most the CRD's + 1.5 ms",
        judge: |f| beside(f, Phase::ViewWrite, ["view_event_p50_ms", "crd_event_p50_ms"], 1.0, 1.5, "ms"),
    },
    Target {
        phase: Phase::ViewWrite,
        target: "p99 of an event at most 2 x the CRD's + 5 ms",
        judge: |f| beside(f, Phase::ViewWrite, ["view_event_p99_ms", "crd_event_p99_ms"], 2.0, 5.0, "ms"),
    },
    Target {
        phase: Phase::ViewFinalizer,
        target: "a controller that patches: at most 1.5 x the CRD",
        judge: |f| beside(f, Phase::ViewFinalizer, ["view_patch_s", "crd_patch_s"], 1.5, 0.0, "s"),
    },
    Target {
        phase: Phase::ViewFinalizer,
        target: "a controller that replaces: at most 1.5 x the CRD",
        judge: |f| beside(f, Phase::ViewFinalizer, ["view_update_s", "crd_update_s"], 1.5, 0.0, "s"),
    },
    Target {
        phase: Phase::ViewWatch,
        target: "at most 25 % of a core",
        judge: |f| {
            let share = pintle(f, Phase::ViewWatch, "core_share")?;
            Some((format!("{:.1} %", share * 100.0), share <= 0.25))
        },
    },
    Target {
        phase: Phase::ViewWatch,
        target: "at most 80 MiB at the peak",
        judge: |f| each(f, Phase::ViewWatch, &["peak_mib"], 80.0, "MiB"),
    },
    Target {
        phase: Phase::ViewWatch,
        target: "the same with four times as many Pods: 25 % of a core, 80 MiB",
        judge: |f| {
            let share = pintle(f, Phase::ViewWatch, "more_core_share")?;
            let peak = pintle(f, Phase::ViewWatch, "more_peak_mib")?;
            Some((format!("{:.1} %, {peak:.1} MiB", share * 100.0), share <= 0.25 && peak <= 80.0))
        },
    },
    Target {
        phase: Phase::ViewWatch,
        target: "one guest call a change (20 a second), not one for each watch",
        judge: |f| {
            let names = ["guest_calls_a_second", "more_guest_calls_a_second"];
            // The pace is a little over twenty at times, since the first change is at once.
            each(f, Phase::ViewWatch, &names, 20.5, "calls a second")
        },
    },
    Target {
        phase: Phase::ViewNamespace,
        target: "at most what the backing kind alone takes, and 5 s",
        judge: |f| beside(f, Phase::ViewNamespace, ["with_view_s", "alone_s"], 1.0, 5.0, "s"),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Who;

    #[test]
    fn a_view_is_judged_beside_the_direct_request() {
        let mut figures = Figures::default();
        figures.put(1, Phase::ViewEvent, Who::Pintle, "view_p50_ms", 5.4);
        assert!((TARGETS[5].judge)(&figures).is_none());
        figures.put(1, Phase::ViewEvent, Who::Pintle, "direct_p50_ms", 4.0);
        let (said, is_met) = (TARGETS[5].judge)(&figures).unwrap();
        assert_eq!((said.as_str(), is_met), ("5.40 ms; direct 4.00 ms: 1.35 x, +1.40 ms", true));
    }
}
