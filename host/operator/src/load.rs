//! Loads modules: has them made ready to be called, checks that this host can run them, and decides which stay compiled.

use std::{sync::Arc, time::Duration};

use pintle_api::{self as api, ModuleSpec};
use pintle_core::reasons;
use pintle_engine::{Digest, Guest, Module, Views};
use pintle_modules::{Order, retry_after};
use pintle_runtime::clock;
use pintle_schema::config_schema::{self, ConfigSchema};
use pintle_wit::Failure;
use serde_json::Value;
use tracing::{info, warn};

use super::{limits, state::Shared};

/// How many modules that are not in use stay compiled, and how much machine code they may have together, in bytes. A module that was
/// pushed is often put in force next, and a rollback is to the module that was in force a moment ago.
const KEPT_UNUSED: usize = 2;
const KEPT_UNUSED_CODE_BYTES: usize = 16 << 20;

/// How far the loading of a module has got.
#[derive(Clone)]
pub(crate) enum Progress {
    /// It is being fetched and compiled.
    Loading,
    /// It can be called. None if it only serves views.
    Loaded(Module, Option<LoadedGuest>),
    /// It was compiled, but nobody uses it, so it must be compiled again before it can be called. None if its status says the same.
    Checked(Option<Arc<Facts>>),
    /// It could not be fetched or compiled, and is retried at this time.
    NotYet(Failure, Duration),
    /// It was fetched, and this host cannot run it. Bytes of its digest cannot change.
    Refused(Failure),
}

/// The part of a module that reconciles.
#[derive(Clone)]
pub(crate) struct LoadedGuest {
    pub(crate) guest: Guest,
    /// The schema of its config.
    pub(crate) schema: ConfigSchema,
}

/// What the host knows about a module.
#[derive(Debug, PartialEq)]
pub(crate) struct Facts {
    pub(crate) digest: Digest,
    /// The interfaces of the contract that it exports.
    pub(crate) interfaces: Vec<&'static str>,
    pub(crate) size_bytes: usize,
    pub(crate) compile_duration: Duration,
    /// What the guest declares, as the status shows it: what it reconciles, or else its views.
    pub(crate) manifest: Option<Value>,
}

impl Facts {
    pub(crate) fn of(module: &Module) -> Self {
        Self {
            digest: module.digest(),
            interfaces: module.interfaces(),
            size_bytes: module.size_bytes(),
            compile_duration: module.compile_duration(),
            manifest: manifest(module),
        }
    }
}

fn manifest(module: &Module) -> Option<Value> {
    match (module.guest(), module.views()) {
        (Some(guest), _) => api::manifest_value(guest.manifest()),
        (None, views) => api::manifest_value(views?.manifest()),
    }
}

/// How far a module should get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Need {
    /// Its bytes are verified. Nobody uses it, and this version of the host has compiled it before.
    Verified,
    /// It was compiled once, and asked for its manifest. Nobody uses it.
    Checked,
    /// It can be called. A Reconciler wants it, or has it in force.
    Loaded,
}

/// The loading of a Module.
#[derive(Clone)]
pub(crate) struct Load {
    /// The uid of the Module, since another Module may take its name.
    pub(crate) uid: String,
    pub(crate) progress: Progress,
    /// How often in a row it failed.
    failures: u32,
    /// When it was last used or loaded.
    used_at: Duration,
}

impl Load {
    /// Whether it is time to begin, or to begin again.
    pub(crate) fn is_due(load: Option<&Self>, uid: &str, need: Need, now: Duration) -> bool {
        match load {
            None => true,
            Some(load) if load.uid != uid => true,
            Some(Self { progress: Progress::NotYet(_, at), .. }) => *at <= now,
            Some(Self { progress: Progress::Checked(facts), .. }) => match need {
                Need::Loaded => true,
                // Its status said so before, and does not any more.
                Need::Checked => facts.is_none(),
                Need::Verified => false,
            },
            Some(_) => false,
        }
    }

    /// A load that has got this far.
    #[cfg(test)]
    pub(crate) fn at(uid: &str, progress: Progress) -> Self {
        Self { uid: uid.into(), progress, failures: 0, used_at: Duration::ZERO }
    }

    /// When a failed load is retried.
    pub(crate) fn retries_at(&self) -> Option<Duration> {
        match &self.progress {
            Progress::NotYet(_, at) => Some(*at),
            _ => None,
        }
    }
}

/// Drops the machine code of modules that nobody uses, except for a few that were used last. It is returned, so that the caller can free
/// it where nothing waits.
pub(crate) fn let_go<'a>(loads: impl Iterator<Item = (&'a mut Load, Need)>, now: Duration) -> Vec<Progress> {
    let mut unused = Vec::new();
    for (load, need) in loads {
        match (&mut load.progress, need) {
            (Progress::Loaded(..), Need::Loaded) => load.used_at = now,
            (Progress::Loaded(..), _) => unused.push((load, need)),
            // What its status contains need not be kept here too.
            (Progress::Checked(facts), Need::Verified) => *facts = None,
            _ => {}
        }
    }
    unused.sort_by_key(|(load, _)| std::cmp::Reverse(load.used_at));
    let (mut kept, mut code_bytes) = (0, 0usize);
    let mut gone = Vec::new();
    for (load, need) in unused {
        let Progress::Loaded(module, _) = &load.progress else { continue };
        code_bytes = code_bytes.saturating_add(module.code_bytes());
        if kept < KEPT_UNUSED && code_bytes <= KEPT_UNUSED_CODE_BYTES {
            kept += 1;
            continue;
        }
        let facts = (need != Need::Verified).then(|| Arc::new(Facts::of(module)));
        gone.push(std::mem::replace(&mut load.progress, Progress::Checked(facts)));
    }
    gone
}

/// Begins to load a Module. The result is stored in the shared state, and wakes the control loop.
pub(crate) fn begin(shared: &Arc<Shared>, name: &str, uid: &str, spec: ModuleSpec, need: Need) {
    let now = clock::monotonic();
    let failures =
        shared.state().loads.get(name).filter(|load| load.uid == uid).map_or(0, |load| load.failures);
    let loading = Load { uid: uid.into(), progress: Progress::Loading, failures, used_at: now };
    shared.state().loads.insert(name.into(), loading);
    let (shared, name, uid) = (Arc::clone(shared), name.to_owned(), uid.to_owned());
    let spawner = shared.spawner.clone();
    spawner.spawn(async move {
        let loading = Loading { shared: &shared, name: &name, spec: &spec, need };
        let (progress, failures) = match loading.load().await {
            Ok(Some((module, guest))) => {
                info!(module = name, digest = %module.digest(), compile = ?module.compile_duration(), "Loaded a module");
                (Progress::Loaded(module, guest), 0)
            }
            Ok(None) => (Progress::Checked(None), 0),
            Err(failure) if failure.retry => {
                if failure.reason == reasons::COMPILER_FAILED {
                    warn!(module = name, %failure, "A module is not compiled");
                }
                let delay = retry_after(&failure.reason, failures);
                (Progress::NotYet(failure, clock::monotonic() + delay), failures.saturating_add(1))
            }
            Err(failure) => {
                warn!(module = name, %failure, "A module is refused");
                if let Some(limit) = limits::of_reason(&failure.reason) {
                    shared.metrics.limit_hit(&shared.first_user_of(&name), limit);
                }
                (Progress::Refused(failure), 0)
            }
        };
        let load = Load { uid: uid.clone(), progress, failures, used_at: clock::monotonic() };
        // Another Module may have taken the name meanwhile.
        if let Some(begun) = shared.state().loads.get_mut(&name).filter(|begun| begun.uid == uid) {
            *begun = load;
        }
        shared.control.notify_one();
    });
}

/// A Module that is being loaded.
struct Loading<'a> {
    shared: &'a Shared,
    name: &'a str,
    spec: &'a ModuleSpec,
    need: Need,
}

impl Loading<'_> {
    /// The module and the part of it that reconciles, or none if it need not be compiled.
    async fn load(&self) -> Result<Option<(Module, Option<LoadedGuest>)>, Failure> {
        let loader = &self.shared.loader;
        let order = Order::new(self.name, self.spec, self.shared.first_user_of(self.name))?;
        let bytes = loader.fetch(&order).await?;
        if self.need == Need::Verified {
            return Ok(None);
        }
        let module = loader.compile(&order, bytes).await?;
        let parts = (module.guest(), module.views());
        let guest = loader.block(move || supported(parts)).await??;
        Ok(Some((module, guest)))
    }
}

/// The part of a module that reconciles, if this host can run all of the module.
fn supported((guest, views): (Option<Guest>, Option<Views>)) -> Result<Option<LoadedGuest>, Failure> {
    if let Some(views) = views {
        config_schema::supports_views(views.manifest())?;
    }
    let Some(guest) = guest else { return Ok(None) };
    let schema = config_schema::supports(guest.manifest())?;
    Ok(Some(LoadedGuest { guest, schema }))
}

#[cfg(test)]
mod tests;
