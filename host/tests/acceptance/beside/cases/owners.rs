//! What Llamas own, and what owns Llamas: the garbage collector's ways.

use anyhow::bail;
use http::Method;
use kit::{Look, eventually};
use serde_json::{Value, json};

use super::case;
use crate::beside::{
    Case,
    side::{Ask, Side, create, delete, delete_all, get, llama, llama_with, merge, raw},
};

const AREA: &str = "Owners and the garbage collector";

pub(super) const CASES: &[Case] = &[
    case!(AREA, "what a deleted Llama owned is deleted, and what others own too stays", |side| {
        let dolly = owner(side, "dolly").await?;
        let molly = owner(side, "molly").await?;
        own(side, "of-dolly", &[&dolly]).await?;
        own(side, "of-both", &[&dolly, &molly]).await?;
        side.ask(delete("dolly", json!({"propagationPolicy": "Background"}))).await?;
        side.until(&config_map("of-dolly"), 404).await?;
        eventually("what both own is molly's", async || {
            let said = side.answer(&config_map("of-both")).await?;
            if said.code == 404 {
                bail!("it went with one of them");
            }
            let owners = names_of_owners(&said.body);
            Ok(Look::reached_if(owners == ["molly"], || format!("it is that of {owners:?}")))
        })
        .await?;
        let owners = owners_of(side, "of-both").await?;
        side.note("what both own is molly's", json!(owners == ["molly"]));
        side.ask(delete("molly", json!(null))).await?;
        side.until(&config_map("of-both"), 404).await?;
    }),
    case!(AREA, "a foreground delete ends when the dependents that block it are gone", |side| {
        let dolly = owner(side, "dolly").await?;
        let mut held = dependent("held", &[&dolly]);
        held["metadata"]["finalizers"] = json!(["example.com/a"]);
        side.must(config_maps().with(Method::POST).body("application/json", held.to_string())).await?;
        own(side, "free", &[&dolly]).await?;
        side.ask(delete("dolly", json!({"propagationPolicy": "Foreground"}))).await?;
        side.until(&config_map("free"), 404).await?;
        // It waits, and says for whom.
        the_collector_comes_by(side).await?;
        side.ask(get("dolly")).await?;
        let free = config_map("held").with(Method::PATCH);
        side.must(
            free.body("application/merge-patch+json", json!({"metadata": {"finalizers": null}}).to_string()),
        )
        .await?;
        side.until(&get("dolly"), 404).await?;
        side.until(&config_map("held"), 404).await?;
    }),
    case!(AREA, "a foreground delete of what owns nothing ends at once", |side| {
        side.must(create(llama("dolly"))).await?;
        side.ask(delete("dolly", json!({"propagationPolicy": "Foreground"}))).await?;
        side.until(&get("dolly"), 404).await?;
    }),
    case!(AREA, "orphaned dependents stay, and name their owner no longer", |side| {
        let dolly = owner(side, "dolly").await?;
        own(side, "of-dolly", &[&dolly]).await?;
        side.ask(delete("dolly", json!({"propagationPolicy": "Orphan"}))).await?;
        side.until(&get("dolly"), 404).await?;
        the_collector_comes_by(side).await?;
        let owners = owners_of(side, "of-dolly").await?;
        side.note("whose it is", json!(owners));
        let molly = owner(side, "molly").await?;
        own(side, "of-molly", &[&molly]).await?;
        side.ask(delete("molly", json!({"orphanDependents": true}))).await?;
        side.until(&get("molly"), 404).await?;
        let owners = owners_of(side, "of-molly").await?;
        side.note("whose that is", json!(owners));
    }),
    case!(AREA, "the collector's finalizers are made, shown and taken away like others", |side| {
        for finalizer in ["orphan", "foregroundDeletion"] {
            side.ask(create(llama_with("dolly", &json!({"finalizers": [finalizer, "example.com/a"]}))))
                .await?;
            side.ask(get("dolly")).await?;
            side.ask(merge("dolly", json!({"metadata": {"finalizers": ["example.com/a"]}}))).await?;
            side.ask(merge("dolly", json!({"metadata": {"finalizers": [finalizer]}}))).await?;
            side.ask(get("dolly")).await?;
            side.ask(delete("dolly", json!({"propagationPolicy": "Background"}))).await?;
            side.until(&get("dolly"), 404).await?;
        }
    }),
    case!(AREA, "an object made with foregroundDeletion is deleted in the foreground", |side| {
        side.must(create(llama_with("dolly", &json!({"finalizers": ["foregroundDeletion"]})))).await?;
        let dolly = side.must(get("dolly")).await?;
        own(side, "of-dolly", &[&dolly]).await?;
        side.ask(delete("dolly", json!(null))).await?;
        side.until(&get("dolly"), 404).await?;
        side.ask(config_map("of-dolly")).await?;
    }),
    case!(AREA, "Llamas that own each other go together", |side| {
        let dolly = owner(side, "dolly").await?;
        let molly =
            side.must(create(llama_with("molly", &json!({"ownerReferences": [reference(&dolly)]})))).await?;
        let back = json!({"metadata": {"ownerReferences": [reference(&molly)]}});
        side.must(merge("dolly", back)).await?;
        side.ask(delete("dolly", json!({"propagationPolicy": "Background"}))).await?;
        side.until(&get("dolly"), 404).await?;
        side.until(&get("molly"), 404).await?;
    }),
    case!(AREA, "a Llama goes with its owner of another kind, and stays while that is there", |side| {
        own(side, "shepherd", &[]).await?;
        let shepherd = side.must(config_map("shepherd")).await?;
        side.must(create(llama_with("dolly", &json!({"ownerReferences": [reference(&shepherd)]})))).await?;
        let mut gone = reference(&shepherd);
        gone["uid"] = "6f9619ff-8b86-4011-b42d-00c04fc964ff".into();
        gone["name"] = "nobody".into();
        side.must(create(llama_with("stray", &json!({"ownerReferences": [gone]})))).await?;
        side.until(&get("stray"), 404).await?;
        side.ask(get("dolly")).await?;
        side.must(config_map("shepherd").with(Method::DELETE)).await?;
        side.until(&get("dolly"), 404).await?;
    }),
    case!(AREA, "those that are chosen are deleted with their dependents, or without them", |side| {
        for policy in ["Foreground", "Orphan"] {
            let dolly = owner(side, "dolly").await?;
            let name = policy.to_lowercase();
            own(side, &name, &[&dolly]).await?;
            let said = side.answer(&delete_all(json!({"propagationPolicy": policy}))).await?;
            side.note("deleted", json!(said.code));
            side.until(&get("dolly"), 404).await?;
            the_collector_comes_by(side).await?;
            let left = side.answer(&config_map(&name)).await?;
            side.note(policy, json!([left.code, left.body["metadata"].get("ownerReferences").is_some()]));
        }
    }),
    case!(AREA, "a dependent that does not block is not waited for", |side| {
        let dolly = owner(side, "dolly").await?;
        let mut held = dependent("held", &[&dolly]);
        held["metadata"]["finalizers"] = json!(["example.com/a"]);
        held["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] = false.into();
        side.must(config_maps().with(Method::POST).body("application/json", held.to_string())).await?;
        side.ask(delete("dolly", json!({"propagationPolicy": "Foreground"}))).await?;
        side.until(&get("dolly"), 404).await?;
        let free = config_map("held").with(Method::PATCH);
        side.must(
            free.body("application/merge-patch+json", json!({"metadata": {"finalizers": null}}).to_string()),
        )
        .await?;
        side.until(&config_map("held"), 404).await?;
    }),
];

/// A Llama that is to own something, as it is shown.
async fn owner(side: &Side, name: &str) -> anyhow::Result<Value> {
    side.must(create(llama(name))).await
}

/// How a dependent names its owner.
fn reference(owner: &Value) -> Value {
    json!({
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": true,
    })
}

/// A ConfigMap with these owners.
fn dependent(name: &str, owners: &[&Value]) -> Value {
    let references: Vec<Value> = owners.iter().map(|owner| reference(owner)).collect();
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": references}})
}

async fn own(side: &Side, name: &str, owners: &[&Value]) -> anyhow::Result<()> {
    let object = dependent(name, owners).to_string();
    side.must(config_maps().with(Method::POST).body("application/json", object)).await.map(drop)
}

/// The names of the owners that a ConfigMap has.
async fn owners_of(side: &Side, name: &str) -> anyhow::Result<Vec<Value>> {
    Ok(names_of_owners(&side.must(config_map(name)).await?))
}

fn names_of_owners(object: &Value) -> Vec<Value> {
    let owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    owners.map(|owner| owner["name"].clone()).collect()
}

/// Waits until the collector has taken something whose owner is not there. It comes to it after all that it had to judge before.
async fn the_collector_comes_by(side: &Side) -> anyhow::Result<()> {
    let nobody = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "nobody", "uid": "6f9619ff-8b86-4011-b42d-00c04fc964ff"}});
    own(side, "stray", &[&nobody]).await?;
    side.until(&config_map("stray"), 404).await
}

fn config_maps() -> Ask {
    raw(Method::GET, "/api/v1/namespaces/NAMESPACE/configmaps")
}

fn config_map(name: &str) -> Ask {
    config_maps().below(name)
}
