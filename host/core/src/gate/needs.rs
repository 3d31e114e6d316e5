//! What a guest asks to see.

use jiff::Timestamp;
use pintle_wit::{Kind, Need, ObjectsNeed, Select, SelectorOperator};

use super::{GateContext, Violation, Violations, reasons};
use crate::{
    needs::{ALL_NAMESPACES, LookUp},
    object,
    reconciler::{self, NeedGrant, NeedScope},
};

/// The most needs of one answer. Each is looked up with every pass; a guest that follows a hundred Pods to their owners is well
/// within it.
const NEEDS_MAX: usize = 256;
/// The longest time that a change may be held back for to settle, in milliseconds: a minute, shown after five at the latest.
const SETTLE_MILLISECONDS_MAX: u32 = 60_000;

/// Passes what a guest asks to see: for each need the objects to be looked up, or nothing for time.
///
/// # Errors
/// Every violation found, in the order of the needs. Never empty.
pub fn needs(context: &GateContext<'_>, needs: &[Need]) -> Result<Vec<Option<LookUp>>, Vec<Violation>> {
    let mut found = Violations::default();
    let allowed = check(context, needs, &mut found);
    if found.0.is_empty() { Ok(allowed) } else { Err(found.0) }
}

pub(super) fn check(
    context: &GateContext<'_>,
    needs: &[Need],
    found: &mut Violations,
) -> Vec<Option<LookUp>> {
    if needs.len() > NEEDS_MAX {
        let message = format!("{} needs, the limit is {NEEDS_MAX}", needs.len());
        found.add(reasons::TOO_MANY_NEEDS, "needs", message);
        return Vec::new();
    }
    let each = needs.iter().enumerate().map(|(index, need)| {
        let at = format!("needs[{index}]");
        if needs.iter().take(index).any(|other| other == need) {
            found.add(reasons::NEED_INVALID, &at, "the need stands twice");
        }
        match need {
            Need::Clock { step_seconds: 0 } => {
                found.add(reasons::NEED_INVALID, format!("{at}.clock.stepSeconds"), "a step is at least 1 s");
                None
            }
            Need::Clock { .. } => None,
            Need::Deadline(time) => {
                if time.parse::<Timestamp>().is_err() {
                    let message = format!("{time:?} is no time of RFC 3339");
                    found.add(reasons::NEED_INVALID, format!("{at}.deadline"), message);
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
    let before = found.0.len();
    let kind = Kind::new(&need.api_version, &need.kind);
    let is_kind = |api_version: &str, name: &str| *api_version == kind.api_version && *name == kind.kind;
    let declared = context.manifest.needs.iter().find(|one| is_kind(&one.api_version, &one.kind));
    if declared.is_none() {
        let message = format!("the manifest does not declare that it needs {kind}");
        found.add(reasons::NEED_NOT_DECLARED, format!("{at}.kind"), message);
        return None;
    }
    if need.settle_milliseconds > SETTLE_MILLISECONDS_MAX {
        let message = format!("a change is held back for at most {SETTLE_MILLISECONDS_MAX} ms");
        found.add(reasons::NEED_INVALID, format!("{at}.settleMilliseconds"), message);
    }
    for (index, path) in need.fields.iter().enumerate().filter(|(_, path)| !is_field(path)) {
        let message = format!(
            "{path:?} cannot be asked for: a field is a dotted path of maps, and of metadata only ownerReferences"
        );
        found.add(reasons::NEED_INVALID, format!("{at}.fields[{index}]"), message);
    }
    select(context, declared.map_or(&[][..], |one| &one.indexes), need, at, found);

    let root = object::namespace(context.root);
    // What is not served has no objects, wherever one looks.
    let namespaced = context.kinds.get(&kind).is_none_or(|info| info.namespaced);
    let named = need.namespace.as_deref();
    let namespace = match named {
        Some(ALL_NAMESPACES) => None,
        Some(name) if namespaced => {
            if !super::children::is_namespace(name) {
                found.add(
                    reasons::NEED_INVALID,
                    format!("{at}.namespace"),
                    format!("{name:?} is no namespace"),
                );
            }
            Some(name)
        }
        Some(_) => {
            let message = format!("{kind} is of cluster scope: its objects have no namespace");
            found.add(reasons::NEED_INVALID, format!("{at}.namespace"), message);
            None
        }
        None => root.filter(|_| namespaced),
    };
    if namespaced && namespace.is_none() && matches!(need.select, Select::Name(_)) {
        let message = "a name alone says nothing without a namespace";
        found.add(reasons::NEED_INVALID, format!("{at}.namespace"), message);
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
        let message = format!(
            "Reconciler {} does not grant that the guest sees {kind} {} in {place}{remedy}",
            context.reconciler,
            what(&need.select)
        );
        found.add(reasons::NEED_NOT_GRANTED, at, message);
    }
    (found.0.len() == before).then(|| LookUp {
        kind,
        namespace: namespace.map(Into::into),
        select: need.select.clone(),
        fields: need.fields.clone(),
    })
}

fn grants(grant: &NeedGrant, kind: &Kind, select: &Select, is_at_home: bool) -> bool {
    let in_place = is_at_home || grant.scope == NeedScope::All;
    let by_name = match select {
        Select::Name(name) => grant.names.iter().any(|granted| granted == name),
        _ => false,
    };
    // Of what may not be watched nothing is shown that an administrator did not name.
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
            let message = format!("{name:?} is no object name");
            found.add(reasons::NEED_INVALID, format!("{at}.select.name"), message);
        }
        Select::Name(_) => {}
        Select::Labels(selector) => {
            for (index, requirement) in selector.match_expressions.iter().enumerate() {
                let takes_values =
                    matches!(requirement.operator, SelectorOperator::In | SelectorOperator::NotIn);
                if takes_values == requirement.values.is_empty() {
                    let message = "In and NotIn need values, Exists and DoesNotExist take none";
                    let path = format!("{at}.select.labels.matchExpressions[{index}].values");
                    found.add(reasons::NEED_INVALID, path, message);
                }
            }
        }
        Select::Field(field) if !indexes.contains(&field.path) => {
            let message = format!(
                "the manifest of guest {} declares no index of {} {} by {:?}",
                context.manifest.name, need.api_version, need.kind, field.path
            );
            found.add(reasons::INDEX_NOT_DECLARED, format!("{at}.select.field.path"), message);
        }
        Select::Field(_) => {}
    }
}

fn is_field(path: &str) -> bool {
    let plain =
        !path.is_empty() && path.split('.').all(|step| !step.is_empty() && !step.contains(['[', ']']));
    let first = path.split('.').next().unwrap_or_default();
    plain && (first != "metadata" || path == "metadata.ownerReferences")
}
