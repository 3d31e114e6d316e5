//! [`Loaded`]: a component that exports the contract, and what its guest says of itself.

use std::{sync::Arc, time::Duration};

use pintle_wit::{Failure, reasons};

use crate::{
    at_once::Patience,
    call::{CallError, CallStats, Callee},
    digest::Digest,
    failure::quoted,
    limits::CallLimits,
    worlds::{Exports, Reconciler, Viewer, World, Worlds},
};

/// A module that was loaded. What calls it keeps all of it.
pub(crate) struct Loaded {
    pub(crate) callee: Callee,
    pub(crate) digest: Digest,
    pub(crate) size: Size,
    pub(crate) compile_duration: Duration,
    pub(crate) parts: Parts,
    /// Of the guest's calls.
    pub(crate) patience: Patience,
}

/// What a module can do.
pub(crate) type Parts = Exports<Arc<Part<Reconciler>>, Arc<Part<Viewer>>>;

/// A world that a module exports, and what the guest says of itself there.
pub(crate) struct Part<W: World> {
    pub(crate) world: W,
    pub(crate) manifest: W::Manifest,
    pub(crate) manifest_text: String,
}

/// How large a module is, in bytes.
pub(crate) struct Size {
    /// Its own bytes.
    pub(crate) bytes: usize,
    /// Its compiled form.
    pub(crate) code_bytes: usize,
}

impl Parts {
    /// Asks the guest for each of its manifests. This is the last check of a module.
    pub(crate) fn probe(callee: &Callee, worlds: Worlds) -> Result<Self, Failure> {
        match worlds {
            Worlds::Guest(world) => Ok(Self::Guest(part(callee, world)?)),
            Worlds::Views(world) => Ok(Self::Views(part(callee, world)?)),
            Worlds::Both(reconciler, viewer) => {
                let (guest, views) = (part(callee, reconciler)?, part(callee, viewer)?);
                let (one, other) = (&guest.manifest, &views.manifest);
                agree("name", &one.name, &other.name)?;
                agree("version", &one.version, &other.version)?;
                Ok(Self::Both(guest, views))
            }
        }
    }
}

/// One guest has one name and one version, wherever it says them.
fn agree(field: &str, guest: &str, views: &str) -> Result<(), Failure> {
    if guest == views {
        return Ok(());
    }
    let message = format!(
        "{} says that the {field} is {}, and {} that it is {}",
        Reconciler::DESCRIBE,
        quoted(guest),
        Viewer::DESCRIBE,
        quoted(views)
    );
    Err(Failure::terminal(reasons::INVALID_DOCUMENT, message).at(field))
}

/// How long a guest may take to describe itself when it is loaded. It needs microseconds; but a machine that does much else may stop the
/// thread meanwhile, and the whole module would be refused for it.
const DESCRIBE_TIMEOUT: Duration = Duration::from_secs(2);

fn part<W: World>(callee: &Callee, world: W) -> Result<Arc<Part<W>>, Failure> {
    let limits = CallLimits { timeout: DESCRIBE_TIMEOUT, ..CallLimits::default() };
    let (manifest_text, manifest, _) = describe(callee, &world, &limits).map_err(|mut error| {
        error.failure.message = format!("{}: {}", W::DESCRIBE, error.failure.message);
        *error.failure
    })?;
    Ok(Arc::new(Part { world, manifest, manifest_text }))
}

/// Asks the guest for its manifest in a world.
pub(crate) fn describe<W: World>(
    callee: &Callee,
    world: &W,
    limits: &CallLimits,
) -> Result<(String, W::Manifest, CallStats), CallError> {
    let (text, mut stats) = callee.call::<(), String>(callee.enter(), world.describe(), (), limits)?;
    stats.response_bytes = text.len();
    match W::read_manifest(&text, limits.response) {
        Ok(manifest) => Ok((text, manifest, stats)),
        Err(failure) => Err(CallError::engine(failure, stats)),
    }
}
