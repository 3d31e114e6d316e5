//! [`Loads`]: the modules of Views, and how far each is.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use pintle_api::{Module, ModuleSpec};
use pintle_modules::{Loader, Order, retry_after};
use pintle_runtime::{Spawner, clock};
use pintle_wit::Failure;
use tokio::sync::Notify;
use tracing::{info, warn};

use super::bind::ModuleState;

/// The modules of Views.
pub(crate) struct Loads {
    loader: Arc<Loader>,
    spawner: Spawner,
    shared: Arc<Shared>,
}

struct Shared {
    loads: Mutex<BTreeMap<String, Load>>,
    woken: Arc<Notify>,
}

struct Load {
    /// The uid of the Module, since another may take its name.
    uid: String,
    state: ModuleState,
    failures: u32,
    retry_at: Option<Duration>,
}

impl Loads {
    pub(crate) fn new(loader: Arc<Loader>, spawner: Spawner, woken: Arc<Notify>) -> Self {
        Self { loader, spawner, shared: Arc::new(Shared { loads: Mutex::default(), woken }) }
    }

    /// Ends when there is something new to look at.
    pub(crate) async fn woken(&self) {
        self.shared.woken.notified().await;
    }

    /// How far the wanted modules are. Those that are not loaded yet are being loaded from now on, and others are let go.
    pub(crate) fn look(
        &self,
        wanted: &[String],
        modules: &BTreeMap<String, Arc<Module>>,
    ) -> BTreeMap<String, ModuleState> {
        let now = clock::monotonic();
        let mut begun = Vec::new();
        let mut states = BTreeMap::new();
        {
            let mut loads = self.shared.loads.lock().unwrap_or_else(PoisonError::into_inner);
            loads.retain(|name, load| {
                wanted.contains(name) && modules.get(name).is_some_and(|module| uid(module) == load.uid)
            });
            for name in wanted {
                let Some(module) = modules.get(name) else { continue };
                let load = loads.get(name);
                let is_due = load.is_none_or(|load| load.retry_at.is_some_and(|at| at <= now));
                if is_due {
                    let failures = load.map_or(0, |load| load.failures);
                    let loading =
                        Load { uid: uid(module), state: ModuleState::Loading, failures, retry_at: None };
                    // What it was while it is tried again: a failure stays one until it is over.
                    let shown = load.map_or(ModuleState::Loading, |load| load.state.clone());
                    loads.insert(name.clone(), Load { state: shown, ..loading });
                    begun.push((name.clone(), uid(module), module.spec.clone()));
                }
                if let Some(load) = loads.get(name) {
                    states.insert(name.clone(), load.state.clone());
                }
            }
        }
        for (name, uid, spec) in begun {
            self.begin(name, uid, spec);
        }
        states
    }

    fn begin(&self, name: String, uid: String, spec: ModuleSpec) {
        let (loader, shared) = (Arc::clone(&self.loader), Arc::clone(&self.shared));
        self.spawner.spawn(async move {
            let loaded = load(&loader, &name, &spec).await;
            let mut loads = shared.loads.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(load) = loads.get_mut(&name).filter(|load| load.uid == uid) {
                load.took(&name, loaded);
            }
            drop(loads);
            shared.woken.notify_one();
        });
    }

    /// In how much time something is tried again.
    pub(crate) fn retry_in(&self) -> Duration {
        let loads = self.shared.loads.lock().unwrap_or_else(PoisonError::into_inner);
        let next = loads.values().filter_map(|load| load.retry_at).min();
        next.map_or(Duration::MAX, |at| at.saturating_sub(clock::monotonic()))
    }

    /// Whether it is known of each whether it can be loaded.
    pub(crate) fn is_settled(&self) -> bool {
        let loads = self.shared.loads.lock().unwrap_or_else(PoisonError::into_inner);
        !loads.values().any(|load| matches!(load.state, ModuleState::Loading))
    }

    /// The digests of those that are loaded.
    pub(crate) fn digests(&self) -> Vec<String> {
        let loads = self.shared.loads.lock().unwrap_or_else(PoisonError::into_inner);
        let loaded = loads.values().filter_map(|load| match &load.state {
            ModuleState::Loaded(module) => Some(module.digest().to_string()),
            _ => None,
        });
        loaded.collect()
    }
}

impl Load {
    fn took(&mut self, name: &str, loaded: Result<pintle_engine::Module, Failure>) {
        match loaded {
            Ok(module) => {
                info!(module = name, digest = %module.digest(), compile = ?module.compile_duration(), "Loaded a module");
                (self.state, self.failures, self.retry_at) = (ModuleState::Loaded(module), 0, None);
            }
            Err(failure) if failure.retry => {
                warn!(module = name, %failure, "A module is not loaded yet");
                self.retry_at = Some(clock::monotonic() + retry_after(&failure.reason, self.failures));
                (self.state, self.failures) = (ModuleState::NotYet(failure), self.failures.saturating_add(1));
            }
            Err(failure) => {
                warn!(module = name, %failure, "A module is refused");
                (self.state, self.retry_at) = (ModuleState::Refused(failure), None);
            }
        }
    }
}

async fn load(loader: &Loader, name: &str, spec: &ModuleSpec) -> Result<pintle_engine::Module, Failure> {
    let order = Order::new(name, spec, name.to_owned())?;
    let bytes = loader.fetch(&order).await?;
    loader.compile(&order, bytes).await
}

fn uid(module: &Module) -> String {
    module.metadata.uid.clone().unwrap_or_default()
}
