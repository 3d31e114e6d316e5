//! Watches: what they begin with, what they show, and how they end.

use serde_json::{Value, json};

use super::{case, lists::herd};
use crate::beside::{
    Case,
    side::{Ask, Side, create, delete, get, list, llama, llama_with, merge},
};

const AREA: &str = "Watches";

pub(super) const CASES: &[Case] = &[
    case!(AREA, "a watch shows what is made, changed and deleted", |side| {
        let version = version(side).await?;
        let mut watch = side.watch(list().query(&format!("watch=1&resourceVersion={version}"))).await?;
        story(side).await?;
        side.events(&mut watch, 4).await?;
    }),
    case!(AREA, "a watch without a version begins with what there is", |side| {
        herd(side).await?;
        for query in ["watch=1", "watch=true&resourceVersion=", "watch=1&resourceVersion=0"] {
            let mut watch = side.watch(list().query(query)).await?;
            let mut events = side.events_unordered(&mut watch, 5).await?;
            events.sort();
            side.note(query, json!(events));
        }
        let mut watch = side.watch(list().query("watch=1&labelSelector=breed%3Dwool")).await?;
        let mut events = side.events_unordered(&mut watch, 2).await?;
        events.sort();
        side.note("a selection", json!(events));
    }),
    case!(AREA, "a list by watching ends with its bookmark, and goes on", |side| {
        herd(side).await?;
        let query =
            "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
        let version = version(side).await?;
        let at_least = format!("&resourceVersion={version}");
        for more in ["", "&resourceVersion=0", &at_least, "&labelSelector=breed%3Dwool"] {
            let mut watch = side.watch(list().query(&format!("{query}{more}"))).await?;
            let mut initial = Vec::new();
            let bookmark = loop {
                let Some(event) = watch.next().await? else { anyhow::bail!("the watch ends") };
                if event["type"] == "BOOKMARK" {
                    break event;
                }
                initial.push(event["object"]["metadata"]["name"].to_string());
            };
            initial.sort();
            side.note("what it begins with", json!(initial));
            side.note("the bookmark", bookmark);
            if more.is_empty() {
                side.must(merge("llama-1", json!({"spec": {"weight": 77}}))).await?;
                side.events(&mut watch, 1).await?;
            }
        }
    }),
    case!(AREA, "what a watch may not ask for is refused", |side| {
        for query in [
            "sendInitialEvents=true",
            "sendInitialEvents=true&resourceVersionMatch=Exact&allowWatchBookmarks=true",
            "sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
            "sendInitialEvents=false&resourceVersionMatch=NotOlderThan",
            "resourceVersionMatch=NotOlderThan",
            "resourceVersionMatch=Exact&resourceVersion=5",
            "resourceVersion=abc",
            "resourceVersion=-5",
            "timeoutSeconds=abc",
            "labelSelector=a%20b",
            "fieldSelector=spec.weight%3D1",
            "continue=abc",
        ] {
            side.ask(list().query(&format!("watch=1&timeoutSeconds=1&{query}"))).await?;
        }
    }),
    case!(AREA, "a watch ends when its time is over", |side| {
        let version = version(side).await?;
        for query in ["timeoutSeconds=1", "timeoutSeconds=1&allowWatchBookmarks=true&labelSelector=a%3Db"] {
            let ask = list().query(&format!("watch=1&resourceVersion={version}&{query}"));
            let watch = side.watch(ask).await?;
            let events = side.events_to_the_end(watch).await?;
            let objects = events.iter().filter(|event| event["type"] != "BOOKMARK").count();
            side.note("objects", json!(objects));
        }
    }),
    case!(AREA, "a watch of a version that is too old is told to list again", |side| {
        // The first write of the control plane is long gone from what the API server remembers for a new resource. The watch ends with
        // that, and not with its time.
        let watch = side.watch(list().query("watch=1&resourceVersion=1&timeoutSeconds=60")).await?;
        side.events_to_the_end(watch).await?;
    }),
    case!(AREA, "a watch from a version shows what came after it", |side| {
        let first = side.must(create(llama("dolly"))).await?;
        let version = first["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
        side.must(merge("dolly", json!({"spec": {"weight": 2}}))).await?;
        side.must(merge("dolly", json!({"spec": {"weight": 3}}))).await?;
        let mut watch = side.watch(list().query(&format!("watch=1&resourceVersion={version}"))).await?;
        side.events(&mut watch, 2).await?;
    }),
    case!(AREA, "what enters and leaves a selection is added and deleted", |side| {
        let version = version(side).await?;
        let mut watch = side
            .watch(list().query(&format!("watch=1&labelSelector=app%3Dweb&resourceVersion={version}")))
            .await?;
        side.must(create(llama("dolly"))).await?;
        side.must(merge("dolly", json!({"metadata": {"labels": {"app": "web"}}}))).await?;
        side.must(merge("dolly", json!({"spec": {"weight": 2}}))).await?;
        side.must(merge("dolly", json!({"metadata": {"labels": {"app": "db"}}, "spec": {"weight": 3}})))
            .await?;
        side.must(merge("dolly", json!({"metadata": {"labels": {"app": "web"}}}))).await?;
        side.must(delete("dolly", json!(null))).await?;
        side.events(&mut watch, 5).await?;
    }),
    case!(AREA, "a watch of one name shows that object alone", |side| {
        let version = version(side).await?;
        let ask = format!("watch=1&fieldSelector=metadata.name%3Ddolly&resourceVersion={version}");
        let mut watch = side.watch(list().query(&ask)).await?;
        side.must(create(llama("molly"))).await?;
        story(side).await?;
        side.events(&mut watch, 4).await?;
    }),
    case!(AREA, "what a finalizer holds is changed first and deleted at last", |side| {
        let version = version(side).await?;
        let mut watch = side.watch(list().query(&format!("watch=1&resourceVersion={version}"))).await?;
        side.must(create(llama_with("dolly", &json!({"finalizers": ["example.com/a"]})))).await?;
        side.must(delete("dolly", json!(null))).await?;
        side.must(merge("dolly", json!({"metadata": {"finalizers": null}}))).await?;
        side.until(&get("dolly"), 404).await?;
        side.events(&mut watch, 3).await?;
    }),
    case!(AREA, "a watch of metadata and one of rows show the same changes", |side| {
        let version = version(side).await?;
        let from = |accept: &str| -> Ask {
            list().query(&format!("watch=1&resourceVersion={version}")).accept(accept)
        };
        let mut metadata =
            side.watch(from("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")).await?;
        let mut rows = side.watch(from("application/json;as=Table;g=meta.k8s.io;v=v1")).await?;
        let bare = from("application/json;as=Table;g=meta.k8s.io;v=v1")
            .query(&format!("watch=1&includeObject=None&resourceVersion={version}"));
        let mut bare = side.watch(bare).await?;
        story(side).await?;
        side.events(&mut metadata, 4).await?;
        side.events(&mut rows, 4).await?;
        side.events(&mut bare, 4).await?;
    }),
    case!(AREA, "an object that is written with what it has makes no event", |side| {
        let made = side.must(create(llama("dolly"))).await?;
        let version = made["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
        let mut watch = side.watch(list().query(&format!("watch=1&resourceVersion={version}"))).await?;
        side.must(merge("dolly", json!({"spec": {"weight": 31.25}}))).await?;
        side.must(merge("dolly", json!({"spec": {"weight": 32}}))).await?;
        side.events(&mut watch, 1).await?;
    }),
    case!(AREA, "all who watch see the same, in the same order", |side| {
        let version = version(side).await?;
        let (watchers, changes) = if side.is_long { (100, 60) } else { (12, 20) };
        let mut watches = Vec::new();
        for _ in 0..watchers {
            watches.push(side.watch(list().query(&format!("watch=1&resourceVersion={version}"))).await?);
        }
        side.must(create(llama("dolly"))).await?;
        for change in 1..changes {
            side.must(merge("dolly", json!({"spec": {"weight": change}}))).await?;
        }
        let mut seen: Vec<Vec<Value>> = Vec::new();
        for watch in &mut watches {
            let mut events = Vec::new();
            for _ in 0..changes {
                let Some(event) = watch.next().await? else { anyhow::bail!("a watch ends") };
                events.push(json!([
                    event["type"],
                    event["object"]["metadata"]["resourceVersion"],
                    event["object"]["spec"]
                ]));
            }
            seen.push(events);
        }
        side.note("all see the same", json!(seen.iter().all(|events| *events == seen[0])));
        let weights: Vec<&Value> = seen[0].iter().map(|event| &event[2]["weight"]).collect();
        side.note("what they see", json!(weights));
    }),
    case!(AREA, "versions of events are those of the objects, and rise", |side| {
        let version = version(side).await?;
        let mut watch = side.watch(list().query(&format!("watch=1&resourceVersion={version}"))).await?;
        story(side).await?;
        let mut versions: Vec<u64> = Vec::new();
        for _ in 0..4 {
            let event = watch.next().await?.unwrap_or_default();
            let version = event["object"]["metadata"]["resourceVersion"].as_str().unwrap_or_default();
            versions.push(version.parse()?);
        }
        side.note("they rise", json!(versions.windows(2).all(|pair| pair[0] < pair[1])));
    }),
];

/// The version of a list.
async fn version(side: &mut Side) -> anyhow::Result<String> {
    let list = side.must(list()).await?;
    Ok(list["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned())
}

/// Dolly comes, changes twice and goes.
async fn story(side: &mut Side) -> anyhow::Result<()> {
    side.must(create(llama("dolly"))).await?;
    side.must(merge("dolly", json!({"spec": {"weight": 40}}))).await?;
    side.must(merge("dolly", json!({"metadata": {"labels": {"a": "b"}}}))).await?;
    side.must(delete("dolly", json!(null))).await?;
    Ok(())
}
