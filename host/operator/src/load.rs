//! Fetches and loads modules, and reads the key that seals the hashes of Secrets.

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use pintle_api::ModuleSpec;
use pintle_core::{ApiError, SealingKey, budget, reasons};
use pintle_engine::{CallLimits, Compiler, Digest, Excess, MODULE_BYTES_MAX, Module};
use pintle_kubernetes::{Cluster, builtin};
use pintle_runtime::clock;
use pintle_schema::config_schema::{self, ConfigSchema, Refused};
use pintle_wit::{Failure, Manifest, ObjectRef, Weight};
use serde_json::json;
use tracing::{debug, info, warn};

use super::{
    budget::Purpose,
    compile::{self, Compilers},
    state::{Shared, State},
};
use crate::limits::Limit;

/// How many modules are fetched and verified at once, besides those that are compiled. Each may be as large as a module may be.
pub(crate) const FETCHES_AT_ONCE: usize = 2;

/// How many modules that are not in use stay compiled, and how much machine code they may have together, in bytes. A module that was
/// pushed is often put in force next, and a rollback is to the module that was in force a moment ago.
const KEPT_UNUSED: usize = 2;
const KEPT_UNUSED_CODE_BYTES: usize = 16 << 20;

/// The back-off of fetches: the first and the longest delay.
const RETRY_FIRST: Duration = Duration::from_millis(500);
const RETRY_MAX: Duration = Duration::from_secs(30);
/// The longest back-off while the key cannot be read. Without the key the host does nothing at all, so it must not lose half a minute
/// once the API server answers again.
const KEY_RETRY_MAX: Duration = Duration::from_secs(5);

/// How far the loading of a module has got.
#[derive(Clone)]
pub(crate) enum Progress {
    /// It is being fetched and compiled.
    Loading,
    /// It can be called, and its config can be checked.
    Loaded(Module, ConfigSchema),
    /// It was compiled, but nobody uses it, so it must be compiled again before it can be called. None if its status says the same.
    Checked(Option<Arc<Facts>>),
    /// It could not be fetched or compiled, and is retried at this time.
    NotYet(Failure, Duration),
    /// It was fetched, and this host cannot run it. Its bytes cannot change.
    Refused(Failure),
}

/// What the host knows about a module.
#[derive(Debug, PartialEq)]
pub(crate) struct Facts {
    pub(crate) digest: Digest,
    /// The interfaces of the contract that it exports.
    pub(crate) interfaces: Vec<&'static str>,
    pub(crate) size_bytes: usize,
    pub(crate) compile_duration: Duration,
    pub(crate) manifest: Manifest,
}

impl Facts {
    pub(crate) fn of(module: &Module) -> Self {
        Self {
            digest: module.digest(),
            interfaces: module.interfaces(),
            size_bytes: module.size_bytes(),
            compile_duration: module.compile_duration(),
            manifest: module.manifest().clone(),
        }
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
        let loading = Loading { shared: &shared, name: &name, uid: &uid, spec: &spec, need };
        let (progress, failures) = match loading.load().await {
            Ok(Some((module, schema))) => {
                info!(module = name, digest = %module.digest(), compile = ?module.compile_duration(), "Loaded a module");
                (Progress::Loaded(module, schema), 0)
            }
            Ok(None) => (Progress::Checked(None), 0),
            Err(Refused { failure, .. }) if failure.retry => {
                let delay = match failure.reason.as_str() {
                    reasons::COMPILER_FAILED => {
                        warn!(module = name, %failure, "A module is not compiled");
                        compile::retry_after(failures)
                    }
                    _ => RETRY_FIRST.saturating_mul(1 << failures.min(10)).min(RETRY_MAX),
                };
                (Progress::NotYet(failure, clock::monotonic() + delay), failures.saturating_add(1))
            }
            Err(Refused { failure, excess }) => {
                warn!(module = name, %failure, "A module is refused");
                if let Some(limit) = excess.map(Limit::from).or_else(|| Limit::of_reason(&failure.reason)) {
                    shared.metrics.limit_hit(&loading.controller(), limit);
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

/// The most memory, in bytes, that the first call of a module takes, which asks for its manifest.
fn describe_bytes() -> u64 {
    let CallLimits { memory_bytes, response, .. } = CallLimits::default();
    let (text, parsed) = (response.bytes, Weight::parsed_bytes_max(response));
    budget::Need { memory_bytes: memory_bytes as u64, text_bytes: text as u64, parsed_bytes: parsed as u64 }
        .of_call(0)
}

/// A Module that is being loaded.
struct Loading<'a> {
    shared: &'a Shared,
    name: &'a str,
    uid: &'a str,
    spec: &'a ModuleSpec,
    need: Need,
}

impl Loading<'_> {
    /// The module and the schema of its config, or none if it need not be compiled.
    async fn load(&self) -> Result<Option<(Module, ConfigSchema)>, Refused> {
        let digest: Digest = self.spec.digest.parse().map_err(|_| {
            Failure::terminal(reasons::DIGEST_MISMATCH, "the digest is not sha256: and 64 hex digits")
                .at("spec.digest")
        })?;
        let bytes = {
            let _place = self.shared.fetches.acquire().await;
            let bytes = fetch(self.shared, self.spec).await?;
            self.verified(bytes, digest).await?
        };
        if self.need == Need::Verified {
            return Ok(None);
        }
        let module = match &self.shared.compilers {
            Some(compilers) => self.compiled_elsewhere(compilers, bytes, digest).await?,
            None => {
                let engine = self.shared.engine.clone();
                self.block(move || engine.load(&bytes, Some(&digest))).await??
            }
        };
        pintle_core::reconciler::supports(module.manifest())?;
        let checked = module.clone();
        let schema = self.block(move || config_schema::supports(checked.manifest())).await??;
        Ok(Some((module, schema)))
    }

    async fn verified(&self, bytes: Vec<u8>, digest: Digest) -> Result<Vec<u8>, Failure> {
        let engine = self.shared.engine.clone();
        let verified = self.block(move || engine.verify(&bytes, Some(&digest)).map(|_| bytes)).await?;
        verified.map_err(|refused| {
            let limit = refused.excess.map(|excess| match excess {
                Excess::Bytes => Limit::ModuleBytes,
                Excess::Functions => Limit::ModuleFunctions,
                Excess::FunctionBytes => Limit::FunctionBytes,
                Excess::Locals => Limit::FunctionLocals,
            });
            if let Some(limit) = limit {
                self.shared.metrics.limit_hit(&self.controller(), limit);
            }
            refused.failure
        })
    }

    async fn compiled_elsewhere(
        &self,
        compilers: &Arc<Compilers>,
        bytes: Vec<u8>,
        digest: Digest,
    ) -> Result<Module, Failure> {
        let mut bytes = Some(bytes);
        loop {
            if let Some(known) = self.known(compilers, &digest) {
                return known;
            }
            let ticket = compilers.want(digest, self.need == Need::Loaded);
            if !ticket.has_begun() {
                // However many modules wait, their bytes are not in memory.
                bytes = None;
                ticket.begun().await;
                if !self.is_there() {
                    return Err(Failure::transient(reasons::DELETED, "the Module is gone"));
                }
                // Another Module may have the same bytes.
                if let Some(known) = self.known(compilers, &digest) {
                    return known;
                }
            }
            let bytes = match bytes.take() {
                Some(bytes) => bytes,
                None => fetch(self.shared, self.spec).await?,
            };
            let (engine, controller) = (self.shared.engine.clone(), self.controller());
            // Each Module has its own lane, so one that waits for much memory holds up no other. The compiler gets no more than was
            // reserved.
            let wanted = (compilers.data_bytes_of(bytes.len()) as u64).max(describe_bytes());
            let reserved = wanted.min(self.shared.budget.bytes_max());
            let lane = format!("module {}", self.name);
            let room = self.shared.budget.reserve(&lane, Purpose::Compile, reserved).await?;
            // The ticket is given back when its thread ends, because the compiler runs until then.
            let (loaded, ticket) = self
                .block(move || {
                    let _room = room;
                    let data_bytes_max = usize::try_from(reserved).unwrap_or(usize::MAX);
                    let compile =
                        |job: pintle_engine::Job<'_>| ticket.compile(&job, &controller, data_bytes_max);
                    (engine.load_by(Compiler::Elsewhere(&compile), &bytes, Some(&digest)), ticket)
                })
                .await?;
            match loaded {
                Err(_) if ticket.was_stopped() => debug!(module = self.name, "Compiled later: it takes long"),
                loaded => return loaded,
            }
        }
    }

    /// What is known about a module without compiling it.
    fn known(&self, compilers: &Compilers, digest: &Digest) -> Option<Result<Module, Failure>> {
        compilers.refusal(digest).map(Err).or_else(|| self.shared.engine.loaded(digest).map(Ok))
    }

    async fn block<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let done = self.shared.spawner.block(work).await;
        done.map_err(|error| Failure::terminal(reasons::ENGINE_FAILED, error.to_string()))
    }

    /// Whether the Module is still the one with which this load began.
    fn is_there(&self) -> bool {
        let state = self.shared.state();
        state.modules.get(self.name).is_some_and(|module| module.metadata.uid.as_deref() == Some(self.uid))
    }

    /// The Reconciler that names the Module, for metrics. If there are several, the first one.
    fn controller(&self) -> String {
        controller_of(&self.shared.state(), self.name)
    }
}

fn controller_of(state: &State, module: &str) -> String {
    let mut found = state.reconcilers.iter().filter(|(_, object)| object.spec.module == module);
    found.next().map(|(name, _)| name.clone()).unwrap_or_default()
}

async fn fetch(shared: &Shared, spec: &ModuleSpec) -> Result<Vec<u8>, Failure> {
    let Some(source) = &spec.source.config_map else {
        return Err(
            Failure::terminal(reasons::SOURCE_MISSING, "the source names no ConfigMap").at("spec.source")
        );
    };
    let config_maps = builtin("v1", "ConfigMap", "configmaps", true);
    let mut bytes = Vec::new();
    for name in source.names() {
        if bytes.len() > MODULE_BYTES_MAX {
            // The bytes so far are reason enough to refuse it.
            break;
        }
        let reference = ObjectRef {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            namespace: Some(source.namespace.clone()),
            name: name.clone(),
        };
        let at = "spec.source.configMap";
        let found =
            shared.cluster.get(&config_maps, &reference).await.map_err(|error| not_fetched(&error).at(at))?;
        let Some(found) = found else {
            let message = format!("there is no {reference}; push the module again, or create it");
            return Err(Failure::transient(reasons::SOURCE_NOT_FOUND, message).at(at));
        };
        let encoded = found
            .get("binaryData")
            .and_then(|data| data.get(&source.key))
            .and_then(serde_json::Value::as_str);
        let Some(encoded) = encoded else {
            let message = format!("{reference} has no key {:?} in binaryData", source.key);
            return Err(
                Failure::transient(reasons::SOURCE_NOT_FOUND, message).at("spec.source.configMap.key")
            );
        };
        let part = BASE64_STANDARD.decode(encoded);
        bytes.extend(part.map_err(|error| {
            Failure::transient(reasons::SOURCE_INVALID, format!("{reference}: {error}")).at(at)
        })?);
    }
    Ok(bytes)
}

fn not_fetched(error: &ApiError) -> Failure {
    let reason = if error.code == 403 { reasons::SOURCE_FORBIDDEN } else { reasons::SOURCE_UNAVAILABLE };
    Failure::transient(reason, error.to_string())
}

/// The name of the Secret with the key, in the host's namespace.
const KEY_NAME: &str = "pintle-key";

/// Reads the key that seals the hashes of Secrets. The first host that starts creates it. Retries until it succeeds: without the key, the
/// hashes on existing Secrets would mean nothing, and every Secret would be written again.
pub(crate) async fn sealing_key(cluster: &Cluster, namespace: &str) -> SealingKey {
    let mut delay = RETRY_FIRST;
    loop {
        match try_sealing_key(cluster, namespace).await {
            Ok(Some(key)) => return key,
            Ok(None) => {
                debug!(namespace, "Waiting for the host that leads to make Secret {KEY_NAME}");
                tokio::time::sleep(RETRY_FIRST).await;
            }
            Err(error) => {
                warn!(
                    namespace,
                    error, "Secret {KEY_NAME} can be neither read nor made; is deploy/install.yaml applied?"
                );
                tokio::time::sleep(delay).await;
                delay = (delay * 2).min(KEY_RETRY_MAX);
            }
        }
    }
}

/// The key; none if it does not exist and this host may not create it.
async fn try_sealing_key(cluster: &Cluster, namespace: &str) -> Result<Option<SealingKey>, String> {
    let secrets = builtin("v1", "Secret", "secrets", true);
    let reference = ObjectRef {
        api_version: "v1".into(),
        kind: "Secret".into(),
        namespace: Some(namespace.into()),
        name: KEY_NAME.into(),
    };
    let secret = match cluster.get(&secrets, &reference).await.map_err(|error| error.to_string())? {
        Some(secret) => secret,
        None if cluster.hold().term().is_none() => return Ok(None),
        None => {
            let bytes: [u8; 32] = clock::random().map_err(|error| error.to_string())?;
            let made = json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": KEY_NAME, "namespace": namespace},
                "immutable": true, "data": {"key": BASE64_STANDARD.encode(bytes)},
            });
            // Created, never applied. If two hosts start at once, the second one reads the first one's key at its next attempt.
            cluster.create(&secrets, &made).await.map_err(|error| error.to_string())?
        }
    };
    let encoded = secret.pointer("/data/key").and_then(serde_json::Value::as_str).unwrap_or_default();
    let bytes = BASE64_STANDARD.decode(encoded).map_err(|error| error.to_string())?;
    let bytes: [u8; 32] = bytes
        .try_into()
        .map_err(|_| format!("key `key` in Secret {namespace}/{KEY_NAME} has not 32 bytes"))?;
    Ok(Some(SealingKey::new(bytes)))
}

#[cfg(test)]
mod tests;
