//! Rows about needs, patches, evictions and stamps.

use pintle_core::reasons::*;
use serde_json::{Value, json};

use crate::gate::table::{Row, row};

fn need(kind: &str, rest: Value) -> Value {
    let api_version = if kind == "Planet" { "example.com/v1" } else { "v1" };
    let mut need = json!({"apiVersion": api_version, "kind": kind, "select": {"name": "seen"}});
    need.as_object_mut().expect("a map").extend(rest.as_object().expect("a map").clone());
    json!([{"objects": need}])
}

#[expect(clippy::too_many_lines, reason = "a table with a row for each rule about needs")]
fn needs() -> Vec<Row> {
    let at = |rest: &str| format!("needs[0]{rest}");
    let objects = |rest: &str| format!("needs[0].objects{rest}");
    let clock = json!({"clock": {"stepSeconds": 60}});
    let many: Vec<Value> = (1..=257).map(|step| json!({"clock": {"stepSeconds": step}})).collect();
    let labels = |operator: &str, values: Value| {
        let expression = json!({"key": "a", "operator": operator, "values": values});
        need("ConfigMap", json!({"select": {"labels": {"matchExpressions": [expression]}}}))
    };
    let values = objects(".select.labels.matchExpressions[0].values");
    let values_at = values.clone();
    let exists = |key: &str| json!({"key": key, "operator": "Exists"});
    let many_labels =
        |count: usize| (0..count).map(|n| (format!("l{n}"), json!("x"))).collect::<serde_json::Map<_, _>>();
    let field = |path: &str| json!({"select": {"field": {"path": path, "equals": "x"}}});
    let rows = [
        (TOO_MANY_NEEDS, "needs".to_owned(), "257", json!(many)),
        (NEED_INVALID, "needs[1]".into(), "twice", json!([clock, clock])),
        (NEED_INVALID, at(".clock.stepSeconds"), "1 s", json!([{"clock": {"stepSeconds": 0}}])),
        (NEED_INVALID, at(".deadline"), "\"soon\"", json!([{"deadline": "soon"}])),
        (
            NEED_INVALID,
            objects(".select.name"),
            "\"../x\"",
            need("Service", json!({"select": {"name": "../x"}})),
        ),
        (NEED_INVALID, values.clone(), "In", labels("In", json!([]))),
        (NEED_INVALID, values, "In", labels("Exists", json!(["x"]))),
        (NEED_INVALID, objects(".fields[0]"), "\"spec[]\"", need("ConfigMap", json!({"fields": ["spec[]"]}))),
        (
            NEED_INVALID,
            objects(".fields[1]"),
            "metadata.managedFields",
            need("ConfigMap", json!({"fields": ["data", "metadata.managedFields"]})),
        ),
        (
            NEED_INVALID,
            objects(".settleMilliseconds"),
            "60000",
            need("ConfigMap", json!({"settleMilliseconds": 60001})),
        ),
        (NEED_INVALID, objects(".namespace"), "\"a/b\"", need("Service", json!({"namespace": "a/b"}))),
        (NEED_INVALID, objects(".namespace"), "namespace", need("Service", json!({"namespace": "*"}))),
        (NEED_INVALID, objects(".namespace"), "Planet", need("Planet", json!({"namespace": "x"}))),
        (NEED_INVALID, at(".deadline"), "no time", json!([{"deadline": " ".repeat(1 << 20)}])),
        (
            NEED_TOO_COMPLEX,
            objects(".fields"),
            "33 fields, the limit is 32",
            need("ConfigMap", json!({"fields": (0..33).map(|n| format!("data.k{n}")).collect::<Vec<_>>()})),
        ),
        (
            NEED_TOO_COMPLEX,
            objects(".fields[1]"),
            "the limit is 256",
            need("ConfigMap", json!({"fields": ["data", format!("data.{}", "k".repeat(10 << 10))]})),
        ),
        (
            NEED_TOO_COMPLEX,
            objects(".fields[0]"),
            "17 steps, the limit is 16",
            need("ConfigMap", json!({"fields": [format!("a{}", ".a".repeat(16))]})),
        ),
        (
            NEED_TOO_COMPLEX,
            objects(".select.labels.matchLabels"),
            "17 labels, the limit is 16",
            need("ConfigMap", json!({"select": {"labels": {"matchLabels": many_labels(17)}}})),
        ),
        (
            NEED_TOO_COMPLEX,
            objects(".select.labels.matchExpressions"),
            "17 requirements, the limit is 16",
            need("ConfigMap", json!({"select": {"labels": {"matchExpressions": vec![exists("a"); 17]}}})),
        ),
        (
            NEED_TOO_COMPLEX,
            objects(".select.labels.matchExpressions[1].key"),
            "the limit is 317",
            need(
                "ConfigMap",
                json!({"select": {"labels": {"matchExpressions": [exists("a"), exists(&"k".repeat(318))]}}}),
            ),
        ),
        (
            NEED_TOO_COMPLEX,
            values_at.clone(),
            "33 values, the limit is 32",
            labels("In", json!(vec!["a"; 33])),
        ),
        (NEED_TOO_COMPLEX, values_at, "64 bytes, the limit is 63", labels("In", json!(["a".repeat(64)]))),
        (
            NEED_TOO_COMPLEX,
            objects(".select.field.equals"),
            "the limit is 1024",
            need(
                "ConfigMap",
                json!({"select": {"field": {"path": "data.host", "equals": "h".repeat(1025)}}}),
            ),
        ),
        (NEED_NOT_DECLARED, objects(".kind"), "NeedKind::new(\"v1\", \"Pod\")", need("Pod", json!({}))),
        (
            INDEX_NOT_DECLARED,
            objects(".select.field.path"),
            "data.other",
            need("ConfigMap", field("data.other")),
        ),
        (NEED_NOT_GRANTED, objects(""), "PersistentVolumeClaim", need("PersistentVolumeClaim", json!({}))),
        (
            NEED_NOT_GRANTED,
            objects(""),
            "\"unseen\" in the root's namespace; a grant of v1 Secret names those",
            need("Secret", json!({"select": {"name": "unseen"}})),
        ),
        (
            NEED_NOT_GRANTED,
            objects(""),
            "by labels in the root's namespace; no grant can",
            need("Secret", json!({"select": {"labels": {}}})),
        ),
        (NEED_NOT_GRANTED, objects(""), "namespace \"x\"", need("ConfigMap", json!({"namespace": "x"}))),
        (NEED_NOT_GRANTED, objects(""), "all namespaces", {
            let mut everywhere = need("ConfigMap", field("data.host"));
            everywhere[0]["objects"]["namespace"] = "*".into();
            everywhere
        }),
        (NEED_NOT_GRANTED, objects(""), "cluster scope", need("Planet", json!({}))),
    ];
    rows.into_iter().map(|(reason, path, says, value)| row(reason, &path, says, "/needs", value)).collect()
}

fn patch(kind: &str, rest: Value) -> Value {
    let mut object = json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "theirs"}});
    object.as_object_mut().expect("a map").extend(rest.as_object().expect("a map").clone());
    json!({"object": object})
}

fn patches() -> Vec<Row> {
    let at = |rest: &str| format!("patches[0].object{rest}");
    let labels = |rest: Value| json!({"metadata": {"name": "theirs", "labels": rest}});
    let template = |spec: Value| json!({"spec": {"template": {"spec": spec}}});
    let good = patch("Deployment", labels(json!({"a": "b"})));
    let mut elsewhere = good.clone();
    elsewhere["object"]["metadata"]["namespace"] = "x".into();
    let mut role = patch("Role", json!({"rules": []}));
    role["object"]["apiVersion"] = "rbac.authorization.k8s.io/v1".into();
    let theirs = "\"theirs\"";
    let rows = [
        (TOO_MANY_PATCHES, "patches".to_owned(), "9", json!(vec![good.clone(); 9])),
        (DUPLICATE_PATCH, "patches[1].object.metadata.name".into(), theirs, json!([good, good])),
        (OBJECT_INVALID, at(""), "patch", json!([{"object": []}])),
        (
            CHILD_STATUS_FORBIDDEN,
            at(".status"),
            theirs,
            json!([patch("Deployment", json!({"status": {"a": 1}, "spec": {"template": {}}}))]),
        ),
        (
            METADATA_RESERVED,
            at(".metadata.labels[pintle.dev/root]"),
            theirs,
            json!([patch("Deployment", labels(json!({"pintle.dev/root": "x"})))]),
        ),
        (NAMESPACE_FORBIDDEN, at(".metadata.namespace"), theirs, json!([elsewhere])),
        (KIND_FORBIDDEN, at(".kind"), theirs, json!([role])),
        (
            PATCH_NOT_DECLARED,
            at(".kind"),
            theirs,
            json!([patch("StatefulSet", json!({"spec": {"replicas": 1}}))]),
        ),
        (
            PATCH_NOT_DECLARED,
            at(".spec.paused"),
            theirs,
            json!([patch("Deployment", json!({"spec": {"paused": true}}))]),
        ),
        (
            PATCH_NOT_GRANTED,
            at(".kind"),
            theirs,
            json!([patch("DaemonSet", json!({"spec": {"template": {"metadata": {}}}}))]),
        ),
        (
            PATCH_FIELD_NOT_GRANTED,
            at(".spec.replicas"),
            theirs,
            json!([patch("Deployment", json!({"spec": {"replicas": 1}}))]),
        ),
        (PATCH_FIELD_NOT_GRANTED, at(""), theirs, json!([patch("Deployment", json!({}))])),
        (
            HOST_NAMESPACES,
            at(".spec.template.spec.hostNetwork"),
            theirs,
            json!([patch("Deployment", template(json!({"hostNetwork": true})))]),
        ),
    ];
    rows.into_iter().map(|(reason, path, says, value)| row(reason, &path, says, "/patches", value)).collect()
}

fn evictions() -> Vec<Row> {
    let pod = |name: &str, uid: &str| json!({"name": name, "uid": uid});
    let one = json!({"pods": [pod("p", "u")]});
    let many: Vec<Value> = (0..9).map(|n| pod("p", &format!("u{n}"))).collect();
    vec![
        row(EVICTION_NOT_GRANTED, "evictions.mode", "grants.podDeletions", "/evictions", {
            let mut deletion = one;
            deletion["mode"] = "Delete".into();
            deletion
        }),
        row(EVICTION_INVALID, "evictions.pods", "9", "/evictions", json!({"pods": many})),
        row(
            EVICTION_INVALID,
            "evictions.pods[0].name",
            "\"P/q\"",
            "/evictions",
            json!({"pods": [pod("P/q", "u")]}),
        ),
        row(
            EVICTION_INVALID,
            "evictions.pods[0].uid",
            "\"p\"",
            "/evictions",
            json!({"pods": [pod("p", "")]}),
        ),
        row(
            EVICTION_INVALID,
            "evictions.pods[1].uid",
            "\"q\"",
            "/evictions",
            json!({"pods": [pod("p", "u"), pod("q", "u")]}),
        ),
    ]
}

fn stamps() -> Vec<Row> {
    vec![
        row(STAMP_INVALID, "stamps.conditions", "conditions", "/stamps", json!({"conditions": "count"})),
        row(STAMP_INVALID, "stamps.at", "pintle", "/stamps", json!({"at": "pintle"})),
        row(STAMP_INVALID, "stamps.phase", "\"phase\"", "/stamps", json!({"phase": "count"})),
        row(STATUS_FIELD_UNDECLARED, "status.when", "status.when", "/stamps", json!({"when": "count"})),
    ]
}

pub(crate) fn powers() -> Vec<Row> {
    [needs(), patches(), evictions(), stamps()].into_iter().flatten().collect()
}
