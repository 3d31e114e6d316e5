//! [`Side`]: carries the steps of a case out for one of the two resources, and writes down what is answered, without what must differ: the
//! group, uids, versions and times.

use std::collections::BTreeMap;

use anyhow::{Context, bail, ensure};
use futures::StreamExt;
use http_body_util::BodyExt;
use kit::{Look, Patience, eventually, host::or_error};
use pintle_testbed::ControlPlane;
use serde_json::{Map, Value, json};
use tokio::{sync::mpsc::UnboundedReceiver, task::JoinHandle};

use super::{cases::Case, names::Names, request::first_word};

/// The headers that are written down.
const HEADERS: [&str; 8] = [
    "content-type",
    "warning",
    "allow",
    "retry-after",
    "cache-control",
    "expires",
    "etag",
    "content-encoding",
];

/// The most pages of a list that a case has.
const PAGES_MAX: usize = 100;

/// One of the two resources, in the namespace of a case.
pub(crate) struct Side<'a> {
    pub(crate) plane: &'a ControlPlane,
    client: kube::Client,
    pub(crate) group: &'static str,
    pub(crate) namespace: String,
    /// Whether crowds are large.
    pub(crate) is_long: bool,
    pub(crate) said: Vec<Said>,
    pub(crate) names: Names,
    /// Bodies of answers.
    kept: BTreeMap<&'static str, Value>,
    watches: BTreeMap<&'static str, Watch>,
}

/// A request, and what is answered.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) asked: String,
    /// Mostly a code, headers and a body.
    pub(crate) answer: Value,
}

impl Said {
    pub(crate) fn code(&self) -> u64 {
        self.answer["code"].as_u64().unwrap_or_default()
    }

    pub(crate) fn body(&self) -> &Value {
        &self.answer["body"]
    }
}

/// A watch that is open.
pub(crate) struct Watch {
    /// How it begins.
    said: Said,
    lines: UnboundedReceiver<Value>,
    reading: JoinHandle<()>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

impl<'a> Side<'a> {
    pub(crate) fn new(
        plane: &'a ControlPlane,
        client: kube::Client,
        group: &'static str,
        namespace: String,
        is_long: bool,
    ) -> Self {
        let names = Names::new(group, namespace.clone());
        let (said, kept, watches) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        Self { plane, client, group, namespace, is_long, said, names, kept, watches }
    }

    /// Carries the steps of a case out.
    pub(crate) async fn carry_out(&mut self, case: &Case) -> anyhow::Result<()> {
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace, "labels": {"beside": "yes"}},
        });
        self.must(&format!("POST /api/v1/namespaces {namespace}")).await?;
        for &step in &case.steps {
            self.step(step).await.context(step)?;
        }
        Ok(())
    }

    async fn step(&mut self, step: &'static str) -> anyhow::Result<()> {
        let (word, rest) = first_word(step);
        if let Some(step) = rest.strip_prefix("= ") {
            return self.keep(word, step).await;
        }
        match word {
            "until" => self.until(rest).await,
            "events" | "names" | "rising" | "initial" | "end" => self.watched(step).await,
            "same" => self.same(rest),
            "pages" => self.pages(rest).await,
            "kubectl" => self.kubectl(step).await,
            "crowd" => self.crowd(rest).await,
            "race" => self.race(rest).await,
            "counters" => self.counters().await,
            "watchers" => self.watchers().await,
            "discovery" => self.discovery().await,
            "schema" => self.schema().await,
            "hashes" => self.hashes().await,
            _ => self.ask(step).await.map(drop),
        }
    }

    async fn keep(&mut self, name: &'static str, step: &str) -> anyhow::Result<()> {
        match step.strip_prefix("watch ") {
            Some(target) => {
                let watch = self.watch(target).await?;
                self.watches.insert(name, watch);
            }
            None => {
                let body = self.ask(step).await?;
                self.kept.insert(name, body);
            }
        }
        Ok(())
    }

    /// What was kept under a name.
    pub(crate) fn kept(&self, name: &str) -> anyhow::Result<&Value> {
        self.kept.get(name).with_context(|| format!("nothing is kept as {name}"))
    }

    /// Sends the request of a step, writes down what is to be compared, and returns the body as it is.
    async fn ask(&mut self, step: &str) -> anyhow::Result<Value> {
        if let Some(request) = step.strip_prefix("must ") {
            return self.must(request).await;
        }
        let (request, fields) = step.split_once(" | ").unwrap_or((step, ""));
        let said = self.answer(request).await?;
        let body = said.body().clone();
        if fields.is_empty() {
            self.write_down(said);
        } else {
            let field = |pointer: &str| said.answer.pointer(pointer).cloned().unwrap_or_default();
            let fields: Map<String, Value> =
                fields.split(' ').map(|pointer| (pointer.to_owned(), field(pointer))).collect();
            self.note(request, fields.into());
        }
        Ok(body)
    }

    /// Sends a request that must succeed, of which nothing is written down.
    pub(crate) async fn must(&self, request: &str) -> anyhow::Result<Value> {
        let said = self.answer(request).await?;
        ensure!(said.code() < 300, "{}: {}", said.asked, said.answer);
        Ok(said.body().clone())
    }

    /// Sends a request, and returns what is answered as it is. Nothing is written down.
    pub(crate) async fn answer(&self, request: &str) -> anyhow::Result<Said> {
        let sent = self.request(request)?;
        let answered = async {
            let (head, body) = self.client.send(sent).await?.into_parts();
            let body = body.collect().await?.to_bytes();
            let text = String::from_utf8_lossy(&body).into_owned();
            let headers = of_interest(&head.headers);
            let is_yaml = headers.get("content-type").is_some_and(|form| form.contains("yaml"));
            // The index of OpenAPI is JSON, and called text.
            let body: Value = match serde_json::from_str(&text) {
                Ok(body) => body,
                Err(_) if is_yaml => serde_saphyr::from_str(&text).with_context(|| text.clone())?,
                Err(_) => text.into(),
            };
            anyhow::Ok(said(request, head.status, headers, body))
        };
        in_time(answered, || format!("{request} is answered"), || "nothing came".into()).await?
    }

    /// Writes down something else that is to be the same.
    pub(crate) fn note(&mut self, about: &str, answer: Value) {
        self.write_down(Said { asked: about.to_owned(), answer });
    }

    fn write_down(&mut self, mut said: Said) {
        self.names.clean(&mut said.answer);
        self.said.push(said);
    }

    /// Waits until a request is answered in this way: `CODE REQUEST` or `POINTER VALUE REQUEST`.
    async fn until(&self, step: &str) -> anyhow::Result<()> {
        let (pointer, rest) = if step.starts_with('/') { first_word(step) } else { ("/code", step) };
        let (value, request) = first_word(rest);
        let value: Value = serde_json::from_str(value)?;
        eventually(step, async || {
            or_error(self.answer(request).await.map(|said| {
                Look::reached_if(said.answer.pointer(pointer) == Some(&value), || said.answer.to_string())
            }))
        })
        .await
    }

    /// Whether marks stand for the same.
    fn same(&mut self, marks: &str) -> anyhow::Result<()> {
        let meanings = marks.split(' ').map(|mark| self.meaning(mark)).collect::<anyhow::Result<Vec<_>>>()?;
        let is_same = meanings.iter().all(|meaning| *meaning == meanings[0]);
        self.note(marks, is_same.into());
        Ok(())
    }

    /// Reads page after page of a list with these options.
    async fn pages(&mut self, query: &str) -> anyhow::Result<()> {
        let mut page = self.ask(&format!("GET .?{query}")).await?;
        // The version stands in the token.
        let rest: Vec<&str> = query.split('&').filter(|pair| !pair.starts_with("resourceVersion")).collect();
        for _ in 0..PAGES_MAX {
            let token = page["metadata"]["continue"].as_str().unwrap_or_default();
            if token.is_empty() {
                return Ok(());
            }
            page = self.ask(&format!("GET .?{}&continue={token}", rest.join("&"))).await?;
        }
        bail!("a list of more than {PAGES_MAX} pages")
    }

    /// Opens a watch.
    pub(crate) async fn watch(&self, target: &str) -> anyhow::Result<Watch> {
        let request = format!("GET {target}");
        let (head, body) = self.client.send(self.request(&request)?).await?.into_parts();
        let (found, lines) = tokio::sync::mpsc::unbounded_channel();
        let reading = tokio::spawn(async move {
            let mut body = body.into_data_stream();
            let mut rest = Vec::new();
            while let Some(Ok(part)) = body.next().await {
                rest.extend_from_slice(&part);
                while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = rest.drain(..=end).collect();
                    let _ = found.send(serde_json::from_slice(&line).unwrap_or(Value::Null));
                }
            }
            if !rest.is_empty() {
                let _ = found.send(serde_json::from_slice(&rest).unwrap_or(Value::Null));
            }
        });
        let said = said(&request, head.status, of_interest(&head.headers), Value::Null);
        Ok(Watch { said, lines, reading })
    }

    /// Writes down what a watch shows: `events WATCH COUNT` as they are, `names WATCH COUNT` their types and names, which come in any order,
    /// `rising WATCH COUNT` whether their versions rise, `initial WATCH` the names up to the bookmark and that, and `end WATCH` all events
    /// until it ends.
    async fn watched(&mut self, step: &str) -> anyhow::Result<()> {
        let (what, rest) = first_word(step);
        let (name, count) = first_word(rest);
        let watch = self.watches.get_mut(name).with_context(|| format!("there is no watch {name}"))?;
        let mut events = match what {
            "end" => watch.rest().await?,
            "initial" => {
                watch.until(|events| events.last().is_some_and(|event| event["type"] == "BOOKMARK")).await?
            }
            _ => {
                let count: usize = count.parse()?;
                watch.until(|events| events.len() == count).await?
            }
        };
        match what {
            "names" => self.note(step, names_of(&events)),
            "rising" => {
                let versions = events.iter().map(|event| version_of(&event["object"]).parse::<u64>());
                let versions = versions.collect::<Result<Vec<_>, _>>()?;
                self.note(step, versions.is_sorted_by(|one, next| one < next).into());
            }
            "initial" => {
                let bookmark = events.pop();
                self.note(step, json!({"names": names_of(&events), "bookmark": bookmark}));
            }
            _ => {
                let mut said = watch.said.clone();
                said.answer["body"] = events.into();
                self.write_down(said);
            }
        }
        Ok(())
    }
}

impl Watch {
    /// The next events, until there are enough of them.
    pub(crate) async fn until(&mut self, is_enough: impl Fn(&[Value]) -> bool) -> anyhow::Result<Vec<Value>> {
        let mut events: Vec<Value> = Vec::new();
        while !is_enough(&events) {
            let Some(event) = self.next().await? else { bail!("the watch ends after {events:?}") };
            events.push(event);
        }
        Ok(events)
    }

    /// All events until it ends.
    async fn rest(&mut self) -> anyhow::Result<Vec<Value>> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await? {
            events.push(event);
        }
        Ok(events)
    }

    async fn next(&mut self) -> anyhow::Result<Option<Value>> {
        let what = || format!("{} shows a further event, or ends", self.said.asked);
        in_time(self.lines.recv(), what, || "nothing came".into()).await
    }
}

/// The version of an object or a list.
pub(crate) fn version_of(object: &Value) -> &str {
    object["metadata"]["resourceVersion"].as_str().unwrap_or_default()
}

/// The types of events and the names of their objects, in order.
fn names_of(events: &[Value]) -> Value {
    let name = |event: &Value| format!("{} {}", event["type"], event["object"]["metadata"]["name"]);
    let mut names: Vec<String> = events.iter().map(name).collect();
    names.sort();
    names.into()
}

fn said(asked: &str, code: http::StatusCode, headers: BTreeMap<String, String>, body: Value) -> Said {
    let answer = json!({"code": code.as_u16(), "headers": headers, "body": body});
    Said { asked: asked.to_owned(), answer }
}

/// What comes of this, unless it takes too long. The texts say what is waited for, and what there is instead.
async fn in_time<T>(
    coming: impl Future<Output = T>,
    what: impl FnOnce() -> String,
    state: impl FnOnce() -> String,
) -> anyhow::Result<T> {
    let patience = Patience::default();
    let came = tokio::time::timeout(patience.whole(), coming).await;
    came.map_err(|_| patience.lost(&what(), &state()))
}

fn of_interest(headers: &http::HeaderMap) -> BTreeMap<String, String> {
    let values = |name: &&str| -> Option<(String, String)> {
        let mut values: Vec<String> = headers
            .get_all(*name)
            .iter()
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
            .collect();
        // The API server adds its own to what an aggregated API says.
        values.dedup();
        (!values.is_empty()).then(|| ((*name).to_owned(), values.join(" | ")))
    };
    HEADERS.iter().filter_map(values).collect()
}
