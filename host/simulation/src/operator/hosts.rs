//! Simulated hosts: they run in this process, and can end at any point.

use std::sync::Arc;

use pintle_engine::Engine;
use pintle_modules::Budget;
use pintle_operator::{Host, Metrics, Readiness};
use pintle_runtime::{Spawner, clock};
use pintle_simulator::ApiServer;
use tokio::{sync::Notify, task::JoinHandle};

use crate::{
    life::{Life, connected},
    seam::{self, Impure, Seams},
};

/// The namespace of the host.
pub(super) const NAMESPACE: &str = pintle_api::NAMESPACE;

/// How many roots a simulated host reconciles at the same time: enough for concurrent passes.
const WORKERS: usize = 4;

/// The memory limit of a simulated host, in bytes: the same as in `deploy/`.
const MEMORY_BYTES: u64 = 512 << 20;

/// Simulated hosts.
pub struct Hosts;

/// A running host.
pub(super) struct Running {
    /// The name of its connection: `host-` and the number of its start.
    pub(super) client: String,
    pub(super) life: Arc<Life>,
    spawner: Spawner,
    stop: Arc<Notify>,
    task: JoinHandle<anyhow::Result<()>>,
    readiness: Readiness,
}

/// The arguments with which a host is started.
pub(super) struct Start<'a> {
    pub(super) server: &'a ApiServer,
    pub(super) engine: &'a Engine,
    pub(super) number: u32,
    pub(super) seed: u64,
    pub(super) now: jiff::Timestamp,
    pub(super) elect: bool,
    pub(super) impure: &'a Arc<Impure>,
    pub(super) seams: Option<&'a Seams>,
}

impl Running {
    pub(super) fn start(start: &Start<'_>) -> Self {
        let client = format!("host-{}", start.number);
        let seed = start.seed.wrapping_mul(31).wrapping_add(start.number.into());
        let clock = Arc::new(clock::Virtual::new(start.now, seed));
        let life = Arc::new(Life::new(Arc::clone(&clock)));
        let spawner = Spawner::simulated(clock);
        let seam = start.seams.map(|seams| seams());
        let readiness = Readiness::default();
        let host = Host {
            client: connected(start.server, &client, &life, seam.clone()),
            engine: start.engine.clone(),
            compilers: None,
            metrics: Arc::new(Metrics::default()),
            identity: client.clone(),
            namespace: NAMESPACE.into(),
            leader_elect: start.elect,
            workers: WORKERS,
            budget: Budget::fixed(MEMORY_BYTES),
            seed,
            spawner: spawner.clone(),
            guests: Some(seam::strictly(Arc::clone(start.impure), seam)),
            readiness: readiness.clone(),
        };
        let stop = Arc::new(Notify::new());
        let stopped = Arc::clone(&stop);
        let task = spawner.spawn(host.work_until(async move { stopped.notified().await }));
        Self { client, life, spawner, stop, task, readiness }
    }

    /// Whether it works: it is the leader, or there is no election.
    pub(super) fn works(&self) -> bool {
        self.life.clock.during(|| self.readiness.works())
    }

    /// Ends it where it is, as a crash does.
    pub(super) fn kill(&self) {
        self.life.end();
        self.spawner.end_all();
    }

    /// Asks it to stop, and waits until it has stopped.
    pub(super) async fn stop(self) {
        self.stop.notify_one();
        // A host that is cut off may not stop by itself.
        let _ = tokio::time::timeout(std::time::Duration::from_secs(60), self.task).await;
        self.life.end();
        self.spawner.end_all();
    }
}
