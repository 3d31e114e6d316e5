//! Steps that are more than requests, one after the other.

use std::collections::BTreeSet;

use anyhow::bail;
use futures::future::try_join_all;
use serde_json::{Value, json};

use super::{
    request::first_word,
    side::{Said, Side, version_of},
};

/// In this form, discovery is of all groups at once.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

impl Side<'_> {
    /// `CLIENTS TIMES REQUEST`: so many clients send a request so often each, at once, and all must succeed. `CLIENT` and `NUMBER` in it are
    /// their numbers. `5..50` times are 50 where crowds are large.
    pub(crate) async fn crowd(&self, step: &str) -> anyhow::Result<()> {
        let (clients, rest) = first_word(step);
        let (times, request) = first_word(rest);
        let (few, many) = times.split_once("..").unwrap_or((times, times));
        let times = if self.is_long { many } else { few };
        let (clients, times) = (clients.parse::<u32>()?, times.parse::<u32>()?);
        let sending = (1..=clients).map(|client| async move {
            let request = request.replace("CLIENT", &client.to_string());
            for number in 0..times {
                self.must(&request.replace("NUMBER", &number.to_string())).await?;
            }
            anyhow::Ok(())
        });
        try_join_all(sending).await.map(drop)
    }

    /// `COUNT REQUEST`: with which codes the request is answered that so many send at once, and how many of them created something.
    pub(crate) async fn race(&mut self, step: &str) -> anyhow::Result<()> {
        let (count, request) = first_word(step);
        let side = &*self;
        let answers = try_join_all((0..count.parse::<u32>()?).map(|_| side.answer(request))).await?;
        let codes: BTreeSet<u64> = answers.iter().map(Said::code).collect();
        let created = answers.iter().filter(|said| said.code() == 201).count();
        self.note(request, json!({"codes": codes, "created": created}));
        Ok(())
    }

    /// Six clients count a label of Dolly up, five times each.
    pub(crate) async fn counters(&self) -> anyhow::Result<()> {
        let counting = (0..6).map(|_| async move {
            for _ in 0..5 {
                self.count_up().await?;
            }
            anyhow::Ok(())
        });
        try_join_all(counting).await.map(drop)
    }

    /// As a controller would: again from the start when somebody else was faster.
    async fn count_up(&self) -> anyhow::Result<()> {
        loop {
            let mut dolly = self.must("GET dolly").await?;
            let count: u32 = dolly["metadata"]["labels"]["count"].as_str().unwrap_or_default().parse()?;
            dolly["metadata"]["labels"]["count"] = (count + 1).to_string().into();
            let said = self.answer(&format!("PUT dolly {dolly}")).await?;
            match said.code() {
                200 => return Ok(()),
                409 => {}
                code => bail!("{code}: {}", said.body()),
            }
        }
    }

    /// Whether all who watch Dolly see the same, and what that is.
    pub(crate) async fn watchers(&mut self) -> anyhow::Result<()> {
        let (watchers, changes) = if self.is_long { (100, 60) } else { (12, 20) };
        let list = self.must("GET .").await?;
        let mut watches = Vec::new();
        for _ in 0..watchers {
            watches.push(self.watch(&format!(".?watch=1&resourceVersion={}", version_of(&list))).await?);
        }
        self.must("create dolly").await?;
        for weight in 1..changes {
            self.must(&format!("PATCH dolly merge {}", json!({"spec": {"weight": weight}}))).await?;
        }
        let mut seen: Vec<Vec<Value>> = Vec::new();
        for watch in &mut watches {
            let events = watch.until(|events| events.len() == changes).await?;
            let of = |event: &Value| {
                let object = &event["object"];
                json!([event["type"], version_of(object), object["spec"]])
            };
            seen.push(events.iter().map(of).collect());
        }
        let is_same = seen.iter().all(|events| *events == seen[0]);
        let weights: Vec<&Value> = seen[0].iter().map(|event| &event[2]["weight"]).collect();
        self.note("watchers", json!({"all see the same": is_same, "weights": weights}));
        Ok(())
    }

    /// What each form of discovery says of the resource.
    pub(crate) async fn discovery(&mut self) -> anyhow::Result<()> {
        for path in ["/apis/GROUP", "/apis/GROUP/v1alpha"] {
            let mut found = self.must(&format!("GET {path}")).await?;
            let llamas = only(&mut found["resources"], "/name", "llamas");
            let described =
                json!([found["kind"], found["name"], found["groupVersion"], found["versions"], llamas]);
            self.note(path, described);
        }
        let mut aggregated = self.must(&format!("GET /apis (accept: {AGGREGATED})")).await?;
        let mut groups = only(&mut aggregated["items"], "/metadata/name", self.group);
        for version in groups.iter_mut().flat_map(|group| group["versions"].as_array_mut()).flatten() {
            version["resources"] = only(&mut version["resources"], "/resource", "llamas").into();
        }
        self.note("aggregated", groups.into());
        let mut plain = self.must("GET /apis").await?;
        let groups = only(&mut plain["groups"], "/name", self.group);
        self.note("plain", groups.into());
        Ok(())
    }

    /// What OpenAPI says of the resource.
    pub(crate) async fn schema(&mut self) -> anyhow::Result<()> {
        let document = self.must("GET /openapi/v3/apis/GROUP/v1alpha").await?;
        let paths = document["paths"].as_object().into_iter().flatten().map(|(path, _)| path);
        let paths: Vec<&String> = paths.filter(|path| path.contains("/llamas")).collect();
        self.note("paths", json!(paths));
        let mut schemas = document["components"]["schemas"].as_object().into_iter().flatten();
        let llama = schemas.find(|(name, _)| name.ends_with(".Llama"));
        self.note("schema", json!(llama.map(|(_, schema)| &schema["properties"]["spec"])));
        Ok(())
    }

    /// Whether clients may keep OpenAPI, by its hash, without one, and by another one.
    pub(crate) async fn hashes(&mut self) -> anyhow::Result<()> {
        let index = self.must("GET /openapi/v3").await?;
        let url = &index["paths"][format!("apis/{}/v1alpha", self.group)]["serverRelativeURL"];
        let url = url.as_str().unwrap_or_default();
        let (path, _) = url.split_once('?').unwrap_or((url, ""));
        let other = format!("{path}?hash=ABC");
        for (about, url) in [("by hash", url), ("without", path), ("of another hash", other.as_str())] {
            let said = self.answer(&format!("GET {url}")).await?;
            let header = |name: &str| said.answer["headers"][name].as_str().unwrap_or_default();
            let is_kept = header("cache-control").contains("immutable");
            let mut answer = json!({"code": said.code(), "kept": is_kept});
            if about != "of another hash" {
                answer["expires"] = (!header("expires").is_empty()).into();
            }
            if about == "by hash" {
                answer["etag"] = (!header("etag").is_empty()).into();
            }
            self.note(about, answer);
        }
        Ok(())
    }
}

/// Those items of a list that have this text at this pointer.
fn only(list: &mut Value, pointer: &str, text: &str) -> Vec<Value> {
    let items = list.as_array_mut().map(std::mem::take).unwrap_or_default();
    items.into_iter().filter(|item| item.pointer(pointer).is_some_and(|found| found == text)).collect()
}
