//! Tests of the metrics: the page about them is up to date.

use super::*;
use crate::admission::Pools;

/// Metrics of which every one has a sample.
fn full() -> Metrics {
    let metrics = Metrics::default();
    metrics.answered("list", "g", "things", 200, Some(Duration::from_millis(3)));
    metrics.requested("GET", "h", Some(200), Duration::ZERO);
    metrics.guest_called("farmpods", Duration::from_micros(80));
    metrics.unshowable("farmpods", 1);
    metrics.admission_cut("resourcequotas");
    metrics.compiled("made", Duration::from_secs(1));
    metrics.limit_hit("", Limit::ModuleBytes);
    metrics
}

/// The rows of the page: each family, as a scraper reads it.
fn rows(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let after = |start: String| lines.iter().find_map(|line| line.strip_prefix(start.as_str()));
    let mut rows = String::new();
    for help in lines.iter().filter_map(|line| line.strip_prefix("# HELP ")) {
        let (family, says) = help.split_once(' ').expect("a name and a text");
        let r#type = after(format!("# TYPE {family} ")).expect("a type");
        let suffix = if r#type == "counter" { "_total" } else { "" };
        let sample = lines.iter().find(|line| line.starts_with(family)).expect("a sample");
        let labels = sample.split_once('{').map_or("", |(_, rest)| rest.split_once('}').expect("labels").0);
        let names: Vec<String> = labels
            .split(',')
            .filter_map(|label| label.split_once('='))
            .filter(|(name, _)| *name != "le")
            .map(|(name, _)| format!("`{name}`"))
            .collect();
        let says = says.trim_end_matches('.');
        rows += &format!("| `{family}{suffix}` | {} | {} | {says} |\n", r#type, names.join(", "));
    }
    rows
}

#[test]
fn the_page_about_metrics_lists_them() {
    let page = format!(
        "# Metrics of the gateway\n\nServed on `/metrics` in OpenMetrics text. Generated from the code. Nothing is labelled by object or by \
         caller. [Metrics of the operator](metrics.md) are others.\n\n| metric | type | labels | what it says |\n| --- | --- | --- | --- |\n{}",
        rows(&full().text(&Pools::default().figures()))
    );
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/gateway-metrics.md");
    if std::env::var_os("PINTLE_WRITE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        written, page,
        "docs/gateway-metrics.md is stale; run: PINTLE_WRITE_DOCS=1 cargo test -p pintle-gateway --lib metrics"
    );
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
