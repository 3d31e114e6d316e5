//! Simulated gateways: they run in this process, can end at any point, and are asked as a server of HTTP asks them.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use kube::Client;
use pintle_engine::{Digest, Engine};
use pintle_gateway::{
    Host,
    answer::Gateway,
    metrics::Metrics,
    reply::{Reply, ReplyBody},
};
use pintle_kubernetes::Cluster;
use pintle_modules::{Budget, Loader, Report};
use pintle_runtime::clock::Random;
use serde_json::Value;
use tokio::sync::watch;

use super::{
    guests::{Called, Guests},
    script::Deed,
    world::{Evidence, World},
};
use crate::{
    life::Life,
    seam::{Seam, Seams, Sent},
    world::Operate,
};

/// The memory limit of a simulated gateway, in bytes.
const MEMORY_BYTES: u64 = 256 << 20;

/// The name of the one who asks.
pub(super) const USER: &str = "ann";

/// The gateways behind one address.
pub struct Gateways {
    engine: Engine,
    pub(super) guests: Arc<Guests>,
    /// Makes what lies between a gateway and the API server.
    upstream: Option<Seams>,
    /// Makes what lies between a gateway and its clients, and its guests.
    front: Option<Seams>,
    turn: AtomicUsize,
    chance: Mutex<Random>,
    pub(super) evidence: Mutex<Evidence>,
}

impl Gateways {
    /// Gateways with guests of which this is the digest of the second module.
    pub(super) fn new(
        engine: &Engine,
        other: Digest,
        seed: u64,
        (upstream, front): (Option<Seams>, Option<Seams>),
    ) -> Self {
        Self {
            engine: engine.clone(),
            guests: Arc::new(Guests::new(other)),
            upstream,
            front,
            turn: AtomicUsize::new(0),
            chance: Mutex::new(Random::new(seed ^ 0xdeed)),
            evidence: Mutex::default(),
        }
    }

    /// A number below this one.
    pub(super) fn below(&self, bound: u64) -> u64 {
        self.chance.lock().unwrap_or_else(PoisonError::into_inner).below(bound)
    }
}

/// A running gateway.
#[derive(Clone)]
pub(crate) struct Running {
    gateway: Arc<Gateway<Client>>,
    front: Option<Arc<dyn Seam>>,
}

/// The connection to a gateway broke.
#[derive(Clone, Copy, Debug)]
pub(super) struct Broke;

impl Operate for Gateways {
    type Process = Running;

    fn start(world: &World, life: &Arc<Life>) -> Running {
        let Self { engine, guests, upstream, front, .. } = &world.own;
        let connection = life.connect(&world.server, upstream.as_ref().map(|seams| seams()));
        let front = front.as_ref().map(|seams| seams());
        let metrics = Arc::new(Metrics::default());
        let budget = Budget::fixed(MEMORY_BYTES);
        let loader = Loader::new(
            Cluster::new(connection.clone()),
            engine.clone(),
            None,
            budget.clone(),
            life.spawner.clone(),
            Arc::clone(&metrics) as Arc<dyn Report>,
        );
        let host = Host {
            client: connection,
            loader,
            spawner: life.spawner.clone(),
            budget,
            metrics,
            identity: life.client.clone(),
            own: (pintle_api::NAMESPACE.into(), "pintle-gateway".into()),
            bundle: watch::channel(String::new()).1,
            guests: Arc::new(Called { guests: Arc::clone(guests), seam: front.clone() }),
        };
        let gateway = life.clock.during(|| host.start());
        Running { gateway, front }
    }

    fn waits_for(_: &Life, running: &Running) -> Option<&'static str> {
        running.gateway.waits_for()
    }

    async fn perform(world: &World, deed: Deed) {
        match deed {
            Deed::Close { forgets: true } => world.relist(),
            Deed::Close { forgets: false } => world.server.close_watches(None),
            Deed::Meddle(what, name) => world.meddle(what, name).await,
        }
    }
}

impl World {
    /// Sends a request to the gateway whose turn it is.
    ///
    /// # Errors
    /// When there is none, or it ends before it answers.
    pub(super) async fn forward(&self, mut request: Request) -> Result<Answer, Broke> {
        let turn = self.own.turn.fetch_add(1, Ordering::Relaxed);
        let (life, Running { gateway, front }) = {
            let processes = self.processes();
            let turn = turn.checked_rem(processes.len()).ok_or(Broke)?;
            processes.get(turn).cloned().ok_or(Broke)?
        };
        let mut sent = request.sent();
        if let Some(front) = &front {
            if let Some(pretended) = front.request(&mut sent) {
                return Ok(Answer { code: 200, warns: false, content: Content::Whole(pretended) });
            }
            (request.path, request.body) =
                (sent.path.clone(), Some(sent.body.clone()).filter(|body| !body.is_null()));
        }
        let is_watch = request.path.contains("watch=true");
        let request = request.into_http().ok_or(Broke)?;
        // It is a task of the gateway: it has its clock, and ends with it.
        let answer = life.spawner.spawn(async move { gateway.answer(request).await });
        let reply: Reply = answer.await.map_err(|_| Broke)?;
        let (mut code, warns) = (reply.status().as_u16(), reply.headers().contains_key("warning"));
        if is_watch && code == 200 {
            let events = Events { body: reply.into_body(), begun: Vec::new(), front, path: sent.path };
            return Ok(Answer { code, warns, content: Content::Events(events) });
        }
        let bytes = reply.into_body().collect().await.map_err(|_| Broke)?.to_bytes();
        let mut body = serde_json::from_slice(&bytes).unwrap_or_default();
        if let Some(front) = front {
            front.reply(&sent, &mut code, &mut body);
        }
        Ok(Answer { code, warns, content: Content::Whole(body) })
    }
}

/// A request of a client.
#[derive(Clone, Debug, Default)]
pub(super) struct Request {
    pub(super) method: &'static str,
    pub(super) path: String,
    pub(super) body: Option<Value>,
    pub(super) content_type: Option<&'static str>,
    pub(super) accept: Option<&'static str>,
    /// What the client calls itself. It is the field manager of what is written.
    pub(super) agent: String,
}

impl Request {
    pub(super) fn get(path: String) -> Self {
        Self { method: "GET", path, agent: "reader".into(), ..Self::default() }
    }

    /// Whether it only tries something out.
    pub(super) fn is_dry_run(&self) -> bool {
        self.path.contains("dryRun=")
    }

    fn sent(&self) -> Sent {
        Sent {
            method: self.method.into(),
            path: self.path.clone(),
            body: self.body.clone().unwrap_or_default(),
        }
    }

    fn into_http(self) -> Option<http::Request<Full<Bytes>>> {
        let body = self.body.map_or_else(Bytes::new, |body| body.to_string().into());
        let request = http::Request::builder()
            .method(self.method)
            .uri(self.path)
            .header("x-remote-user", USER)
            .header("accept", self.accept.unwrap_or("application/json"))
            .header("content-type", self.content_type.unwrap_or("application/json"))
            .header("user-agent", self.agent);
        request.body(Full::new(body)).ok()
    }
}

/// An answer.
pub(super) struct Answer {
    pub(super) code: u16,
    /// Whether the client is warned of something.
    pub(super) warns: bool,
    pub(super) content: Content,
}

/// What an answer has.
pub(super) enum Content {
    Whole(Value),
    Events(Events),
}

/// The events of a watch, as they come.
pub(super) struct Events {
    body: ReplyBody,
    /// What came of the next event so far.
    begun: Vec<u8>,
    front: Option<Arc<dyn Seam>>,
    path: String,
}

impl Events {
    /// The next event; none when the watch has ended.
    pub(super) async fn next(&mut self) -> Option<Value> {
        loop {
            while let Some(end) = self.begun.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.begun.drain(..=end).collect();
                let mut event = serde_json::from_slice(&line).unwrap_or_default();
                if self.front.as_ref().is_none_or(|front| front.event(&self.path, &mut event)) {
                    return Some(event);
                }
            }
            let frame = self.body.frame().await?.ok()?;
            if let Ok(bytes) = frame.into_data() {
                self.begun.extend_from_slice(&bytes);
            }
        }
    }
}
