//! The world `reconciler`: a guest that says what should exist because of a root.

use pintle_wit::{Failure, Limits, Manifest, worlds::reconciler::INTERFACE};
use wasmtime::component::ComponentExportIndex;

use super::{Interface, World};

/// The functions of the interface `guest`.
pub(crate) struct Reconciler {
    describe: ComponentExportIndex,
    pub(crate) reconcile: ComponentExportIndex,
}

impl World for Reconciler {
    type Manifest = Manifest;

    const INTERFACE: &'static str = INTERFACE;
    const DESCRIBE: &'static str = "describe";

    fn find(interface: &Interface<'_>) -> Result<Self, Failure> {
        Ok(Self {
            describe: interface.function(Self::DESCRIBE, &[], "string")?,
            reconcile: interface.function("reconcile", &["string"], "result<string, string>")?,
        })
    }

    fn describe(&self) -> &ComponentExportIndex {
        &self.describe
    }

    fn read_manifest(text: &str, limits: Limits) -> Result<Manifest, Failure> {
        pintle_wit::parse_manifest(text, limits)
    }
}
