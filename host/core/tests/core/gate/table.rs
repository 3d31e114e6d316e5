//! The table. A row changes a good answer in one place and says what the gate must say to it.

use pintle_core::reasons;
use serde_json::{Value, json};

use crate::gate::{
    fixture::{self, set},
    pods, powers,
};

pub(crate) struct Row {
    /// The reason that is expected.
    pub(crate) reason: &'static str,
    /// The path that is expected.
    pub(crate) path: String,
    /// How the object is expected to be named.
    pub(crate) says: &'static str,
    /// What is changed in a good answer.
    pub(crate) change: Box<dyn Fn(&mut Value)>,
    /// It may end by itself.
    pub(crate) retry: bool,
}

/// A row that sets one value.
pub(crate) fn row(reason: &'static str, path: &str, says: &'static str, pointer: &str, value: Value) -> Row {
    let pointer = pointer.to_owned();
    let change = Box::new(move |answer: &mut Value| set(answer, &pointer, value.clone()));
    Row { reason, path: path.into(), says, change, retry: false }
}

/// A row that adds a sixth child, called `more`.
pub(crate) fn more(reason: &'static str, path: &str, api_version: &str, kind: &str, rest: Value) -> Row {
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "more"}});
    if let (Some(object), Value::Object(rest)) = (object.as_object_mut(), rest) {
        object.extend(rest);
    }
    let at = format!("children[5].object{path}");
    row(reason, &at, "\"more\"", "/children/-", json!({"id": "more", "object": object}))
}

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = openings_of_stages();
    rows.extend(powers::powers());
    rows.extend(forms());
    rows.extend(kinds());
    rows.extend(openings());
    rows.extend(words());
    rows.extend(pods::pods());
    rows.extend(pods::CONTAINERS.into_iter().flat_map(pods::containers));
    rows.extend(pods::workloads());
    rows
}

fn openings_of_stages() -> Vec<Row> {
    vec![
        row(reasons::FINALIZER_NOT_DECLARED, "finalized", "finalizer", "/finalized", json!(true)),
        row(
            reasons::REFERENCE_IN_LATER_STAGE,
            "children[0].stage",
            "ConfigMap \"page\" into stage 0",
            "/children/4/stage",
            json!(2),
        ),
    ]
}

#[expect(clippy::too_many_lines, reason = "a table with a row for each rule about the form of an answer")]
fn forms() -> Vec<Row> {
    use reasons::*;
    let web = "Deployment \"web\"";
    let at = |rest: &str| format!("children[0].object{rest}");
    let numbered = |n: usize| {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("c{n}")}});
        json!({"id": n.to_string(), "object": object})
    };
    let many: Vec<Value> = (0..9).map(numbered).collect();
    let twin = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "page"}});
    let mut rows = vec![
        row(OBJECT_INVALID, &at(""), "\"web\"", "/children/0/object", json!("text")),
        row(OBJECT_INVALID, &at(".apiVersion"), "\"web\"", "/children/0/object/apiVersion", Value::Null),
        row(OBJECT_INVALID, &at(".kind"), "\"web\"", "/children/0/object/kind", json!("")),
        row(OBJECT_INVALID, &at(".metadata"), "Deployment", "/children/0/object/metadata", json!([])),
        row(OBJECT_INVALID, &at(".metadata.labels"), web, "/children/0/object/metadata/labels", json!(["a"])),
        row(
            OBJECT_INVALID,
            &at(".metadata.labels[app]"),
            web,
            "/children/0/object/metadata/labels/app",
            json!(1),
        ),
        row(
            OBJECT_INVALID,
            "children[3].object.stringData",
            "Secret \"keys\"",
            "/children/3/object/stringData",
            json!("text"),
        ),
        row(
            OBJECT_INVALID,
            "children[3].object.stringData[a]",
            "Secret \"keys\"",
            "/children/3/object/stringData",
            json!({"a": 1}),
        ),
        row(TOO_MANY_CHILDREN, "children", "9 children", "/children", json!(many)),
        row(DUPLICATE_CHILD, "children[1].id", "Service \"web\"", "/children/1/id", json!("web")),
        row(DUPLICATE_CHILD, &at("").replace(".object", ".id"), web, "/children/0/id", json!("")),
        row(
            DUPLICATE_CHILD,
            "children[5].object.metadata.name",
            "ConfigMap \"page\"",
            "/children/-",
            json!({"id": "twin", "object": twin}),
        ),
        row(CHILD_STATUS_FORBIDDEN, &at(".status"), web, "/children/0/object/status", json!({"replicas": 1})),
        // In whatever version: the API server has one object of that name.
        row(
            CHILD_IS_ROOT,
            "children[5].object.metadata.name",
            "Shop \"shop\"",
            "/children/-",
            json!({"id": "self", "object": {"apiVersion": "example.com/v2", "kind": "Shop", "metadata": {"name": "shop"}}}),
        ),
        row(
            CHILD_IS_ROOT,
            "children[5].object.metadata.name",
            "Mall \"mall\"",
            "/children/-",
            json!({"id": "owner", "object": {"apiVersion": "example.com/v1", "kind": "Mall", "metadata": {"name": "mall"}}}),
        ),
        row(
            NAMESPACE_FORBIDDEN,
            &at(".metadata.namespace"),
            "Deployment \"web\": leave the namespace out: ",
            "/children/0/object/metadata/namespace",
            json!("kube-system"),
        ),
        row(
            NAMESPACE_FORBIDDEN,
            &at(".metadata.namespace"),
            web,
            "/children/0/object/metadata/namespace",
            json!(""),
        ),
    ];
    for name in ["", "../secrets", "a/b", "Web", "a_b", "-a", "a-", "a..b", "a%2fb", "ä"] {
        let says = "Deployment";
        rows.push(row(
            NAME_INVALID,
            &at(".metadata.name"),
            says,
            "/children/0/object/metadata/name",
            json!(name),
        ));
    }
    rows.push(row(
        NAME_INVALID,
        &at(".metadata.name"),
        "Deployment",
        "/children/0/object/metadata/name",
        json!("a".repeat(254)),
    ));
    rows.push(row(
        NAME_INVALID,
        &at(".metadata.name"),
        "Deployment",
        "/children/0/object/metadata",
        json!({}),
    ));
    for key in [
        "uid",
        "resourceVersion",
        "ownerReferences",
        "managedFields",
        "finalizers",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generateName",
        "generation",
        "creationTimestamp",
        "selfLink",
    ] {
        let pointer = format!("/children/0/object/metadata/{key}");
        rows.push(row(METADATA_FORBIDDEN, &at(&format!(".metadata.{key}")), web, &pointer, json!("x")));
    }
    for (map, key) in [
        ("labels", "pintle.dev/root"),
        ("labels", "pintle.dev/reconciler"),
        ("annotations", "pintle.dev/desired"),
        ("annotations", "pintle.dev/adopt"),
        ("annotations", "pintle.dev/anything"),
    ] {
        let pointer = format!("/children/0/object/metadata/{map}/{}", key.replace('/', "~1"));
        rows.push(row(METADATA_RESERVED, &at(&format!(".metadata.{map}[{key}]")), web, &pointer, json!("x")));
    }
    rows
}

fn kinds() -> Vec<Row> {
    use reasons::*;
    let mut rows = vec![
        more(KIND_NOT_DECLARED, ".kind", "example.com/v1", "Undeclared", Value::Null),
        more(KIND_NOT_DECLARED, ".kind", "apps/v1beta1", "Deployment", Value::Null),
        more(KIND_NOT_GRANTED, ".kind", "example.com/v1", "Ungranted", Value::Null),
        Row { retry: true, ..more(KIND_MISSING, ".kind", "example.com/v1", "Unserved", Value::Null) },
        more(CLUSTER_SCOPED_CHILD, ".kind", "example.com/v1", "Planet", Value::Null),
    ];
    rows.extend(
        fixture::FORBIDDEN
            .map(|(api_version, kind)| more(KIND_FORBIDDEN, ".kind", api_version, kind, Value::Null)),
    );
    rows.push(more(KIND_FORBIDDEN, ".kind", "rbac.authorization.k8s.io/v2", "Role", Value::Null));
    rows
}

/// Services, Ingresses and Secrets.
fn openings() -> Vec<Row> {
    use reasons::*;
    let service = |reason, path: &str, pointer: &str, value| {
        row(
            reason,
            &format!("children[1].object.spec.{path}"),
            "Service \"web\"",
            &format!("/children/1/object/spec/{pointer}"),
            value,
        )
    };
    let mut rows = vec![
        service(SERVICE_TYPE_NOT_GRANTED, "type", "type", json!("LoadBalancer")),
        service(SERVICE_TYPE_NOT_GRANTED, "type", "type", json!("ExternalName")),
        service(EXTERNAL_IPS_NOT_GRANTED, "externalIPs", "externalIPs", json!(["1.2.3.4"])),
    ];
    for key in ["nginx.ingress.kubernetes.io/auth-url", "nginx.org/Server-Snippets"] {
        rows.push(row(
            INGRESS_ANNOTATION_NOT_GRANTED,
            &format!("children[2].object.metadata.annotations[{key}]"),
            "Ingress \"web\"",
            &format!("/children/2/object/metadata/annotations/{}", key.replace('/', "~1")),
            json!("x"),
        ));
    }
    for value in ["kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token"] {
        rows.push(row(
            SECRET_TYPE_FORBIDDEN,
            "children[3].object.type",
            "Secret \"keys\"",
            "/children/3/object/type",
            json!(value),
        ));
    }
    rows
}

/// What the guest says of the root: the path names the field.
fn words() -> Vec<Row> {
    use reasons::*;
    let condition = |kind: &str, reason: &str| json!({"type": kind, "status": "True", "reason": reason});
    let event = |reason: &str, message: &str| json!({"type": "Normal", "reason": reason, "message": message});
    let mut rows = Vec::new();
    for field in ["observedGeneration", "conditions", "pintle"] {
        let path = format!("status.{field}");
        rows.push(row(STATUS_FIELD_RESERVED, &path, "status", &format!("/status/{field}"), json!(1)));
    }
    for kind in ["Ready", "Reconciling", "Stalled"] {
        rows.push(row(
            CONDITION_RESERVED,
            "conditions[0].type",
            "condition",
            "/conditions/0/type",
            json!(kind),
        ));
    }
    let twins = json!([condition("A", "R"), condition("A", "R")]);
    rows.push(row(CONDITION_RESERVED, "conditions[1].type", "condition A", "/conditions", twins));
    let flood: Vec<Value> = (0..33).map(|n| condition(&format!("C{n}"), "R")).collect();
    rows.push(row(CONDITION_INVALID, "conditions", "33", "/conditions", json!(flood)));
    let flood: Vec<Value> = (0..17).map(|_| event("R", "m")).collect();
    rows.push(row(EVENT_INVALID, "events", "17", "/events", json!(flood)));
    rows.extend([
        row(STATUS_FIELD_UNDECLARED, "status.other", "status.other", "/status/other", json!(1)),
        row(
            STATUS_FIELD_UNDECLARED,
            "status.parts[1].nam",
            "status.parts[1].nam",
            "/status/parts",
            json!([{"name": "a"}, {"nam": "b"}]),
        ),
        row(STATUS_TOO_LARGE, "status", "status", "/status/phase", json!("x".repeat(70_000))),
        row(CONDITION_INVALID, "conditions[0].type", "condition", "/conditions/0/type", json!("Not a word")),
        row(
            CONDITION_INVALID,
            "conditions[0].reason",
            "Progressing",
            "/conditions/0/reason",
            json!("not a word"),
        ),
        row(CONDITION_INVALID, "conditions[0].reason", "Progressing", "/conditions/0/reason", json!("")),
        row(EVENT_INVALID, "events[0].reason", "event", "/events/0/reason", json!("No good")),
        row(EVENT_INVALID, "events[0].message", "event", "/events/0/message", json!("  ")),
    ]);
    rows
}
