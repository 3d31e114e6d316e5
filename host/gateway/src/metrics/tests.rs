//! Tests of the metrics: the page about them is up to date.

use std::collections::BTreeSet;

use super::*;
use crate::admission::Pools;

/// Metrics of which every one has a sample.
fn full() -> Metrics {
    let metrics = Metrics::default();
    metrics.answered("list", "g", "things", 200, Some(Duration::from_millis(3)));
    metrics.requested("GET", "h", Some(200), Duration::ZERO);
    metrics.guest_called("farmpods", Duration::from_micros(80));
    metrics.compiled("made", Duration::from_secs(1));
    metrics.limit_hit("", Limit::ModuleBytes);
    metrics
}

/// The first columns of a row of the page for each family: name, type and labels.
fn rows(text: &str) -> BTreeSet<String> {
    let lines: Vec<&str> = text.lines().collect();
    let families = lines.windows(2).filter_map(|pair| Some((pair[0].strip_prefix("# TYPE ")?, pair[1])));
    let row = |(family, sample): (&str, &str)| {
        let (name, sort) = family.split_once(' ').unwrap();
        let suffix = if sort == "counter" { "_total" } else { "" };
        let labels = sample.split_once('{').map_or("", |(_, rest)| rest.split_once('}').unwrap().0);
        let labels = labels.split(',').filter_map(|label| Some(format!("`{}`", label.split_once('=')?.0)));
        format!("| `{name}{suffix}` | {sort} | {} |", labels.collect::<Vec<_>>().join(", "))
    };
    families.map(row).collect()
}

#[test]
fn the_page_about_metrics_has_each_with_its_type_and_its_labels() {
    let page = include_str!("../../../../docs/gateway-metrics.md").lines();
    let page = page.filter(|line| line.starts_with("| `"));
    let page: BTreeSet<String> =
        page.map(|line| line.split('|').take(4).collect::<Vec<_>>().join("|") + "|").collect();
    assert_eq!(rows(&full().text(&Pools::default().figures())), page);
}

#[test]
fn calls_of_guests_are_counted_by_view() {
    let metrics = Metrics::default();
    metrics.guest_called("farmpods", Duration::from_micros(80));
    metrics.guest_called("farmpods", Duration::from_millis(2));
    let text = metrics.text(&[]);
    assert!(text.contains("pintle_guest_call_seconds_count{view=\"farmpods\"} 2"), "{text}");
}

#[test]
fn the_pools_are_told_by_name() {
    let metrics = Metrics::default();
    let text = metrics.text(&[Figures { pool: "watches", taken: 7, waiting: 2, refused: 3 }]);
    for sample in [
        "apiserver_current_inflight_requests{request_kind=\"watches\"} 7",
        "pintle_admission_waiting{pool=\"watches\"} 2",
        "pintle_admission_refused_total{pool=\"watches\"} 3",
    ] {
        assert!(text.contains(sample), "{sample}: {text}");
    }
}
