//! [`Tally`]: what many roots come to.

use std::collections::BTreeMap;

use pintle_wit::ObjectRef;

use super::{Change, ChildChange, Example, Limits, PlannedRoot, Roots, Summary, SummaryLine, Verdict};

/// The most kinds and paths that are listed: more than a person reads.
const LINES_MAX: usize = 1000;

/// Adds roots up.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    roots: Roots,
    lines: BTreeMap<(String, String, Change), (usize, Example)>,
    partial: usize,
    deletions: Vec<ObjectRef>,
    deletion_count: usize,
    restarts: usize,
    stops: usize,
    truncated: bool,
}

impl Tally {
    /// Counts a root.
    pub fn add(&mut self, planned: &PlannedRoot) {
        self.roots.total += 1;
        // Of an answer that is refused in part, the rest may change the root.
        let fails = planned.failure.is_some();
        let count = match planned.verdict {
            Verdict::Unchanged if !fails => &mut self.roots.unchanged,
            Verdict::Changed if !fails => &mut self.roots.changed,
            Verdict::Unknown if !fails => &mut self.roots.unknown,
            _ => &mut self.roots.fails,
        };
        *count += 1;
        self.partial += usize::from(fails && matches!(planned.verdict, Verdict::Changed | Verdict::Unknown));
        self.roots.newly_failing += usize::from(planned.fails_newly());
        for child in planned.children.iter().chain(&planned.patches) {
            self.child(child);
        }
        for pod in &planned.evictions {
            self.line(pod, "", Change::Delete);
        }
        self.restarts += planned.evictions.len();
        let root = planned.root.reference();
        for field in planned.status.iter().flat_map(|status| &status.changes) {
            self.line(&root, &field.path, Change::Update);
        }
    }

    fn child(&mut self, child: &ChildChange) {
        match child.change {
            Change::Unchanged => {}
            Change::Delete => {
                self.stops += child.pods;
                self.deletion_count += 1;
                if self.deletions.len() < LINES_MAX {
                    self.deletions.push(child.reference.clone());
                }
                self.line(&child.reference, "", child.change);
            }
            Change::Update | Change::Adopt => {
                self.restarts += child.pods;
                let mut paths: Vec<String> = child.fields.iter().map(|field| of_all(&field.path)).collect();
                paths.sort();
                paths.dedup();
                for path in paths {
                    self.line(&child.reference, &path, child.change);
                }
            }
            change => self.line(&child.reference, "", change),
        }
    }

    fn line(&mut self, object: &ObjectRef, path: &str, change: Change) {
        let key = (object.kind.clone(), of_all(path), change);
        if self.lines.len() >= LINES_MAX && !self.lines.contains_key(&key) {
            self.truncated = true;
            return;
        }
        let example = || Example { namespace: object.namespace.clone(), name: object.name.clone() };
        self.lines.entry(key).or_insert_with(|| (0, example())).0 += 1;
    }

    /// The summary of these roots.
    pub fn summary(&self) -> Summary {
        let mut deletions = self.deletions.clone();
        deletions.sort();
        Summary {
            roots: self.roots,
            partial: self.partial,
            changes: self.changes(),
            deletions,
            deletion_count: self.deletion_count,
            restarts: self.restarts,
            stops: self.stops,
            limits: Limits { truncated: self.truncated },
            ..Summary::default()
        }
    }

    /// What would change, the most frequent first.
    fn changes(&self) -> Vec<SummaryLine> {
        let mut lines: Vec<SummaryLine> = self
            .lines
            .iter()
            .map(|((kind, path, change), (count, example))| SummaryLine {
                kind: kind.clone(),
                path: path.clone(),
                change: *change,
                count: *count,
                example: example.clone(),
            })
            .collect();
        lines.sort_by_key(|line| std::cmp::Reverse(line.count));
        lines
    }
}

/// A path without which item of a list it is about, so that the same field of many objects is one.
fn of_all(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('[') {
        text.push_str(before);
        let Some((inside, behind)) = after.split_once(']') else {
            text.push('[');
            text.push_str(after);
            return text;
        };
        let is_item = inside.contains('=') || inside.bytes().all(|byte| byte.is_ascii_digit());
        text.push('[');
        if !is_item {
            text.push_str(inside);
        }
        text.push(']');
        rest = behind;
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn root(verdict: &str, failure: Value, fails_now: bool, children: &[Value]) -> PlannedRoot {
        serde_json::from_value(json!({
            "root": {"apiVersion": "a.io/v1", "kind": "A", "name": "x", "uid": "u"}, "verdict": verdict, "failure": failure,
            "failsNow": fails_now, "hasAnswer": true, "unknown": [], "standingRefusals": [], "children": children, "patches": [],
            "evictions": [],
        }))
        .unwrap()
    }

    #[test]
    fn a_root_whose_answer_is_refused_in_part_counts_once_and_changes_all_the_same() {
        let failure = json!({"reason": "AdoptionConflict", "message": "m"});
        for (verdict, failure, fails_now, would_change) in [
            ("unchanged", Value::Null, false, Some(false)),
            ("changed", Value::Null, false, Some(true)),
            ("unknown", Value::Null, false, None),
            ("fails", failure.clone(), false, Some(true)),
            ("fails", failure.clone(), true, Some(false)),
            ("unknown", failure.clone(), true, Some(true)),
            ("changed", failure, true, Some(true)),
        ] {
            let mut tally = Tally::default();
            tally.add(&root(verdict, failure.clone(), fails_now, &[]));
            let summary = tally.summary();
            let Roots { total, unchanged, changed, fails, unknown, .. } = summary.roots;
            assert_eq!(unchanged + changed + fails + unknown, total, "{summary:?}");
            assert_eq!(fails == 1, failure.is_object(), "{summary:?}");
            assert_eq!(summary.would_change(), would_change, "{verdict} {failure} {fails_now}");
        }
    }

    #[test]
    fn the_deletions_that_are_listed_are_bounded_and_all_of_them_count() {
        let name = |number: usize| json!({"apiVersion": "v1", "kind": "Secret", "namespace": "n", "name": number.to_string()});
        let child =
            |number: usize| json!({"reference": name(number), "change": "delete", "fields": [], "diff": ""});
        let children: Vec<Value> = (0..=LINES_MAX).map(child).collect();
        let mut tally = Tally::default();
        tally.add(&root("changed", Value::Null, false, &children));
        let summary = tally.summary();
        assert_eq!((summary.deletions.len(), summary.deletion_count), (LINES_MAX, LINES_MAX + 1));
        assert!(!summary.limits.truncated, "each kind and path is listed");
    }

    #[test]
    fn items_of_lists_are_one_and_names_of_fields_are_not() {
        for (path, all) in [
            ("spec.containers[name=web].image", "spec.containers[].image"),
            ("spec.rules[0].host", "spec.rules[].host"),
            ("metadata.annotations[a.b/c]", "metadata.annotations[a.b/c]"),
            ("metadata.finalizers[]", "metadata.finalizers[]"),
            ("data.plain", "data.plain"),
        ] {
            assert_eq!(of_all(path), all);
        }
    }
}
