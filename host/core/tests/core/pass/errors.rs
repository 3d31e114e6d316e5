//! The rules for what the API server says instead of yes: one table, one row a rule.

use std::time::Duration;

use pintle_core::ApiError;
use serde_json::json;

use crate::pass::{
    api::{Fault, cause, error, no_reply, port_taken},
    world::{World, absent, answer, config_map, no, service, yes},
};

/// What becomes of a child that was not accepted.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rule {
    /// Nobody knows whether it was carried out: retried, and the guest is not asked anew.
    Retry,
    /// It was refused, the guest is told, and it may end by itself: retried.
    ToldAndRetried,
    /// It was refused, the guest is told, and only a change can help.
    ToldAndFinal,
}

struct Row {
    name: &'static str,
    error: ApiError,
    rule: Rule,
    reason: &'static str,
    says: &'static str,
}

fn row(name: &'static str, error: ApiError, rule: Rule, reason: &'static str, says: &'static str) -> Row {
    Row { name, error, rule, reason, says }
}

fn rows() -> Vec<Row> {
    use Rule::*;
    let immutable = "Service \"web\" is invalid: spec.clusterIP: Invalid value: may not change once set";
    let with_cause = |error: ApiError, field: &str, message: &str| ApiError {
        causes: vec![cause(field, message)],
        ..error
    };
    let policy =
        "services \"web\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no";
    let told = ApiError { causes: vec![], ..port_taken() };
    let webhook = "admission webhook \"w\" denied the request: no";
    let quota = "services \"web\" is forbidden: exceeded quota: q, requested: services=1";
    vec![
        row("no reply", no_reply(), Retry, "NoReply", "connection reset"),
        row("the token is not taken", error(401, "Unauthorized", "no"), Retry, "Unauthorized", "(401 "),
        row("the server gave up", error(408, "Timeout", "slow"), Retry, "Timeout", "(408 "),
        row("too many requests", error(429, "", "later"), Retry, "TooManyRequests", "later"),
        row("an internal error", error(500, "InternalError", "m"), Retry, "InternalError", "(500 "),
        row(
            "no webhook answers",
            error(500, "InternalError", "failed calling webhook"),
            Retry,
            "InternalError",
            "webhook",
        ),
        row("a proxy's page", error(502, "<html>", "<html>"), Retry, "ApiError", "(502 "),
        row("no Status", error(502, "Failed to parse error data", "<html>"), Retry, "ApiError", "(502 "),
        row("overload", error(503, "ServiceUnavailable", "m"), Retry, "ServiceUnavailable", "(503 "),
        row("the server timed out", error(504, "Timeout", "m"), Retry, "Timeout", "(504 "),
        row(
            "a right is missing",
            error(403, "Forbidden", "may not create"),
            ToldAndRetried,
            "Forbidden",
            "may not create",
        ),
        row(
            "the quota is spent",
            error(403, "Forbidden", quota),
            ToldAndRetried,
            "Forbidden",
            "exceeded quota",
        ),
        row(
            "the namespace is ending",
            error(403, "Forbidden", "is being terminated"),
            ToldAndRetried,
            "Forbidden",
            "terminated",
        ),
        row("a webhook says no", error(403, "Forbidden", webhook), ToldAndRetried, "Forbidden", "denied"),
        row(
            "a webhook says no in its own code",
            error(400, "BadRequest", webhook),
            ToldAndRetried,
            "BadRequest",
            "denied",
        ),
        row("a policy says no", error(422, "Invalid", policy), ToldAndRetried, "Invalid", "denied request"),
        row(
            "the kind or namespace is missing",
            error(404, "NotFound", "not found"),
            ToldAndRetried,
            "NotFound",
            "not found",
        ),
        row("a port is taken", port_taken(), ToldAndRetried, "Invalid", "already allocated"),
        row("a port is taken, in words alone", told, ToldAndRetried, "Invalid", "already allocated"),
        row("it is malformed", error(400, "BadRequest", "no"), ToldAndFinal, "BadRequest", "no"),
        row(
            "it is too large",
            error(413, "RequestEntityTooLarge", "big"),
            ToldAndFinal,
            "ObjectTooLarge",
            "big",
        ),
        row(
            "etcd says that it is too large",
            error(500, "", "etcdserver: request is too large"),
            ToldAndFinal,
            "ObjectTooLarge",
            "too large",
        ),
        row(
            "the client of etcd says that it is too large",
            error(
                500,
                "",
                "rpc error: code = ResourceExhausted desc = trying to send message larger than max",
            ),
            ToldAndFinal,
            "ObjectTooLarge",
            "larger than max",
        ),
        row("it is invalid", error(422, "Invalid", "spec: no"), ToldAndFinal, "Invalid", "spec: no"),
        row(
            "a field may not change",
            error(422, "Invalid", immutable),
            ToldAndFinal,
            "Invalid",
            "delete Service shops/web, and it is made anew, or let the guest name it otherwise",
        ),
        row(
            "a field may not change, by its cause",
            with_cause(error(422, "Invalid", "m"), "spec.selector", "field is immutable"),
            ToldAndFinal,
            "Invalid",
            "delete Service shops/web",
        ),
        row(
            "the kind has no such field",
            error(500, "", "failed to create typed patch object: .spec.prots: field not declared in schema"),
            ToldAndFinal,
            "FieldUndeclared",
            ".spec.prots",
        ),
    ]
}

#[test]
fn every_error_of_an_apply_has_its_rule() {
    for Row { name, error, rule, reason, says } in rows() {
        let mut world = World::new();
        world.api.fail("apply Service web", Fault::Refuse(error));
        let shop = answer(vec![config_map("page", "a"), service("web", 30010)]);
        let run = world.pass(&shop);
        let told = run.requests.last().unwrap().refusal("Service", "web").is_some();
        assert_eq!(
            (run.requests.len(), told),
            if rule == Rule::Retry { (1, false) } else { (2, true) },
            "{name}"
        );
        assert_eq!(run.done.wake.retry, (rule != Rule::ToldAndFinal).then_some(Duration::ZERO), "{name}");
        assert!(world.live("ConfigMap", "page").is_some(), "{name}: the others are applied");
        assert_eq!(world.says("Ready"), no(reason), "{name}");
        let conditions = (world.says("Reconciling"), world.says("Stalled"));
        let expected =
            if rule == Rule::ToldAndFinal { (absent(), yes(reason)) } else { (yes(reason), absent()) };
        assert_eq!(conditions, expected, "{name}");
        world.tells("Ready", &[says, "Service shops/web"]);
        assert_eq!(run.done.error.as_deref(), Some(reason), "{name}");
        // What is retried passes as soon as it may; what is final is not even sent.
        let again = world.pass(&shop);
        assert_eq!(again.done.ready, rule != Rule::ToldAndFinal, "{name}: {:?}", again.steps);
        assert_eq!(again.steps.contains(&"create Service web".to_owned()), again.done.ready, "{name}");
    }
}

#[test]
fn a_conflict_is_resolved_by_a_look() {
    let mut world = World::new();
    world.api.fail("apply Service web", Fault::Refuse(error(409, "Conflict", "modified")));
    let run = world.pass(&answer(vec![service("web", 30010)]));
    assert_eq!(run.steps[..4], ["call", "create Service web", "get Service web", "create Service web"]);
    assert!(run.done.ready);
}

#[test]
fn the_api_server_is_left_alone_as_long_as_it_asks_but_not_for_a_day() {
    for (asked, left) in [(7, 7), (86_400, 300)] {
        let wait =
            ApiError { retry_after: Some(Duration::from_secs(asked)), ..error(429, "TooManyRequests", "m") };
        let mut world = World::new();
        world.api.fail("apply Service web", Fault::Refuse(wait));
        let run = world.pass(&answer(vec![service("web", 30010)]));
        assert_eq!(run.done.wake.retry, Some(Duration::from_secs(left)));
    }
}

#[test]
fn whatever_goes_wrong_with_a_prune_is_retried_and_named() {
    for (verb, fault, reason) in [
        ("get", error(403, "Forbidden", "no"), "Forbidden"),
        ("get", no_reply(), "NoReply"),
        ("delete", error(403, "Forbidden", "no"), "Forbidden"),
        ("delete", error(409, "Conflict", "changed"), "Conflict"),
        ("delete", error(500, "InternalError", "m"), "InternalError"),
    ] {
        let mut world = World::new();
        world.settle(&answer(vec![config_map("page", "a"), config_map("old", "a")]));
        world.binding.generation += 1;
        world.api.fail(&format!("{verb} ConfigMap old"), Fault::Refuse(fault));
        let run = world.pass(&answer(vec![config_map("page", "a")]));
        assert_eq!((world.says("Ready"), world.says("Reconciling")), (no(reason), yes(reason)), "{verb}");
        assert_eq!((run.done.wake.retry, run.done.ready), (Some(Duration::ZERO), false), "{verb}");
        world.tells("Ready", &["ConfigMap shops/old"]);
        assert!(world.pass(&answer(vec![config_map("page", "a")])).done.ready, "{verb} {reason}");
        assert_eq!(world.live("ConfigMap", "old"), None);
    }
}

#[test]
fn a_status_that_the_api_server_does_not_take_is_replaced_by_one_that_says_so() {
    let mut world = World::new();
    world.settle(&answer(vec![config_map("page", "a")]));
    let mut wrong = answer(vec![config_map("page", "b")]);
    wrong.status.insert("phase".into(), json!(7));
    world.binding.generation += 1;
    let message = "Shop \"shop\" is invalid: status.phase: must be of type string";
    world.api.fail("status Shop shop", Fault::Refuse(error(422, "Invalid", message)));
    let run = world.pass(&wrong);
    assert_eq!(run.steps, ["call", "update ConfigMap page", "status", "status", "emit"]);
    assert_eq!((world.says("Ready"), world.says("Stalled")), (no("StatusRefused"), yes("StatusRefused")));
    world.tells("Stalled", &["status.phase"]);
    assert_eq!(world.status()["phase"], "Up", "the guest's last fields stay");
    assert_eq!((run.done.wake.retry, run.done.error.as_deref()), (None, Some("StatusRefused")));
    assert!(
        world.live("ConfigMap", "page").unwrap()["data"]["key"] == "b",
        "the children are as they should be"
    );
}

#[test]
fn a_root_that_has_no_room_for_a_status_gets_an_event_and_is_not_tried_again() {
    let mut world = World::new();
    for _ in 0..2 {
        let etcd = error(500, "", "etcdserver: request is too large");
        world.api.fail("status Shop shop", Fault::Refuse(etcd));
    }
    let run = world.pass(&answer(vec![config_map("page", "a")]));
    let told: Vec<&str> = run.events.iter().map(|event| event.reason.as_str()).collect();
    assert_eq!((told, run.done.ready), (vec!["StatusRefused"], false));
    assert!(run.events[0].message.contains("no room for a status"), "{:?}", run.events);
    assert_eq!((run.done.wake.retry, run.done.error.as_deref()), (None, Some("StatusRefused")));
    assert!(world.live("ConfigMap", "page").is_some(), "the children are as they should be");
}

#[test]
fn a_status_that_may_pass_later_is_retried() {
    for fault in [
        no_reply(),
        error(403, "Forbidden", "no"),
        error(429, "", "later"),
        error(500, "InternalError", "m"),
        error(503, "ServiceUnavailable", "later"),
    ] {
        let mut world = World::new();
        world.api.fail("status Shop shop", Fault::Refuse(fault));
        let run = world.pass(&answer(vec![config_map("page", "a")]));
        assert!(run.done.wake.retry.is_some() && !run.done.ready, "{:?}", run.steps);
        assert_eq!(world.says("Ready"), absent(), "the status does not say so yet");
        let run = world.pass(&answer(vec![config_map("page", "a")]));
        assert!(run.done.ready && run.done.wake.retry.is_none(), "{:?}", run.steps);
        assert!(world.live("ConfigMap", "page").is_some());
    }
}
