//! [`Workshop`]: where the modules of others are compiled and called, within the limits that the operator has for its own.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use pintle_engine::{Compiler, Engine, EngineConfig, Meter};
use pintle_kubernetes::Cluster;
use pintle_modules::{Budget, Compilers, Limit, Loader, Report, child};
use pintle_preview::Preview;
use pintle_runtime::{Spawner, clock};
use tokio::sync::Semaphore;

use crate::problem::Problem;

/// How many uploads there may be at once: each has its bytes in memory until it is done.
const UPLOADS: usize = 2;

/// How many plans are made at once. One reads every root of a Reconciler.
const PLANS: usize = 2;

/// How many roots are inspected at once.
const INSPECTIONS: usize = 4;

/// Where modules are compiled and called.
pub struct Workshop {
    /// What verifies and compiles uploads.
    pub(crate) loader: Loader,
    /// Who may upload one now.
    pub(crate) uploads: Semaphore,
    /// What makes plans, and inspects roots.
    pub(crate) preview: Preview,
    /// The plans that may be made now.
    pub(crate) plans: Arc<Semaphore>,
    /// Who may inspect a root now.
    pub(crate) inspections: Semaphore,
    /// Whoever reads the bytes of Modules for previews; the caller if nobody does.
    pub(crate) modules: Option<kube::Client>,
}

/// What a workshop is made of.
pub struct Parts {
    /// What calls modules.
    pub engine: Engine,
    /// Where they are compiled; in this process without any.
    pub compilers: Option<Arc<Compilers>>,
    /// The memory that this takes.
    pub budget: Budget,
    /// Where it runs.
    pub spawner: Spawner,
    /// Who is told of it.
    pub report: Arc<dyn Report>,
    /// A client of the cluster.
    pub client: kube::Client,
    /// Whether that client reads the bytes of Modules for everybody who may read the Module.
    pub reads_modules: bool,
}

/// The workshop could not be started.
#[derive(Debug, thiserror::Error)]
pub enum WorkshopError {
    /// There is no engine.
    #[error("the WebAssembly engine does not start: {0}")]
    Engine(#[from] pintle_engine::EngineError),
    /// The engine was not tried.
    #[error("the WebAssembly engine was not tried: {0}")]
    Untried(String),
}

/// What nobody counts.
pub(crate) struct Untold;

impl Report for Untold {
    fn compiled(&self, _: &'static str, _: Duration) {}

    fn limit_hit(&self, _: &str, _: Limit) {}
}

impl Workshop {
    /// A workshop with what a process has already.
    pub fn new(parts: Parts) -> Self {
        let Parts { engine, compilers, budget, spawner, report, client, reads_modules } = parts;
        let preview = Preview::new(engine.clone(), compilers.clone(), budget.clone(), spawner.clone());
        let cluster = Cluster::new(client.clone());
        Self {
            loader: Loader::new(cluster, engine, compilers, budget, spawner, report),
            uploads: Semaphore::new(UPLOADS),
            preview,
            plans: Arc::new(Semaphore::new(PLANS)),
            inspections: Semaphore::new(INSPECTIONS),
            modules: reads_modules.then_some(client),
        }
    }

    /// A workshop of its own, whose compilers are processes of this program, which must be `pintle`. An engine whose deadline does not fire
    /// would let one guest hold a thread for ever, so that is tried first. What it does takes memory of this budget.
    ///
    /// # Errors
    /// When there is no engine.
    pub async fn start(client: kube::Client, budget: Budget) -> Result<Self, WorkshopError> {
        let engine = Engine::new(EngineConfig::new(Meter::Deadline, clock::monotonic))?;
        let report: Arc<dyn Report> = Arc::new(Untold);
        let compilers = Compilers::new(child::Limits::default(), Arc::clone(&report));
        let (tried, compile) = (engine.clone(), Arc::clone(&compilers));
        let test = move || tried.self_test(Compiler::Elsewhere(&|job| compile.compile_at_once(&job)));
        let tested = tokio::task::spawn_blocking(test).await;
        tested.map_err(|error| WorkshopError::Untried(error.to_string()))??;
        let (compilers, spawner) = (Some(compilers), Spawner::default());
        Ok(Self::new(Parts { engine, compilers, budget, spawner, report, client, reads_modules: false }))
    }
}

/// The workshop of a process, once it is there: the pages need not wait for it.
#[derive(Clone, Default)]
pub struct Shop(Arc<OnceLock<Arc<Workshop>>>);

impl Shop {
    /// Opens it, once.
    pub fn open(&self, workshop: Workshop) {
        let _ = self.0.set(Arc::new(workshop));
    }

    /// The workshop.
    ///
    /// # Errors
    /// 503 while there is none.
    pub(crate) fn workshop(&self) -> Result<Arc<Workshop>, Problem> {
        self.0.get().cloned().ok_or_else(|| {
            let status = http::StatusCode::SERVICE_UNAVAILABLE;
            let problem = Problem::new(status, "the engine is starting: try again in a moment");
            Problem { retry_after: Some(Duration::from_secs(2)), ..problem }.because("EngineStarting")
        })
    }
}
