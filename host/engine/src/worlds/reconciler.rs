//! The world `reconciler`: a guest that says what should exist because of a root.

use pintle_wit::{Failure, worlds::reconciler::INTERFACE};
use wasmtime::component::ComponentExportIndex;

use super::{Interface, World};

/// The functions of the interface `guest`.
pub(crate) struct Reconciler {
    pub(crate) describe: ComponentExportIndex,
    pub(crate) reconcile: ComponentExportIndex,
}

impl World for Reconciler {
    const INTERFACE: &'static str = INTERFACE;

    fn find(interface: &Interface<'_>) -> Result<Self, Failure> {
        Ok(Self {
            describe: interface.function("describe", &[], "string")?,
            reconcile: interface.function("reconcile", &["string"], "result<string, string>")?,
        })
    }
}
