//! The world `viewer`: a guest that shows objects of one kind as objects of another.

use pintle_wit::{Failure, Limits, views::ViewsManifest, worlds::viewer::INTERFACE};
use wasmtime::component::ComponentExportIndex;

use super::{Interface, World};

/// The functions of the interface `views`.
pub(crate) struct Viewer {
    describe: ComponentExportIndex,
    pub(crate) show: ComponentExportIndex,
    pub(crate) store: ComponentExportIndex,
}

impl World for Viewer {
    type Manifest = ViewsManifest;

    const INTERFACE: &'static str = INTERFACE;
    const DESCRIBE: &'static str = "describe-views";

    fn find(interface: &Interface<'_>) -> Result<Self, Failure> {
        Ok(Self {
            describe: interface.function(Self::DESCRIBE, &[], "string")?,
            show: interface.function("show", &["string"], "result<string, string>")?,
            store: interface.function("store", &["string"], "result<string, string>")?,
        })
    }

    fn describe(&self) -> &ComponentExportIndex {
        &self.describe
    }

    fn read_manifest(text: &str, limits: Limits) -> Result<ViewsManifest, Failure> {
        pintle_wit::parse_views_manifest(text, limits)
    }
}
