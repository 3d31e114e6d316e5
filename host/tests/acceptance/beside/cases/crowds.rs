//! Many at once: nothing is lost, and nobody is refused who did not ask for a version.

use futures::future::try_join_all;
use serde_json::{Value, json};

use super::case;
use crate::beside::{
    Case,
    side::{Side, create, delete, get, list, llama, llama_with, merge, put},
};

const AREA: &str = "Many at once";

pub(super) const CASES: &[Case] = &[
    case!(AREA, "patches that name no version never conflict", |side| {
        side.must(create(llama("dolly"))).await?;
        let crowd = &*side;
        let clients = (0..8).map(|client| async move {
            for number in 0..25 {
                let mut labels = json!({});
                labels[format!("c{client}-{number}")] = "x".into();
                crowd.must(merge("dolly", json!({"metadata": {"labels": labels}}))).await?;
            }
            anyhow::Ok(())
        });
        try_join_all(clients).await?;
        let dolly = side.must(get("dolly")).await?;
        side.note("labels", json!(dolly["metadata"]["labels"].as_object().map(serde_json::Map::len)));
    }),
    case!(AREA, "patches of one field by many are all carried out", |side| {
        side.must(create(llama("dolly"))).await?;
        let crowd = &*side;
        let clients = (1..=8).map(|client| async move {
            for number in 1..=10 {
                crowd.must(merge("dolly", json!({"spec": {"weight": client * 100 + number}}))).await?;
            }
            anyhow::Ok(())
        });
        try_join_all(clients).await?;
        let dolly = side.must(get("dolly")).await?;
        side.note("generation", dolly["metadata"]["generation"].clone());
    }),
    case!(AREA, "updates with a version lose nothing", |side| {
        side.must(create(llama_with("dolly", &json!({"labels": {"count": "0"}})))).await?;
        let crowd = &*side;
        try_join_all((0..6).map(|_| async move {
            for _ in 0..5 {
                counted_up(crowd).await?;
            }
            anyhow::Ok(())
        }))
        .await?;
        let dolly = side.must(get("dolly")).await?;
        side.note("count", dolly["metadata"]["labels"]["count"].clone());
    }),
    case!(AREA, "of many that create one name, one does", |side| {
        let crowd = &*side;
        let codes = try_join_all(
            (0..10).map(|_| async move { anyhow::Ok(crowd.answer(&create(llama("dolly"))).await?.code) }),
        );
        let mut codes = codes.await?;
        codes.sort_unstable();
        side.note("codes", json!(codes));
    }),
    case!(AREA, "of many that delete one object, those who come late find nothing", |side| {
        side.must(create(llama("dolly"))).await?;
        let crowd = &*side;
        let codes = try_join_all(
            (0..10)
                .map(|_| async move { anyhow::Ok(crowd.answer(&delete("dolly", json!(null))).await?.code) }),
        );
        let codes = codes.await?;
        side.note("codes", json!([codes.contains(&200), codes.iter().all(|code| [200, 404].contains(code))]));
    }),
    case!(AREA, "what many create is all there, in the list and in its pages", |side| {
        let count = if side.is_long { 1_000 } else { 100 };
        let crowd = &*side;
        for part in (0..count).collect::<Vec<u32>>().chunks(20) {
            try_join_all(part.iter().map(|number| crowd.must(create(llama(&format!("llama-{number:04}"))))))
                .await?;
        }
        let whole = side.must(list()).await?;
        let of = |list: &Value| list["items"].as_array().map_or(0, Vec::len);
        side.note("in the list", json!(of(&whole)));
        let (mut pages, mut seen, mut token) = (0, 0, String::new());
        loop {
            let page = side.must(list().query(&format!("limit=30{token}"))).await?;
            pages += 1;
            seen += of(&page);
            match page["metadata"]["continue"].as_str().filter(|next| !next.is_empty()) {
                Some(next) => token = format!("&continue={}", next.replace('=', "%3D")),
                None => break,
            }
        }
        side.note("in pages", json!([pages, seen]));
    }),
];

/// Counts a label up as a controller would: again from the start when somebody else was faster.
async fn counted_up(side: &Side) -> anyhow::Result<()> {
    loop {
        let mut dolly = side.must(get("dolly")).await?;
        let count: u32 = dolly["metadata"]["labels"]["count"].as_str().unwrap_or_default().parse()?;
        dolly["metadata"]["labels"]["count"] = (count + 1).to_string().into();
        let said = side.answer(&put("dolly", dolly)).await?;
        match said.code {
            200 => return Ok(()),
            409 => {}
            code => anyhow::bail!("{code}: {}", said.body),
        }
    }
}
