//! The conditions of a root: those of the host (`Ready`, `Reconciling`, `Stalled`, as kstatus reads them) and those of the guest.

use jiff::Timestamp;
use pintle_wit::{Condition, ConditionStatus, GuestCondition};

use crate::reasons;

/// The summary for people and tools.
pub const READY: &str = "Ready";
/// True while the host is still working on it; absent otherwise.
pub const RECONCILING: &str = "Reconciling";
/// True when only a change can help; absent otherwise.
pub const STALLED: &str = "Stalled";
/// The conditions that only the host writes.
pub const HOST_CONDITIONS: [&str; 3] = [READY, RECONCILING, STALLED];

/// Why a root is not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocker {
    /// One CamelCase word.
    pub reason: String,
    /// For a person.
    pub message: String,
    /// Only a change of the root, a child, the Reconciler or the module can help.
    pub terminal: bool,
}

/// The condition of a type.
pub fn find<'a>(conditions: &'a [Condition], name: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.r#type == name)
}

/// The host's conditions and the guest's, sorted by type. A condition keeps its transition time if its status did not change. `blockers`
/// has the most important one first; none means ready.
pub fn compute(
    blockers: &[Blocker],
    guest: &[GuestCondition],
    generation: Option<i64>,
    before: &[Condition],
    now: Timestamp,
) -> Vec<Condition> {
    let mut conditions: Vec<Condition> = Vec::with_capacity(guest.len() + 2);
    let mut set = |name: &str, status: ConditionStatus, reason: &str, message: &str| {
        let old = before.iter().find(|condition| condition.r#type == name && condition.status == status);
        conditions.push(Condition {
            r#type: name.into(),
            status,
            observed_generation: generation,
            last_transition_time: old
                .map(|old| old.last_transition_time.clone())
                .filter(|time| !time.is_empty())
                .unwrap_or_else(|| time(now)),
            reason: reason.into(),
            message: message.into(),
        });
    };
    for condition in guest {
        set(&condition.r#type, condition.status, &condition.reason, &condition.message);
    }
    match blockers.iter().find(|blocker| blocker.terminal).or(blockers.first()) {
        None => {
            set(READY, ConditionStatus::True, reasons::SUCCEEDED, "every child is as it should be, and ready")
        }
        Some(worst) => {
            let first = blockers.first().unwrap_or(worst);
            set(READY, ConditionStatus::False, &first.reason, &first.message);
            let abnormal = if worst.terminal { STALLED } else { RECONCILING };
            set(abnormal, ConditionStatus::True, &worst.reason, &worst.message);
        }
    }
    conditions.sort_by(|a, b| a.r#type.cmp(&b.r#type));
    conditions
}

/// The conditions of a root that nobody reconciles any more. Of those before, the guest's stay as they are. What was observed last
/// stays observed.
pub fn not_reconciled(
    reconciler: &str,
    guest: Vec<Condition>,
    before: &[Condition],
    now: Timestamp,
) -> Vec<Condition> {
    let ready = find(before, READY);
    let since = ready.filter(|ready| ready.status == ConditionStatus::Unknown);
    let mut conditions = guest;
    conditions.push(Condition {
        r#type: READY.into(),
        status: ConditionStatus::Unknown,
        observed_generation: ready.and_then(|ready| ready.observed_generation),
        last_transition_time: since.map_or_else(|| time(now), |since| since.last_transition_time.clone()),
        reason: reasons::NOT_RECONCILED.into(),
        message: format!(
            "Reconciler {reconciler} was deleted: children stay as they are until another Reconciler is for this kind"
        ),
    });
    conditions.sort_by(|a, b| a.r#type.cmp(&b.r#type));
    conditions
}

/// A time as Kubernetes writes it: RFC 3339, UTC, whole seconds.
pub fn time(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Text without control characters and of at most 4 KiB, for a condition's message.
pub fn message(text: &str) -> String {
    crate::text::clean(text, 4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn blocker(reason: &str, terminal: bool) -> Blocker {
        Blocker { reason: reason.into(), message: "m".into(), terminal }
    }

    fn seen(conditions: &[Condition]) -> Vec<(&str, &str, &str)> {
        conditions.iter().map(|c| (c.r#type.as_str(), c.status.as_str(), c.reason.as_str())).collect()
    }

    #[test]
    fn no_blocker_means_ready_and_nothing_abnormal() {
        assert_eq!(seen(&compute(&[], &[], Some(1), &[], at(0))), [(READY, "True", reasons::SUCCEEDED)]);
    }

    #[test]
    fn the_first_blocker_is_readys_reason_and_a_terminal_one_stalls() {
        let blockers = [blocker("A", false), blocker("B", true)];
        assert_eq!(
            seen(&compute(&blockers, &[], None, &[], at(0))),
            [(READY, "False", "A"), (STALLED, "True", "B")]
        );
        assert_eq!(
            seen(&compute(&blockers[..1], &[], None, &[], at(0))),
            [(READY, "False", "A"), (RECONCILING, "True", "A")]
        );
    }

    #[test]
    fn a_transition_time_moves_only_with_the_status() {
        let before = compute(&[blocker("A", false)], &[], Some(1), &[], at(0));
        let same = compute(&[blocker("B", false)], &[], Some(2), &before, at(60));
        assert!(
            same.iter().all(|condition| condition.last_transition_time == "1970-01-01T00:00:00Z"),
            "{same:?}"
        );
        let after = compute(&[], &[], Some(2), &before, at(60));
        assert_eq!(after[0].last_transition_time, "1970-01-01T00:01:00Z");
    }
}
