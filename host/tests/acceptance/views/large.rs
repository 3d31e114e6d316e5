//! Forty objects as large as they may be, listed by ten people in each way there is, and a gateway that is held to what `deploy/` gives it.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use futures::future::{join_all, try_join_all};
use http::{Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use kit::{
    Look, Patience, eventually,
    group::{self, Group, peak_bytes},
};
use kube::{Client, Config, client::Body, config::AuthInfo};
use serde_json::{Map, Value, json};

use super::{Farm, Gateway, any_port, repository};
use crate::console::CONSOLE;

const NAMESPACE: &str = "large";

/// How many objects there are of each kind, and how many people list them.
const OBJECTS: usize = 40;
const PEOPLE: usize = 10;

/// As many as an object may have: with what the API server notes of each, it is little less than the 1.5 MiB that etcd takes.
const LABELS: usize = 14_364;

/// A way to be told of all the objects.
struct Way {
    name: &'static str,
    /// Of the console, or of the aggregated API.
    is_of_console: bool,
    path: &'static str,
    accept: &'static str,
    /// What is sent; nothing where it is a GET.
    body: Option<&'static str>,
    /// Whether the answer ends by itself.
    ends: bool,
    /// What it says when it has looked at all objects, if it does not name each.
    says: Option<&'static str>,
}

const OBJECT: &str = "application/json";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const METADATA: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
const EVENTS: &str = "text/event-stream";

const PLAN: &str = "/api/v1/reconcilers/darkroom/plan";

const fn aggregated(name: &'static str, path: &'static str, accept: &'static str) -> Way {
    Way { name, is_of_console: false, path, accept, body: None, ends: true, says: None }
}

const fn console(name: &'static str, path: &'static str, accept: &'static str) -> Way {
    Way { name, is_of_console: true, path, accept, body: None, ends: true, says: None }
}

const WAYS: &[Way] = &[
    aggregated("list", "/apis/farm.example.com/v1alpha/namespaces/large/llamas", OBJECT),
    aggregated("table", "/apis/farm.example.com/v1alpha/namespaces/large/llamas?includeObject=Object", TABLE),
    aggregated("metadata", "/apis/farm.example.com/v1alpha/llamas?labelSelector=many", METADATA),
    aggregated("pages", "/apis/farm.example.com/v1alpha/namespaces/large/llamas?limit=7", OBJECT),
    Way {
        ends: false,
        ..aggregated(
            "watch",
            "/apis/farm.example.com/v1alpha/namespaces/large/llamas?watch=true&resourceVersion=0",
            OBJECT,
        )
    },
    Way {
        ends: false,
        ..aggregated(
            "list by watching",
            "/apis/farm.example.com/v1alpha/namespaces/large/llamas?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
            OBJECT,
        )
    },
    console("documents", "/darkrooms?namespace=large", OBJECT),
    Way { ends: false, ..console("watch of documents", "/darkrooms?namespace=large&watch=true", EVENTS) },
    console(
        "rows",
        "/api/v1/objects/deployments.example.com/v1alpha1/darkrooms?namespace=large&fields=metadata.labels&limit=7",
        OBJECT,
    ),
    Way {
        ends: false,
        ..console(
            "stream",
            "/api/v1/stream?watch=deployments.example.com%2Fv1alpha1%2Fdarkrooms%3Bnamespace%3Dlarge%3Bwhole%3Dtrue",
            EVENTS,
        )
    },
    Way {
        body: Some(r#"{"root": "large/darkroom-00"}"#),
        says: Some(r#""total":1,"unchanged":1"#),
        ..console("plan of one root", PLAN, EVENTS)
    },
];

/// A gateway that is held to its limit, and the address of its console.
struct Held {
    gateway: Gateway,
    console: String,
}

/// Somebody who lists.
struct Person {
    name: String,
    /// As the API server's front proxy, which names the person.
    aggregated: Client,
    console: Client,
}

impl Farm<'_> {
    pub(super) async fn a_small_gateway_lives_through_large_lists(&self) -> anyhow::Result<()> {
        self.run(&format!("create namespace {NAMESPACE}"), None)?;
        self.run(&format!("apply --filename={}", super::in_deploy("samples/view-darkrooms.yaml")), None)?;
        let llama = json!({"apiVersion": "store.farm.example.com/v1", "kind": "LlamaRecord", "spec": {"weight": 1, "height": 1}});
        let text = std::fs::read_to_string(repository().join("deploy/samples/darkroom.yaml"))?;
        let mut darkroom: Value = serde_saphyr::from_str(&text)?;
        darkroom["metadata"] = json!({"annotations": {"pintle.dev/suspend": "true"}});
        for (kind, one) in [("llama", llama), ("darkroom", darkroom)] {
            self.create_forty(kind, &one)?;
        }
        let group = Group::make("gateway");
        let mut held = self.start_held(group.as_ref())?;
        let people = self.people_who_list(&held)?;
        let outcome = listed_in_each_way(&held, &people).await;
        group::judge(&mut held.gateway.server, group.as_ref(), outcome)?;
        drop(held);
        self.run(&format!("delete namespace {NAMESPACE} --timeout=180s"), None)?;
        self.run("delete clusterrolebinding large", None)?;
        self.run("delete view darkrooms", None).map(drop)
    }

    fn create_forty(&self, kind: &str, one: &Value) -> anyhow::Result<()> {
        let mut labels: Map<String, Value> =
            (0..LABELS).map(|at| (format!("l{at:0>20}"), format!("{at:0>30}").into())).collect();
        labels.insert("many".into(), "yes".into());
        for at in 0..OBJECTS {
            let mut object = one.clone();
            object["metadata"]["name"] = json!(format!("{kind}-{at:02}"));
            object["metadata"]["namespace"] = json!(NAMESPACE);
            object["metadata"]["labels"] = labels.clone().into();
            self.run("create --filename=-", Some(&object.to_string()))?;
        }
        Ok(())
    }

    fn start_held(&self, group: Option<&Group>) -> anyhow::Result<Held> {
        let log = self.plane.directory().join("held-gateway.log");
        let (by, limit) = Group::held(group)?;
        let flags = [CONSOLE, limit].concat();
        let mut gateway = Gateway::start_through(&by, any_port(), &self.kubeconfig, &log, &flags)?;
        let console = gateway.server.address("The console is served")?.to_string();
        Ok(Held { gateway, console })
    }

    /// Ten accounts that may do everything.
    fn people_who_list(&self, held: &Held) -> anyhow::Result<Vec<Person>> {
        self.run(
            "create clusterrolebinding large --clusterrole=cluster-admin --group=system:serviceaccounts:large",
            None,
        )?;
        let person = |at: usize| {
            self.run(&format!("create serviceaccount lister-{at} --namespace={NAMESPACE}"), None)?;
            let token = self.run(&format!("create token lister-{at} --namespace={NAMESPACE}"), None)?;
            let client = |url: String, auth: AuthInfo| {
                let mut config = Config::new(url.parse()?);
                // Its certificate is for the name of its Service.
                config.accept_invalid_certs = true;
                config.default_retry = false;
                config.read_timeout = Some(Patience::default().whole());
                config.auth_info = auth;
                anyhow::Ok(Client::try_from(config)?)
            };
            let pki = self.plane.directory().join("pki");
            let file = |name: &str| Some(pki.join(name).to_string_lossy().into_owned());
            let proxy = AuthInfo {
                client_certificate: file("front-proxy-client.crt"),
                client_key: file("front-proxy-client.key"),
                ..AuthInfo::default()
            };
            let owner = AuthInfo { token: Some(token.trim().to_owned().into()), ..AuthInfo::default() };
            Ok(Person {
                name: format!("system:serviceaccount:{NAMESPACE}:lister-{at}"),
                aggregated: client(format!("https://{}", held.gateway.address), proxy)?,
                console: client(format!("http://{}", held.console), owner)?,
            })
        };
        (0..PEOPLE).map(person).collect()
    }
}

/// Each way is gone by all ten at a time.
async fn listed_in_each_way(held: &Held, people: &[Person]) -> anyhow::Result<()> {
    for way in WAYS {
        let begun = Instant::now();
        let refusals = try_join_all(people.iter().map(|person| told(way, person)));
        let refusals = refusals.await.with_context(|| format!("{}: not all ten are told", way.name))?;
        println!(
            "        {}: {:.1} s for all ten, {} times there was no memory; the peak so far is {} MiB",
            way.name,
            begun.elapsed().as_secs_f32(),
            refusals.iter().sum::<u32>(),
            peak_bytes(held.gateway.server.id())? >> 20,
        );
    }
    slow_readers_hold_up_nobody(held, people).await
}

/// All ten ask for lists, through both doors, and do not read them. Others are told all the same.
async fn slow_readers_hold_up_nobody(held: &Held, people: &[Person]) -> anyhow::Result<()> {
    let begun = Instant::now();
    let (lists, rest) = WAYS.split_first().context("a way")?;
    let rows = rest.iter().find(|way| way.name == "rows").context("rows")?;
    let unread = people.iter().flat_map(|person| [(lists, person), (lists, person), (rows, person)]);
    let unread = join_all(unread.map(|(way, person)| async move { send(way, person, None).await })).await;
    let begin = unread.iter().flatten().filter(|response| response.status().is_success()).count();
    ensure!(begin > 0, "none of them was begun");
    let one = people.first().context("somebody")?;
    for way in [lists, rows] {
        told(way, one).await.with_context(|| format!("{}, beside slow readers", way.name))?;
    }
    println!(
        "        beside {begin} lists that nobody reads: {:.1} s; the peak so far is {} MiB",
        begun.elapsed().as_secs_f32(),
        peak_bytes(held.gateway.server.id())? >> 20
    );
    drop(unread);
    Ok(())
}

/// Asks until all objects were told of, page by page. Returns how often there was no memory for it.
async fn told(way: &Way, person: &Person) -> anyhow::Result<u32> {
    let (mut seen, mut refusals, mut next) = (BTreeSet::new(), 0, None);
    loop {
        let page = eventually(format!("{}: an answer comes to its end", way.name), async || {
            // What a part of an answer has counts only when the answer comes to its end.
            let mut here = BTreeSet::new();
            Ok(match ask(way, person, next.as_deref(), &mut here).await {
                Ok(Told::Page(more)) => Look::Reached((here, more)),
                Ok(Told::Later) => {
                    refusals += 1;
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    Look::NotYet(format!("{refusals} times there was no memory"))
                }
                // The views are not served yet.
                Ok(Told::Refused(code, text)) => Look::NotYet(format!("{code}: {text}")),
                // The answer was broken off.
                Err(error) => {
                    println!("        {}: {error:#}", way.name);
                    Look::NotYet(format!("{error:#}"))
                }
            })
        });
        let (here, more) = page.await?;
        seen.extend(here);
        next = more;
        if next.is_none() {
            break;
        }
    }
    ensure!(seen.len() == OBJECTS, "an answer that is well-formed has {} objects: {seen:?}", seen.len());
    Ok(refusals)
}

enum Told {
    /// All of a page, and what asks for the next.
    Page(Option<String>),
    /// There is no memory at present.
    Later,
    Refused(StatusCode, String),
}

async fn send(way: &Way, person: &Person, next: Option<&str>) -> anyhow::Result<Response<Body>> {
    let client = if way.is_of_console { &person.console } else { &person.aggregated };
    let more =
        next.map(|token| format!("{}continue={token}", if way.path.contains('?') { '&' } else { '?' }));
    let path = format!("{}{}", way.path, more.unwrap_or_default());
    let request = match way.body {
        Some(body) => Request::post(path)
            .header(header::CONTENT_TYPE, OBJECT)
            .body(Body::from(body.as_bytes().to_vec())),
        None => Request::get(path).body(Body::empty()),
    };
    let mut request = request?;
    request.headers_mut().insert(header::ACCEPT, way.accept.parse()?);
    if !way.is_of_console {
        request.headers_mut().insert("x-remote-user", person.name.parse()?);
        request
            .headers_mut()
            .insert("x-remote-group", format!("system:serviceaccounts:{NAMESPACE}").parse()?);
    }
    Ok(client.send(request).await?)
}

async fn ask(
    way: &Way,
    person: &Person,
    next: Option<&str>,
    seen: &mut BTreeSet<String>,
) -> anyhow::Result<Told> {
    let response = send(way, person, next).await?;
    let code = response.status();
    let mut body = response.into_body();
    let mut text = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        let from = text.len().saturating_sub(64);
        text.extend_from_slice(&data);
        see(text.get(from..).unwrap_or_default(), seen);
        if !way.ends && seen.len() == OBJECTS {
            return Ok(Told::Page(None));
        }
    }
    if code == StatusCode::TOO_MANY_REQUESTS {
        return Ok(Told::Later);
    }
    if !code.is_success() {
        return Ok(Told::Refused(code, String::from_utf8_lossy(&text).chars().take(500).collect()));
    }
    ensure!(way.ends, "the stream ended");
    if let Some(says) = way.says {
        let text = String::from_utf8_lossy(&text);
        if text.contains(r#""reason":"TooManyRequests""#) || text.contains(r#""reason":"NoMemory""#) {
            return Ok(Told::Later);
        }
        ensure!(text.contains(says), "it does not say {says}: {text}");
        seen.extend((0..OBJECTS).map(|at| at.to_string()));
    }
    Ok(Told::Page(next_page(&text)))
}

/// The names of objects in a part of an answer.
fn see(text: &[u8], seen: &mut BTreeSet<String>) {
    let text = String::from_utf8_lossy(text);
    for kind in ["llama-", "darkroom-"] {
        for (at, _) in text.match_indices(kind) {
            let name = text.get(at..at + kind.len() + 2);
            let number = name.and_then(|name| name.get(kind.len()..)?.parse::<usize>().ok());
            seen.extend(
                name.filter(|_| number.is_some_and(|number| number < OBJECTS)).map(ToOwned::to_owned),
            );
        }
    }
}

/// The token for the next page, of a list in Kubernetes' form and in the console's.
fn next_page(text: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(text);
    let (_, after) = text.rsplit_once("\"continue\":\"")?;
    after.split('"').next().filter(|token| !token.is_empty()).map(ToOwned::to_owned)
}
