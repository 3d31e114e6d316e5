//! What no case of `cases/` shows of the guest's answers to Darkrooms, one rule of its logic at a time.

use pintle_guest::{Failure, GuestCondition, Map, Need, Response, Select, Value, call, json, serde_json};

use crate::Darkroom;

fn sample() -> Value {
    json!({
        "apiVersion": "deployments.example.com/v1alpha1",
        "kind": "Darkroom",
        "metadata": {"name": "darkroom-sample", "namespace": "blog", "uid": "u", "generation": 1},
        "spec": {
            "version": "0.1.0",
            "source": {"type": "WebFolder", "baseUrl": "https://ajatprabha.in/assets"},
            "subDomains": ["ajatprabha"],
        },
    })
}

fn s3() -> Value {
    with(
        "source",
        json!({"type": "S3", "bucket": "photos", "region": "eu-west-1", "accessKey": "AKIA", "secretKey": "s3cr3t"}),
    )
}

fn with(field: &str, value: Value) -> Value {
    let mut root = sample();
    root["spec"][field] = value;
    root
}

fn with_source(mut root: Value, field: &str, value: Value) -> Value {
    root["spec"]["source"][field] = value;
    root
}

fn named(name: &str) -> Value {
    let mut root = sample();
    root["metadata"]["name"] = json!(name);
    root
}

/// Answers as the component does: text in, text out.
fn answer_to(root: &Value, more: Value) -> Result<Response, Failure> {
    let mut request = json!({"apiVersion": "guest.pintle.dev/v1", "object": root});
    if let (Value::Object(request), Value::Object(more)) = (&mut request, more) {
        request.extend(more);
    }
    let answer = call::reconcile::<Darkroom>(&request.to_string());
    answer
        .map(|text| serde_json::from_str(&text).unwrap())
        .map_err(|text| serde_json::from_str(&text).unwrap())
}

fn answer(root: Value) -> Result<Response, Failure> {
    answer_to(&root, Value::Object(Map::new()))
}

fn configured(root: &Value, config: Value) -> Result<Response, Failure> {
    answer_to(root, json!({"config": config}))
}

fn child<'response>(response: &'response Response, id: &str) -> &'response Value {
    &response.children.iter().find(|child| child.id == id).unwrap().object
}

fn config_hash(response: &Response) -> &Value {
    let template = &child(response, "deployment")["spec"]["template"];
    &template["metadata"]["annotations"]["deployments.example.com/config-hash"]
}

#[test]
fn a_version_is_mapped_to_a_tag() {
    let tag = |version: &str| {
        let response = answer(with("version", json!(version))).unwrap();
        child(&response, "deployment")["spec"]["template"]["spec"]["containers"][0]["image"].clone()
    };
    assert_eq!(tag("v0.1.0"), "gojektech/darkroom:v0.1.0");
    assert_eq!(tag(""), "gojektech/darkroom:v0.4.0");
}

#[test]
fn the_config_hash_follows_the_environment_and_the_owned_secret_only() {
    let hash = |root| config_hash(&answer(root).unwrap()).clone();
    assert_eq!(hash(sample()), hash(with("subDomains", json!(["other"]))));
    assert_ne!(hash(sample()), hash(with("version", json!("0.2.0"))));
    assert_ne!(hash(s3()), hash(with_source(s3(), "secretKey", json!("other"))));
    assert_ne!(hash(s3()), hash(with_source(s3(), "accessKey", json!("other"))));
    assert_eq!(hash(sample()).as_str().unwrap().len(), 64);
}

#[test]
fn a_config_that_cannot_work_is_blamed_on_the_config() {
    for (config, path) in [
        (json!({"domainSuffix": "Example.com"}), "domainSuffix"),
        (json!({"domainSuffix": ""}), "domainSuffix"),
        (json!({"domainSuffix": vec!["a".repeat(63); 4].join(".")}), "domainSuffix"),
        (json!({"debug": "yes"}), "debug"),
    ] {
        let failure = configured(&sample(), config).unwrap_err();
        assert_eq!((failure.reason.as_str(), failure.path.as_deref()), ("ConfigInvalid", Some(path)));
        assert!(!failure.retry);
    }
}

#[test]
fn what_slipped_past_the_crd_is_refused_with_its_path() {
    let path = |root| {
        let failure = answer(root).unwrap_err();
        assert_eq!(failure.reason, "InvalidSpec");
        failure.path.unwrap()
    };
    assert_eq!(path(with("subDomains", json!([]))), "spec.subDomains");
    assert_eq!(path(with("subDomains", json!(["a", "b.c"]))), "spec.subDomains[1]");
    assert_eq!(path(with("subDomains", json!(["a", "a"]))), "spec.subDomains[1]");
    assert_eq!(path(with("version", json!("1.0@sha256"))), "spec.version");
    assert_eq!(path(with("source", json!({"type": "FTP"}))), "spec.source.type");
    assert_eq!(path(with("source", json!({"type": "WebFolder"}))), "spec.source.baseUrl");
    assert_eq!(path(with_source(sample(), "baseUrl", json!("ftp://a"))), "spec.source.baseUrl");
    for field in ["bucket", "region"] {
        assert_eq!(path(with_source(s3(), field, json!(null))), format!("spec.source.{field}"));
    }
    assert_eq!(path(with_source(s3(), "secretKey", json!(""))), "spec.source.secretKey");
    assert_eq!(
        path(with_source(s3(), "credentialsSecretRef", json!({"name": "keys"}))),
        "spec.source.credentialsSecretRef"
    );
    assert_eq!(path(with_source(s3(), "pathPrefix", json!("public"))), "spec.source.pathPrefix");
    assert_eq!(path(named(&"a".repeat(64))), "metadata.name");
}

#[test]
fn how_long_images_may_be_kept_is_the_darkrooms_or_else_the_administrators() {
    let cache_time = |root: &Value, config: Value| {
        child(&configured(root, config).unwrap(), "config")["data"]["CACHE_TIME"].clone()
    };
    let own = with("cache", json!({"ttlSeconds": 0}));
    assert_eq!(cache_time(&own, json!({"cacheTimeSeconds": 60})), "0");
    assert_eq!(cache_time(&with("cache", json!({})), json!({"cacheTimeSeconds": 60})), "60");
    assert_eq!(cache_time(&sample(), json!({})), "31536000");
    let hash = |root| config_hash(&answer(root).unwrap()).clone();
    assert_ne!(hash(sample()), hash(own), "the environment is read once, so the Pods are replaced");
}

/// Who else claims something, by kind, namespace, name, age and what is claimed: a label of a Darkroom, a host of an Ingress.
type Rival<'a> = (&'a str, &'a str, &'a str, &'a str, &'a str);

/// The answer for a Darkroom of the year 2020 with these labels, while there are these others.
fn among(labels: &[&str], rivals: &[Rival<'_>]) -> Response {
    let mut root = with("subDomains", json!(labels));
    root["metadata"]["creationTimestamp"] = json!("2020-01-01T00:00:00Z");
    let asked = answer(root.clone()).unwrap().needs;
    let found = |need: &Need| -> Vec<Value> {
        let Need::Objects(need) = need else { unreachable!("it asks for no time") };
        assert_eq!(need.namespace.as_deref(), Some("*"));
        let Select::Field(field) = &need.select else { unreachable!("it asks by index") };
        let claimed = rivals.iter().filter(|rival| rival.0 == need.kind && rival.4 == field.equals);
        let mut objects: Vec<Value> = claimed
            .map(|(kind, namespace, name, created, _)| {
                let uid = format!("{name}-uid");
                let metadata =
                    json!({"name": name, "namespace": namespace, "uid": uid, "creationTimestamp": created});
                json!({"apiVersion": need.api_version, "kind": kind, "metadata": metadata})
            })
            .collect();
        if need.kind == "Darkroom" && labels.contains(&field.equals.as_str()) {
            objects.push(root.clone());
        }
        objects
    };
    let answers: Vec<Value> =
        asked.iter().map(|need| json!({"need": need, "objects": found(need)})).collect();
    let response = answer_to(&root, json!({"needs": answers})).unwrap();
    assert_eq!(response.needs, asked);
    response
}

fn conflict(response: &Response) -> Option<&GuestCondition> {
    response.conditions.iter().find(|condition| condition.r#type == "DomainConflict")
}

fn hosts(response: &Response) -> Vec<&str> {
    let rules = child(response, "ingress")["spec"]["rules"].as_array().unwrap();
    rules.iter().map(|rule| rule["host"].as_str().unwrap()).collect()
}

#[test]
fn nobody_else_is_no_conflict() {
    let response = among(&["a"], &[("Darkroom", "blog", "b", "2019-01-01T00:00:00Z", "b")]);
    assert_eq!((conflict(&response), hosts(&response)), (None, vec!["a.darkroom.example.com"]));
    assert!(response.events.is_empty());
}

#[test]
fn the_younger_claim_loses_and_one_of_the_same_second_is_judged_by_uid() {
    let same = "2020-01-01T00:00:00Z";
    let younger = ("Ingress", "blog", "late", "2020-01-01T00:00:01Z", "a.darkroom.example.com");
    assert_eq!(conflict(&among(&["a"], &[younger, ("Darkroom", "blog", "v", same, "a")])), None);
    assert!(conflict(&among(&["a"], &[("Darkroom", "blog", "b", same, "a")])).is_some());
}

#[test]
fn without_a_host_there_is_no_ingress_unless_it_has_a_default_backend() {
    let older = ("Darkroom", "blog", "first", "2019-01-01T00:00:00Z", "a");
    let response = among(&["a"], &[older]);
    assert!(response.children.iter().all(|child| child.id != "ingress"));
    assert_eq!(response.children.len(), 3);
}

#[test]
fn an_ingress_of_a_darkroom_is_no_claim_of_its_own() {
    let mut root = sample();
    root["metadata"]["creationTimestamp"] = json!("2020-01-01T00:00:00Z");
    let asked = answer(root.clone()).unwrap().needs;
    let ingress = |owner: Value| {
        let metadata = json!({"name": "x", "namespace": "blog", "creationTimestamp": "2019-01-01T00:00:00Z", "ownerReferences": [owner]});
        let object = json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata});
        let answers = json!([{"need": asked[0], "objects": []}, {"need": asked[1], "objects": [object]}]);
        answer_to(&root, json!({"needs": answers})).unwrap()
    };
    let owner = |version: &str| json!({"apiVersion": version, "kind": "Darkroom", "controller": true});
    assert_eq!(conflict(&ingress(owner("deployments.example.com/v1alpha1"))), None);
    assert!(conflict(&ingress(owner("example.com/v1"))).is_some());
}
