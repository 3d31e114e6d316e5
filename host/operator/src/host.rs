//! The operator without what ties it to a process: the simulator starts it as `run` does.

use std::{
    sync::{Arc, Mutex, atomic::AtomicBool},
    time::Duration,
};

use anyhow::anyhow;
use pintle_core::SealingKey;
use pintle_engine::Engine;
use pintle_kubernetes::{Cluster, Hold};
use pintle_modules::{Budget, Compilers, Loader, Report};
use pintle_runtime::Spawner;
use tokio::sync::Notify;
use tracing::info;

use crate::{
    Metrics, Readiness, RootLimits, access, control, events, lease,
    needs::Needed,
    sealing_key,
    state::{CallGuest, Shared, State},
    store::Roots,
    worker,
};

/// The operator without what ties it to a process: what it works with enters here, so that a simulator can be given instead.
pub struct Host {
    /// The way to the API server. Its own retry must be off.
    pub client: kube::Client,
    /// What calls guests.
    pub engine: Engine,
    /// Where modules are compiled; nothing means in this process, at once.
    pub compilers: Option<Arc<Compilers>>,
    /// What it counts.
    pub metrics: Arc<Metrics>,
    /// Its name in Leases and Events.
    pub identity: String,
    /// The namespace of its key, its Lease and the ConfigMaps of modules.
    pub namespace: String,
    /// Whether it writes only while it holds the Lease.
    pub leader_elect: bool,
    /// How many roots are worked on at once.
    pub workers: usize,
    /// How much memory calls, answers and the compiler may take.
    pub budget: Budget,
    /// How much of the roots it keeps.
    pub root_limits: RootLimits,
    /// Where its tasks run.
    pub spawner: Spawner,
    /// What calls guests, where not their modules alone do.
    pub guests: Option<CallGuest>,
    /// What tells others how far it is.
    pub readiness: Readiness,
}

impl Host {
    /// Works until this ends; then what is under way is finished and the Lease given up.
    ///
    /// # Errors
    /// What `stop` ended with, or that one of its tasks ended although nobody had asked it to.
    pub async fn work_until(self, stop: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
        tokio::pin!(stop);
        let cluster = Cluster::new(self.client.clone());
        let mut candidate = self.leader_elect.then(|| {
            lease::Candidate::stand(&self.spawner, cluster.clone(), &self.namespace, &self.identity)
        });
        let cluster = match &candidate {
            Some(candidate) => cluster.with_hold(Hold::elected(candidate.held.clone())),
            None => cluster,
        };
        // In order, here and below: chance would be one more thing that a simulator cannot repeat.
        let key = tokio::select! {
            biased;
            stopped = &mut stop => {
                release(candidate).await;
                return stopped;
            }
            key = sealing_key::read(&cluster, &self.namespace) => key,
        };
        let spawner = self.spawner.clone();
        let leader = candidate.as_ref().map(|candidate| candidate.holder.clone());
        let shared = self.share(cluster, key, leader);
        let mut control = spawner.spawn(control::run(Arc::clone(&shared)));
        let mut workers = spawner.spawn(worker::dispatch(Arc::clone(&shared), shared.workers));
        let stopped = tokio::select! {
            biased;
            stopped = &mut stop => stopped,
            ended = &mut control => Err(anyhow!("the control loop ended: {ended:?}")),
            ended = &mut workers => Err(anyhow!("the workers ended: {ended:?}")),
            () = follow_election(&shared, candidate.as_mut()) => Err(anyhow!("the election ended")),
        };
        info!("Stopping");
        shared.stop();
        if !workers.is_finished() {
            workers.await?;
        }
        if !control.is_finished() && tokio::time::timeout(CONTROL_STOP_TIMEOUT, &mut control).await.is_err() {
            control.abort();
        }
        // Last, since the next host begins to write then.
        release(candidate).await;
        stopped
    }
}

impl Host {
    /// What its parts share, once it has its key.
    pub(crate) fn share(
        self,
        cluster: Cluster,
        key: SealingKey,
        leader: Option<tokio::sync::watch::Receiver<String>>,
    ) -> Arc<Shared> {
        let loader = Loader::new(
            cluster.clone(),
            self.engine.clone(),
            self.compilers,
            self.budget.clone(),
            self.spawner.clone(),
            Arc::clone(&self.metrics) as Arc<dyn Report>,
        );
        let mut state = State::new(self.workers, Arc::clone(&self.metrics));
        state.roots = Roots::within(self.root_limits);
        state.needed = Needed::within(self.root_limits.all);
        let shared = Arc::new(Shared {
            recorder: events::Recorder::new(&cluster, &self.identity),
            cluster,
            engine: self.engine,
            budget: self.budget,
            loader,
            key,
            metrics: self.metrics,
            workers: self.workers,
            spawner: self.spawner,
            guests: self.guests,
            access: access::Access::default(),
            leader,
            state: Mutex::new(state),
            work: Notify::new(),
            control: Notify::new(),
            needs_listed: Notify::new(),
            stopping: AtomicBool::new(false),
        });
        self.readiness.follow(&shared);
        shared
    }
}

/// How long the control loop may take to end its round when the operator stops: a write or two.
const CONTROL_STOP_TIMEOUT: Duration = Duration::from_secs(2);

async fn release(candidate: Option<lease::Candidate>) {
    if let Some(candidate) = candidate {
        candidate.release().await;
    }
}

/// Wakes the control loop whenever this host comes to lead, or no longer does. Ends when nobody stands for election any more.
async fn follow_election(shared: &Shared, candidate: Option<&mut lease::Candidate>) {
    let Some(candidate) = candidate else { return std::future::pending().await };
    let mut held = candidate.held.clone();
    let mut term = None;
    let wake = async {
        while held.changed().await.is_ok() {
            let now = shared.cluster.hold().term();
            if now != term {
                term = now;
                shared.control.notify_one();
            }
        }
    };
    tokio::select! {
        biased;
        () = candidate.ended() => {}
        () = wake => {}
    }
}
