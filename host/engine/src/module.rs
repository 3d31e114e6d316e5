//! [`Module`]: a module that was loaded, and what it can do.

use std::{fmt, sync::Arc, time::Duration};

use crate::{
    digest::Digest,
    guest::Guest,
    loaded::{Loaded, Parts},
    views::Views,
    worlds::{Reconciler, Viewer, World},
};

/// A module that was loaded. It is cheap to clone, and every clone is the same module.
///
/// What it can do are its parts: [`Self::guest`] reconciles, [`Self::views`] serves views. A module has at least one of them.
#[derive(Clone)]
pub struct Module(pub(crate) Arc<Loaded>);

impl Module {
    /// The part that reconciles, if the module exports it.
    pub fn guest(&self) -> Option<Guest> {
        Guest::of(&self.0)
    }

    /// The part that serves views, if the module exports it.
    pub fn views(&self) -> Option<Views> {
        Views::of(&self.0)
    }

    /// The name of the guest, which is the same in all parts.
    pub fn name(&self) -> &str {
        match &self.0.parts {
            Parts::Guest(guest) | Parts::Both(guest, _) => &guest.manifest.name,
            Parts::Views(views) => &views.manifest.name,
        }
    }

    /// The guest's own version, which is the same in all parts.
    pub fn version(&self) -> &str {
        match &self.0.parts {
            Parts::Guest(guest) | Parts::Both(guest, _) => &guest.manifest.version,
            Parts::Views(views) => &views.manifest.version,
        }
    }

    /// The digest of the module's bytes.
    pub fn digest(&self) -> Digest {
        self.0.digest
    }

    /// The interfaces of the contract that the module exports, one for each of its parts.
    pub fn interfaces(&self) -> Vec<&'static str> {
        match &self.0.parts {
            Parts::Guest(_) => vec![Reconciler::INTERFACE],
            Parts::Views(_) => vec![Viewer::INTERFACE],
            Parts::Both(..) => vec![Reconciler::INTERFACE, Viewer::INTERFACE],
        }
    }

    /// How large the module is, in bytes.
    pub fn size_bytes(&self) -> usize {
        self.0.size.bytes
    }

    /// How much memory its machine code takes, with its data, in bytes.
    pub fn code_bytes(&self) -> usize {
        self.0.size.code_bytes
    }

    /// How long compiling it took; if it was compiled elsewhere, including the way there and back.
    pub fn compile_duration(&self) -> Duration {
        self.0.compile_duration
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module")
            .field("digest", &self.0.digest)
            .field("name", &self.name())
            .field("version", &self.version())
            .finish_non_exhaustive()
    }
}
