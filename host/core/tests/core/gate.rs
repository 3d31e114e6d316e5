//! The gate: one table, one row a rule. Whatever a row does to a good answer, a pass over it says so and does nothing.

mod fixture;
mod pods;
mod powers;
mod references;
mod table;

use std::{collections::BTreeSet, sync::Arc};

use fixture::{binding, good, judge, judge_all, root, set};
use pintle_core::{Outcome, Pass, RootMemory, Snapshot, Step, reasons, reconciler::Grants};
use pintle_wit::{Event, EventType, names};
use serde_json::{Value, json};
use table::{Row, rows};

/// What a pass over a root whose guest gives this answer does after the call.
fn refused(answer: Value) -> (Value, Vec<Event>) {
    let snapshot = Snapshot {
        binding: Arc::new(binding()),
        root: Arc::new(root()),
        root_listed_at: None,
        children: Vec::new(),
        memory: RootMemory::default(),
        now: jiff::Timestamp::UNIX_EPOCH,
    };
    let mut pass = Pass::new(snapshot);
    assert!(matches!(pass.step(Outcome::Start), Step::CallGuest(_)));
    let answer = serde_json::from_value(answer).expect("the row's answer is a response");
    let status = match pass.step(Outcome::Answered(Ok(answer))) {
        Step::WriteStatus(write) => write.object()["status"].clone(),
        other => panic!("an answer that must be refused led to {other:?}"),
    };
    let events = match pass.step(Outcome::StatusWritten(Ok(()))) {
        Step::Emit(events) => events,
        other => panic!("{other:?}"),
    };
    match pass.step(Outcome::Emitted) {
        Step::Done(done) => assert!(!done.ready),
        other => panic!("{other:?}"),
    }
    (status, events)
}

fn condition<'a>(status: &'a Value, name: &str) -> Option<&'a Value> {
    status["conditions"].as_array()?.iter().find(|condition| condition["type"] == name)
}

/// What a row's pass did otherwise than it must.
fn wrong(Row { reason, path, says, change, retry }: &Row) -> Vec<String> {
    let mut answer = good();
    change(&mut answer);
    let (status, events) = refused(answer);
    let ready = condition(&status, "Ready").unwrap_or(&Value::Null);
    let message = ready["message"].as_str().unwrap_or_default();
    let (abnormal, absent) = if *retry { ("Reconciling", "Stalled") } else { ("Stalled", "Reconciling") };
    let [Event { r#type: EventType::Warning, reason: event, message: note }] = &events[..] else {
        return vec![format!("not one warning: {events:?}")];
    };
    let claims = [
        (ready["status"] == "False", "Ready is not False"),
        (ready["reason"] == *reason, "another reason"),
        (message.starts_with(&format!("{path}: ")), "the message does not name the path first"),
        (message.contains(says), "the message does not name the object"),
        (condition(&status, abnormal).is_some_and(|found| found["status"] == "True"), abnormal),
        (condition(&status, absent).is_none(), absent),
        (event == reason, "another reason of the event"),
        (note.contains(path.as_str()) && note.contains(says), "the event does not name path and object"),
    ];
    let broken = claims.into_iter().filter(|(holds, _)| !holds);
    broken.map(|(_, claim)| format!("{reason} at {path}, {says}: {claim}: {ready}")).collect()
}

#[test]
fn every_rule_stops_the_whole_answer_and_says_which_object_and_which_path() {
    let wrong: Vec<String> = rows().iter().flat_map(wrong).collect();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_reason_of_the_gate_has_a_row() {
    let gate: BTreeSet<&str> = reasons::GATE.iter().copied().collect();
    let tested: BTreeSet<&str> = rows().into_iter().map(|row| row.reason).collect();
    let untested: Vec<_> = gate.difference(&tested).collect();
    // These have tests of their own: every row's manifest declares evictions, and its CRD takes any status.
    assert_eq!(untested, [&reasons::EVICTION_NOT_DECLARED, &reasons::STATUS_CANNOT_RECORD], "no row");
}

#[test]
fn every_exceptable_rule_passes_where_an_administrator_excepts_it_and_no_other_does() {
    for rule in reasons::EXCEPTABLE {
        let mut seen = 0;
        for row in rows().into_iter().filter(|row| row.reason == rule) {
            let mut answer = good();
            (row.change)(&mut answer);
            let mut excepted = binding();
            excepted.grants.pod_templates.allow = vec![rule.into()];
            let judged = judge(&excepted, answer.clone());
            assert!(judged.is_ok(), "{rule} at {}: {judged:?}", row.path);
            excepted.grants.pod_templates.allow = reasons::EXCEPTABLE
                .iter()
                .filter(|other| **other != rule)
                .map(|&other| other.into())
                .collect();
            let judged = judge(&excepted, answer).expect_err("another exception does not help");
            assert!(judged.iter().all(|violation| violation.reason == rule), "{judged:?}");
            seen += 1;
        }
        assert!(seen > 0, "{rule}");
    }
}

#[test]
fn no_exception_helps_against_a_rule_that_is_not_exceptable() {
    for row in rows() {
        if reasons::EXCEPTABLE.contains(&row.reason) {
            continue;
        }
        let mut excepted = binding();
        excepted.grants.pod_templates.allow = vec![row.reason.into(), "*".into()];
        let mut answer = good();
        (row.change)(&mut answer);
        assert!(judge(&excepted, answer).is_err(), "{} at {}", row.reason, row.path);
    }
}

#[test]
fn evictions_that_the_manifest_does_not_declare_are_refused_whatever_is_granted() {
    let mut undeclared = binding();
    undeclared.manifest.evictions = false;
    let mut answer = good();
    set(&mut answer, "/evictions", json!({"pods": [{"name": "p", "uid": "u"}]}));
    assert!(judge(&binding(), answer.clone()).is_ok());
    let found = judge(&undeclared, answer).expect_err("refused");
    assert_eq!((found[0].reason, found[0].path.as_str()), (reasons::EVICTION_NOT_DECLARED, "evictions"));
}

#[test]
fn what_must_be_recorded_first_is_refused_where_the_crd_has_no_place_for_it() {
    let host = json!({"properties": {"phase": {}, "pintle": {"properties": {"moduleDigest": {}}}}});
    let mut foreign = binding();
    foreign.status = pintle_core::StatusSchema::Declared(host);
    let mut answer = good();
    set(&mut answer, "/evictions", json!({"pods": [{"name": "p", "uid": "u"}]}));
    assert!(judge(&binding(), answer.clone()).is_ok(), "where there is a place for it");
    let found = judge(&foreign, answer).expect_err("refused");
    assert_eq!((found[0].reason, found[0].path.as_str()), (reasons::STATUS_CANNOT_RECORD, "evictions"));
    assert!(found[0].message.contains("status.pintle.evicting"), "{}", found[0].message);
}

#[test]
fn needs_patches_and_stamps_that_are_granted_pass() {
    let mut answer = good();
    let need = |kind: &str, select: Value| json!({"objects": {"apiVersion": "v1", "kind": kind, "select": select, "fields": ["data"]}});
    let mut elsewhere = need("Service", json!({"name": "seen"}));
    elsewhere["objects"]["namespace"] = "x".into();
    let needs = json!([
        need("ConfigMap", json!({"name": "any"})),
        need("ConfigMap", json!({"labels": {}})),
        need("ConfigMap", json!({"field": {"path": "data.host", "equals": "h"}})),
        need("Secret", json!({"name": "seen"})),
        elsewhere,
        {"deadline": "2000-01-01T00:00:00+01:00"},
    ]);
    set(&mut answer, "/needs", needs.clone());
    let template = json!({"metadata": {"annotations": {"magalix.com/config-hash": "x"}}});
    let patch = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "theirs"}, "spec": {"template": template}});
    set(&mut answer, "/patches", json!([{"object": patch}]));
    set(&mut answer, "/stamps", json!({"at": "count"}));
    let mut allowed = judge(&binding(), answer).expect("passes");
    assert_eq!(allowed.patches()[0].object()["metadata"]["namespace"], "shops");
    allowed.stamp(&json!({"status": {"at": "before", "count": 1}}), "now");
    assert_eq!(allowed.status()["at"], "now", "the count is gone");
    let needs: Vec<pintle_wit::Need> = serde_json::from_value(needs).unwrap();
    let (binding, root) = (binding(), fixture::root());
    let looked = pintle_core::gate::needs(&binding.context(&root), &needs).expect("granted");
    let place: Vec<_> = looked.iter().map(|look| look.as_ref().map(|look| look.namespace())).collect();
    let home = Some(Some("shops"));
    assert_eq!(place, [home, home, home, home, Some(Some("x")), None]);
}

#[test]
fn what_go_types_print_for_nothing_is_dropped() {
    let mut plain = good();
    let template = json!({"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "db", "image": "db:1"}]}});
    let spec =
        json!({"template": template, "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {}}]});
    let more = [
        ("apps/v1", "StatefulSet", spec),
        ("batch/v1", "CronJob", json!({"jobTemplate": {"spec": {"template": template}}})),
    ];
    for (api_version, kind, spec) in more {
        let object =
            json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "db"}, "spec": spec});
        set(&mut plain, "/children/-", json!({"id": kind, "object": object}));
    }
    let objects = |answer: Value| -> Vec<Value> {
        let allowed = judge(&binding(), answer).expect("passes");
        allowed.children().iter().map(|child| child.object().clone()).collect()
    };
    let mut printed = plain.clone();
    for (path, value) in [
        ("0/object/status", json!({})),
        ("0/object/metadata/creationTimestamp", Value::Null),
        ("0/object/spec/template/metadata/creationTimestamp", Value::Null),
        ("1/object/status", json!({"loadBalancer": {}})),
        ("2/object/metadata/labels", Value::Null),
        ("3/object/stringData", Value::Null),
        ("4/object/metadata/annotations", Value::Null),
        ("4/object/metadata/ownerReferences", Value::Null),
        ("5/object/status", json!({"replicas": 0, "availableReplicas": 0, "conditions": null})),
        ("5/object/spec/volumeClaimTemplates/0/metadata/creationTimestamp", Value::Null),
        ("5/object/spec/volumeClaimTemplates/0/status", json!({})),
        ("6/object/spec/jobTemplate/metadata/creationTimestamp", Value::Null),
        ("6/object/spec/jobTemplate/spec/template/metadata/creationTimestamp", Value::Null),
    ] {
        set(&mut printed, &format!("/children/{path}"), value);
    }
    set(&mut plain, "/children/6/object/spec/jobTemplate/metadata", json!({}));
    assert_eq!(objects(printed), objects(plain));
}

#[test]
fn a_child_may_be_as_large_as_the_answer() {
    let mut answer = good();
    set(&mut answer, "/children/4/object/data/large", json!("x".repeat(1_000_000)));
    assert!(judge(&binding(), answer).is_ok());
}

#[test]
fn a_good_answer_passes_and_is_completed() {
    let binding = binding();
    let allowed = judge(&binding, good()).expect("passes");
    assert_eq!(allowed.children().len(), good()["children"].as_array().unwrap().len());
    for child in allowed.children() {
        let metadata = &child.object()["metadata"];
        assert_eq!(metadata["namespace"], "shops");
        assert_eq!(metadata["labels"][names::LABEL_RECONCILER], binding.reconciler.as_str());
        assert_eq!(metadata["labels"][names::LABEL_ROOT], "root-uid");
        assert_eq!(
            metadata["ownerReferences"],
            json!([{"apiVersion": "example.com/v1", "kind": "Shop", "name": "shop", "uid": "root-uid",
                "controller": true, "blockOwnerDeletion": true}])
        );
        assert_eq!(metadata["annotations"][names::ANNOTATION_DESIRED], child.desired().as_str());
        assert!(metadata.get("uid").is_none() && metadata.get("resourceVersion").is_none());
        assert_eq!(child.reference().namespace.as_deref(), Some("shops"));
    }
    let deployment = &allowed.children()[0];
    assert_eq!(deployment.object()["metadata"]["labels"]["app"], "web", "the guest's own labels stay");
    let template = &deployment.object()["spec"]["template"]["metadata"];
    assert_eq!(*template, json!({"labels": {"app": "web"}}), "nothing of the host's on a pod template");
    assert_eq!(*allowed.status(), *json!({"phase": "Up"}).as_object().unwrap());
    assert_eq!((allowed.conditions().len(), allowed.events().len()), (1, 1));
}

#[test]
fn string_data_of_a_secret_becomes_data_and_wins_over_it() {
    let mut answer = good();
    set(&mut answer, "/children/3/object/stringData", json!({"key": "open", "other": "sesame"}));
    let allowed = judge(&binding(), answer).expect("passes");
    let secret = allowed.children()[3].object();
    assert_eq!(secret["data"], json!({"key": "b3Blbg==", "other": "c2VzYW1l"}));
    assert!(secret.get("stringData").is_none());
}

#[test]
fn string_data_of_a_kind_that_is_only_called_secret_is_left_alone() {
    let mut answer = good();
    let vault = json!({"apiVersion": "vault.example.com/v1", "kind": "Secret", "metadata": {"name": "vault"}, "stringData": {"a": "b"}});
    set(&mut answer, "/children/-", json!({"id": "vault", "object": vault}));
    let allowed = judge(&binding(), answer).expect("passes");
    let vault = allowed.children().last().unwrap().object();
    assert_eq!((&vault["stringData"], vault.get("data")), (&json!({"a": "b"}), None));
}

#[test]
fn the_desired_hash_is_blind_to_who_made_the_answer_and_sees_every_field() {
    let hash = |answer: Value| judge(&binding(), answer).expect("passes").children()[0].desired().clone();
    let mut other = good();
    set(&mut other, "/children/0/object/spec/replicas", json!(7));
    assert_ne!(hash(good()), hash(other));
    let mut newer = binding();
    newer.digest = "sha256:other".into();
    newer.manifest.version = "9.9.9".into();
    newer.generation = 99;
    assert_eq!(judge(&newer, good()).expect("passes").children()[0].desired(), &hash(good()));
}

#[test]
fn several_violations_are_all_told_the_first_as_the_reason() {
    let mut answer = good();
    set(&mut answer, "/children/0/object/spec/template/spec/hostPID", json!(true));
    set(&mut answer, "/children/1/object/metadata/namespace", json!("kube-system"));
    let failure = judge_all(&binding(), answer).expect_err("refused").failure();
    assert_eq!(failure.reason, reasons::HOST_NAMESPACES);
    let second = failure.message.lines().nth(1).expect("each has a line");
    assert!(second.starts_with("children[1].object.metadata.namespace: "), "{second}");
    assert!(second.contains(reasons::NAMESPACE_FORBIDDEN), "{second}");
}

#[test]
fn of_very_many_violations_the_rest_is_told_as_a_number() {
    let wrong = |count: usize| {
        let mut answer = good();
        let event = json!({"type": "Normal", "reason": "not a word", "message": "m"});
        answer["events"] = Value::Array(vec![event; count]);
        answer
    };
    let found = judge_all(&binding(), wrong(20_000)).expect_err("refused");
    // One more: there are too many events.
    assert_eq!((found.listed().len(), found.unlisted()), (16, 20_001 - 16));
    let message = found.failure().message;
    assert!(message.ends_with(";\nand 19985 more"), "{message}");
}

#[test]
fn what_is_wrong_is_said_in_few_words_however_long_the_guest_is_about_it() {
    let long = "K".repeat(200 << 10);
    for (pointer, value) in [
        ("/status", json!({ long.clone(): 1 })),
        ("/children/0/object/kind", json!(long)),
        ("/children/0/object/metadata/name", json!(long)),
        ("/children/0/object/metadata/labels", json!({ long.clone(): 1 })),
        ("/children/0/object/metadata/namespace", json!([long])),
        ("/children/0/id", json!("")),
        ("/conditions", json!([{"type": long, "status": "True", "reason": "A"}])),
        ("/stamps", json!({ long.clone(): "observedGeneration" })),
        ("/needs", json!([{"deadline": long}])),
    ] {
        let mut answer = good();
        set(&mut answer, pointer, value);
        for violation in judge(&binding(), answer).expect_err("refused") {
            let lengths = (violation.path.len(), violation.message.len());
            assert!(lengths.0 <= 256 && lengths.1 <= 1024, "{pointer}: {lengths:?} bytes");
        }
    }
}

#[test]
fn the_grant_that_a_refused_service_asks_for_is_a_field_of_the_grants() {
    let mut answer = good();
    set(&mut answer, "/children/1/object/spec/externalIPs", json!(["1.2.3.4"]));
    let message = judge(&binding(), answer.clone()).expect_err("refused").remove(0).message;
    let field = message.split("grant ").nth(1).and_then(|rest| rest.split(' ').next()).expect("a field");
    let (outer, inner) = field.split_once('.').expect("a path");
    let mut granted = binding();
    let mut grants = serde_json::to_value(&granted.grants).expect("JSON");
    grants[outer][inner] = true.into();
    granted.grants = serde_json::from_value(grants).expect(field);
    assert!(judge(&granted, answer).is_ok(), "{message}");
}

#[test]
fn a_node_port_and_an_annotation_of_an_ingress_need_a_grant() {
    let mut binding = binding();
    let Grants { services, ingress_annotations, .. } = Grants::default();
    (binding.grants.services, binding.grants.ingress_annotations) = (services, ingress_annotations);
    let found = judge(&binding, good()).err().unwrap_or_default();
    let reasons: Vec<&str> = found.iter().map(|violation| violation.reason).collect();
    assert_eq!(reasons, [reasons::SERVICE_TYPE_NOT_GRANTED, reasons::INGRESS_ANNOTATION_NOT_GRANTED]);
}
