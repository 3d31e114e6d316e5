//! [`Side`]: sends the requests of a case for one of the two resources, and writes down what is answered, without what must differ: the
//! group, uids, versions and times.

use std::{collections::BTreeMap, sync::LazyLock};

use anyhow::Context;
use futures::StreamExt;
use http::{Method, Request, header};
use http_body_util::BodyExt;
use kit::{Look, Patience, eventually, host::or_error};
use kube::client::Body;
use regex::Regex;
use serde_json::{Map, Value, json};
use tokio::task::JoinHandle;

/// What stands for the group in requests, and in answers as they are written down.
pub(crate) const GROUP: &str = "GROUP";

/// The group of the view.
pub(crate) const OF_THE_VIEW: &str = "farm.example.com";

/// The group of the CRD.
pub(crate) const OF_THE_CRD: &str = "twin.example.com";

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

/// One of the two resources, in the namespace of a case.
pub(crate) struct Side {
    pub(crate) client: kube::Client,
    pub(crate) group: &'static str,
    pub(crate) namespace: String,
    /// Whether crowds are large.
    pub(crate) is_long: bool,
    said: Vec<Said>,
    names: Names,
}

/// A request, and what is answered.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) asked: String,
    pub(crate) code: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
}

impl Said {
    /// Whether the same was answered.
    pub(crate) fn is_as(&self, other: &Self) -> bool {
        (self.code, &self.headers, &self.body) == (other.code, &other.headers, &other.body)
    }
}

/// A request.
#[derive(Clone)]
pub(crate) struct Ask {
    method: Method,
    path: String,
    query: String,
    headers: Vec<(header::HeaderName, String)>,
    body: Option<String>,
}

/// A watch that is open.
pub(crate) struct Watch {
    asked: String,
    code: u16,
    headers: BTreeMap<String, String>,
    lines: tokio::sync::mpsc::UnboundedReceiver<Value>,
    reading: JoinHandle<()>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

/// The objects of the case's namespace.
pub(crate) fn list() -> Ask {
    Ask::new(Method::GET, "/apis/GROUP/v1alpha/namespaces/NAMESPACE/llamas")
}

/// The objects of all namespaces.
pub(crate) fn everywhere() -> Ask {
    Ask::new(Method::GET, "/apis/GROUP/v1alpha/llamas")
}

/// An object.
pub(crate) fn get(name: &str) -> Ask {
    list().below(name)
}

/// A create.
pub(crate) fn create(object: Value) -> Ask {
    list().with(Method::POST).body("application/json", object.to_string())
}

/// An update.
pub(crate) fn put(name: &str, object: Value) -> Ask {
    get(name).with(Method::PUT).body("application/json", object.to_string())
}

/// A merge patch.
pub(crate) fn merge(name: &str, patch: Value) -> Ask {
    patch_of(name, "application/merge-patch+json", patch.to_string())
}

/// A JSON patch.
pub(crate) fn json_patch(name: &str, patch: Value) -> Ask {
    patch_of(name, "application/json-patch+json", patch.to_string())
}

/// A patch of any form.
pub(crate) fn patch_of(name: &str, form: &str, patch: String) -> Ask {
    get(name).with(Method::PATCH).body(form, patch)
}

/// A delete with these options.
pub(crate) fn delete(name: &str, options: Value) -> Ask {
    get(name).with(Method::DELETE).options(options)
}

/// A delete of all that are chosen.
pub(crate) fn delete_all(options: Value) -> Ask {
    list().with(Method::DELETE).options(options)
}

/// Any request.
pub(crate) fn raw(method: Method, path: &str) -> Ask {
    Ask::new(method, path)
}

/// A Llama.
pub(crate) fn llama(name: &str) -> Value {
    json!({
        "apiVersion": "GROUP/v1alpha", "kind": "Llama", "metadata": {"name": name}, "spec": {"height": 1.5, "weight": 31.25},
    })
}

/// A Llama with further metadata.
pub(crate) fn llama_with(name: &str, metadata: &Value) -> Value {
    let mut llama = llama(name);
    for (key, value) in metadata.as_object().into_iter().flatten() {
        llama["metadata"][key] = value.clone();
    }
    llama
}

impl Ask {
    fn new(method: Method, path: &str) -> Self {
        Self { method, path: path.to_owned(), query: String::new(), headers: Vec::new(), body: None }
    }

    /// What is below this path.
    pub(crate) fn below(mut self, rest: &str) -> Self {
        self.path.push('/');
        self.path.push_str(rest);
        self
    }

    pub(crate) fn with(mut self, method: Method) -> Self {
        self.method = method;
        self
    }

    pub(crate) fn query(mut self, query: &str) -> Self {
        query.clone_into(&mut self.query);
        self
    }

    pub(crate) fn header(mut self, name: header::HeaderName, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(crate) fn accept(self, form: &str) -> Self {
        self.header(header::ACCEPT, form)
    }

    pub(crate) fn body(mut self, form: &str, body: String) -> Self {
        self.body = Some(body);
        self.header(header::CONTENT_TYPE, form)
    }

    /// In somebody's name.
    pub(crate) fn of(self, user: &str) -> Self {
        self.header(header::HeaderName::from_static("impersonate-user"), user)
    }

    fn options(self, mut options: Value) -> Self {
        if options.is_null() {
            return self;
        }
        if options.get("kind").is_none() {
            options["kind"] = "DeleteOptions".into();
            options["apiVersion"] = "v1".into();
        }
        self.body("application/json", options.to_string())
    }

    /// What a reader is told of it.
    fn words(&self) -> String {
        let query = if self.query.is_empty() { String::new() } else { format!("?{}", self.query) };
        let path = self.path.replace("/apis/GROUP/v1alpha/namespaces/NAMESPACE", "");
        let headers: Vec<String> =
            self.headers.iter().map(|(name, value)| format!(" {name}: {value}")).collect();
        let body = self.body.as_deref().unwrap_or_default();
        let body: String = body.chars().take(300).collect();
        format!("{} {path}{query}{} {body}", self.method, headers.concat()).trim_end().to_owned()
    }
}

impl Side {
    pub(crate) fn new(client: kube::Client, group: &'static str, namespace: String, is_long: bool) -> Self {
        Self { client, group, namespace, is_long, said: Vec::new(), names: Names::default() }
    }

    /// What was answered.
    pub(crate) fn said(self) -> Vec<Said> {
        self.said
    }

    fn filled(&self, text: &str) -> String {
        text.replace(GROUP, self.group).replace("NAMESPACE", &self.namespace)
    }

    fn request(&self, ask: &Ask) -> anyhow::Result<Request<Body>> {
        let mut uri = self.filled(&ask.path);
        if !ask.query.is_empty() {
            uri.push('?');
            uri.push_str(&self.filled(&ask.query));
        }
        let mut request = Request::builder().method(ask.method.clone()).uri(uri);
        for (name, value) in &ask.headers {
            request = request.header(name, value);
        }
        let body = ask.body.as_deref().map(|body| Body::from(self.filled(body).into_bytes()));
        Ok(request.body(body.unwrap_or_else(Body::empty))?)
    }

    /// Sends a request, and returns what is answered as it is. Nothing is written down.
    pub(crate) async fn answer(&self, ask: &Ask) -> anyhow::Result<Said> {
        let request = self.request(ask)?;
        let answered = async {
            let (head, body) = self.client.send(request).await?.into_parts();
            let body = body.collect().await?.to_bytes();
            let text = String::from_utf8_lossy(&body).into_owned();
            // The index of OpenAPI is JSON, and called text.
            let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
            anyhow::Ok(Said {
                asked: ask.words(),
                code: head.status.as_u16(),
                headers: of_interest(&head.headers),
                body,
            })
        };
        in_time(answered, || format!("{} is answered", ask.words()), || "nothing came".into()).await?
    }

    /// Sends a request, writes down what is answered, and returns the body as it is.
    pub(crate) async fn ask(&mut self, ask: Ask) -> anyhow::Result<Value> {
        let said = self.answer(&ask).await?;
        let body = said.body.clone();
        self.write_down(said);
        Ok(body)
    }

    /// Sends a request that is to be answered in YAML, and writes down what that says.
    pub(crate) async fn yaml(&mut self, ask: Ask) -> anyhow::Result<()> {
        let mut said = self.answer(&ask).await?;
        if let Value::String(text) = &said.body {
            said.body = serde_saphyr::from_str(text).with_context(|| format!("{}: {text}", said.asked))?;
        }
        self.write_down(said);
        Ok(())
    }

    /// Sends requests, one after the other.
    pub(crate) async fn asks(&mut self, asks: impl IntoIterator<Item = Ask>) -> anyhow::Result<()> {
        for ask in asks {
            self.ask(ask).await?;
        }
        Ok(())
    }

    /// Sends a request that must succeed, of which nothing is written down.
    pub(crate) async fn must(&self, ask: Ask) -> anyhow::Result<Value> {
        let said = self.answer(&ask).await?;
        anyhow::ensure!(said.code < 300, "{}: {} {}", said.asked, said.code, said.body);
        Ok(said.body)
    }

    /// Writes down something else that is to be the same.
    pub(crate) fn note(&mut self, about: &str, body: Value) {
        self.write_down(Said { asked: about.to_owned(), code: 0, headers: BTreeMap::new(), body });
    }

    fn write_down(&mut self, mut said: Said) {
        let namespace = self.namespace.clone();
        self.names.clean(self.group, &namespace, &mut said.body);
        for value in said.headers.values_mut() {
            *value = self.names.text(self.group, &namespace, value);
        }
        self.said.push(said);
    }

    /// Opens a watch.
    pub(crate) async fn watch(&self, ask: Ask) -> anyhow::Result<Watch> {
        let (head, body) = self.client.send(self.request(&ask)?).await?.into_parts();
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
        Ok(Watch {
            asked: ask.words(),
            code: head.status.as_u16(),
            headers: of_interest(&head.headers),
            lines,
            reading,
        })
    }

    /// Writes down so many events of a watch.
    pub(crate) async fn events(&mut self, watch: &mut Watch, count: usize) -> anyhow::Result<Vec<Value>> {
        let mut events = Vec::new();
        while events.len() < count {
            let what = || format!("{} shows {count} events", watch.asked);
            let next = in_time(watch.lines.recv(), what, || format!("{events:?}")).await?;
            let Some(next) = next else { break };
            events.push(next);
        }
        self.write_down(watch.said(&events));
        Ok(events)
    }

    /// So many events of a watch, each as its type and its object's name. Nothing is written down.
    pub(crate) async fn events_unordered(
        &self,
        watch: &mut Watch,
        count: usize,
    ) -> anyhow::Result<Vec<String>> {
        let mut events = Vec::new();
        while events.len() < count {
            let event = watch.next().await?.with_context(|| format!("the watch ends after {events:?}"))?;
            events.push(format!("{} {}", event["type"], event["object"]["metadata"]["name"]));
        }
        Ok(events)
    }

    /// Writes down what a watch shows until it ends.
    pub(crate) async fn events_to_the_end(&mut self, mut watch: Watch) -> anyhow::Result<Vec<Value>> {
        let mut events = Vec::new();
        let what = || format!("{} ends", watch.asked);
        while let Some(next) = in_time(watch.lines.recv(), what, || format!("{events:?}")).await? {
            events.push(next);
        }
        self.write_down(watch.said(&events));
        Ok(events)
    }

    /// Waits until a request is answered with this code.
    pub(crate) async fn until(&self, ask: &Ask, code: u16) -> anyhow::Result<()> {
        eventually(format!("{} is answered with {code}", ask.words()), async || {
            or_error(
                self.answer(ask).await.map(|said| {
                    Look::reached_if(said.code == code, || format!("{} {}", said.code, said.body))
                }),
            )
        })
        .await
    }
}

impl Watch {
    fn said(&self, events: &[Value]) -> Said {
        Said {
            asked: self.asked.clone(),
            code: self.code,
            headers: self.headers.clone(),
            body: events.into(),
        }
    }

    /// The next event, as it is.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Option<Value>> {
        let what = || format!("{} shows a further event", self.asked);
        in_time(self.lines.recv(), what, || "nothing came".into()).await
    }
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

/// A uid that no object has.
const SOMEBODYS: &str = "6f9619ff-8b86-4011-b42d-00c04fc964ff";

/// The API server says several causes of one refusal in any order.
fn in_order(status: &mut Map<String, Value>) {
    let Some(Value::Array(causes)) = status.get_mut("details").and_then(|details| details.get_mut("causes"))
    else {
        return;
    };
    if causes.len() > 1 {
        causes.sort_by_key(ToString::to_string);
        if let Some(Value::String(message)) = status.get_mut("message")
            && let Some(at) = message.find(": [")
        {
            message.truncate(at);
        }
    }
}

fn sort(list: &mut Value) {
    if let Some(items) = list.as_array_mut() {
        items.sort_by_key(ToString::to_string);
    }
}

/// What takes the place of what must differ. A uid is called after the object that has it.
#[derive(Default)]
pub(crate) struct Names {
    uids: BTreeMap<String, String>,
}

static UID: LazyLock<Regex> =
    LazyLock::new(|| regex("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"));
static VERSION: LazyLock<Regex> = LazyLock::new(|| regex(r"(?i)(version[^0-9]{0,40}?)\d{2,}( \(\d+\))?"));
static RANDOM: LazyLock<Regex> = LazyLock::new(|| regex(r"(random-)[a-z0-9]{5}\b"));
static AGE: LazyLock<Regex> = LazyLock::new(|| regex(r"^\d+[smhd](\d+[smhd])?$"));
static TIME: LazyLock<Regex> = LazyLock::new(|| regex(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ"));

#[allow(clippy::expect_used, reason = "they are constants")]
pub(crate) fn regex(text: &str) -> Regex {
    Regex::new(text).expect("a regular expression")
}

impl Names {
    pub(crate) fn text(&mut self, group: &str, namespace: &str, text: &str) -> String {
        let text = text.replace(group, GROUP).replace(namespace, "NAMESPACE");
        let text = RANDOM.replace_all(&text, "${1}XXXXX");
        let text = TIME.replace_all(&text, "<time>");
        let text = VERSION.replace_all(&text, "${1}<version>");
        let uids = &self.uids;
        let text = UID.replace_all(&text, |found: &regex::Captures<'_>| {
            let uid = found[0].to_owned();
            if uid == SOMEBODYS {
                return uid;
            }
            format!("<uid {}>", uids.get(&uid).map_or("of nobody", String::as_str))
        });
        text.into_owned()
    }

    fn clean(&mut self, group: &str, namespace: &str, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(group, namespace, text),
            Value::Array(items) => {
                for item in items {
                    self.clean(group, namespace, item);
                    if let Value::String(text) = item
                        && AGE.is_match(text)
                    {
                        "<age>".clone_into(text);
                    }
                }
            }
            Value::Object(fields) => self.fields(group, namespace, fields),
            _ => {}
        }
    }

    fn fields(&mut self, group: &str, namespace: &str, fields: &mut Map<String, Value>) {
        // Managed fields are not shown, which is said for all objects at once; and a view stores nothing in any version.
        fields.remove("managedFields");
        fields.remove("storageVersionHash");
        in_order(fields);
        // Only custom resources say in this way that a list is complete.
        if fields.get("continue").is_some_and(|token| token == "") {
            fields.remove("continue");
        }
        if let (Some(uid), Some(name)) = (fields.get("uid"), fields.get("name"))
            && let (Some(uid), Some(name)) = (uid.as_str(), name.as_str())
            && !self.uids.contains_key(uid)
        {
            let name = RANDOM.replace_all(name, "${1}XXXXX");
            let is_namesake = |known: &&String| known.split(' ').next() == Some(&name);
            let namesakes = self.uids.values().filter(is_namesake).count();
            self.uids.insert(uid.to_owned(), format!("{name} {namesakes}"));
        }
        for (key, value) in fields.iter_mut() {
            match (key.as_str(), &*value) {
                ("resourceVersion", Value::String(version)) if version.len() > 1 => {
                    *value = "<version>".into()
                }
                ("continue", Value::String(_)) => *value = "<continue>".into(),
                // Custom resources have an order of their own, and other resources that of the alphabet.
                ("verbs", Value::Array(_)) => sort(value),
                _ => self.clean(group, namespace, value),
            }
        }
    }
}
