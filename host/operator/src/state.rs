//! What the operator knows, and what its parts share.
//!
//! Everything that the operator knows is in [`State`], plain maps behind one lock that is never held across an await. Watches and
//! workers change it; the control loop and the workers are woken when they did.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, TryLockError,
        atomic::{AtomicBool, Ordering},
    },
};

use kube::{CustomResourceExt, Resource};
use pintle_api as api;
use pintle_core::{Priority, SealingKey, StatusSchema, Uid};
use pintle_engine::{Answer, CallError, CallLimits, Engine, Guest};
use pintle_kubernetes::Cluster;
use pintle_modules::{Budget, Loader};
use pintle_runtime::Spawner;
use pintle_wit::{Kind, ObjectRef};
use tokio::sync::Notify;

use crate::{
    Metrics, access, events,
    in_flight::InFlight,
    lanes::Lanes,
    load,
    needs::{Asker, Needed},
    policy::Bindings,
    served::Served,
    store::{Children, Root, RootKey, Roots},
    watch::{News, Watch, WatchKey},
};

/// What calls guests in their place.
pub type CallGuest = Arc<dyn Fn(&Guest, &str, &CallLimits) -> Result<Answer, CallError> + Send + Sync>;

/// What all parts of the operator share.
pub(crate) struct Shared {
    pub(crate) cluster: Cluster,
    pub(crate) engine: Engine,
    /// What gets modules ready to be called.
    pub(crate) loader: Loader,
    pub(crate) key: SealingKey,
    pub(crate) metrics: Arc<Metrics>,
    /// How much memory calls, answers and the compiler may take.
    pub(crate) budget: Budget,
    /// How many passes may run at once.
    pub(crate) workers: usize,
    pub(crate) recorder: events::Recorder,
    pub(crate) spawner: Spawner,
    pub(crate) guests: Option<CallGuest>,
    pub(crate) access: access::Access,
    /// Who leads, where hosts stand for election.
    pub(crate) leader: Option<tokio::sync::watch::Receiver<String>>,
    pub(crate) state: Mutex<State>,
    /// There is work for a worker.
    pub(crate) work: Notify,
    /// There is something for the control loop to decide.
    pub(crate) control: Notify,
    /// The objects of a kind that guests ask to see have been listed.
    pub(crate) needs_listed: Notify,
    pub(crate) stopping: AtomicBool,
}

/// What the operator knows.
pub(crate) struct State {
    /// The term of leadership that everything is prepared for: the control loop has seen to it that a pass may begin.
    pub(crate) term: Option<u64>,
    pub(crate) roots: Roots,
    pub(crate) children: Children,
    pub(crate) needed: Needed,
    /// What watches bring of objects that are being written.
    pub(crate) in_flight: InFlight<News>,
    pub(crate) queue: Lanes,
    pub(crate) bindings: Bindings,
    pub(crate) served: Served,
    pub(crate) watches: BTreeMap<WatchKey, Watch>,
    pub(crate) own: OwnObjects,
    pub(crate) large_roots: LargeRoots,
    /// How children are read, by their Reconciler.
    pub(crate) readings: BTreeMap<String, Reading>,
    /// Loaded modules and failed loads, by the Module's name.
    pub(crate) loads: BTreeMap<String, load::Load>,
    /// Reconcilers whose root counts changed since they were last written.
    pub(crate) counts_changed: BTreeSet<String>,
}

/// The roots that are not kept, and so are read for their passes, one at a time.
#[derive(Default)]
pub(crate) struct LargeRoots {
    /// One of them has its turn.
    pub(crate) busy: bool,
    /// Those that wait for theirs.
    pub(crate) waiting: BTreeSet<(Kind, RootKey)>,
}

/// How the children of a Reconciler are read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reading {
    /// The kind of their roots.
    pub(crate) root_kind: Kind,
    /// The field manager whose fields are ours.
    pub(crate) manager: String,
    /// The kinds that its guest observes.
    pub(crate) observed: BTreeSet<Kind>,
}

/// The host's own objects, and CRDs, by name.
#[derive(Default)]
pub(crate) struct OwnObjects {
    pub(crate) modules: BTreeMap<String, api::Module>,
    pub(crate) reconcilers: BTreeMap<String, api::Reconciler>,
    /// The Modules that each View uses. Everything else about Views is the gateway's.
    pub(crate) views: BTreeMap<String, BTreeSet<String>>,
    pub(crate) crds: BTreeMap<String, CrdInfo>,
    pub(crate) listed: Listed,
    /// Why those of a kind cannot be watched, by kind.
    pub(crate) errors: BTreeMap<String, String>,
}

/// Which of them a watch has listed.
#[derive(Default)]
pub(crate) struct Listed {
    pub(crate) modules: bool,
    pub(crate) reconcilers: bool,
    pub(crate) views: bool,
    pub(crate) crds: bool,
}

impl OwnObjects {
    /// Whether the API server does not have the kind View, as a cluster whose CRDs are older than the host.
    fn lacks_views(&self) -> bool {
        self.listed.crds && !self.crds.contains_key(api::View::crd_name())
    }

    /// The Modules that each View uses, by its name; none while that is not known. A cluster without the kind has no Views.
    pub(crate) fn views(&self) -> Option<impl Iterator<Item = (&String, &BTreeSet<String>)>> {
        let lacks_views = self.lacks_views();
        (self.listed.views || lacks_views).then(|| self.views.iter().filter(move |_| !lacks_views))
    }

    /// Why one of the kinds cannot be watched. Views that do not exist hold nobody up.
    pub(crate) fn error(&self) -> Option<&str> {
        let (view, lacks_views) = (api::View::kind(&()), self.lacks_views());
        let mut errors = self.errors.iter().filter(|(kind, _)| **kind != view || !lacks_views);
        errors.next().map(|(_, message)| message.as_str())
    }

    /// What has not been listed yet.
    pub(crate) fn unlisted(&self) -> Option<&'static str> {
        let Listed { modules, reconcilers, crds, .. } = self.listed;
        let views = self.views().is_some();
        let all = [(modules, "Modules"), (reconcilers, "Reconcilers"), (crds, "CRDs"), (views, "Views")];
        all.into_iter().find_map(|(is_listed, what)| (!is_listed).then_some(what))
    }
}

/// What the operator keeps of a CRD.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CrdInfo {
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) namespaced: bool,
    pub(crate) established: bool,
    /// The status part of each served version.
    pub(crate) versions: BTreeMap<String, StatusSchema>,
}

impl State {
    pub(crate) fn new(workers: usize, metrics: Arc<Metrics>) -> Self {
        Self {
            term: None,
            roots: Roots::default(),
            children: Children::default(),
            needed: Needed::default(),
            in_flight: InFlight::default(),
            queue: Lanes::new(workers, metrics),
            bindings: Bindings::default(),
            served: Served::default(),
            watches: BTreeMap::new(),
            own: OwnObjects::default(),
            large_roots: LargeRoots::default(),
            readings: BTreeMap::new(),
            loads: BTreeMap::new(),
            counts_changed: BTreeSet::new(),
        }
    }

    /// Queues a root for the Reconciler that works on its kind, if there is one and it may.
    pub(crate) fn enqueue(&mut self, kind: &Kind, key: &RootKey, priority: Priority) -> bool {
        let Some(lane) = self.bindings.lane_of_root(kind, key) else { return false };
        self.queue.add(lane, key, priority);
        true
    }

    pub(crate) fn enqueue_by_uid(&mut self, uids: BTreeSet<Uid>, priority: Priority) -> bool {
        let mut any = false;
        for uid in uids {
            if let Some((kind, key)) = self.roots.by_uid(&uid).map(|root| (root.kind(), root.key())) {
                any |= self.enqueue(&kind, &key, priority);
            }
        }
        any
    }

    pub(crate) fn enqueue_askers(&mut self, askers: BTreeSet<Asker>, priority: Priority) -> bool {
        let mut any = false;
        for (kind, key) in askers {
            any |= self.enqueue(&kind, &key, priority);
        }
        any
    }
}

impl Shared {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in State is left half-changed by a panic: every change is one insertion or removal.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether somebody holds the lock now.
    pub(crate) fn is_locked(&self) -> bool {
        matches!(self.state.try_lock(), Err(TryLockError::WouldBlock))
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Whether a pass may begin, and in which term: this host leads, and the control loop has prepared for it.
    pub(crate) fn term_of_work(&self, state: &State) -> Option<u64> {
        self.cluster.hold().term().filter(|term| state.term == Some(*term))
    }

    /// Begins the work of a term of leadership. Whoever led before may have left everything at any point, and have changed what this
    /// host remembers of earlier passes: nothing is remembered, and there is a pass for every root. What is in force for those that
    /// wait came into force while this host stood by, without what must be written first.
    pub(crate) fn begin_term(&self, term: u64, waiting: &BTreeSet<String>) {
        let mut state = self.state();
        if state.term == Some(term) {
            return;
        }
        state.term = Some(term);
        state.bindings.retain(|name| !waiting.contains(name));
        state.roots.forget_memories();
        state.needed.forget_askers();
        let lanes: Vec<(String, Kind)> =
            state.bindings.lanes().map(|(lane, kind)| (lane.clone(), kind.clone())).collect();
        for (lane, kind) in lanes {
            let keys: Vec<RootKey> = state.roots.of_kind(&kind).map(Root::key).collect();
            for key in keys {
                state.enqueue(&kind, &key, Priority::Background);
            }
            state.queue.hurry(&lane);
        }
        drop(state);
        self.work.notify_one();
    }

    /// The Reconciler that names a Module, for metrics: the first one if there are several, and nothing if there is none.
    pub(crate) fn first_user_of(&self, module: &str) -> String {
        let state = self.state();
        let mut found = state.own.reconcilers.iter().filter(|(_, object)| object.spec.module == module);
        found.next().map(|(name, _)| name.clone()).unwrap_or_default()
    }

    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.work.notify_waiters();
        self.work.notify_one();
        self.control.notify_one();
    }
}

/// How an object of the host's own is named.
pub(crate) fn own(kind: &str, name: &str) -> ObjectRef {
    ObjectRef {
        api_version: "pintle.dev/v1alpha1".into(),
        kind: kind.into(),
        namespace: None,
        name: name.into(),
    }
}
