//! Reads and lists: selectors, versions, pages.

use serde_json::json;

use super::case;
use crate::beside::{
    Case,
    side::{Side, create, everywhere, get, list, llama, llama_with, merge},
};

const AREA: &str = "Reads, lists and pages";

pub(super) const CASES: &[Case] = &[
    case!(AREA, "what is not there is 404, and a name that cannot be is too", |side| {
        side.asks([get("nobody"), get("Nobody"), get("a_b"), get("nobody").query("resourceVersion=0")])
            .await?;
    }),
    case!(AREA, "a read takes the versions that a read of a CRD's takes", |side| {
        side.must(create(llama("dolly"))).await?;
        side.asks([
            get("dolly").query("resourceVersion=0"),
            get("dolly").query("resourceVersion=abc"),
            get("dolly").query("resourceVersion=-1"),
            get("dolly").query("resourceVersion="),
            get("dolly").query("pretty=true"),
            get("dolly").query("watch=true"),
        ])
        .await?;
        let far = get("dolly").query("resourceVersion=900000000000000");
        let said = side.answer(&far).await?;
        side.note(
            "a version of the future",
            json!([said.code, said.body["reason"], said.body["details"]["causes"][0]["reason"]]),
        );
    }),
    case!(AREA, "label selectors choose, and wrong ones are refused", |side| {
        herd(side).await?;
        for selector in [
            "breed%3Dwool",
            "breed%3D%3Dwool",
            "breed!%3Dwool",
            "breed",
            "!breed",
            "breed%20in%20(wool,milk)",
            "breed%20notin%20(wool)",
            "breed%3Dwool,size%3Dbig",
            "breed%3E1",
            "breed%3D",
            "",
        ] {
            side.ask(list().query(&format!("labelSelector={selector}"))).await?;
        }
        for selector in [
            "a%20b",
            "a%3D%3D%3Db",
            "breed%20in%20wool",
            "a%3Db%20c",
            "a/b/c",
            "%3Da",
            "a,,b",
            "a%20like%20b",
        ] {
            side.ask(list().query(&format!("labelSelector={selector}"))).await?;
        }
    }),
    case!(AREA, "field selectors choose by name and namespace, and others are refused", |side| {
        herd(side).await?;
        for selector in [
            "metadata.name%3Dllama-1",
            "metadata.name!%3Dllama-1",
            "metadata.name%3D%3Dllama-1,metadata.namespace%3DNAMESPACE",
            "metadata.namespace%3Ddefault",
            "metadata.name%3Dnobody",
            "metadata.name%3DA",
            "spec.weight%3D1",
            "metadata.name",
            "metadata.name%3Da,metadata.name%3Db",
            "",
        ] {
            side.ask(list().query(&format!("fieldSelector={selector}"))).await?;
        }
    }),
    case!(AREA, "pages follow each other to the end", |side| {
        herd(side).await?;
        for limit in [1, 2, 3, 5, 6] {
            pages(side, &format!("limit={limit}")).await?;
        }
        pages(side, "limit=2&labelSelector=breed%3Dwool").await?;
        pages(side, "limit=1&resourceVersion=0").await?;
        let whole = side.must(list()).await?;
        let version = whole["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
        pages(side, &format!("limit=2&resourceVersionMatch=NotOlderThan&resourceVersion={version}")).await?;
    }),
    case!(AREA, "what was written between two pages is not in the second", |side| {
        herd(side).await?;
        let first = side.ask(list().query("limit=2")).await?;
        side.must(create(llama("llama-9"))).await?;
        side.must(merge("llama-4", json!({"spec": {"weight": 99}}))).await?;
        let token = escaped(first["metadata"]["continue"].as_str().unwrap_or_default());
        let second = side.ask(list().query(&format!("continue={token}"))).await?;
        let same = first["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"];
        side.note("both have the version of the first", json!(same));
        side.ask(list()).await?;
    }),
    case!(AREA, "limits and tokens that cannot be are refused", |side| {
        herd(side).await?;
        for query in [
            "limit=0",
            "limit=-1",
            "limit=abc",
            "limit=1.5",
            "limit=99999999999999999999",
            "continue=abc",
            "continue=%21%21",
            "continue=e30",
            "timeoutSeconds=abc",
            "timeoutSeconds=-1",
        ] {
            side.ask(list().query(query)).await?;
        }
        let first = side.must(list().query("limit=2")).await?;
        let token = escaped(first["metadata"]["continue"].as_str().unwrap_or_default());
        for query in
            ["resourceVersion=5", "resourceVersion=0", "resourceVersionMatch=Exact", "labelSelector=breed"]
        {
            side.ask(list().query(&format!("continue={token}&{query}"))).await?;
        }
    }),
    case!(AREA, "a list at a version is what there was", |side| {
        herd(side).await?;
        let whole = side.must(list()).await?;
        let version = whole["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
        side.must(create(llama("llama-9"))).await?;
        for query in [
            format!("resourceVersion={version}&resourceVersionMatch=Exact"),
            format!("resourceVersion={version}&resourceVersionMatch=NotOlderThan"),
            format!("resourceVersion={version}"),
            format!("resourceVersion={version}&resourceVersionMatch=Exact&limit=2"),
            "resourceVersionMatch=Exact".to_owned(),
            "resourceVersionMatch=NotOlderThan".to_owned(),
            "resourceVersion=0&resourceVersionMatch=Exact".to_owned(),
            "resourceVersion=0&resourceVersionMatch=NotOlderThan".to_owned(),
            "resourceVersion=1&resourceVersionMatch=Sometimes".to_owned(),
            "resourceVersion=abc".to_owned(),
            "sendInitialEvents=true".to_owned(),
            "sendInitialEvents=abc".to_owned(),
            "allowWatchBookmarks=true".to_owned(),
        ] {
            side.ask(list().query(&query)).await?;
        }
    }),
    case!(AREA, "a namespace that is not there has no objects", |side| {
        side.ask(crate::beside::side::raw(
            http::Method::GET,
            "/apis/GROUP/v1alpha/namespaces/nowhere/llamas",
        ))
        .await?;
    }),
    case!(AREA, "objects are listed in all namespaces", |side| {
        side.must(create(llama_with("dolly", &json!({"labels": {"of": "NAMESPACE"}})))).await?;
        side.ask(everywhere().query("labelSelector=of%3DNAMESPACE")).await?;
        side.ask(everywhere().query("fieldSelector=metadata.namespace%3DNAMESPACE")).await?;
    }),
];

/// Five llamas, of two breeds.
pub(super) async fn herd(side: &mut Side) -> anyhow::Result<()> {
    for number in 1..=5 {
        let breed = if number % 2 == 0 { "wool" } else { "milk" };
        let labels = match number {
            5 => json!({}),
            4 => json!({"breed": breed, "size": "big"}),
            _ => json!({"breed": breed}),
        };
        side.must(create(llama_with(&format!("llama-{number}"), &json!({"labels": labels})))).await?;
    }
    Ok(())
}

/// Reads page after page.
async fn pages(side: &mut Side, query: &str) -> anyhow::Result<()> {
    let mut page = side.ask(list().query(query)).await?;
    for _ in 0..10 {
        let token = escaped(page["metadata"]["continue"].as_str().unwrap_or_default());
        if token.is_empty() {
            break;
        }
        // The version stands in the token.
        let rest: Vec<&str> = query.split('&').filter(|pair| !pair.starts_with("resourceVersion")).collect();
        page = side.ask(list().query(&format!("{}&continue={token}", rest.join("&")))).await?;
    }
    Ok(())
}

/// A token in a query.
fn escaped(token: &str) -> String {
    token.replace('=', "%3D").replace('+', "%2B").replace('/', "%2F")
}
