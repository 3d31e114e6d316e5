//! Tests of the guest's answers to Darkrooms, one rule of its logic at a time.

use pintle_guest::{
    Failure, Guest, GuestCondition, Map, Need, Request, Response, Select, Value, call, json, serde_json,
};

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

fn container(response: &Response) -> &Value {
    &child(response, "deployment")["spec"]["template"]["spec"]["containers"][0]
}

fn image(root: Value) -> String {
    container(&answer(root).unwrap())["image"].as_str().unwrap().to_owned()
}

fn config_hash(response: &Response) -> &Value {
    let template = &child(response, "deployment")["spec"]["template"];
    &template["metadata"]["annotations"]["deployments.example.com/config-hash"]
}

#[test]
fn the_sample_has_the_seeds_names_and_environment() {
    let response = answer(sample()).unwrap();
    for child in &response.children {
        assert_eq!(child.object["metadata"], json!({"name": "darkroom-sample"}), "{}", child.id);
    }
    assert_eq!(
        child(&response, "config")["data"],
        json!({
            "DEBUG": "false", "LOG_LEVEL": "info", "APP_NAME": "darkroom-sample", "APP_VERSION": "0.1.0",
            "APP_DESCRIPTION": "A realtime image processing service", "SOURCE_KIND": "WebFolder",
            "SOURCE_BASEURL": "https://ajatprabha.in/assets", "PORT": "3000", "CACHE_TIME": "31536000",
            "SOURCE_HYSTRIX_COMMANDNAME": "WebFolder_ADAPTER", "SOURCE_HYSTRIX_TIMEOUT": "5000",
            "SOURCE_HYSTRIX_MAXCONCURRENTREQUESTS": "100", "SOURCE_HYSTRIX_REQUESTVOLUMETHRESHOLD": "10",
            "SOURCE_HYSTRIX_SLEEPWINDOW": "10", "SOURCE_HYSTRIX_ERRORPERCENTTHRESHOLD": "25",
        })
    );
    let container = container(&response);
    assert_eq!(container["envFrom"], json!([{"configMapRef": {"name": "darkroom-sample"}}]));
    assert_eq!(container["ports"], json!([{"name": "http", "containerPort": 3000, "protocol": "TCP"}]));
    assert_eq!(
        child(&response, "deployment")["spec"]["selector"]["matchLabels"],
        json!({"darkroom": "darkroom-sample"})
    );
    assert_eq!(child(&response, "service")["spec"]["ports"][0]["port"], 8080);
    assert_eq!(response.status["domains"], json!(["ajatprabha.darkroom.example.com"]));
}

#[test]
fn the_ingress_has_a_rule_for_every_domain_in_order_and_no_catch_all() {
    let response = answer(with("subDomains", json!(["b", "a"]))).unwrap();
    let ingress = child(&response, "ingress");
    assert_eq!(ingress["apiVersion"], "networking.k8s.io/v1");
    let hosts: Vec<_> =
        ingress["spec"]["rules"].as_array().unwrap().iter().map(|rule| &rule["host"]).collect();
    assert_eq!(hosts, ["b.darkroom.example.com", "a.darkroom.example.com"]);
    assert_eq!(response.status["domains"], json!(hosts));
    let path = &ingress["spec"]["rules"][0]["http"]["paths"][0];
    assert_eq!(
        path,
        &json!({"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "darkroom-sample", "port": {"number": 8080}}}})
    );
    assert_eq!(ingress["spec"].as_object().unwrap().keys().collect::<Vec<_>>(), ["rules"]);
}

#[test]
fn a_version_is_mapped_to_a_tag() {
    let tag = |version: &str| image(with("version", json!(version)));
    assert_eq!(tag("0.1.0"), "gojektech/darkroom:v0.1.0");
    assert_eq!(tag("v0.1.0"), "gojektech/darkroom:v0.1.0");
    assert_eq!(tag("latest"), "gojektech/darkroom:latest");
    assert_eq!(tag(""), "gojektech/darkroom:v0.4.0");
    let mut root = sample();
    root["spec"].as_object_mut().unwrap().remove("version");
    assert_eq!(image(root), "gojektech/darkroom:v0.4.0");
    assert_eq!(
        image(with("image", json!("mirror.example.com/darkroom@sha256:0"))),
        "mirror.example.com/darkroom@sha256:0"
    );
}

#[test]
fn inline_keys_are_in_an_owned_secret_and_nowhere_else() {
    let response = answer(s3()).unwrap();
    let secret = child(&response, "credentials");
    assert_eq!(
        secret["data"],
        json!({"SOURCE_BUCKET_ACCESSKEY": "QUtJQQ==", "SOURCE_BUCKET_SECRETKEY": "czNjcjN0"})
    );
    assert_eq!(container(&response)["envFrom"][1], json!({"secretRef": {"name": "darkroom-sample"}}));
    let mut rest = serde_json::to_value(&response).unwrap();
    rest["children"].as_array_mut().unwrap().retain(|child| child["id"] != "credentials");
    let rest = rest.to_string();
    for secret in ["AKIA", "s3cr3t", "QUtJQQ==", "czNjcjN0"] {
        assert!(!rest.contains(secret), "{secret} in {rest}");
    }
}

#[test]
fn a_referenced_secret_is_used_and_not_owned() {
    let source = json!({"type": "S3", "bucket": "photos", "region": "eu-west-1", "credentialsSecretRef": {"name": "keys"}});
    let response = answer(with("source", source)).unwrap();
    assert!(response.children.iter().all(|child| child.id != "credentials"));
    assert_eq!(container(&response)["envFrom"][1], json!({"secretRef": {"name": "keys"}}));
}

#[test]
fn the_environment_of_a_bucket_is_complete() {
    let root =
        with_source(with_source(s3(), "endpoint", json!("https://minio")), "pathPrefix", json!("/public"));
    let response = answer(root).unwrap();
    let data = child(&response, "config")["data"].clone();
    let names = [
        "SOURCE_KIND",
        "SOURCE_BUCKET_NAME",
        "SOURCE_BUCKET_REGION",
        "SOURCE_BUCKET_ENDPOINT",
        "SOURCE_PATHPREFIX",
    ];
    assert_eq!(
        names.map(|name| data[name].clone()),
        ["S3", "photos", "eu-west-1", "https://minio", "/public"]
    );
    assert_eq!(data.get("SOURCE_BASEURL"), None);
}

#[test]
fn leaving_s3_leaves_nothing_of_it() {
    let mut root = s3();
    root["spec"]["source"]["type"] = json!("WebFolder");
    root["spec"]["source"]["baseUrl"] = json!("https://a.example/");
    let response = answer(root).unwrap();
    assert!(response.children.iter().all(|child| child.id != "credentials"));
    assert_eq!(container(&response)["envFrom"].as_array().unwrap().len(), 1);
    assert_eq!(child(&response, "config")["data"]["SOURCE_BASEURL"], "https://a.example");
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
fn the_administrator_sets_domain_class_certificate_and_logging() {
    let config = json!({
        "domainSuffix": "img.example.org", "ingressClassName": "nginx", "tlsSecretName": "wildcard", "defaultBackend": true,
        "debug": true, "logLevel": "warn", "cacheTimeSeconds": 60, "imageRepository": "mirror.example.org/darkroom",
    });
    let response = configured(&sample(), config).unwrap();
    let spec = &child(&response, "ingress")["spec"];
    assert_eq!(spec["ingressClassName"], "nginx");
    assert_eq!(spec["tls"], json!([{"hosts": ["ajatprabha.img.example.org"], "secretName": "wildcard"}]));
    assert_eq!(spec["defaultBackend"]["service"]["name"], "darkroom-sample");
    let data = &child(&response, "config")["data"];
    assert_eq!([&data["DEBUG"], &data["LOG_LEVEL"], &data["CACHE_TIME"]], ["true", "warn", "60"]);
    assert_eq!(container(&response)["image"], "mirror.example.org/darkroom:v0.1.0");
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
fn the_seeds_messages_are_said_through_kubectl_too() {
    let message = |source: Value| answer(with("source", source)).unwrap_err().message;
    assert_eq!(message(json!({"type": "WebFolder"})), "baseUrl can't be empty");
    assert_eq!(message(json!({"type": "S3"})), "required fields missing: accessKey, secretKey, region");
    assert_eq!(
        message(json!({"type": "FTP"})),
        "source type validation was not performed, type can only be [WebFolder,S3]"
    );
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

#[test]
fn names_of_63_characters_with_digits_and_hyphens_are_legal() {
    let name = format!("d{}0", "-1".repeat(30) + "x");
    assert_eq!(name.len(), 63);
    assert_eq!(answer(named(&name)).unwrap().children.len(), 4);
}

#[test]
fn a_refused_secret_is_reported_without_what_was_said_of_it() {
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "namespace": "blog", "name": "darkroom-sample"});
    let refusals =
        json!([{"child": secret, "code": 422, "reason": "Invalid", "message": "bad value s3cr3t"}]);
    let response = answer_to(&s3(), json!({"refusals": refusals})).unwrap();
    assert_eq!(
        (response.conditions[1].reason.as_str(), response.conditions[1].message.as_str()),
        ("Invalid", "Secret darkroom-sample was refused")
    );
    assert_eq!(response.children, answer(s3()).unwrap().children);
}

#[test]
fn the_status_rolls_up_the_observed_deployment() {
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "darkroom-sample", "generation": 1}, "spec": {"replicas": 1},
        "status": {"observedGeneration": 1, "replicas": 1, "readyReplicas": 1, "updatedReplicas": 1, "availableReplicas": 1},
    });
    let response = answer_to(&sample(), json!({"children": [deployment]})).unwrap();
    assert_eq!((&response.status["replicas"], &response.status["readyReplicas"]), (&json!(1), &json!(1)));
    assert_eq!(response.conditions[0].reason, "RolloutComplete");
}

#[test]
fn the_manifest_declares_what_the_answer_holds() {
    let manifest = Darkroom::manifest();
    for child in answer(s3()).unwrap().children {
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
    let response = Darkroom::reconcile(Request::about(object)).unwrap();
    assert_eq!(response.children.len(), 4);
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
fn the_older_claim_has_the_host_and_the_rest_is_served() {
    let response = among(&["a", "b"], &[("Darkroom", "blog", "first", "2019-12-31T23:59:59Z", "a")]);
    let condition = conflict(&response).unwrap();
    assert!(condition.blocks_ready && condition.reason == "DomainTaken", "{condition:?}");
    assert_eq!(condition.message, "a.darkroom.example.com is claimed by the older Darkroom first");
    assert_eq!(hosts(&response), ["b.darkroom.example.com"]);
    assert_eq!(response.status["domains"], json!(["b.darkroom.example.com"]));
    assert_eq!(response.events[0].message, condition.message);
}

#[test]
fn the_younger_claim_loses_and_one_of_the_same_second_is_judged_by_uid() {
    let same = "2020-01-01T00:00:00Z";
    let younger = ("Ingress", "blog", "late", "2020-01-01T00:00:01Z", "a.darkroom.example.com");
    assert_eq!(conflict(&among(&["a"], &[younger, ("Darkroom", "blog", "v", same, "a")])), None);
    assert!(conflict(&among(&["a"], &[("Darkroom", "blog", "b", same, "a")])).is_some());
}

#[test]
fn what_lies_in_another_namespace_is_not_named() {
    let response =
        among(&["a"], &[("Ingress", "secret", "hidden", "2019-01-01T00:00:00Z", "a.darkroom.example.com")]);
    let message = &conflict(&response).unwrap().message;
    assert_eq!(message, "a.darkroom.example.com is claimed by an older Ingress of another namespace");
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
