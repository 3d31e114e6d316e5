//! Tests of the status that the host writes to Modules.

use std::{sync::Arc, time::Duration};

use pintle_engine::Digest;
use pintle_wit::{Manifest, reasons};
use serde_json::json;

use super::*;

fn object(status: Option<ModuleStatus>) -> api::Module {
    let object = json!({"apiVersion": "pintle.dev/v1alpha1", "kind": "Module",
        "metadata": {"name": "one", "uid": "u", "generation": 1}, "spec": {"digest": "", "source": {}}});
    api::Module { status, ..serde_json::from_value(object).expect("a Module") }
}

fn of(status: Option<ModuleStatus>, progress: Progress) -> ModuleStatus {
    of_module(&object(status), Some(&progress), &[], Timestamp::UNIX_EPOCH)
}

fn checked() -> Progress {
    Progress::Checked(Some(Arc::new(Facts {
        digest: Digest::of(b""),
        interfaces: vec![pintle_wit::worlds::reconciler::INTERFACE],
        size_bytes: 7,
        compile_duration: Duration::from_millis(40),
        manifest: Manifest::default(),
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
