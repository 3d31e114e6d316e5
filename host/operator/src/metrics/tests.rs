//! Tests of the metrics: their text is valid OpenMetrics, their labels are bounded, and the page about them is up to date.

use super::*;

/// Metrics of which every one has a sample of each of these controllers.
fn full(controllers: [&str; 2]) -> Metrics {
    let metrics = Metrics::default();
    let took = Duration::from_millis(3);
    metrics.requested("GET", "h", Some(200), took);
    metrics.compiled("made", took);
    metrics.leader.get_or_create(&Election { name: "x" }).set(1.0);
    for family in [&metrics.cache_objects, &metrics.cache_bytes, &metrics.memory_budget] {
        family.get_or_create(&Size { of: "x" }).set(1.5);
    }
    let readiness = Readiness { controller: "x".into(), reason: "x".into() };
    metrics.reconciler_ready.get_or_create(&readiness).set(1.0);
    metrics.memory_reserved.get_or_create(&Reserved { purpose: "x" }).set(1.5);
    for controller in controllers {
        metrics.queued(controller);
        let id = metrics.began(controller, Some(took));
        metrics.ended(id, true);
        metrics.panicked(controller);
        metrics.swapped(controller);
        let failed = [Ended::Failed("DeadlineExceeded"), Ended::Terminal("KindNotGranted")];
        for ended in [Ended::Success, Ended::RequeueAfter].into_iter().chain(failed) {
            metrics.reconciled(controller, ended, took);
        }
        for &limit in LIMITS {
            metrics.limit_hit(controller, limit);
        }
        metrics.guest_called(controller, took, 1 << 20);
        metrics.wrote(controller, "apply", None);
        metrics.count_roots(controller, [1, 2, 3]);
        for (_, priority) in PRIORITIES {
            metrics.queue_depth.get_or_create(&Depth::of(controller, priority)).set(1.0);
        }
        for family in [&metrics.max_concurrent, &metrics.backing_off, &metrics.throttled] {
            family.get_or_create(&Controller::of(controller)).set(1.0);
        }
    }
    // The gauges about workers are set when somebody asks.
    metrics.text(controllers.map(str::to_owned).iter());
    metrics
}

/// A sample line: its name, its labels as they stand there, and its value.
fn sample(line: &str) -> (&str, &str, f64) {
    let (series, value) = line.rsplit_once(' ').unwrap();
    let (name, labels) =
        series.split_once('{').map_or((series, ""), |(name, rest)| (name, rest.strip_suffix('}').unwrap()));
    (name, labels, value.parse().unwrap_or_else(|_| panic!("{line}")))
}

/// Reads OpenMetrics text as strictly as its specification asks a scraper to; returns the families.
fn parse(text: &str) -> BTreeMap<String, String> {
    let body = text.strip_suffix("# EOF\n").expect("it ends with EOF");
    let mut families = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut family = String::new();
    let mut buckets: Vec<(String, f64)> = Vec::new();
    for line in body.lines() {
        if let Some(rest) = line.strip_prefix("# ") {
            let mut words = rest.splitn(3, ' ');
            let (word, name, value) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
            family = name.to_owned();
            let legal = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            assert!(name.chars().all(legal) && !name.ends_with("_total"), "{line}");
            match word {
                "HELP" => assert!(!families.contains_key(name) && !value.is_empty(), "{line}"),
                "TYPE" => assert!(families.insert(name.to_owned(), value.to_owned()).is_none(), "{line}"),
                other => panic!("{other}: {line}"),
            }
            continue;
        }
        let (name, labels, value) = sample(line);
        assert!(seen.insert((name, labels)), "twice: {line}");
        let suffix = name.strip_prefix(family.as_str()).unwrap_or_else(|| panic!("{line} in {family}"));
        let allowed: &[&str] = match families[&family].as_str() {
            "counter" => &["_total"],
            "gauge" => &[""],
            "histogram" => &["_bucket", "_sum", "_count"],
            other => panic!("{other}"),
        };
        assert!(allowed.contains(&suffix), "{line}");
        match suffix {
            "_bucket" => {
                if let Some((_, before)) = buckets.last() {
                    assert!(*before <= value, "buckets add up: {line}");
                }
                buckets.push((labels.to_owned(), value));
                if labels.contains(r#"le="+Inf""#) {
                    buckets.clear();
                }
            }
            _ => assert!(buckets.is_empty(), "a histogram ends with +Inf: {line}"),
        }
    }
    families
}

#[test]
fn a_scraper_can_read_it() {
    let text = full(["darkroom", "web\"server\\\n"]).text(std::iter::empty());
    parse(&text);
    assert!(text.contains(r#"web\"server\\\n"#), "what is in a label cannot leave it");
}

#[test]
fn passes_are_counted_under_controller_runtimes_names_and_writes_by_verb() {
    let metrics = Metrics::default();
    let took = Duration::from_millis(3);
    metrics.reconciled("darkroom", Ended::Success, took);
    metrics.reconciled("darkroom", Ended::RequeueAfter, took);
    metrics.reconciled("darkroom", Ended::Failed("DeadlineExceeded"), took);
    metrics.reconciled("darkroom", Ended::Terminal("KindNotGranted"), took);
    let id = metrics.began("darkroom", Some(took));
    let running = metrics.began("darkroom", None);
    metrics.ended(id, true);
    metrics.wrote("darkroom", "evict", None);
    let controllers = ["darkroom".to_owned()];
    let text = metrics.text(controllers.iter());
    for line in [
        r#"controller_runtime_reconcile_total{controller="darkroom",result="success"} 1"#,
        r#"controller_runtime_reconcile_total{controller="darkroom",result="requeue_after"} 1"#,
        r#"controller_runtime_reconcile_total{controller="darkroom",result="error"} 2"#,
        r#"controller_runtime_reconcile_errors_total{controller="darkroom"} 2"#,
        r#"controller_runtime_terminal_reconcile_errors_total{controller="darkroom"} 1"#,
        r#"controller_runtime_reconcile_time_seconds_count{controller="darkroom"} 4"#,
        r#"controller_runtime_active_workers{controller="darkroom"} 1"#,
        r#"workqueue_queue_duration_seconds_count{name="darkroom",controller="darkroom"} 1"#,
        r#"workqueue_work_duration_seconds_count{name="darkroom",controller="darkroom"} 1"#,
        r#"workqueue_retries_total{name="darkroom",controller="darkroom"} 1"#,
        r#"pintle_reconcile_errors_total{controller="darkroom",reason="DeadlineExceeded"} 1"#,
        r#"pintle_api_requests_total{controller="darkroom",verb="evict",code="200"} 1"#,
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
    metrics.ended(running, false);
    let text = metrics.text(controllers.iter());
    assert!(text.contains(r#"controller_runtime_active_workers{controller="darkroom"} 0"#), "{text}");
}

#[test]
fn the_series_of_a_reconciler_go_with_it_and_no_others() {
    let metrics = full(["darkroom", "webserver"]);
    let samples = |controller: &str| {
        let text = metrics.text(std::iter::empty());
        text.lines().filter(|line| line.contains(controller)).count()
    };
    let before = samples("webserver");
    assert_eq!(samples("darkroom"), before);
    metrics.forget("darkroom");
    assert_eq!((samples("darkroom"), samples("webserver")), (0, before));
}

#[test]
fn a_guest_that_makes_reasons_up_does_not_fill_the_memory() {
    let metrics = Metrics::default();
    for number in 0..1000 {
        metrics.reconciled("darkroom", Ended::Terminal(&format!("Reason{number}")), Duration::ZERO);
    }
    let text = metrics.text(std::iter::empty());
    let lines = text.lines().filter(|line| line.starts_with("pintle_reconcile_errors_total"));
    assert_eq!(lines.count(), REASONS_MAX + 1);
    assert!(text.contains(r#"reason="Other"} 936"#), "{text}");
}

/// The first columns of a row of the page for each family: name, type and labels.
fn rows(text: &str) -> BTreeSet<String> {
    let lines: Vec<&str> = text.lines().collect();
    let families = lines.windows(2).filter_map(|pair| Some((pair[0].strip_prefix("# TYPE ")?, pair[1])));
    let row = |(family, line): (&str, &str)| {
        let (name, sort) = family.split_once(' ').unwrap();
        let suffix = if sort == "counter" { "_total" } else { "" };
        let (_, labels, _) = sample(line);
        let labels = labels.split(',').filter_map(|label| Some(format!("`{}`", label.split_once('=')?.0)));
        format!("| `{name}{suffix}` | {sort} | {} |", labels.collect::<Vec<_>>().join(", "))
    };
    families.map(row).collect()
}

#[test]
fn the_page_about_metrics_has_each_with_its_type_and_its_labels() {
    let page = include_str!("../../../../docs/metrics.md").lines().filter(|line| line.starts_with("| `"));
    let page: BTreeSet<String> =
        page.map(|line| line.split('|').take(4).collect::<Vec<_>>().join("|") + "|").collect();
    let rows = rows(&full(["darkroom", "webserver"]).text(std::iter::empty()));
    assert_eq!(rows, page);
    for label in ["root", "object", "namespace", "uid", "child"] {
        assert!(!rows.iter().any(|row| row.contains(&format!("`{label}`"))), "nothing is labelled by object");
    }
}

#[test]
fn a_limit_is_counted_whether_a_pass_fails_for_it_or_not() {
    let metrics = Metrics::default();
    metrics.hits("shop", Hits { events: 3, records: 0, asking: true });
    metrics.hits("shop", Hits { events: 2, records: 5, asking: false });
    let took = Duration::from_millis(1);
    metrics.reconciled("shop", Ended::Terminal("NeedTooComplex"), took);
    metrics.reconciled("shop", Ended::Terminal("NeedsTooLarge"), took);
    metrics.reconciled("shop", Ended::Failed("TooManyFields"), took);
    let text = metrics.text(std::iter::empty());
    for (limit, times) in
        [("events", 5), ("records", 5), ("asking", 1), ("need-size", 1), ("shown", 1), ("need-fields", 1)]
    {
        let line = format!("pintle_limits_hit_total{{controller=\"shop\",limit=\"{limit}\"}} {times}\n");
        assert!(text.contains(&line), "{line}{text}");
    }
}
