//! Label selectors: those of lists and watches, which are text, and those of objects.

use pintle_core::needs;
use pintle_wit::{LabelSelector, SelectorOperator, SelectorRequirement};
use serde_json::Value;

/// Whether the label selector of an object selects these labels. An absent selector selects nothing, an empty one everything.
pub(crate) fn selects(selector: &Value, labels: &Value) -> bool {
    serde_json::from_value(selector.clone()).is_ok_and(|selector: LabelSelector| has(&selector, labels))
}

/// Whether a selector selects these labels.
pub(crate) fn has(selector: &LabelSelector, labels: &Value) -> bool {
    needs::matches(selector, |key| labels[key].as_str())
}

/// The selector of a list or a watch, whose options are valid.
pub(crate) fn read(text: &str) -> LabelSelector {
    let mut is_within = false;
    let parts = text.split(|letter: char| {
        is_within = letter == '(' || is_within && letter != ')';
        letter == ',' && !is_within
    });
    let parts = parts.map(str::trim).filter(|part| !part.is_empty());
    LabelSelector { match_expressions: parts.map(requirement).collect(), ..LabelSelector::default() }
}

fn requirement(text: &str) -> SelectorRequirement {
    const OPERATORS: [(&str, SelectorOperator); 5] = [
        ("!=", SelectorOperator::NotIn),
        ("==", SelectorOperator::In),
        ("=", SelectorOperator::In),
        (" notin (", SelectorOperator::NotIn),
        (" in (", SelectorOperator::In),
    ];
    for (symbol, operator) in OPERATORS {
        if let Some((key, values)) = text.split_once(symbol) {
            let values = values.trim().trim_end_matches(')').split(',').map(|value| value.trim().into());
            return SelectorRequirement { key: key.trim().into(), operator, values: values.collect() };
        }
    }
    let (key, operator) = match text.strip_prefix('!') {
        Some(key) => (key, SelectorOperator::DoesNotExist),
        None => (text, SelectorOperator::Exists),
    };
    SelectorRequirement { key: key.trim().into(), operator, values: Vec::new() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_label_selector_selects_as_documented() {
        let labels = json!({"app": "web", "tier": "front"});
        for selector in
            ["", "app", "app=web", "app==web,tier", "app!=db", "!missing", "app in (db, web)", "x notin (y)"]
        {
            assert!(has(&read(selector), &labels), "{selector}");
        }
        for selector in ["missing", "app=db", "app!=web", "!app", "app in (db)", "app notin (web),tier"] {
            assert!(!has(&read(selector), &labels), "{selector}");
        }
        assert!(selects(&json!({}), &labels) && !selects(&Value::Null, &labels));
    }
}
