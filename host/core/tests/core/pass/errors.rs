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
    // As the client of the API server hands it on.
    Row { name, error: error.without_objects(), rule, reason, says }
}

/// What no message repeats: a value in an object that the API server prints.
const VALUE: &str = "hunter2";

/// What the API server says of an object that is not valid.
fn invalid(causes: &[(&str, &str)]) -> ApiError {
    let listed: Vec<String> = causes.iter().map(|(field, message)| format!("{field}: {message}")).collect();
    let listed = if listed.len() == 1 { listed.concat() } else { format!("[{}]", listed.join(", ")) };
    let causes = causes.iter().map(|(field, message)| cause(field, message)).collect();
    ApiError { causes, ..error(422, "Invalid", &format!("Service \"web\" is invalid: {listed}")) }
}

/// What the API server says of a template of three containers that may not change.
fn template() -> String {
    let container = format!(
        "core.Container{{Name:\"a\", Env:[]core.EnvVar{{core.EnvVar{{Name:\"A\", Value:\"{VALUE}}}: b\", ValueFrom:(*core.EnvVarSource)(nil)}}}}, \
         Command:[]string{{\"{}\"}}}}",
        "x".repeat(2000)
    );
    format!(
        "Invalid value: core.PodTemplateSpec{{ObjectMeta:v1.ObjectMeta{{Name:\"\"}}, Spec:core.PodSpec{{Containers:[]core.Container{{{}}}}}}}: \
         field is immutable",
        [&*container; 3].join(", ")
    )
}

/// The rows about objects that the API server prints within its words, and about what does not fit its kind.
fn rows_with_objects() -> Vec<Row> {
    use Rule::*;
    let template = template();
    let pod = format!(
        "Forbidden: pod updates may not change fields other than `spec.containers[*].image`\n\u{a0}\u{a0}core.PodSpec{{\n- Value: \"{VALUE}\",\n}}"
    );
    let json = format!("Invalid value: {{\"matchLabels\":{{\"a\":\"{VALUE}\"}}}}: field is immutable");
    let address =
        "Invalid value: [\"10.0.0.5\"]: failed to allocate IP 10.0.0.5: provided IP is already allocated";
    let port = format!("Duplicate value: core.ServicePort{{Name:\"{VALUE}\", Port:80}}");
    let patch = format!("Invalid value: \"{{\\\"data\\\":{{\\\"a\\\":\\\"{VALUE}\\\"}}}}\": json: no");
    let typed = format!(
        "failed to create typed patch object (shops/web; /v1, Kind=Service): errors:\n  .spec.a: expected string, got \
         &value.valueUnstructured{{Value:[]interface {{}}{{\"{VALUE}\"}}}}\n  .spec.b: duplicate entries for key [name=\"A\"]"
    );
    let base64 = "failed to convert new object (shops/web; /v1, Kind=Secret) to proper version: unable to convert unstructured object to \
                  /v1, Kind=Secret: illegal base64 data at input byte 4";
    let live = "failed to convert live object (shops/web; /v1, Kind=Secret) to proper version: later";
    let health =
        "failed to allocate requested HealthCheck NodePort 30010: provided port is already allocated";
    let for_good = |name, error, says| row(name, error, ToldAndFinal, "Invalid", says);
    vec![
        for_good(
            "a template may not change, behind the print of three containers",
            invalid(&[("spec.template", template.as_str())]),
            "spec.template: Invalid value: field is immutable; what is there cannot become this: let the guest name it otherwise, or delete \
             it and all that it holds, and it is made anew: kubectl delete -n shops service web",
        ),
        for_good(
            "two fields may not change",
            invalid(&[
                ("spec.template", template.as_str()),
                ("spec.completions", "Invalid value: 2: field is immutable"),
            ]),
            "[spec.template: Invalid value: field is immutable, spec.completions: Invalid value: 2: field is immutable]; what",
        ),
        for_good(
            "a print without causes",
            error(422, "Invalid", &format!("Service \"web\" is invalid: spec.template: {template}")),
            "spec.template: Invalid value: field is immutable; what",
        ),
        for_good(
            "a selector may not change",
            invalid(&[("spec.selector", json.as_str())]),
            "spec.selector: Invalid value: field is immutable; what",
        ),
        for_good(
            "a Pod may not change",
            invalid(&[("spec", pod.as_str())]),
            "may not change fields other than `spec.containers[*].image`; what is there cannot become this",
        ),
        for_good(
            "an item is there twice",
            invalid(&[("spec.ports[1]", port.as_str())]),
            "spec.ports[1]: Duplicate value",
        ),
        for_good(
            "a text is a whole object",
            invalid(&[("patch", patch.as_str())]),
            "patch: Invalid value: json: no",
        ),
        row(
            "an address is taken",
            invalid(&[("spec.clusterIPs", address)]),
            ToldAndRetried,
            "Invalid",
            "provided IP is already allocated",
        ),
        row(
            "the port of the health check is taken",
            error(500, "", health),
            ToldAndRetried,
            "Invalid",
            "already allocated",
        ),
        for_good(
            "it does not fit its kind",
            error(500, "", &typed),
            ".spec.b: duplicate entries for key [name=\"A\"]",
        ),
        for_good("what it becomes does not fit its kind", error(500, "", base64), "illegal base64"),
        row("what is stored does not fit its kind", error(500, "", live), Retry, "ApiError", "later"),
    ]
}

/// The rows about what is forbidden: a right is missing, or admission says no.
fn rows_of_403() -> Vec<Row> {
    use Rule::ToldAndRetried;
    let right = "services \"web\" is forbidden: User \"u\" cannot patch resource \"services\" in API group \"\" in the namespace \"shops\"";
    let maximum = "pods \"web\" is forbidden: maximum cpu usage per Container is 1, but limit is 2";
    let ratio = "pods \"web\" is forbidden: cpu max limit to request ratio per Container is 2, but provided ratio is 4.000000";
    let level = "pods \"web\" is forbidden: violates PodSecurity \"restricted:latest\": privileged (a must not set it)";
    let terminating = "services \"web\" is forbidden: unable to create new content in namespace shops because it is being terminated";
    let quota = "services \"web\" is forbidden: exceeded quota: q, requested: services=1";
    let webhook = "admission webhook \"w\" denied the request: no";
    vec![
        row(
            "a right is missing",
            error(403, "Forbidden", right),
            ToldAndRetried,
            "Forbidden",
            "cannot patch resource",
        ),
        row(
            "the quota is spent",
            error(403, "Forbidden", quota),
            ToldAndRetried,
            "QuotaExceeded",
            "exceeded quota",
        ),
        row(
            "the quota asks for limits",
            error(
                403,
                "Forbidden",
                "pods \"web\" is forbidden: failed quota: q: must specify limits.cpu for: a",
            ),
            ToldAndRetried,
            "QuotaExceeded",
            "must specify limits.cpu",
        ),
        row(
            "a limit is too high",
            error(403, "Forbidden", maximum),
            ToldAndRetried,
            "LimitRange",
            "limit is 2",
        ),
        row(
            "a limit is too far from its request",
            error(403, "Forbidden", ratio),
            ToldAndRetried,
            "LimitRange",
            "ratio is 4",
        ),
        row(
            "a Pod is not restricted",
            error(403, "Forbidden", level),
            ToldAndRetried,
            "PodSecurity",
            "restricted",
        ),
        row(
            "the namespace is ending",
            error(403, "Forbidden", terminating),
            ToldAndRetried,
            "NamespaceTerminating",
            "terminated",
        ),
        row(
            "a webhook says no",
            error(403, "Forbidden", webhook),
            ToldAndRetried,
            "AdmissionDenied",
            "denied",
        ),
    ]
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
            "a webhook says no in its own code",
            error(400, "BadRequest", webhook),
            ToldAndRetried,
            "AdmissionDenied",
            "denied",
        ),
        row(
            "a policy says no",
            error(422, "Invalid", policy),
            ToldAndRetried,
            "AdmissionDenied",
            "denied request",
        ),
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
            "it is made anew: kubectl delete -n shops service web",
        ),
        row(
            "a field may not change, by its cause",
            with_cause(error(422, "Invalid", "m"), "spec.selector", "field is immutable"),
            ToldAndFinal,
            "Invalid",
            "kubectl delete -n shops service web",
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
    for Row { name, error, rule, reason, says } in
        rows().into_iter().chain(rows_of_403()).chain(rows_with_objects())
    {
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
        let refusals = run.requests.last().map(|request| &request.refusals);
        let shown = format!("{} {:?} {refusals:?} {:?}", world.status(), run.events, run.done.message);
        assert!(!shown.contains(VALUE), "{name}: {shown}");
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
