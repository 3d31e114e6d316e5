//! Fetching and loading modules, and the key that hashes of Secrets are sealed with.

use std::{
    io::Write,
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use pintle_core::{ApiError, SealingKey};
use pintle_engine::{Compiler, Digest, Module};
use pintle_wit::{Failure, ObjectRef, reasons};
use serde_json::json;
use tracing::{debug, info, warn};

use super::Shared;
use crate::{
    api::ModuleSpec,
    clock,
    kubernetes::{Cluster, builtin},
};

/// How long after a failed fetch the next one is tried, at first and at most.
const RETRY_FIRST: Duration = Duration::from_millis(500);
const RETRY_MAX: Duration = Duration::from_secs(30);
/// Without the key a host does nothing at all: when the API server answers again, it is not to lose half a minute.
const KEY_RETRY_MAX: Duration = Duration::from_secs(5);

/// How far a module got.
#[derive(Clone)]
pub(crate) enum Progress {
    /// It is being fetched and compiled.
    Loading,
    /// It can be called.
    Loaded(Module),
    /// It could not be fetched: it is tried again then.
    NotFetched(Failure, Duration),
    /// It was fetched, and is no module that this host can run. Its bytes cannot change.
    Refused(Failure),
}

/// The loading of a Module.
#[derive(Clone)]
pub(crate) struct Load {
    /// The uid of the Module that it is about: another may take its name.
    pub(crate) uid: String,
    pub(crate) progress: Progress,
    attempts: u32,
}

impl Load {
    /// Whether it is time to begin, or to begin again.
    pub(crate) fn is_due(load: Option<&Self>, uid: &str, now: Duration) -> bool {
        match load {
            None => true,
            Some(load) if load.uid != uid => true,
            Some(Self { progress: Progress::NotFetched(_, at), .. }) => *at <= now,
            Some(_) => false,
        }
    }

    /// A load that is as far as this.
    #[cfg(test)]
    pub(crate) fn at(uid: &str, progress: Progress) -> Self {
        Self { uid: uid.into(), progress, attempts: 1 }
    }

    /// When a failed fetch is tried again.
    pub(crate) fn retries_at(&self) -> Option<Duration> {
        match &self.progress {
            Progress::NotFetched(_, at) => Some(*at),
            _ => None,
        }
    }
}

/// Begins to load a Module; the outcome goes into the shared state, and the control loop is told.
pub(crate) fn begin(shared: &Arc<Shared>, name: &str, uid: &str, spec: ModuleSpec) {
    let before =
        shared.state().loads.get(name).filter(|load| load.uid == uid).map_or(0, |load| load.attempts);
    let loading = Load { uid: uid.into(), progress: Progress::Loading, attempts: before + 1 };
    shared.state().loads.insert(name.into(), loading);
    let (shared, name, uid) = (Arc::clone(shared), name.to_owned(), uid.to_owned());
    let spawner = shared.spawner.clone();
    spawner.spawn(async move {
        let progress = match load(&shared, &spec).await {
            Ok(module) => {
                info!(module = name, digest = %module.digest(), compile = ?module.compile_duration(), "Loaded a module");
                Progress::Loaded(module)
            }
            Err(failure) if failure.retry => {
                let delay = RETRY_FIRST.saturating_mul(1 << before.min(10)).min(RETRY_MAX);
                Progress::NotFetched(failure, clock::monotonic() + delay)
            }
            Err(failure) => {
                warn!(module = name, %failure, "A module is refused");
                Progress::Refused(failure)
            }
        };
        let load = Load { uid, progress, attempts: before + 1 };
        shared.state().loads.insert(name, load);
        shared.control.notify_one();
    });
}

async fn load(shared: &Shared, spec: &ModuleSpec) -> Result<Module, Failure> {
    let expected: Digest = spec.digest.parse().map_err(|_| {
        Failure::terminal(reasons::DIGEST_MISMATCH, "the digest is not sha256: and 64 hex digits")
            .at("spec.digest")
    })?;
    let bytes = fetch(shared, spec).await?;
    let engine = shared.engine.clone();
    let loaded = shared.spawner.block(move || engine.load(&bytes, Some(&expected))).await;
    let module = loaded.map_err(|error| Failure::terminal("EngineFailed", error.to_string()))??;
    pintle_core::reconciler::supports(module.manifest())?;
    Ok(module)
}

/// Compiles in a process of its own, see [`Compiler::Elsewhere`].
pub(crate) fn compiler() -> Compiler {
    Compiler::Elsewhere(Arc::new(compile_elsewhere))
}

/// This very program, also when its file was replaced meanwhile.
const THIS_PROGRAM: &str = "/proc/self/exe";

fn compile_elsewhere(bytes: &[u8]) -> Result<Vec<u8>, Failure> {
    let failed = |error: std::io::Error| {
        Failure::transient("CompilerFailed", format!("the compiler cannot be run: {error}"))
    };
    let mut child = Command::new(THIS_PROGRAM)
        .arg("compile")
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    // It reads everything before it writes anything, so neither waits for the other. Dropping the pipe ends its input.
    let written = child.stdin.take().map_or(Ok(()), |mut input| input.write_all(bytes));
    let output = child.wait_with_output().map_err(failed)?;
    if output.status.success() {
        written.map_err(failed)?;
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    match output.status.code() {
        Some(_) => Err(Failure::terminal(reasons::INVALID_WASM, said)),
        // Killed, perhaps for want of memory.
        None => Err(Failure::transient("CompilerFailed", format!("the compiler ended by a signal: {said}"))),
    }
}

async fn fetch(shared: &Shared, spec: &ModuleSpec) -> Result<Vec<u8>, Failure> {
    let Some(source) = &spec.source.config_map else {
        return Err(Failure::terminal("SourceMissing", "the source names no ConfigMap").at("spec.source"));
    };
    let config_maps = builtin("v1", "ConfigMap", "configmaps", true);
    let mut bytes = Vec::new();
    for name in source.names() {
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
            return Err(Failure::transient("SourceNotFound", message).at(at));
        };
        let encoded = found
            .get("binaryData")
            .and_then(|data| data.get(&source.key))
            .and_then(serde_json::Value::as_str);
        let Some(encoded) = encoded else {
            let message = format!("{reference} has no key {:?} in binaryData", source.key);
            return Err(Failure::transient("SourceNotFound", message).at("spec.source.configMap.key"));
        };
        let part = BASE64_STANDARD.decode(encoded);
        bytes.extend(
            part.map_err(|error| {
                Failure::transient("SourceInvalid", format!("{reference}: {error}")).at(at)
            })?,
        );
    }
    Ok(bytes)
}

fn not_fetched(error: &ApiError) -> Failure {
    let reason = if error.code == 403 { "SourceForbidden" } else { "SourceUnavailable" };
    Failure::transient(reason, error.to_string())
}

/// The name of the Secret with the key, in the host's namespace.
const KEY_NAME: &str = "pintle-key";

/// Reads the key that hashes of Secrets are sealed with; the first host that starts makes it. Tried until it succeeds: without
/// the key the hashes on existing Secrets would mean nothing, and every one would be written again.
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

/// The key; nothing when there is none and it is not this host's to make.
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
            // Created, never applied: of two hosts that start at once, the second reads the first one's key at its next attempt.
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
