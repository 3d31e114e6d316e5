//! Seeing before doing: what a module would change on every root, and what the guest of one root is asked and answers.
//!
//! Both are computed from what the caller may read. The caller needs the right to get the Reconciler, whose config they show.

use std::{sync::Arc, time::Duration};

use axum::response::{Response, sse::Event};
use http::{Method, StatusCode};
use pintle_core::plan::{Inspected, PlannedRoot, Summary};
use pintle_preview::{self as preview, InspectRequest, ModuleChoice, PlanRequest, PreviewError, Told};
use pintle_wit::{Kind, syntax};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::Instant};

use crate::{
    caller::Caller,
    discovery,
    endpoint::{self, Call, Endpoint, Shape, Takes, any_object, shape},
    objects::{self, of_object},
    problem::{Problem, Written},
    query::Form,
    sse::{self, Events, event},
    workshop::Workshop,
};

/// How many roots a plan tells of, and how many bytes about them. The rest is only counted.
const ROOTS_MAX: usize = 1000;
const BYTES_MAX: usize = 32 << 20;

/// How often a plan says how far it is, at most.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// How long a plan may take.
const PLAN_TIMEOUT: Duration = Duration::from_secs(600);

/// What a plan tells.
const EVENTS: &[(&str, Shape)] = &[
    ("progress", shape::<Progress>),
    ("root", shape::<PlannedRoot>),
    ("summary", shape::<Summary>),
    ("problem", shape::<Written<'static>>),
];

/// How far a plan is.
#[derive(Debug, Serialize, JsonSchema)]
struct Progress {
    /// How many roots were looked at.
    done: usize,
    /// How many there are.
    total: usize,
}

/// What to plan.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "PlanRequest")]
struct Wanted {
    /// The Module to judge; the one in force without it.
    module: Option<String>,
    /// The config that it is called with; the Reconciler's without it.
    config: Option<Value>,
    /// Only roots in this namespace.
    namespace: Option<String>,
    /// Only roots with these labels.
    label_selector: Option<String>,
    /// Only this root: NAME, or NAMESPACE/NAME.
    root: Option<String>,
    /// Whether the API server is asked what it would say to each apply.
    server: bool,
}

const MODULE: (&str, Form, &str) =
    ("module", Form::Text, "The Module that is asked; the one in force without it");

/// The endpoints of this file.
pub(crate) fn endpoints() -> Vec<Endpoint> {
    let planned = "What a module would change on every root, and nothing is written: events progress, root, summary and problem";
    let inspected = "What the guest of a root is asked and answers now, and what that would change";
    let judged = "What the guest would answer if the root were as it is here: the answer of the API server to a dry run, for instance. Nothing is written";
    let plan = Endpoint::new(Method::POST, "/api/v1/reconcilers/{name}/plan", "plan", planned, plan);
    let mut all = vec![plan.takes(Takes::Json(shape::<Wanted>)).streams(EVENTS)];
    all.extend(of_object("/{name}/inspect", ["inspect", "inspectClusterObject"], |path, id| {
        Endpoint::get(path, id, inspected, inspect).query(&[MODULE]).gives::<Inspected>()
    }));
    all.extend(of_object("/{name}/inspect", ["judge", "judgeClusterObject"], |path, id| {
        let endpoint = Endpoint::new(Method::POST, path, id, judged, judge);
        endpoint.query(&[MODULE]).takes(Takes::Json(any_object)).gives::<Inspected>()
    }));
    all
}

/// In whose name a preview reads: the caller, and for the bytes of Modules whoever the workshop names.
fn reads_as(caller: &Caller, workshop: &Workshop) -> preview::Caller {
    let user = caller.client();
    preview::Caller { modules: workshop.modules.clone().unwrap_or_else(|| user.clone()), user }
}

fn choice(module: Option<&str>) -> Result<Option<ModuleChoice>, Problem> {
    let module = module.filter(|name| !name.is_empty());
    if module.is_some_and(|name| !syntax::is_subdomain(name)) {
        return Err(Problem::bad_request("this is no name of a Module"));
    }
    Ok(module.map(|name| ModuleChoice::Named(name.into())))
}

fn problem(error: PreviewError) -> Problem {
    match error {
        PreviewError::NotFound(why) => Problem::not_found(why),
        PreviewError::Forbidden(why) => Problem::forbidden(why),
        PreviewError::Refused(failure) => Problem::of_failure(&failure),
        PreviewError::Busy(why) => Problem::busy(why, 10),
        PreviewError::Unavailable(why) => Problem::new(StatusCode::SERVICE_UNAVAILABLE, why),
    }
}

async fn inspect(call: Call) -> Result<Response, Problem> {
    inspected(&call, None).await
}

async fn judge(mut call: Call) -> Result<Response, Problem> {
    let proposed = call.json().await?;
    inspected(&call, Some(proposed)).await
}

async fn inspected(call: &Call, proposed: Option<Value>) -> Result<Response, Problem> {
    let place = objects::place(call)?;
    let module = choice(call.query.text("module"))?;
    let caller = call.caller()?;
    let served = discovery::of_resource(caller, &place.resource).await?;
    let workshop = call.app.shop.workshop()?;
    let Ok(_turn) = workshop.inspections.acquire().await else {
        return Err(Problem::busy("the server stops", 1));
    };
    let request = InspectRequest {
        kind: Kind::new(place.resource.api_version(), served.kind),
        namespace: place.namespace,
        name: place.name.unwrap_or_default(),
        module,
        proposed,
    };
    let inspected =
        workshop.preview.inspect(&reads_as(caller, &workshop), &request).await.map_err(problem)?;
    endpoint::json(StatusCode::OK, &inspected)
}

async fn plan(mut call: Call) -> Result<Response, Problem> {
    let reconciler = call.param("name").unwrap_or_default().to_owned();
    if !syntax::is_subdomain(&reconciler) {
        return Err(Problem::bad_request("this is no name of a Reconciler"));
    }
    let wanted: Wanted = call.json().await?;
    let request = PlanRequest {
        reconciler,
        module: choice(wanted.module.as_deref())?,
        config: wanted.config,
        namespace: wanted.namespace.filter(|namespace| !namespace.is_empty()),
        label_selector: wanted.label_selector.filter(|selector| !selector.is_empty()),
        root: wanted.root.filter(|root| !root.is_empty()),
        server: wanted.server,
    };
    let workshop = call.app.shop.workshop()?;
    let permit = Arc::clone(&workshop.plans).try_acquire_owned();
    let permit = permit.map_err(|_| Problem::busy("other plans are being made", 10))?;
    let caller = reads_as(call.caller()?, &workshop);
    let mut stopping = call.app.stopping.clone();
    Ok(sse::follow(|events| async move {
        let _permit = permit;
        let made = tokio::time::timeout(PLAN_TIMEOUT, make(&workshop, &caller, &request, &events));
        let planned = tokio::select! {
            made = made => made.unwrap_or_else(|_| Err(Problem::too_late("the plan took too long"))),
            Ok(_) = stopping.wait_for(|stops| *stops) => {
                Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the server stops"))
            }
        };
        Ok(match planned {
            Ok(summary) => event("summary", json!(summary)),
            Err(problem) => event("problem", problem.document()),
        })
    }))
}

/// Makes a plan, and tells of each root as soon as it is planned.
async fn make(
    workshop: &Workshop,
    caller: &preview::Caller,
    request: &PlanRequest,
    events: &Events,
) -> Result<Summary, Problem> {
    // What is told is bounded, so that it may wait without a bound.
    let (tell, mut said) = mpsc::unbounded_channel::<Event>();
    let mut telling = Telling { tell, roots: 0, bytes: 0, progressed: None, is_cut: false };
    let forward = async {
        while let Some(event) = said.recv().await {
            events.send(event).await.map_err(|_| Problem::too_late("nobody reads the plan"))?;
        }
        Ok::<_, Problem>(())
    };
    let plan = async {
        let mut tell = |told: Told| telling.tell(told);
        let planned = workshop.preview.plan(caller, request, &mut tell).await;
        let is_cut = telling.is_cut;
        // Nothing more is told: what waits is sent, and then the forwarding ends.
        drop(telling);
        let mut summary = planned.map_err(problem)?;
        summary.limits.truncated |= is_cut;
        Ok::<_, Problem>(summary)
    };
    let (summary, ()) = tokio::try_join!(plan, forward)?;
    Ok(summary)
}

/// What a plan tells, within its bounds.
struct Telling {
    tell: mpsc::UnboundedSender<Event>,
    roots: usize,
    bytes: usize,
    progressed: Option<Instant>,
    is_cut: bool,
}

impl Telling {
    fn tell(&mut self, told: Told) {
        let event = match told {
            Told::Progress { done, total } => {
                let is_due = self.progressed.is_none_or(|last| last.elapsed() >= PROGRESS_EVERY);
                if !is_due && done < total {
                    return;
                }
                self.progressed = Some(Instant::now());
                event("progress", json!(Progress { done, total }))
            }
            Told::Root(root) => {
                let root = json!(root).to_string();
                if self.roots >= ROOTS_MAX || self.bytes + root.len() > BYTES_MAX {
                    self.is_cut = true;
                    return;
                }
                self.roots += 1;
                self.bytes += root.len();
                event("root", root)
            }
        };
        // If nobody listens any more, the plan ends at its next step.
        let _ = self.tell.send(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        fake::{self, Asked, ask, refused, request},
        upload::tests::served,
    };

    fn reads_nothing(asked: &Asked) -> (u16, Value) {
        match asked.path.as_str() {
            "/apis/a.example/v1" => {
                (200, json!({"resources": [{"name": "rooms", "kind": "Room", "namespaced": true}]}))
            }
            path if path.contains("authentication.k8s.io") => fake::knows_ann(asked),
            path => refused(403, "Forbidden", &format!("ann may not read {path}")),
        }
    }

    #[tokio::test]
    async fn a_plan_is_made_as_the_caller_and_says_what_it_may_not_read() {
        let (app, log) = served(reads_nothing);
        let given =
            fake::answer(&app, request("POST", "/api/v1/reconcilers/rooms/plan", Some(json!({})))).await;
        assert_eq!(
            (given.status().as_u16(), &given.headers()["content-type"]),
            (200, &"text/event-stream".parse().unwrap())
        );
        let body = http_body_util::BodyExt::collect(given.into_body()).await.unwrap().to_bytes();
        let text = String::from_utf8(body.to_vec()).unwrap();
        let (_, data) = text.split_once("event: problem\ndata: ").unwrap_or_else(|| panic!("{text}"));
        let problem: Value = serde_json::from_str(data.trim()).unwrap();
        assert_eq!(problem["status"], 403, "{problem}");
        let log = log.lock().unwrap();
        assert!(log.iter().any(|asked| asked.path.contains("/reconcilers/rooms")), "{log:?}");
        assert!(log.iter().all(|asked| asked.header("authorization") == Some("Bearer ann-token")));
    }

    #[tokio::test]
    async fn two_plans_are_made_at_a_time() {
        let (app, _) = served(reads_nothing);
        let workshop = app.shop.workshop().unwrap();
        let plan = || request("POST", "/api/v1/reconcilers/rooms/plan", Some(json!({})));
        let both = workshop.plans.try_acquire_many(2).unwrap();
        let (code, problem) = ask(&app, plan()).await;
        assert_eq!((code, &problem["reason"]), (429, &json!("TooManyRequests")));
        drop(both);
        assert_eq!(ask(&app, plan()).await.0, 200);
    }

    #[tokio::test]
    async fn what_is_no_plan_is_refused() {
        let (app, _) = served(reads_nothing);
        for (path, body, status) in [
            ("/api/v1/reconcilers/..%2Fx/plan", json!({}), 400),
            ("/api/v1/reconcilers/x/plan", json!({"modul": "m"}), 422),
            ("/api/v1/reconcilers/x/plan", json!({"module": "a/b"}), 400),
            ("/api/v1/reconcilers/x/plan?dryRun=All", json!({}), 400),
        ] {
            assert_eq!(ask(&app, request("POST", path, Some(body))).await.0, status, "{path}");
        }
        let base = "/api/v1/objects/a.example/v1/rooms/namespaces/n/a/inspect";
        assert_eq!(ask(&app, request("GET", &format!("{base}?module=..%2Fx"), None)).await.0, 400);
        assert_eq!(ask(&app, request("GET", base, None)).await.0, 403);
        let judged = |body: Value| ask(&app, request("POST", base, Some(body)));
        assert_eq!(judged(json!({"spec": {}})).await.0, 403, "it is read as the caller");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_told_is_bounded() {
        let (tell, mut said) = mpsc::unbounded_channel();
        let mut telling = Telling { tell, roots: 0, bytes: 0, progressed: None, is_cut: false };
        for done in 0..=5 {
            telling.tell(Told::Progress { done, total: 5 });
        }
        let count =
            |said: &mut mpsc::UnboundedReceiver<Event>| std::iter::from_fn(|| said.try_recv().ok()).count();
        assert_eq!(count(&mut said), 2, "the first and the last");
        let root: PlannedRoot = serde_json::from_value(json!({
            "root": {"apiVersion": "a.example/v1", "kind": "Room", "name": "a", "uid": "u"},
            "verdict": "changed", "failure": null, "failsNow": null, "hasAnswer": true, "unknown": [], "standingRefusals": [], "children": [],
            "status": null, "note": null, "patches": [], "evictions": [],
        }))
        .unwrap();
        for _ in 0..ROOTS_MAX {
            telling.tell(Told::Root(Box::new(root.clone())));
        }
        assert!(!telling.is_cut);
        telling.tell(Told::Root(Box::new(root)));
        assert!(telling.is_cut && count(&mut said) == ROOTS_MAX);
    }
}
