//! Nothing that goes out of a preview has what nobody is to read: the keys in the spec of a Darkroom, which its view marks as never shown, and
//! the values of Secrets.

use base64::{Engine as _, prelude::*};
use pintle_core::object;
use pintle_offline::case;
use pintle_preview::{PlanRequest, Recorded};
use pintle_simulator::Act;
use pintle_wit::ObjectRef;
use serde_json::{Value, json};

use super::{NAMESPACE, Place, guest, inspect};

const KIND: (&str, &str) = ("deployments.example.com/v1alpha1", "Darkroom");
const KEY: &str = "correct-horse-battery-staple";
const OLD_KEY: &str = "an-older-key-of-the-bucket";
const PASSWORD: &str = "passphrase of somebody else";

/// A cluster with a Darkroom that has keys in its spec. Its Secret is still that of older keys, and a ConfigMap has a copy. No host works
/// there.
fn place() -> Place {
    let place = Place::new();
    place.push("darkroom", &guest("darkroom"));
    place.create(
        json!({"apiVersion": "pintle.dev/v1alpha1", "kind": "Reconciler", "metadata": {"name": "darkroom"},
        "spec": {"for": {"apiVersion": KIND.0, "kind": KIND.1}, "module": "darkroom",
            "grants": {
                "children": [{"apiVersion": "v1", "kinds": ["ConfigMap", "Secret", "Service"]},
                    {"apiVersion": "apps/v1", "kinds": ["Deployment"]},
                    {"apiVersion": "networking.k8s.io/v1", "kinds": ["Ingress"]}],
                "needs": [{"apiVersion": KIND.0, "kinds": [KIND.1], "scope": "All"},
                    {"apiVersion": "networking.k8s.io/v1", "kinds": ["Ingress"], "scope": "All"}],
                "services": {"types": ["ClusterIP"]}}}}),
    );
    let darkroom = |name: &str, key: &str| {
        json!({"apiVersion": KIND.0, "kind": KIND.1,
            "metadata": {"name": name, "namespace": "blog", "annotations": {
                "example.com/note": format!("the key is {key}; for curl: {}", BASE64_STANDARD.encode(format!("me:{key}")))}},
            "spec": {"source": {"type": "S3", "bucket": "photos", "region": "eu-west-1", "accessKey": "AKIA", "secretKey": key},
                "subDomains": [name]}})
    };
    place.create(darkroom("photos", KEY));
    // The guest asks to see the other Darkrooms too.
    place.create(darkroom("films", PASSWORD));
    place.create(
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "photos", "namespace": "blog"},
        "data": {"SOURCE_BUCKET_SECRETKEY": BASE64_STANDARD.encode(OLD_KEY)}}),
    );
    place.create(
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "photos", "namespace": "blog"},
        "data": {"COPY": format!("s3://AKIA:{OLD_KEY}@bucket?{KEY}")}}),
    );
    place
}

async fn record(place: &Place) -> Recorded {
    place.preview.record(&place.caller, &inspect(KIND, "photos")).await.unwrap()
}

fn has_no_secret(what: &str, text: &str) {
    for live in [KEY, OLD_KEY, PASSWORD] {
        let basic = BASE64_STANDARD.encode(format!("me:{live}"));
        for form in [live.to_owned(), BASE64_STANDARD.encode(live), basic] {
            assert!(!text.contains(&form), "{what} has {live} as {form}:\n{text}");
        }
    }
}

#[tokio::test]
async fn a_recorded_darkroom_with_keys_passes_and_has_none_of_them() {
    let recorded = record(&place()).await;
    assert!(recorded.secrets_replaced);
    has_no_secret("what was recorded", &json!(recorded.objects).to_string());
    let (case, result) = case::record(&recorded.guest, recorded.objects, &recorded.now).unwrap();
    assert!(result.passed(), "{:?} {:?}", result.problems, result.message);
    let case = serde_json::to_value(&case).unwrap();
    has_no_secret("the case", &case.to_string());
    let objects = case["objects"].as_array().unwrap();
    let is_root = |object: &&Value| object::kind(object).kind == KIND.1 && object::name(object) == "photos";
    let key = objects.iter().find(is_root).unwrap()["spec"]["source"]["secretKey"].as_str().unwrap();
    assert_eq!(key.len(), KEY.len());
    // The guest has made its Secret of what stands in the root now.
    let children = case["expect"]["children"].as_array().unwrap();
    let made = children.iter().find(|child| child["kind"] == "Secret").unwrap();
    assert_eq!(made["data"]["SOURCE_BUCKET_SECRETKEY"], BASE64_STANDARD.encode(key));
}

#[tokio::test]
async fn in_and_out_has_a_word_in_the_place_of_each_secret() {
    let place = place();
    let found = place.preview.inspect(&place.caller, &inspect(KIND, "photos")).await.unwrap();
    assert!(found.secrets_replaced && found.failure.is_none());
    let text = serde_json::to_string(&found).unwrap();
    has_no_secret("in and out", &text);
    let request = found.request.unwrap();
    let key = request["object"]["spec"]["source"]["secretKey"].as_str().unwrap();
    assert!(key.starts_with("<hidden "), "{key}");
    let answer = found.answer.unwrap();
    let children = answer["children"].as_array().unwrap();
    let made = children.iter().find(|child| child["kind"] == "Secret").unwrap();
    assert_eq!(made["data"]["SOURCE_BUCKET_SECRETKEY"], key, "one word for one value");
    let is_secret = |child: &&pintle_core::plan::InspectedChild| child.change.reference.kind == "Secret";
    let live = found.children.iter().find(is_secret).unwrap().live.clone().unwrap();
    let before = live["data"]["SOURCE_BUCKET_SECRETKEY"].as_str().unwrap();
    assert!(before.starts_with("<hidden ") && before != key, "another word for another value: {before}");
}

#[tokio::test]
async fn a_plan_shows_no_secret() {
    let place = place();
    for server in [false, true] {
        let request = PlanRequest { reconciler: "darkroom".into(), server, ..PlanRequest::default() };
        let (told, summary) = place.plan(&request).await.unwrap();
        assert_eq!(told.len(), 2);
        has_no_secret("the plan", &json!([told, summary]).to_string());
    }
}

#[tokio::test]
async fn a_case_whose_guest_refuses_other_values_is_told_from_one_that_can_be_recorded() {
    let place = place();
    // Somebody has put a path into a Secret: the guest takes no other value in its place.
    let path = "/public/photos";
    let named = |api_version: &str, kind: &str| ObjectRef {
        api_version: api_version.into(),
        kind: kind.into(),
        namespace: Some(NAMESPACE.into()),
        name: "photos".into(),
    };
    for (target, patch) in [
        (named(KIND.0, KIND.1), json!({"spec": {"source": {"pathPrefix": path}}})),
        (named("v1", "Secret"), json!({"data": {"PATH": BASE64_STANDARD.encode(path)}})),
    ] {
        place.server.act("test", &Act::Merge { target, subresource: None, patch }).unwrap();
    }
    let recorded = record(&place).await;
    assert!(recorded.secrets_replaced);
    assert_eq!(recorded.failure, None);
    let (case, _) = case::record(&recorded.guest, recorded.objects, &recorded.now).unwrap();
    assert!(case.refuses_otherwise(None).is_some(), "{:?}", case.expect);
}
