//! The module that is judged: named in the cluster, or brought along.

use std::{sync::Arc, time::Duration};

use pintle_api as api;
use pintle_core::reasons;
use pintle_engine::Module;
use pintle_kubernetes::Cluster;
use pintle_modules::{Limit, Loader, Order, Report};
use pintle_wit::Failure;

use crate::{ModuleChoice, Preview, PreviewError, reader::Reader};

/// Nobody counts what a preview's modules cost.
struct Untold;

impl Report for Untold {
    fn compiled(&self, _: &'static str, _: Duration) {}
    fn limit_hit(&self, _: &str, _: Limit) {}
}

impl Preview {
    /// Gets a module ready to be asked, and says its name.
    pub(crate) async fn module(
        &self,
        reader: &Reader,
        modules: &Cluster,
        choice: ModuleChoice,
    ) -> Result<(String, Module), PreviewError> {
        let (name, module) = match choice {
            ModuleChoice::Named(name) => {
                let module = self.named(reader, modules, &name).await?;
                (name, module)
            }
            ModuleChoice::Bytes { name, bytes } => {
                let engine = self.engine.clone();
                let loaded = self.spawner.block(move || engine.load(&bytes, None)).await;
                let loaded =
                    loaded.map_err(|error| Failure::terminal(reasons::ENGINE_FAILED, error.to_string()))?;
                (name, loaded?)
            }
        };
        self.keep(&module);
        Ok((name, module))
    }

    async fn named(&self, reader: &Reader, modules: &Cluster, name: &str) -> Result<Module, PreviewError> {
        let found: api::Module = reader.own(name).await?;
        let order = Order::new(name, &found.spec, String::new())?;
        let known = found.spec.digest.parse().ok().and_then(|digest| self.engine.loaded(&digest));
        if let Some(known) = known {
            return Ok(known);
        }
        let loader = Loader::new(
            modules.clone(),
            self.engine.clone(),
            self.compilers.clone(),
            self.budget.clone(),
            self.spawner.clone(),
            Arc::new(Untold),
        );
        let bytes = loader.fetch(&order).await.map_err(unfetched)?;
        Ok(loader.compile(&order, bytes).await?)
    }
}

/// Who may not read the bytes is told so as of any other right.
fn unfetched(failure: Failure) -> PreviewError {
    match failure.reason.as_str() {
        reasons::SOURCE_FORBIDDEN => PreviewError::Forbidden(format!(
            "the module's bytes cannot be read: {}; the Role pintle-module-reader in pintle-system gives the right",
            failure.message
        )),
        reasons::SOURCE_UNAVAILABLE => PreviewError::Unavailable(failure.to_string()),
        _ => PreviewError::Refused(failure),
    }
}
