//! Deletes: of one object, of those that are chosen, and of a namespace.

use http::Method;
use serde_json::json;

use super::{case, lists::herd};
use crate::beside::{
    Case,
    side::{create, delete, delete_all, get, list, llama, llama_with, merge, raw},
};

const AREA: &str = "Deletes";

pub(super) const CASES: &[Case] = &[
    case!(AREA, "what is deleted is gone, once", |side| {
        side.must(create(llama("dolly"))).await?;
        side.asks([delete("dolly", json!(null)), get("dolly"), delete("dolly", json!(null)), list()]).await?;
        side.ask(delete("Dolly", json!(null))).await?;
    }),
    case!(AREA, "a dry run deletes nothing", |side| {
        side.must(create(llama("dolly"))).await?;
        side.ask(delete("dolly", json!({"dryRun": ["All"]}))).await?;
        side.ask(delete("dolly", json!(null)).query("dryRun=All")).await?;
        side.ask(delete("dolly", json!({"dryRun": ["Some"]}))).await?;
        side.ask(delete_all(json!({"dryRun": ["All"]}))).await?;
        side.ask(get("dolly")).await?;
    }),
    case!(AREA, "a delete is of the object that was meant", |side| {
        let made = side.must(create(llama("dolly"))).await?;
        let (uid, version) = (made["metadata"]["uid"].clone(), made["metadata"]["resourceVersion"].clone());
        let other = "6f9619ff-8b86-4011-b42d-00c04fc964ff";
        side.ask(delete("dolly", json!({"preconditions": {"uid": other}}))).await?;
        side.must(merge("dolly", json!({"spec": {"weight": 2}}))).await?;
        side.ask(delete("dolly", json!({"preconditions": {"resourceVersion": version}}))).await?;
        side.ask(delete("dolly", json!({"preconditions": {"uid": uid, "resourceVersion": version}}))).await?;
        side.ask(get("dolly")).await?;
        side.ask(delete("dolly", json!({"preconditions": {"uid": uid}}))).await?;
        side.ask(get("dolly")).await?;
    }),
    case!(AREA, "options of a delete that cannot be are refused", |side| {
        side.must(create(llama("dolly"))).await?;
        for options in [
            json!({"propagationPolicy": "Sideways"}),
            json!({"propagationPolicy": "Orphan", "orphanDependents": true}),
            json!({"propagationPolicy": 1}),
            json!({"kind": "Llama", "apiVersion": "GROUP/v1alpha"}),
            json!({"kind": "DeleteOptions", "apiVersion": "v7"}),
            json!({"gracePeriodSeconds": "x"}),
            json!({"preconditions": {"uid": 5}}),
        ] {
            side.ask(delete("dolly", options)).await?;
        }
        side.ask(delete("dolly", json!(null)).query("propagationPolicy=Sideways")).await?;
        side.ask(get("dolly").with(Method::DELETE).body("application/json", "[".to_owned())).await?;
        side.ask(get("dolly").with(Method::DELETE).body("text/plain", "{}".to_owned())).await?;
        side.ask(get("dolly")).await?;
    }),
    case!(AREA, "options of a delete may stand in its query", |side| {
        side.must(create(llama("dolly"))).await?;
        side.ask(delete("dolly", json!(null)).query("gracePeriodSeconds=abc")).await?;
        side.ask(delete("dolly", json!(null)).query("gracePeriodSeconds=0&propagationPolicy=Background"))
            .await?;
        side.ask(get("dolly")).await?;
        side.must(create(llama("dolly"))).await?;
        side.ask(delete("dolly", json!({"gracePeriodSeconds": 30}))).await?;
        side.ask(get("dolly")).await?;
        side.must(create(llama("dolly"))).await?;
        side.ask(delete("dolly", json!({"kind": "DeleteOptions", "apiVersion": "GROUP/v1alpha"}))).await?;
    }),
    case!(AREA, "what a finalizer holds stays until it is let go", |side| {
        side.must(create(llama_with("dolly", &json!({"finalizers": ["example.com/a"]})))).await?;
        side.ask(delete("dolly", json!(null))).await?;
        side.ask(get("dolly")).await?;
        side.ask(delete("dolly", json!(null))).await?;
        side.ask(create(llama("dolly"))).await?;
        side.ask(merge("dolly", json!({"metadata": {"finalizers": null}}))).await?;
        side.ask(get("dolly")).await?;
    }),
    case!(AREA, "those that are chosen are deleted, and the others stay", |side| {
        herd(side).await?;
        side.ask(delete_all(json!(null)).query("labelSelector=breed%3Dwool")).await?;
        side.ask(list()).await?;
        side.ask(delete_all(json!(null)).query("fieldSelector=metadata.name%3Dllama-1")).await?;
        side.ask(list()).await?;
        side.ask(delete_all(json!(null)).query("labelSelector=a%20b")).await?;
        side.ask(delete_all(json!({"propagationPolicy": "Sideways"}))).await?;
        side.ask(delete_all(json!(null))).await?;
        side.ask(list()).await?;
    }),
    case!(AREA, "a namespace goes with its objects, and those that are held hold it", |side| {
        let namespace = format!("{}-short", side.namespace);
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": {"beside": "yes"}}});
        side.must(raw(Method::POST, "/api/v1/namespaces").body("application/json", object.to_string()))
            .await?;
        let path = format!("/apis/GROUP/v1alpha/namespaces/{namespace}/llamas");
        let make =
            |object: serde_json::Value| raw(Method::POST, &path).body("application/json", object.to_string());
        for number in 0..5 {
            side.must(make(llama(&format!("llama-{number}")))).await?;
        }
        side.must(make(llama_with("held", &json!({"finalizers": ["example.com/a"]})))).await?;
        let of_the_namespace = raw(Method::GET, &format!("/api/v1/namespaces/{namespace}"));
        side.must(of_the_namespace.clone().with(Method::DELETE)).await?;
        side.until(&raw(Method::GET, &format!("{path}/llama-0")), 404).await?;
        let refused = side.answer(&make(llama("late"))).await?;
        side.note(
            "a late one",
            json!([refused.code, refused.body["reason"], refused.body["details"]["causes"][0]["reason"]]),
        );
        let there = side.answer(&of_the_namespace).await?;
        side.note("it is held", json!([there.code, there.body["status"]["phase"]]));
        let free = raw(Method::PATCH, &format!("{path}/held"))
            .body("application/merge-patch+json", json!({"metadata": {"finalizers": null}}).to_string());
        side.must(free).await?;
        side.until(&of_the_namespace, 404).await?;
    }),
];
