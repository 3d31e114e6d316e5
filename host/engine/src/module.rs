use std::{fmt, sync::Arc, time::Duration};

use pintle_wit::{Failure, Manifest};
use wasmtime::component::InstancePre;

use crate::{
    Answer, CallError, CallLimits, CallStats, Digest,
    call::{self, Limiter},
    contract::Exports,
    engine::Inner,
};

/// A guest that was loaded. Cheap to clone; every clone is the same module.
#[derive(Clone)]
pub struct Module(pub(crate) Arc<Loaded>);

pub(crate) struct Loaded {
    engine: Arc<Inner>,
    guest: InstancePre<Limiter>,
    exports: Exports,
    digest: Digest,
    manifest: Manifest,
    manifest_text: String,
    size_bytes: usize,
    compile_duration: Duration,
}

impl Loaded {
    /// Asks the guest for its manifest: the last check of a module.
    pub(crate) fn probe(
        engine: Arc<Inner>,
        guest: InstancePre<Limiter>,
        exports: Exports,
        digest: Digest,
        size_bytes: usize,
        compile_duration: Duration,
    ) -> Result<Self, Failure> {
        let (manifest_text, manifest, _) = describe(&engine, &guest, &exports, &CallLimits::default())
            .map_err(|mut error| {
                error.failure.message = format!("describe: {}", error.failure.message);
                *error.failure
            })?;
        Ok(Self { engine, guest, exports, digest, manifest, manifest_text, size_bytes, compile_duration })
    }
}

fn describe(
    engine: &Inner,
    guest: &InstancePre<Limiter>,
    exports: &Exports,
    limits: &CallLimits,
) -> Result<(String, Manifest, CallStats), CallError> {
    let (text, mut stats) = call::call::<(), String>(engine, guest, &exports.describe, (), limits)?;
    stats.response_bytes = text.len();
    match pintle_wit::parse_manifest(&text, limits.response) {
        Ok(manifest) => Ok((text, manifest, stats)),
        Err(failure) => Err(CallError::engine(failure, stats)),
    }
}

impl Module {
    /// Asks the guest what should exist because of a root. The request is a [`pintle_wit::Request`] in JSON.
    ///
    /// The call runs on this thread, and first waits for its turn when as many calls run as the engine has room for. The thread
    /// must have a stack of 1 MiB or more.
    ///
    /// # Errors
    /// The guest's own failure, or the engine's for a guest that broke a limit or the contract.
    pub fn reconcile(&self, request_json: &str, limits: &CallLimits) -> Result<Answer, CallError> {
        let loaded = &*self.0;
        let (result, mut stats) = call::call::<_, Result<String, String>>(
            &loaded.engine,
            &loaded.guest,
            &loaded.exports.reconcile,
            (request_json,),
            limits,
        )?;
        match result {
            Ok(text) => {
                stats.response_bytes = text.len();
                match pintle_wit::parse_response(&text, limits.response) {
                    Ok(response) => Ok(Answer { response, text, stats }),
                    Err(failure) => Err(CallError::engine(failure, stats)),
                }
            }
            Err(text) => {
                stats.response_bytes = text.len();
                Err(call::stated(&text, limits.response, stats))
            }
        }
    }

    /// Asks the guest for its manifest anew, and returns it as it stands with what the call cost. [`Self::manifest`] is the one
    /// that counts.
    ///
    /// # Errors
    /// As [`Self::reconcile`].
    pub fn describe(&self, limits: &CallLimits) -> Result<(String, CallStats), CallError> {
        let loaded = &*self.0;
        let (text, _, stats) = describe(&loaded.engine, &loaded.guest, &loaded.exports, limits)?;
        Ok((text, stats))
    }

    /// The digest of the module's bytes.
    pub fn digest(&self) -> Digest {
        self.0.digest
    }

    /// What the guest said of itself when it was loaded.
    pub fn manifest(&self) -> &Manifest {
        &self.0.manifest
    }

    /// The same as the guest wrote it.
    pub fn manifest_text(&self) -> &str {
        &self.0.manifest_text
    }

    /// How large the module is, in bytes.
    pub fn size_bytes(&self) -> usize {
        self.0.size_bytes
    }

    /// How long compiling it took.
    pub fn compile_duration(&self) -> Duration {
        self.0.compile_duration
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module")
            .field("digest", &self.0.digest)
            .field("name", &self.0.manifest.name)
            .field("version", &self.0.manifest.version)
            .finish_non_exhaustive()
    }
}
