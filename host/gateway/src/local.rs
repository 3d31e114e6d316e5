//! The documents of Views for `pintle console`: Views and Modules are read as the user, and decided about as a gateway does. Nothing is
//! written: what is in force stands in the Views if a gateway runs, and is what they want if none does.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::Context;
use futures::future::BoxFuture;
use kube::{Api, Client, ResourceExt, api::ListParams};
use pintle_api::{Module, View};
use pintle_console::{Caller, DocumentView, Provider};
use pintle_core::view::document::problem::{Doing, Refusal};
use pintle_engine::{Engine, EngineConfig, Meter};
use pintle_kubernetes::Cluster;
use pintle_modules::{Budget, Compilers, Loader, Order, Report, child};
use pintle_runtime::{Spawner, clock};
use pintle_schema::config_schema;
use pintle_wit::Failure;
use serde_json::{Value, json};
use tokio::sync::{Mutex, watch};

use crate::{
    control::{
        self,
        bind::{self, ModuleState, World, decide},
        serving::Table,
        wanted,
    },
    directory::Directory,
    documents::{Made, paths},
    metrics::Metrics,
    show::{Guests, InModules},
};

/// How long what was read of Views and Modules holds.
const HOLDS: Duration = Duration::from_secs(5);

/// The documents of the Views that a user may read.
pub struct LocalDocuments {
    client: Client,
    cluster: Cluster,
    loader: Loader,
    spawner: Spawner,
    guests: Arc<Guests>,
    state: Mutex<State>,
    /// What is served, as it was last read.
    known: watch::Sender<Option<Arc<Directory>>>,
    made: Made,
}

/// What was read last.
#[derive(Default)]
struct State {
    read_at: Option<Duration>,
    /// The modules by digest, each with what came of it.
    loaded: BTreeMap<String, ModuleState>,
    world: World,
    table: Table,
    directory: Arc<Directory>,
}

impl LocalDocuments {
    /// The documents of a cluster, read by this client. Calls of guests take memory of this budget.
    ///
    /// # Errors
    /// When the engine does not start.
    pub fn new(client: Client, budget: Budget) -> anyhow::Result<Self> {
        let spawner = Spawner::default();
        let metrics = Arc::new(Metrics::default());
        let engine = Engine::new(EngineConfig::new(Meter::Deadline, clock::monotonic))
            .context("the WebAssembly engine does not start")?;
        let report = Arc::clone(&metrics) as Arc<dyn Report>;
        let compilers = Compilers::new(child::Limits::default(), Arc::clone(&report));
        let cluster = Cluster::new(client.clone());
        let loader =
            Loader::new(cluster.clone(), engine, Some(compilers), budget.clone(), spawner.clone(), report);
        let guests = Guests::new(spawner.clone(), Arc::new(InModules), budget, metrics);
        Ok(Self {
            client,
            cluster,
            loader,
            spawner,
            guests: Arc::new(guests),
            state: Mutex::default(),
            known: watch::Sender::new(None),
            made: Made::default(),
        })
    }

    /// What is served, as it was a moment ago at the latest; or as it is known, while somebody else reads it, and may wait for a compiler.
    async fn directory(&self) -> Result<Arc<Directory>, Refusal> {
        let known = self.known.borrow().clone();
        let mut state = match (self.state.try_lock(), known) {
            (Ok(state), _) => state,
            (Err(_), Some(known)) => return Ok(known),
            (Err(_), None) => self.state.lock().await,
        };
        let now = clock::monotonic();
        if state.read_at.is_none_or(|at| at + HOLDS < now) {
            self.read(&mut state).await?;
            state.read_at = Some(clock::monotonic());
            self.known.send_replace(Some(Arc::clone(&state.directory)));
        }
        Ok(Arc::clone(&state.directory))
    }

    async fn read(&self, state: &mut State) -> Result<(), Refusal> {
        let views = Api::<View>::all(self.client.clone()).list(&ListParams::default()).await;
        let views = views.map_err(|error| refused(&error))?;
        let of_documents = |view: &View| view.spec.serve.rest.is_some();
        state.world.views =
            views.items.into_iter().filter(of_documents).map(|view| (view.name_any(), view)).collect();
        let wanted = wanted::modules(&state.world.views);
        state.world.modules = self.modules(&wanted, &mut state.loaded).await?;
        for kind in wanted::kinds(&state.world) {
            let found = control::state_of(&self.cluster, &kind).await;
            state.world.kinds.insert(kind, found);
        }
        self.check(&mut state.world).await;
        let now = clock::now();
        let servings = state
            .world
            .views
            .iter()
            .filter_map(|(name, view)| Some((view.clone(), decide(&state.world, name, now).serving?)));
        let servings = servings.collect();
        state.directory = state.table.renewed(servings);
        Ok(())
    }

    /// How far the Modules of these names are. Each is loaded once.
    async fn modules(
        &self,
        wanted: &[String],
        loaded: &mut BTreeMap<String, ModuleState>,
    ) -> Result<BTreeMap<String, ModuleState>, Refusal> {
        let mut states = BTreeMap::new();
        for name in wanted {
            let found = Api::<Module>::all(self.client.clone()).get_opt(name).await;
            let Some(module) = found.map_err(|error| refused(&error))? else { continue };
            let digest = module.spec.digest.clone();
            let is_known =
                matches!(loaded.get(&digest), Some(ModuleState::Loaded(_) | ModuleState::Refused(_)));
            if !is_known {
                let state = match self.load(name, &module).await {
                    Ok(module) => ModuleState::Loaded(module),
                    Err(failure) if failure.retry => ModuleState::NotYet(failure),
                    Err(failure) => ModuleState::Refused(failure),
                };
                loaded.insert(digest.clone(), state);
            }
            states.extend(loaded.get(&digest).map(|state| (name.clone(), state.clone())));
        }
        Ok(states)
    }

    async fn load(&self, name: &str, module: &Module) -> Result<pintle_engine::Module, Failure> {
        let order = Order::new(name, &module.spec, String::new())?;
        let bytes = self.loader.fetch(&order).await?;
        self.loader.compile(&order, bytes).await
    }

    /// Checks configs and schemas. They come from guests, so a check may take long, and runs where that holds up nobody.
    async fn check(&self, world: &mut World) {
        for (views, config) in wanted::configs(world) {
            let key = (views.digest().to_string(), config.to_string());
            let check = move || config_schema::supports_views(views.manifest())?.check(&config);
            if let Ok(outcome) = self.spawner.block(check).await {
                world.configs.insert(key, outcome);
            }
        }
        for (views, name) in wanted::shown(world) {
            let key = (views.digest().to_string(), name.clone());
            let check = move || views.manifest().view(&name).map(bind::can_be_shown);
            if let Ok(Some(outcome)) = self.spawner.block(check).await {
                world.shown.insert(key, outcome);
            }
        }
    }
}

/// Why Views or Modules cannot be read.
fn refused(error: &kube::Error) -> Refusal {
    match error {
        kube::Error::Api(status) => {
            let said: Value = json!({"message": status.message, "reason": status.reason});
            Refusal::of_answer(Doing::List, status.code, None, &said)
        }
        _ => Refusal::bad_gateway(Doing::List, "the API server did not answer"),
    }
}

impl Provider for LocalDocuments {
    fn view<'a>(
        &'a self,
        path: &'a str,
        _: &'a Caller,
    ) -> BoxFuture<'a, Result<Option<Arc<DocumentView>>, Refusal>> {
        Box::pin(async move {
            let directory = self.directory().await?;
            self.made.of(&directory, path, &self.guests)
        })
    }

    fn paths<'a>(&'a self, _: &'a Caller) -> BoxFuture<'a, Result<Vec<String>, Refusal>> {
        Box::pin(async move {
            let directory = self.directory().await?;
            Ok(paths(&directory))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use futures::FutureExt;
    use http::{Request, Response};
    use kube::client::Body;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_asks_while_another_reads_is_told_what_is_known() {
        let asked = Arc::new(AtomicUsize::new(0));
        let service = tower::service_fn(move |_: Request<Body>| {
            let is_first = asked.fetch_add(1, Ordering::Relaxed) == 0;
            async move {
                if !is_first {
                    std::future::pending::<()>().await;
                }
                let views = json!({"apiVersion": "pintle.dev/v1alpha1", "kind": "ViewList", "metadata": {}, "items": []});
                Ok::<_, Infallible>(Response::new(Body::from(views.to_string().into_bytes())))
            }
        });
        let documents =
            LocalDocuments::new(Client::new(service, "default"), Budget::fixed(512 << 20)).unwrap();
        documents.directory().await.unwrap();
        tokio::time::advance(HOLDS * 2).await;
        let mut reading = std::pin::pin!(documents.directory());
        assert!(reading.as_mut().now_or_never().is_none());
        assert!(documents.directory().now_or_never().is_some_and(|known| known.is_ok()));
    }
}
