//! The alerts and the dashboard of the chart, beside the pages about metrics and alerts. promtool tests the alerts themselves.

use std::{collections::BTreeSet, fs};

use pintle_offline::documents;
use regex::Regex;
use serde_json::Value;

use crate::repository;

fn read(path: &str) -> String {
    fs::read_to_string(repository().join(path)).unwrap()
}

fn yaml(path: &str) -> Value {
    documents::parse_one(path, &read(path)).unwrap_or_else(|error| panic!("{error}"))
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_else(|| panic!("no {field}: {value}"))
}

fn alerts() -> Vec<Value> {
    let file = yaml("deploy/chart/pintle/alerts.yaml");
    let groups = file["groups"].as_array().unwrap();
    groups.iter().flat_map(|group| group["rules"].as_array().unwrap().clone()).collect()
}

/// The metrics that an expression of PromQL names: its words with a `_` that are neither functions nor labels. `up` is Prometheus' own.
fn metrics(expression: &str) -> BTreeSet<String> {
    let aside = Regex::new(r"\{[^}]*\}|\[[^\]]*\]|\b(by|on|ignoring) \([^)]*\)").unwrap();
    let word = Regex::new(r"([a-z_]+)\s*(\(?)").unwrap();
    let rest = aside.replace_all(expression, " ");
    let named = word.captures_iter(&rest).filter(|found| found[2].is_empty() && found[1].contains('_'));
    named.map(|found| found[1].to_owned()).collect()
}

/// The samples of every metric that the pages list.
fn known() -> BTreeSet<String> {
    let pages = ["docs/metrics.md", "docs/gateway-metrics.md"].map(read).concat();
    let rows = pages.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    rows.flat_map(|(name, rest)| {
        let suffixes: &[&str] =
            if rest.starts_with("histogram") { &["_bucket", "_sum", "_count"] } else { &[""] };
        suffixes.iter().map(move |suffix| format!("{name}{suffix}"))
    })
    .collect()
}

#[test]
fn alerts_and_the_dashboard_name_metrics_that_the_pages_list() {
    let dashboard: Value = serde_json::from_str(&read("deploy/chart/pintle/dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets: Vec<&Value> = panels.filter_map(|panel| panel["targets"].as_array()).flatten().collect();
    let (alerts, known) = (alerts(), known());
    assert!(targets.len() > 10 && alerts.len() > 10, "{} targets, {} alerts", targets.len(), alerts.len());
    for expression in targets.into_iter().chain(&alerts).map(|one| text(one, "expr")) {
        let named = metrics(expression);
        assert!(!named.is_empty(), "{expression}");
        let unknown: Vec<&String> = named.difference(&known).collect();
        assert!(unknown.is_empty(), "no page lists {unknown:?}: {expression}");
    }
}

#[test]
fn every_alert_has_a_section_of_the_page_and_a_test_of_each_sort() {
    let page = read("docs/alerts.md");
    let sections: BTreeSet<&str> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let alerts = alerts();
    let names: BTreeSet<&str> = alerts.iter().map(|alert| text(alert, "alert")).collect();
    assert_eq!(sections, names);
    for section in page.split("\n## ").skip(1) {
        // What it means, how to look closer, and what to do.
        let parts: Vec<&str> = section.split("\n```").collect();
        let is_whole = parts.len() == 3 && parts[0].contains("\n\n") && parts[1].starts_with("sh\n");
        assert!(is_whole && !parts[2].trim().is_empty(), "{section}");
    }

    let file = yaml("host/tests/offline/alerts/rules.test.yaml");
    let tests: Vec<&str> = file["tests"].as_array().unwrap().iter().map(|test| text(test, "name")).collect();
    for alert in &alerts {
        let (name, annotations) = (text(alert, "alert"), &alert["annotations"]);
        assert_eq!(text(annotations, "runbook_url"), format!("docs/alerts.md#{}", name.to_lowercase()));
        assert!(!text(annotations, "summary").is_empty(), "{name}");
        assert!(text(annotations, "description").contains("Look closer: "), "{name}");
        assert!(["critical", "warning"].contains(&text(&alert["labels"], "severity")), "{name}");
        for sort in ["fires", "is quiet"] {
            let begin = format!("{name} {sort}");
            assert!(tests.iter().any(|test| test.starts_with(&begin)), "no test {begin}");
        }
    }
}
