//! Checks the needs of an answer: what a guest asks to see.

use std::collections::HashSet;

use jiff::Timestamp;
use pintle_wit::{Kind, LabelSelector, Need, ObjectsNeed, Select, SelectorOperator, syntax};

use super::{GateContext, Violations, reasons};
use crate::{
    needs::{ALL_NAMESPACES, LookUp},
    object,
    reconciler::{self, NeedGrant, NeedScope},
};

/// The most needs of one answer. Each is looked up in every pass. A guest that follows a hundred Pods to their owners is well within
/// the limit.
const NEEDS_MAX: usize = 256;
/// The most fields of one need: six times what the sample guests ask for.
const FIELDS_MAX: usize = 32;
/// The most labels in a selector, and also the most requirements. Selectors of Deployments have one or two of either. Each is compared
/// with the labels of every object in the namespace.
const REQUIREMENTS_MAX: usize = 16;
/// The most values of a requirement.
const REQUIREMENT_VALUES_MAX: usize = 32;
/// The longest key of a label, in bytes: a prefix of 253, a slash, and a name of 63.
const LABEL_KEY_BYTES_MAX: usize = 253 + 1 + 63;
/// The longest value of a label, in bytes.
const LABEL_VALUE_BYTES_MAX: usize = 63;
/// The longest value of an indexed field, in bytes: four times a host name.
const VALUE_BYTES_MAX: usize = 1024;
/// The longest time, in bytes. With nanoseconds and an offset it has 35.
const TIME_BYTES_MAX: usize = 64;
/// The longest settling time of a need, in milliseconds: one minute, so that a change is shown after five minutes at the latest.
const SETTLE_MILLISECONDS_MAX: u32 = 60_000;

/// Checks what a guest asks to see. Returns the look-up for each need, or none for a need that is about time.
///
/// # Errors
/// What is wrong, in the order of the needs. Never empty.
pub fn needs(context: &GateContext<'_>, needs: &[Need]) -> Result<Vec<Option<LookUp>>, Violations> {
    let mut found = Violations::default();
    let allowed = check(context, needs, &mut found);
    if found.is_empty() { Ok(allowed) } else { Err(found) }
}

pub(super) fn check(
    context: &GateContext<'_>,
    needs: &[Need],
    found: &mut Violations,
) -> Vec<Option<LookUp>> {
    if needs.len() > NEEDS_MAX {
        let message = format_args!("{} needs, the limit is {NEEDS_MAX}", needs.len());
        found.add(reasons::TOO_MANY_NEEDS, "needs", message);
        return Vec::new();
    }
    let mut seen = HashSet::new();
    let each = needs.iter().enumerate().map(|(index, need)| {
        let at = format!("needs[{index}]");
        if !seen.insert(need) {
            found.add(reasons::NEED_INVALID, &at, "the need stands twice");
        }
        match need {
            Need::Clock { step_seconds: 0 } => {
                found.add(
                    reasons::NEED_INVALID,
                    format_args!("{at}.clock.stepSeconds"),
                    "a step is at least 1 s",
                );
                None
            }
            Need::Clock { .. } => None,
            Need::Deadline(time) => {
                if time.len() > TIME_BYTES_MAX || time.parse::<Timestamp>().is_err() {
                    let begin: String = time.chars().take(TIME_BYTES_MAX).collect();
                    let message = format_args!("{begin:?} is no time of RFC 3339");
                    found.add(reasons::NEED_INVALID, format_args!("{at}.deadline"), message);
                }
                None
            }
            Need::Objects(need) => objects(context, need, &format!("{at}.objects"), found),
        }
    });
    each.collect()
}

fn objects(
    context: &GateContext<'_>,
    need: &ObjectsNeed,
    at: &str,
    found: &mut Violations,
) -> Option<LookUp> {
    let before = found.count();
    let kind = Kind::new(&need.api_version, &need.kind);
    let is_kind = |api_version: &str, name: &str| *api_version == kind.api_version && *name == kind.kind;
    let declared = context.manifest.needs.iter().find(|one| is_kind(&one.api_version, &one.kind));
    if declared.is_none() {
        let message = format_args!(
            "add NeedKind::new({:?}, {:?}) to the manifest's needs, which do not have this kind",
            kind.api_version, kind.kind
        );
        found.add(reasons::NEED_NOT_DECLARED, format_args!("{at}.kind"), message);
        return None;
    }
    if need.settle_milliseconds > SETTLE_MILLISECONDS_MAX {
        let message = format_args!("a change is held back for at most {SETTLE_MILLISECONDS_MAX} ms");
        found.add(reasons::NEED_INVALID, format_args!("{at}.settleMilliseconds"), message);
    }
    fields(need, at, found);
    select(context, declared.map_or(&[][..], |one| &one.indexes), need, at, found);

    let root = object::namespace(context.root);
    // A kind that is not served has no objects in any namespace.
    let namespaced = context.kinds.get(&kind).is_none_or(|info| info.namespaced);
    let named = need.namespace.as_deref();
    let namespace = match named {
        Some(ALL_NAMESPACES) => None,
        Some(name) if namespaced => {
            if !object::is_namespace(name) {
                found.add(
                    reasons::NEED_INVALID,
                    format_args!("{at}.namespace"),
                    format_args!("{:?} is no namespace", begin(name)),
                );
            }
            Some(name)
        }
        Some(_) => {
            let message = format_args!(
                "leave the namespace out: {kind} is of cluster scope, and its objects have none"
            );
            found.add(reasons::NEED_INVALID, format_args!("{at}.namespace"), message);
            None
        }
        None => root.filter(|_| namespaced),
    };
    if namespaced && namespace.is_none() && matches!(need.select, Select::Name(_)) {
        let message = "a name alone says nothing without a namespace";
        found.add(reasons::NEED_INVALID, format_args!("{at}.namespace"), message);
    }
    let is_at_home = namespaced && namespace.is_some() && namespace == root;
    let mut granted = context
        .grants
        .needs
        .iter()
        .filter(|grant| grant.api_version == kind.api_version && grant.kinds.contains(&kind.kind));
    if !granted.any(|grant| grants(grant, &kind, &need.select, is_at_home)) {
        let place = match namespace {
            _ if is_at_home => "the root's namespace".to_owned(),
            Some(namespace) => format!("namespace {namespace:?}"),
            None => "all namespaces or cluster scope".to_owned(),
        };
        let remedy = match need.select {
            _ if reconciler::is_watchable(&kind) => String::new(),
            Select::Name(_) => format!("; a grant of {kind} names those that may be seen, in `names`"),
            _ => format!("; no grant can: {kind} is seen by name alone"),
        };
        let message = format_args!(
            "Reconciler {} does not grant that the guest sees {kind} {} in {place}{remedy}",
            context.reconciler,
            what(&need.select)
        );
        found.add(reasons::NEED_NOT_GRANTED, at, message);
    }
    (found.count() == before).then(|| LookUp {
        kind,
        namespace: namespace.map(Into::into),
        select: need.select.clone(),
        fields: need.fields.clone(),
    })
}

fn fields(need: &ObjectsNeed, at: &str, found: &mut Violations) {
    if need.fields.len() > FIELDS_MAX {
        let message = format!("{} fields, the limit is {FIELDS_MAX}", need.fields.len());
        return found.add(reasons::NEED_TOO_COMPLEX, format!("{at}.fields"), message);
    }
    for (index, path) in need.fields.iter().enumerate() {
        let at = format!("{at}.fields[{index}]");
        if let Some(message) = syntax::path_excess(path) {
            found.add(reasons::NEED_TOO_COMPLEX, at, message);
        } else if !is_field(path) {
            let message = format!(
                "{path:?} cannot be asked for: a field is a dotted path of maps, and of metadata only ownerReferences"
            );
            found.add(reasons::NEED_INVALID, at, message);
        }
    }
}

/// The part of a guest's text that a message repeats.
fn begin(text: &str) -> String {
    text.chars().take(80).collect()
}

fn grants(grant: &NeedGrant, kind: &Kind, select: &Select, is_at_home: bool) -> bool {
    let in_place = is_at_home || grant.scope == NeedScope::All;
    let by_name = match select {
        Select::Name(name) => grant.names.iter().any(|granted| granted == name),
        _ => false,
    };
    // Of kinds that may not be watched, the guest sees only objects that an administrator named.
    let any = grant.names.is_empty() && reconciler::is_watchable(kind);
    in_place && (any || by_name)
}

fn what(select: &Select) -> String {
    match select {
        Select::Name(name) => format!("{name:?}"),
        Select::Labels(_) => "by labels".into(),
        Select::Field(field) => format!("by {}", field.path),
    }
}

fn select(
    context: &GateContext<'_>,
    indexes: &[String],
    need: &ObjectsNeed,
    at: &str,
    found: &mut Violations,
) {
    match &need.select {
        Select::Name(name) if !object::is_name(name) => {
            let message = format_args!("{:?} is no object name", begin(name));
            found.add(reasons::NEED_INVALID, format_args!("{at}.select.name"), message);
        }
        Select::Name(_) => {}
        Select::Labels(selector) => {
            if let Some((message, path)) = excess(selector) {
                return found.add(reasons::NEED_TOO_COMPLEX, format!("{at}.select.labels.{path}"), message);
            }
            for (index, requirement) in selector.match_expressions.iter().enumerate() {
                let takes_values =
                    matches!(requirement.operator, SelectorOperator::In | SelectorOperator::NotIn);
                if takes_values == requirement.values.is_empty() {
                    let message = "In and NotIn need values, Exists and DoesNotExist take none";
                    let path = format_args!("{at}.select.labels.matchExpressions[{index}].values");
                    found.add(reasons::NEED_INVALID, path, message);
                }
            }
        }
        Select::Field(field) if !indexes.contains(&field.path) => {
            let message = format_args!(
                "the manifest of guest {} declares no index of {} {} by {:?}",
                context.manifest.name,
                need.api_version,
                need.kind,
                begin(&field.path)
            );
            found.add(reasons::INDEX_NOT_DECLARED, format_args!("{at}.select.field.path"), message);
        }
        Select::Field(field) if field.equals.len() > VALUE_BYTES_MAX => {
            let message = format!("a value of {} bytes, the limit is {VALUE_BYTES_MAX}", field.equals.len());
            found.add(reasons::NEED_TOO_COMPLEX, format!("{at}.select.field.equals"), message);
        }
        Select::Field(_) => {}
    }
}

/// The part of a selector that exceeds a limit, and its path.
fn excess(selector: &LabelSelector) -> Option<(String, String)> {
    let count = |found: usize, what: &str, limit: usize| {
        (found > limit).then(|| format!("{found} {what}, the limit is {limit}"))
    };
    let long = |text: &str, what: &str, limit: usize| {
        (text.len() > limit).then(|| format!("{what} of {} bytes, the limit is {limit}", text.len()))
    };
    let key = |text: &str| long(text, "the key of a label", LABEL_KEY_BYTES_MAX);
    let value = |text: &str| long(text, "the value of a label", LABEL_VALUE_BYTES_MAX);
    let (labels, expressions) = (&selector.match_labels, &selector.match_expressions);
    if let Some(message) = count(labels.len(), "labels", REQUIREMENTS_MAX) {
        return Some((message, "matchLabels".into()));
    }
    if let Some(message) = labels.iter().find_map(|(label, text)| key(label).or_else(|| value(text))) {
        return Some((message, "matchLabels".into()));
    }
    if let Some(message) = count(expressions.len(), "requirements", REQUIREMENTS_MAX) {
        return Some((message, "matchExpressions".into()));
    }
    expressions.iter().enumerate().find_map(|(index, requirement)| {
        let values = || {
            count(requirement.values.len(), "values", REQUIREMENT_VALUES_MAX)
                .or_else(|| requirement.values.iter().find_map(|text| value(text)))
                .map(|message| (message, "values"))
        };
        let (message, field) = key(&requirement.key).map(|message| (message, "key")).or_else(values)?;
        Some((message, format!("matchExpressions[{index}].{field}")))
    })
}

fn is_field(path: &str) -> bool {
    let plain =
        !path.is_empty() && path.split('.').all(|step| !step.is_empty() && !step.contains(['[', ']']));
    let first = path.split('.').next().unwrap_or_default();
    plain && (first != "metadata" || path == "metadata.ownerReferences")
}
