//! Simulated hosts: they run in this process, and can end at any point.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use jiff::SignedDuration;
use pintle_engine::Engine;
use pintle_modules::Budget;
use pintle_operator::{Metrics, Readiness, RootLimits};
use pintle_schema::fit::Kinds;
use pintle_simulator::Record;
use tokio::{sync::Notify, task::JoinHandle};

use super::{NamedModule, fault::Fault, script::Deed, world::World};
use crate::{
    life::Life,
    seam::{Impure, Seams, strictly},
    world::Operate,
};

/// The namespace of the host.
pub(super) const NAMESPACE: &str = pintle_api::NAMESPACE;

/// How many roots a simulated host reconciles at the same time: enough for concurrent passes.
const WORKERS: usize = 4;

/// The memory limit of a simulated host, in bytes: the same as in `deploy/`.
const MEMORY_BYTES: u64 = 512 << 20;

/// How long a host is cut off.
const CUT_OFF_FOR: Duration = Duration::from_secs(15);

/// Simulated hosts.
pub struct Hosts {
    pub(super) engine: Engine,
    pub(super) records: Mutex<Vec<Record>>,
    pub(super) impure: Arc<Impure>,
    seams: Option<Seams>,
    pub(super) spares: Arc<[NamedModule]>,
}

impl Hosts {
    /// Hosts whose guests answer with fields of the kinds that are `served` alone, if there are any.
    pub(super) fn new(
        engine: &Engine,
        seams: Option<Seams>,
        spares: &Arc<[NamedModule]>,
        served: Option<Arc<Kinds>>,
    ) -> Self {
        let (engine, spares) = (engine.clone(), Arc::clone(spares));
        Self { engine, records: Mutex::default(), impure: Arc::new(Impure::new(served)), seams, spares }
    }
}

/// A running host.
pub(crate) struct Host {
    stop: Arc<Notify>,
    task: JoinHandle<anyhow::Result<()>>,
    readiness: Readiness,
}

impl Host {
    /// Asks it to stop, and waits until it has stopped.
    pub(super) async fn stop(self, life: &Life) {
        self.stop.notify_one();
        // A host that is cut off may not stop by itself.
        let _ = tokio::time::timeout(Duration::from_secs(60), self.task).await;
        life.kill();
    }
}

impl Operate for Hosts {
    type Process = Host;

    fn start(world: &World, life: &Arc<Life>) -> Host {
        let mut script = world.script();
        if let Some(version) = script.memory.travel.take() {
            script.memory.travellers.insert(life.client.clone(), (version, BTreeSet::new()));
        }
        let skew = script.plan.0.iter().find_map(|fault| match fault {
            Fault::Skew(by) => Some(*by),
            _ => None,
        });
        drop(script);
        let behind = SignedDuration::try_from(skew.unwrap_or_default() * life.number).unwrap_or_default();
        life.clock.set_skew(-behind);
        let Hosts { engine, impure, seams, .. } = &world.own;
        let seam = seams.as_ref().map(|seams| seams());
        let readiness = Readiness::default();
        let host = pintle_operator::Host {
            client: life.connect(&world.server, seam.clone()),
            engine: engine.clone(),
            compilers: None,
            metrics: Arc::new(Metrics::default()),
            identity: life.client.clone(),
            namespace: NAMESPACE.into(),
            leader_elect: world.size > 1,
            workers: WORKERS,
            budget: Budget::fixed(MEMORY_BYTES),
            root_limits: RootLimits::default(),
            spawner: life.spawner.clone(),
            guests: Some(strictly(Arc::clone(impure), seam)),
            readiness: readiness.clone(),
        };
        let stop = Arc::new(Notify::new());
        let stopped = Arc::clone(&stop);
        let task = life.spawner.spawn(host.work_until(async move {
            stopped.notified().await;
            Ok(())
        }));
        Host { stop, task, readiness }
    }

    /// It works if it is the leader, or there is no election.
    fn waits_for(life: &Life, host: &Host) -> Option<&'static str> {
        let works = life.clock.during(|| host.readiness.works());
        (!works).then_some("it does not lead")
    }

    async fn perform(world: &World, deed: Deed) {
        match deed {
            Deed::CutOff(client) => {
                let life = world.script().lives.get(&client).cloned();
                let Some(life) = life else { return };
                life.cut_off(true);
                world.server.close_watches(Some(&client));
                tokio::time::sleep(CUT_OFF_FOR).await;
                life.cut_off(false);
            }
            Deed::Relist(after) => {
                tokio::time::sleep(after).await;
                world.relist();
            }
            Deed::Meddle(fault, what, seen) => {
                if let Some(troubled) = world.meddle(what, &seen).await {
                    let mut script = world.script();
                    script.hit.insert(fault);
                    script.memory.troubled.push(troubled);
                }
            }
        }
    }
}
