//! Checks whether configs fit the schemas of modules. A schema comes from a guest, so a check may take long: it runs on a thread that may
//! block, and decisions read its result as a value.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use pintle_api as api;
use pintle_engine::Digest;
use pintle_schema::config_schema::ConfigSchema;
use pintle_wit::{Failure, reasons};
use serde_json::Value;
use tokio::sync::Semaphore;

use super::{
    bind::{self, World},
    load::LoadedGuest,
    state::Shared,
};
use crate::limits;

/// How many checks run at once. Nearly all take microseconds.
const AT_ONCE: usize = 2;
/// How long the control loop waits for checks, so that an ordinary check does not cost another round.
const PATIENCE: Duration = Duration::from_millis(50);

/// What is known about the config that each Reconciler wants.
#[derive(Debug)]
pub(crate) struct Configs {
    known: Mutex<BTreeMap<String, Checked>>,
    turns: Semaphore,
}

impl Default for Configs {
    fn default() -> Self {
        Self { known: Mutex::default(), turns: Semaphore::new(AT_ONCE) }
    }
}

/// A config, the module for which it is checked, and the result; none while the check runs.
#[derive(Debug)]
struct Checked {
    digest: Digest,
    config: Value,
    outcome: Option<Result<(), Failure>>,
}

/// A check that has to be made.
pub(crate) struct PendingCheck {
    reconciler: String,
    digest: Digest,
    schema: ConfigSchema,
    config: Value,
}

impl PendingCheck {
    /// Makes the check. It takes half a second in the worst case.
    pub(crate) fn run(&self) -> Result<(), Failure> {
        self.schema.check(&self.config)
    }
}

impl Configs {
    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Checked>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The result for the config and the module that a Reconciler wants.
    pub(crate) fn outcome(
        &self,
        reconciler: &api::Reconciler,
        digest: &Digest,
    ) -> Option<Result<(), Failure>> {
        let known = self.known();
        let checked = known.get(reconciler.metadata.name.as_deref().unwrap_or_default())?;
        let is_about = checked.digest == *digest && checked.config == reconciler.spec.config;
        checked.outcome.clone().filter(|_| is_about)
    }

    /// The checks that have not begun yet; they count as begun from now on. Results that no Reconciler needs any more are forgotten.
    pub(crate) fn due(&self, world: &World<'_>) -> Vec<PendingCheck> {
        let mut known = self.known();
        known.retain(|name, _| world.reconcilers.contains_key(name));
        let mut due = Vec::new();
        for (name, object) in world.reconcilers {
            let Ok(LoadedGuest { guest, schema }) = bind::loaded_guest(world, &object.spec.module, object)
            else {
                continue;
            };
            let (digest, config) = (guest.digest(), &object.spec.config);
            if known.get(name).is_some_and(|known| known.digest == digest && known.config == *config) {
                continue;
            }
            // Without a schema there is nothing to look at.
            let outcome = schema.takes_none().then(|| schema.check(config));
            if outcome.is_none() {
                let (schema, config) = (schema.clone(), config.clone());
                due.push(PendingCheck { reconciler: name.clone(), digest, schema, config });
            }
            known.insert(name.clone(), Checked { digest, config: config.clone(), outcome });
        }
        due
    }

    /// Takes the result of a check, unless another config or module is wanted by now.
    pub(crate) fn found(&self, due: &PendingCheck, outcome: Result<(), Failure>) {
        if let Some(checked) = self.known().get_mut(&due.reconciler)
            && checked.digest == due.digest
            && checked.config == due.config
        {
            checked.outcome = Some(outcome);
        }
    }

    /// Makes checks, and waits for them for a moment. A check that takes longer wakes the control loop when it is done.
    pub(crate) async fn check(self: &Arc<Self>, shared: &Arc<Shared>, due: Vec<PendingCheck>) {
        if due.is_empty() {
            return;
        }
        let late = Arc::new(AtomicBool::new(false));
        let checks: Vec<_> = due
            .into_iter()
            .map(|due| {
                let (configs, shared, late) = (Arc::clone(self), Arc::clone(shared), Arc::clone(&late));
                let spawner = shared.spawner.clone();
                spawner.spawn(async move {
                    let turn = configs.turns.acquire().await;
                    let due = Arc::new(due);
                    let there = Arc::clone(&due);
                    let made = shared.spawner.block(move || there.run()).await;
                    drop(turn);
                    // A panic is a mistake of the host. It does not show that the config is valid.
                    let outcome = made.unwrap_or_else(|error| {
                        let message = format!("the config could not be checked: {error}");
                        Err(Failure::terminal(reasons::CONFIG_INVALID, message).at("spec.config"))
                    });
                    if matches!(&outcome, Err(failure) if failure.reason == reasons::CONFIG_TOO_EXPENSIVE) {
                        shared.metrics.limit_hit(&due.reconciler, limits::CONFIG_STEPS);
                    }
                    configs.found(&due, outcome);
                    // Who set it looks at what is known after that.
                    if late.load(Ordering::SeqCst) {
                        shared.control.notify_one();
                    }
                })
            })
            .collect();
        let all = futures::future::join_all(checks);
        if tokio::time::timeout(PATIENCE, all).await.is_err() {
            late.store(true, Ordering::SeqCst);
        }
    }
}
