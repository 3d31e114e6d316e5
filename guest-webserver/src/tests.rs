//! Tests of the guest's answers to WebServers: children, defaults, conditions and status.

use pintle_guest::{Failure, Guest, Map, Request, Response, Value, call, json, serde_json};

use crate::{MAX_NAME, WebServer};

fn sample() -> Value {
    json!({
        "apiVersion": "my.domain/v1",
        "kind": "WebServer",
        "metadata": {"name": "webserver-sample", "namespace": "blog", "uid": "u", "generation": 1},
        "spec": {"image": "nginx:1.23.1", "replicas": 3},
    })
}

fn named(name: &str) -> Value {
    let mut root = sample();
    root["metadata"]["name"] = json!(name);
    root
}

fn with(field: &str, value: Value) -> Value {
    let mut root = sample();
    root["spec"][field] = value;
    root
}

/// Answers as the component does: text in, text out.
fn answer_to(request: &Value) -> Result<Response, Failure> {
    let answer = call::reconcile::<WebServer>(&request.to_string());
    answer
        .map(|text| serde_json::from_str(&text).unwrap())
        .map_err(|text| serde_json::from_str(&text).unwrap())
}

fn request(root: Value, more: Value) -> Value {
    let mut request = json!({"apiVersion": "guest.pintle.dev/v1", "object": root});
    if let (Value::Object(request), Value::Object(more)) = (&mut request, more) {
        request.extend(more);
    }
    request
}

fn answer(root: Value) -> Result<Response, Failure> {
    answer_to(&request(root, Value::Object(Map::new())))
}

fn child<'response>(response: &'response Response, id: &str) -> &'response Value {
    &response.children.iter().find(|child| child.id == id).unwrap().object
}

fn taken() -> Value {
    let cause = json!({
        "field": "spec.ports[0].nodePort",
        "reason": "FieldValueInvalid",
        "message": "Invalid value: 30010: provided port is already allocated",
    });
    let service = json!({"apiVersion": "v1", "kind": "Service", "namespace": "blog", "name": "webserver-sample-service"});
    json!({"refusals": [{"child": service, "code": 422, "reason": "Invalid", "message": "no", "causes": [cause]}]})
}

#[test]
fn the_sample_has_the_seeds_names_labels_and_port() {
    let response = answer(sample()).unwrap();
    let labels = json!({"app": "webserver", "webserver_cr": "webserver-sample"});
    let deployment = child(&response, "deployment");
    assert_eq!(deployment["metadata"], json!({"name": "webserver-sample"}));
    assert_eq!(deployment["spec"]["replicas"], 3);
    assert_eq!(deployment["spec"]["selector"]["matchLabels"], labels);
    assert_eq!(deployment["spec"]["template"]["metadata"]["labels"], labels);
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!((&container["name"], &container["image"]), (&json!("webserver"), &json!("nginx:1.23.1")));
    let service = child(&response, "service");
    assert_eq!(
        (&service["apiVersion"], &service["metadata"]["name"]),
        (&json!("v1"), &json!("webserver-sample-service"))
    );
    assert_eq!((&service["metadata"]["labels"], &service["spec"]["selector"]), (&labels, &labels));
    assert_eq!(
        service["spec"]["ports"],
        json!([{"port": 80, "protocol": "TCP", "targetPort": "http", "nodePort": 30010}])
    );
    assert_eq!(response.status["selector"], "app=webserver,webserver_cr=webserver-sample");
}

#[test]
fn replicas_default_to_one_and_zero_is_kept() {
    let root = json!({"metadata": {"name": "a"}, "spec": {"image": "nginx"}});
    assert_eq!(child(&answer(root).unwrap(), "deployment")["spec"]["replicas"], 1);
    assert_eq!(child(&answer(with("replicas", json!(0))).unwrap(), "deployment")["spec"]["replicas"], 0);
}

#[test]
fn node_port_zero_leaves_the_choice_to_kubernetes_and_the_status_tells_it() {
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "webserver-sample-service"},
        "spec": {"ports": [{"port": 80, "nodePort": 31234}]},
    });
    let response = answer_to(&request(with("nodePort", json!(0)), json!({"children": [service]}))).unwrap();
    assert_eq!(child(&response, "service")["spec"]["ports"][0].get("nodePort"), None);
    assert_eq!(response.status["nodePort"], 31234);
}

#[test]
fn a_taken_node_port_is_a_condition_with_the_port_and_the_answer_stays_whole() {
    let response = answer_to(&request(sample(), taken())).unwrap();
    let conflict =
        response.conditions.iter().find(|condition| condition.r#type == "NodePortConflict").unwrap();
    assert!(
        conflict.blocks_ready && conflict.reason == "NodePortTaken" && conflict.message.contains("30010"),
        "{conflict:?}"
    );
    assert_eq!(response.children, answer(sample()).unwrap().children);
    assert_eq!(response.events.len(), 1);
    assert!(
        response
            .conditions
            .iter()
            .any(|condition| condition.r#type == "Degraded" && condition.reason == "AsExpected")
    );
}

#[test]
fn a_node_port_outside_the_clusters_range_is_not_called_taken() {
    let mut refused = taken();
    refused["refusals"][0]["causes"][0]["message"] = json!("provided port is not in the valid range");
    let response = answer_to(&request(sample(), refused)).unwrap();
    assert_eq!(response.conditions[2].reason, "NodePortRefused");
}

#[test]
fn any_other_refusal_is_degraded() {
    let service = json!({"apiVersion": "v1", "kind": "Service", "name": "webserver-sample-service"});
    let refused = json!({"refusals": [{"child": service, "code": 409, "reason": "AdoptionConflict", "message": "it is another's"}]});
    let response = answer_to(&request(sample(), refused)).unwrap();
    assert_eq!(response.conditions[1].reason, "AdoptionConflict");
    assert_eq!((response.conditions.len(), response.children.len()), (2, 2));
}

#[test]
fn the_status_rolls_up_the_observed_deployment() {
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "webserver-sample", "generation": 2}, "spec": {"replicas": 3},
        "status": {"observedGeneration": 2, "replicas": 4, "readyReplicas": 3, "updatedReplicas": 2, "availableReplicas": 3},
    });
    let response = answer_to(&request(sample(), json!({"children": [deployment]}))).unwrap();
    let counts =
        ["replicas", "readyReplicas", "updatedReplicas"].map(|field| response.status[field].as_i64());
    assert_eq!(counts, [Some(4), Some(3), Some(2)]);
    assert_eq!(response.conditions[0].reason, "RollingOut");
}

#[test]
fn what_slipped_past_the_crd_is_refused_with_its_path() {
    let path = |root| answer(root).unwrap_err().path.unwrap();
    assert_eq!(path(with("replicas", json!(-1))), "spec.replicas");
    assert_eq!(path(with("replicas", json!("three"))), "spec.replicas");
    assert_eq!(path(with("image", json!(""))), "spec.image");
    assert_eq!(path(with("nodePort", json!(80))), "spec.nodePort");
    assert_eq!(path(json!({"metadata": {"name": "a"}, "spec": {}})), "spec.image");
    assert_eq!(path(named(&"a".repeat(MAX_NAME + 1))), "metadata.name");
    assert_eq!(path(named("1a")), "metadata.name");
    assert_eq!(path(named("a.b")), "metadata.name");
}

#[test]
fn names_of_55_characters_with_digits_and_hyphens_are_legal() {
    let name = format!("w{}-9", "-0".repeat(26));
    assert_eq!(name.len(), MAX_NAME);
    let response = answer(named(&name)).unwrap();
    assert_eq!(child(&response, "service")["metadata"]["name"].as_str().unwrap().len(), 63);
}

#[test]
fn the_deprecated_field_is_accepted_and_without_effect() {
    assert_eq!(answer(with("foo", json!("bar"))).unwrap(), answer(sample()).unwrap());
}

#[test]
fn resources_are_the_administrators() {
    let config = json!({"config": {"resources": {"requests": {"cpu": "1"}, "limits": {}}}});
    let response = answer_to(&request(sample(), config)).unwrap();
    let container = &child(&response, "deployment")["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["resources"], json!({"requests": {"cpu": "1"}, "limits": {}}));
    let failure = answer_to(&request(sample(), json!({"config": {"resorces": {}}}))).unwrap_err();
    assert_eq!((failure.reason.as_str(), failure.path.as_deref()), ("ConfigInvalid", Some("resorces")));
}

#[test]
fn the_manifest_declares_what_the_answer_holds() {
    let manifest = WebServer::manifest();
    for child in answer(sample()).unwrap().children {
        let declared = manifest.children.iter().any(|kind| {
            child.object["apiVersion"] == kind.api_version.as_str()
                && child.object["kind"] == kind.kind.as_str()
        });
        assert!(declared, "{}", child.id);
    }
}

#[test]
fn the_logic_is_a_plain_function() {
    let object = serde_json::from_value(sample()).unwrap();
    let response = WebServer::reconcile(Request::about(object)).unwrap();
    assert_eq!(response.children.len(), 2);
}
