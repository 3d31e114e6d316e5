//! Simulated gateways: they run in this process, can end at any point, and are asked as a server of HTTP asks them.

use std::{
    collections::VecDeque,
    net::Ipv4Addr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use jiff::Timestamp;
use kube::Client;
use pintle_engine::Engine;
use pintle_gateway::{
    Host,
    answer::Gateway,
    identity::Peer,
    metrics::Metrics,
    reply::{Reply, ReplyBody},
    show::CallViews,
};
use pintle_kubernetes::Cluster;
use pintle_modules::{Budget, Loader, Report};
use pintle_runtime::{Spawner, clock};
use pintle_simulator::ApiServer;
use serde_json::Value;
use tokio::sync::watch;

use super::guests::Guests;
use crate::{
    life::{Life, connected},
    seam::{Seam, Seams, Sent},
};

/// The memory limit of a simulated gateway, in bytes.
const MEMORY_BYTES: u64 = 256 << 20;

/// The token of the one who asks. The API server knows whose it is.
pub(super) const TOKEN: &str = "token-of-ann";

/// The name of the one who asks.
pub(super) const USER: &str = "ann";

/// What gateways are started with.
pub(super) struct Setup {
    pub(super) server: ApiServer,
    pub(super) engine: Engine,
    pub(super) seed: u64,
    pub(super) guests: Arc<Guests>,
    /// Makes what lies between a gateway and the API server.
    pub(super) upstream: Option<Seams>,
    /// Makes what lies between a gateway and its clients.
    pub(super) front: Option<Seams>,
}

/// The gateways behind one address.
pub struct Gateways {
    setup: Setup,
    running: Mutex<Vec<Arc<Running>>>,
    starts: AtomicU32,
    turn: AtomicUsize,
}

/// A running gateway.
pub(super) struct Running {
    /// The name of its connection: `gateway-` and the number of its start.
    pub(super) client: String,
    pub(super) life: Arc<Life>,
    spawner: Spawner,
    gateway: Arc<Gateway<Client>>,
    front: Option<Arc<dyn Seam>>,
}

/// The connection to a gateway broke.
#[derive(Clone, Copy, Debug)]
pub(super) struct Broke;

impl Gateways {
    pub(super) fn new(setup: Setup) -> Self {
        Self { setup, running: Mutex::default(), starts: AtomicU32::new(0), turn: AtomicUsize::new(0) }
    }

    fn running(&self) -> MutexGuard<'_, Vec<Arc<Running>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts one more.
    pub(super) fn start(&self, now: Timestamp) -> Arc<Running> {
        let Setup { server, engine, seed, guests, upstream, front } = &self.setup;
        let number = self.starts.fetch_add(1, Ordering::Relaxed) + 1;
        let client = format!("gateway-{number}");
        let clock = Arc::new(clock::Virtual::new(now, seed.wrapping_mul(31).wrapping_add(number.into())));
        let life = Arc::new(Life::new(Arc::clone(&clock)));
        let spawner = Spawner::simulated(Arc::clone(&clock));
        let connection = connected(server, &client, &life, upstream.as_ref().map(|seams| seams()));
        let metrics = Arc::new(Metrics::default());
        let budget = Budget::fixed(MEMORY_BYTES);
        let loader = Loader::new(
            Cluster::new(connection.clone()),
            engine.clone(),
            None,
            budget.clone(),
            spawner.clone(),
            Arc::clone(&metrics) as Arc<dyn Report>,
        );
        let host = Host {
            client: connection,
            loader,
            spawner: spawner.clone(),
            budget,
            metrics,
            identity: client.clone(),
            own: (pintle_api::NAMESPACE.into(), "pintle-gateway".into()),
            bundle: watch::channel(String::new()).1,
            carried: watch::Sender::new(None),
            guests: Arc::clone(guests) as Arc<dyn CallViews>,
        };
        let gateway = clock.during(|| host.start());
        let front = front.as_ref().map(|seams| seams());
        let started = Arc::new(Running { client, life, spawner, gateway, front });
        self.running().push(Arc::clone(&started));
        started
    }

    /// So many of the next calls of `show` meet their deadline.
    pub(super) fn be_late(&self, calls: u32) {
        self.setup.guests.be_late(calls);
    }

    /// How many run.
    pub(super) fn count(&self) -> usize {
        self.running().len()
    }

    /// Ends one where it is, as a crash does.
    pub(super) fn crash(&self, client: &str) {
        let ended: Vec<_> = self.running().extract_if(.., |running| running.client == client).collect();
        ended.iter().for_each(|running| running.kill());
    }

    /// Ends all of them.
    pub(super) fn kill(&self) {
        let ended: Vec<_> = self.running().drain(..).collect();
        ended.iter().for_each(|running| running.kill());
    }

    /// The one whose turn it is.
    fn next(&self) -> Option<Arc<Running>> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let running = self.running();
        running.get(turn.checked_rem(running.len())?).cloned()
    }

    /// Sends a request to one of them.
    ///
    /// # Errors
    /// When there is none, or it ends before it answers.
    pub(super) async fn send(&self, mut request: Request) -> Result<Answer, Broke> {
        let running = self.next().ok_or(Broke)?;
        let mut sent = request.sent();
        if let Some(front) = &running.front {
            if let Some(pretended) = front.request(&mut sent) {
                return Ok(Answer { code: 200, warns: false, content: Content::Whole(pretended) });
            }
            (request.path, request.body) =
                (sent.path.clone(), Some(sent.body.clone()).filter(|body| !body.is_null()));
        }
        let is_watch = request.path.contains("watch=true");
        let reply = running.ask(request.into_http().ok_or(Broke)?).await?;
        let (mut code, warns) = (reply.status().as_u16(), reply.headers().contains_key("warning"));
        let front = running.front.clone();
        if is_watch && code == 200 {
            let content = Content::Events(Events {
                body: reply.into_body(),
                lines: Lines::default(),
                front,
                path: sent.path,
            });
            return Ok(Answer { code, warns, content });
        }
        let bytes = reply.into_body().collect().await.map_err(|_| Broke)?.to_bytes();
        let mut body = serde_json::from_slice(&bytes).unwrap_or_default();
        if let Some(front) = front {
            front.reply(&sent, &mut code, &mut body);
        }
        Ok(Answer { code, warns, content: Content::Whole(body) })
    }
}

impl Running {
    async fn ask(&self, request: http::Request<Full<Bytes>>) -> Result<Reply, Broke> {
        let (gateway, client) = (Arc::clone(&self.gateway), Peer::at(Ipv4Addr::LOCALHOST.into()));
        // It is a task of the gateway: it has its clock, and ends with it.
        let answer = self.spawner.spawn(async move { gateway.answer(&client, request).await });
        answer.await.map_err(|_| Broke)
    }

    fn kill(&self) {
        self.life.end();
        self.spawner.end_all();
    }

    /// What is missing until it can answer.
    pub(super) fn waits_for(&self) -> Option<&'static str> {
        self.gateway.waits_for()
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
            .header("authorization", format!("Bearer {TOKEN}"))
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
    lines: Lines,
    front: Option<Arc<dyn Seam>>,
    path: String,
}

impl Events {
    /// The next event; none when the watch has ended.
    pub(super) async fn next(&mut self) -> Option<Value> {
        loop {
            while let Some(line) = self.lines.next() {
                let mut event = serde_json::from_slice(&line).unwrap_or_default();
                if self.front.as_ref().is_none_or(|front| front.event(&self.path, &mut event)) {
                    return Some(event);
                }
            }
            let frame = self.body.frame().await?.ok()?;
            if let Ok(bytes) = frame.into_data() {
                self.lines.push(&bytes);
            }
        }
    }
}

/// Bytes that become lines.
#[derive(Default)]
struct Lines(VecDeque<u8>);

impl Lines {
    fn push(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }

    fn next(&mut self) -> Option<Vec<u8>> {
        let end = self.0.iter().position(|byte| *byte == b'\n')?;
        Some(self.0.drain(..=end).collect())
    }
}
