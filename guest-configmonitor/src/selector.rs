//! Reads `spec.podSelector`, which has two forms, into one label selector.

use pintle_guest::{Failure, LabelSelector, Map, SelectorOperator, SelectorRequirement, Value, reasons};

/// Reads `spec.podSelector` in either of its forms: labels, or matchLabels and matchExpressions. All of it must match.
pub(crate) fn read(selector: &Value) -> Result<LabelSelector, Failure> {
    let fields = map(selector, "")?;
    let mut read = LabelSelector::default();
    for (name, value) in fields {
        match name.as_str() {
            "matchLabels" => {
                for (key, value) in map(value, ".matchLabels")? {
                    add(&mut read, key, value, &format!(".matchLabels[\"{key}\"]"))?;
                }
            }
            "matchExpressions" => {
                for (index, requirement) in list(value, ".matchExpressions")?.iter().enumerate() {
                    read.match_expressions
                        .push(expression(requirement, &format!(".matchExpressions[{index}]"))?);
                }
            }
            key => add(&mut read, key, value, &format!("[\"{key}\"]"))?,
        }
    }
    if read.match_labels.is_empty() && read.match_expressions.is_empty() {
        return Err(invalid("", "must not be empty: it would select every Pod of the namespace"));
    }
    Ok(read)
}

fn add(selector: &mut LabelSelector, key: &str, value: &Value, path: &str) -> Result<(), Failure> {
    let value = value.as_str().ok_or_else(|| invalid(path, "must be a string"))?;
    match selector.match_labels.insert(key.to_owned(), value.to_owned()) {
        Some(before) if before != value => Err(invalid(path, "is given twice, with different values")),
        _ => Ok(()),
    }
}

fn expression(requirement: &Value, path: &str) -> Result<SelectorRequirement, Failure> {
    let operator = match requirement["operator"].as_str() {
        Some("In") => SelectorOperator::In,
        Some("NotIn") => SelectorOperator::NotIn,
        Some("Exists") => SelectorOperator::Exists,
        Some("DoesNotExist") => SelectorOperator::DoesNotExist,
        _ => {
            return Err(invalid(
                &format!("{path}.operator"),
                "must be one of In, NotIn, Exists, DoesNotExist",
            ));
        }
    };
    let values = match &requirement["values"] {
        Value::Null => Vec::new(),
        values => list(values, &format!("{path}.values"))?
            .iter()
            .filter_map(|value| value.as_str().map(str::to_owned))
            .collect(),
    };
    let takes_values = matches!(operator, SelectorOperator::In | SelectorOperator::NotIn);
    if takes_values == values.is_empty() {
        return Err(invalid(
            &format!("{path}.values"),
            "In and NotIn need values, Exists and DoesNotExist take none",
        ));
    }
    match requirement["key"].as_str() {
        Some(key) if !key.is_empty() => Ok(SelectorRequirement { key: key.to_owned(), operator, values }),
        _ => Err(invalid(&format!("{path}.key"), "must name a label")),
    }
}

fn map<'a>(value: &'a Value, path: &str) -> Result<&'a Map<String, Value>, Failure> {
    value.as_object().ok_or_else(|| invalid(path, "must be an object"))
}

fn list<'a>(value: &'a Value, path: &str) -> Result<&'a [Value], Failure> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| invalid(path, "must be a list"))
}

fn invalid(path: &str, message: &str) -> Failure {
    Failure::terminal(reasons::INVALID_SPEC, message).at(format!("spec.podSelector{path}"))
}
