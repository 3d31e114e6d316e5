//! Metadata: what a name, a label or an owner may be, and what is said of what it may not be.

use serde_json::json;

use super::case;
use crate::beside::{
    Case,
    side::{create, get, json_patch, llama, llama_with, merge, put},
};

const AREA: &str = "Names, labels, finalizers and owners";

pub(super) const CASES: &[Case] = &[
    case!(AREA, "a name that no object can have is refused with its reason", |side| {
        for name in ["Dolly", "-dolly", "dol ly", "dolly_", "a..b"] {
            side.ask(create(llama(name))).await?;
        }
        side.ask(create(llama(&"x".repeat(254)))).await?;
        side.ask(create(llama(&"x".repeat(253)))).await?;
        side.ask(create(llama("a.b.c-1"))).await?;
    }),
    case!(AREA, "labels that cannot be are refused with their reason", |side| {
        for labels in [
            json!({"a b": "c"}),
            json!({"a": "b c"}),
            json!({"/a": "b"}),
            json!({"A.b/c": "d"}),
            json!({"a/b/c": "d"}),
            json!({"": "d"}),
            json!({"a/": "d"}),
            json!({"a": "-"}),
        ] {
            side.ask(create(llama_with("dolly", &json!({"labels": labels})))).await?;
        }
        let long = "x".repeat(64);
        side.ask(create(llama_with("dolly", &json!({"labels": {"a": long}})))).await?;
        let mut labels = json!({});
        labels[&long] = "b".into();
        side.ask(create(llama_with("dolly", &json!({"labels": labels})))).await?;
        side.must(create(llama("dolly"))).await?;
        side.ask(merge("dolly", json!({"metadata": {"labels": {"a": "b c"}}}))).await?;
        side.ask(json_patch(
            "dolly",
            json!([{"op": "add", "path": "/metadata/labels", "value": {"a b": "c"}}]),
        ))
        .await?;
    }),
    case!(AREA, "annotations that cannot be are refused with their reason", |side| {
        side.ask(create(llama_with("dolly", &json!({"annotations": {"a b": "c"}})))).await?;
        side.ask(create(llama_with("dolly", &json!({"annotations": {"a/b/c": "c"}})))).await?;
        let long = "x".repeat(256 << 10);
        let object = llama_with(
            "dolly",
            &json!({"annotations": {"kubectl.kubernetes.io/last-applied-configuration": long}}),
        );
        side.ask(create(object)).await?;
    }),
    case!(AREA, "finalizers that cannot be are refused with their reason", |side| {
        for finalizers in [
            json!(["a b"]),
            json!([""]),
            json!(["x/y/z"]),
            json!(["plain"]),
            json!(["orphan", "foregroundDeletion"]),
        ] {
            side.ask(create(llama_with("dolly", &json!({"finalizers": finalizers}))).query("dryRun=All"))
                .await?;
        }
        side.must(create(llama("dolly"))).await?;
        side.ask(merge("dolly", json!({"metadata": {"finalizers": ["a b", "c d"]}}))).await?;
    }),
    case!(AREA, "owners that cannot be are refused with their reason", |side| {
        let owner = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "6f9619ff-8b86-4011-b42d-00c04fc964ff",
        });
        for field in ["apiVersion", "kind", "name", "uid"] {
            let mut wrong = owner.clone();
            wrong[field] = "".into();
            side.ask(create(llama_with("dolly", &json!({"ownerReferences": [wrong]})))).await?;
        }
        let mut event = owner.clone();
        event["kind"] = "Event".into();
        side.ask(create(llama_with("dolly", &json!({"ownerReferences": [event]})))).await?;
        let mut controller = owner;
        controller["controller"] = true.into();
        let mut other = controller.clone();
        other["name"] = "y".into();
        side.ask(create(llama_with("dolly", &json!({"ownerReferences": [controller, other]})))).await?;
    }),
    case!(AREA, "everything that is wrong with an object is said at once", |side| {
        let mut object = llama_with("dolly", &json!({"labels": {"a": "b c"}, "finalizers": ["d e"]}));
        object["spec"]["weight"] = 0.into();
        side.ask(create(object)).await?;
    }),
    case!(AREA, "metadata of the wrong type are refused", |side| {
        for metadata in [
            json!({"labels": 1}),
            json!({"labels": ["a"]}),
            json!({"labels": {"a": 1}}),
            json!({"annotations": "x"}),
            json!({"annotations": {"a": {}}}),
            json!({"finalizers": "x"}),
            json!({"finalizers": {"a": "b"}}),
            json!({"finalizers": [1]}),
            json!({"ownerReferences": {}}),
            json!({"ownerReferences": ["x"]}),
            json!({"ownerReferences": [{"controller": "yes"}]}),
            json!({"name": 1}),
            json!({"generateName": []}),
            json!({"generation": "x"}),
            json!({"creationTimestamp": "yesterday"}),
        ] {
            side.ask(create(llama_with("dolly", &metadata))).await?;
        }
        for metadata in [json!("x"), json!([]), json!(1)] {
            let mut object = llama("dolly");
            object["metadata"] = metadata;
            side.ask(create(object)).await?;
        }
        side.must(create(llama("dolly"))).await?;
        for metadata in [json!({"labels": 1}), json!({"finalizers": "x"}), json!({"annotations": {"a": 1}})] {
            side.ask(merge("dolly", json!({"metadata": metadata}))).await?;
        }
        side.ask(json_patch("dolly", json!([{"op": "add", "path": "/metadata/labels", "value": [1]}])))
            .await?;
        let mut whole = side.must(get("dolly")).await?;
        whole["metadata"]["labels"] = json!([]);
        side.ask(put("dolly", whole)).await?;
    }),
    case!(AREA, "fields of metadata that nobody knows are dropped, told or refused", |side| {
        let object = llama_with(
            "dolly",
            &json!({"lables": {"a": "b"}, "ownerReferences": [{
                "apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "6f9619ff-8b86-4011-b42d-00c04fc964ff", "colour": "red",
            }]}),
        );
        for validation in ["Strict", "Warn", "Ignore"] {
            side.ask(create(object.clone()).query(&format!("fieldValidation={validation}&dryRun=All")))
                .await?;
        }
        side.must(create(llama("dolly"))).await?;
        for validation in ["Strict", "Warn", "Ignore"] {
            let query = format!("fieldValidation={validation}");
            side.ask(merge("dolly", json!({"metadata": {"lables": {"a": "b"}}})).query(&query)).await?;
        }
    }),
    case!(AREA, "empty and null metadata are none", |side| {
        for metadata in [
            json!({"labels": {}}),
            json!({"labels": null}),
            json!({"labels": {"a": null}}),
            json!({"labels": {"a": ""}}),
            json!({"annotations": null, "finalizers": null, "ownerReferences": null}),
            json!({"finalizers": [], "ownerReferences": []}),
            json!({"generateName": "x"}),
        ] {
            side.ask(create(llama_with("dolly", &metadata)).query("dryRun=All")).await?;
        }
    }),
    case!(AREA, "what is being deleted gets no new finalizer, and is otherwise written", |side| {
        side.must(create(llama_with("dolly", &json!({"finalizers": ["example.com/a"]})))).await?;
        side.must(crate::beside::side::delete("dolly", json!(null))).await?;
        side.asks([
            merge("dolly", json!({"metadata": {"finalizers": ["example.com/a", "example.com/b"]}})),
            merge("dolly", json!({"metadata": {"labels": {"a": "b"}}})),
            merge("dolly", json!({"spec": {"weight": 5}})),
            merge("dolly", json!({"metadata": {"deletionTimestamp": null}})),
            get("dolly"),
            merge("dolly", json!({"metadata": {"finalizers": null}})),
            get("dolly"),
        ])
        .await?;
    }),
];
