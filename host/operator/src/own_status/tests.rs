//! Tests of the statuses that the host writes to Modules and Reconcilers.

use std::{sync::Arc, time::Duration};

use pintle_engine::Digest;
use pintle_wit::{Manifest, reasons};
use serde_json::json;

use super::*;
use crate::store::{Cause, RootKey};

fn object(status: Option<ModuleStatus>) -> api::Module {
    let object = json!({"apiVersion": "pintle.dev/v1alpha1", "kind": "Module",
        "metadata": {"name": "one", "uid": "u", "generation": 1}, "spec": {"digest": "", "source": {}}});
    api::Module { status, ..serde_json::from_value(object).expect("a Module") }
}

fn of(status: Option<ModuleStatus>, progress: Progress) -> ModuleStatus {
    of_module(&object(status), Some(&progress), &BTreeMap::new(), Timestamp::UNIX_EPOCH)
}

fn checked() -> Progress {
    Progress::Checked(Some(Arc::new(Facts {
        digest: Digest::of(b""),
        interfaces: vec![pintle_wit::worlds::reconciler::INTERFACE],
        size_bytes: 7,
        compile_duration: Duration::from_millis(40),
        manifest: api::manifest_value(&Manifest::default()),
    })))
}

/// What its conditions say, with the letters of True, False and Unknown.
fn said(status: &ModuleStatus, name: &str) -> String {
    let found = status.conditions.iter().find(|condition| condition.r#type == name);
    found.map_or_else(String::new, |found| format!("{:?} {}", found.status, found.reason))
}

#[test]
fn a_module_that_is_compiled_no_more_is_as_ready_as_before_and_known_after_a_restart() {
    let status = of(None, checked());
    assert!(said(&status, "Ready").starts_with("True") && said(&status, "Compiled").starts_with("True"));
    assert!(status.manifest.is_some());
    assert!(was_checked(&object(Some(status.clone()))));
    assert_eq!(of(Some(status.clone()), Progress::Checked(None)), status);
    assert_eq!(of(Some(status.clone()), Progress::Loading), status);

    let other = ModuleStatus { checked_by: Some("0.0.0".into()), ..status.clone() };
    assert!(!was_checked(&object(Some(other))), "another host may have other rules");
    assert!(!was_checked(&object(Some(ModuleStatus { observed_generation: Some(0), ..status }))));
    assert!(!was_checked(&object(None)));
}

#[test]
fn a_failure_stands_at_the_step_that_it_is_about() {
    let not_yet = |reason: &str| Progress::NotYet(Failure::transient(reason, "m"), Duration::ZERO);
    for (progress, steps) in [
        (not_yet("SourceNotFound"), ["False", "Unknown", "Unknown"]),
        (Progress::Refused(Failure::terminal(reasons::MODULE_TOO_LARGE, "m")), ["True", "False", "Unknown"]),
        (not_yet(reasons::COMPILER_FAILED), ["True", "True", "False"]),
        (
            Progress::Refused(Failure::terminal(reasons::COMPILE_TOO_EXPENSIVE, "m")),
            ["True", "True", "False"],
        ),
    ] {
        let is_terminal = matches!(progress, Progress::Refused(_));
        let status = of(None, progress);
        for (name, expected) in STEPS.into_iter().zip(steps) {
            assert!(said(&status, name).starts_with(expected), "{name}: {}", said(&status, name));
        }
        assert_eq!(said(&status, "Stalled").starts_with("True"), is_terminal);
        assert!(!was_checked(&object(Some(status))));
    }
}

#[test]
fn a_module_that_is_to_go_says_who_uses_it_whatever_their_kind() {
    let mut going = object(None);
    let view = BTreeMap::from([(ModuleUser::View("a".into()), vec![])]);
    let present = BTreeMap::from([(ModuleUser::Reconciler("b".into()), vec![])]);
    let past = BTreeMap::from([(ModuleUser::Reconciler("c".into()), vec![1, 4])]);
    let users: BTreeMap<ModuleUser, Vec<usize>> =
        [view.clone(), present, past.clone()].into_iter().flatten().collect();
    let of = |object: &api::Module, users: &BTreeMap<ModuleUser, Vec<usize>>| {
        of_module(object, Some(&checked()), users, Timestamp::UNIX_EPOCH)
    };
    let status = of(&going, &users);
    assert_eq!(status.used_by, ["b", "c", "view/a"]);
    assert_eq!(said(&status, "InUse"), "", "nobody deletes it");
    let deleted = json!("2000-01-01T00:00:00Z");
    going.metadata.deletion_timestamp = serde_json::from_value(deleted).expect("a time");
    let status = of(&going, &users);
    assert_eq!(said(&status, "InUse"), "True UsedByReconciler");
    let message = |status: &ModuleStatus| {
        let in_use = status.conditions.iter().find(|condition| condition.r#type == "InUse");
        in_use.map(|in_use| in_use.message.clone()).unwrap_or_default()
    };
    let goes = "the Module goes when no Reconciler or View uses it any more: ";
    let forget = r#"let the history of c forget it: kubectl patch reconciler c --subresource=status --type=json -p '[{"op":"test","path":"/status/history/4/module","value":"one"},{"op":"remove","path":"/status/history/4"},{"op":"test","path":"/status/history/1/module","value":"one"},{"op":"remove","path":"/status/history/1"}]'"#;
    assert_eq!(message(&status), format!("{goes}swap b, view/a to another module; {forget}"));
    assert_eq!(message(&of(&going, &past)), format!("{goes}{forget}"), "a swap does not free it");
    let of_a_view = of(&going, &view);
    assert_eq!(said(&of_a_view, "InUse"), "True UsedByView");
    assert_eq!(said(&of(&going, &BTreeMap::new()), "InUse"), "");
}

fn roots_ready_of(roots: RootCounts, failing: &[(&str, &str, &str)]) -> (ConditionStatus, String, String) {
    let mut reasons: Vec<(Arc<str>, u32)> = Vec::new();
    for (_, reason, _) in failing {
        match reasons.iter_mut().find(|(known, _)| **known == **reason) {
            Some((_, count)) => *count += 1,
            None => reasons.push(((*reason).into(), 1)),
        }
    }
    let key = |name: &str| RootKey { namespace: Some("shop".into()), name: name.into() };
    let first = failing.iter().take(3);
    let first = first.map(|(name, reason, message)| (key(name), Cause::new(reason, message))).collect();
    let spec = json!({"for": {"apiVersion": "x/v1", "kind": "Shop"}, "module": "shop-0.2.0",
        "grants": {"children": [{"apiVersion": "v1", "kinds": ["ConfigMap"], "namespaces": ["all"]}], "podDeletions": true}});
    let mut object = api::Reconciler::new("shops", serde_json::from_value(spec).expect("a spec"));
    let active = api::ActiveModule { module: "shop-0.1.0".into(), ..api::ActiveModule::default() };
    object.status = Some(ReconcilerStatus { active: Some(active), ..ReconcilerStatus::default() });
    let condition = roots_ready(&object, roots, &Failures { first, reasons });
    (condition.status, condition.reason, condition.message)
}

#[test]
fn of_a_root_whose_guest_traps_a_reconciler_has_the_command_that_shows_why() {
    let fails = [("a", "Forbidden", "m"), ("b", "GuestTrapped", "m")];
    let (_, _, message) = roots_ready_of(RootCounts { total: 2, ready: 0, failing: 2 }, &fails);
    let command = "; to run it beside the guest's sources, with the message: pintle record -n shop shop.x/b > cases/b.yaml; apply";
    assert!(message.contains(command), "{message}");
}

#[test]
fn a_reconciler_names_the_roots_that_fail_and_why() {
    let counts = |total, ready, failing| RootCounts { total, ready, failing };
    let told = |status, reason: &str, message: &str| (status, reason.to_owned(), message.to_owned());
    assert_eq!(
        roots_ready_of(counts(2, 2, 0), &[]),
        told(ConditionStatus::True, "Succeeded", "2 of 2 roots are ready")
    );
    assert_eq!(
        roots_ready_of(counts(2, 1, 0), &[]),
        told(ConditionStatus::False, "Progressing", "1 of 2 roots are ready, and none fails")
    );
    let fails = [
        ("a", "Invalid", "spec.url: is required"),
        ("b", "Invalid", "Invalid: spec.url: is no URL"),
        ("c", "Forbidden", "may not patch shops/status"),
        ("d", "Invalid", "m"),
    ];
    assert_eq!(
        roots_ready_of(counts(9, 5, 4), &fails),
        told(
            ConditionStatus::False,
            "Invalid",
            "4 of 9 roots fail (3 Invalid, 1 Forbidden): shop/a: Invalid: spec.url: is required; \
             shop/b: Invalid: spec.url: is no URL; shop/c: Forbidden: may not patch shops/status; and 1 more; \
             apply the guest's role: pintle rbac shop-0.1.0 shop-0.2.0 --pod-deletions | kubectl apply -f -"
        )
    );
}

#[test]
fn what_is_said_of_the_roots_is_no_other_change() {
    let status = |ready: u32, reason: &str| {
        let roots = RootCounts { total: 2, ready, failing: 2 - ready };
        let extra = condition(pintle_core::reasons::ROOTS_READY, ConditionStatus::False, reason, "m");
        let conditions = conditions::compute(&[], &[extra], Some(1), &[], Timestamp::UNIX_EPOCH);
        ReconcilerStatus { roots: Some(roots), conditions, ..ReconcilerStatus::default() }
    };
    let one = status(0, "Invalid");
    assert!(differ_in_roots_alone(&one, &status(1, "Other")));
    let mut other = status(0, "Invalid");
    other.conditions.retain(|condition| condition.r#type != conditions::READY);
    assert!(!differ_in_roots_alone(&one, &other));
}
