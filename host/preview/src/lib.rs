//! Seeing before doing: what a module's answers would change in a cluster, and what a root's guest was given and answered.
//!
//! Everything is read as a user, and nothing is written. The same code asks as in the operator: [`pintle_core::pass::Preview`] is its
//! pass up to the answer, and [`pintle_core::plan`] compares. What the user may not read makes a root *unknown*, and never absent.
//!
//! * [`Preview::plan`]: every root of a Reconciler before a module.
//! * [`Preview::inspect`]: request and answer of one root.
//! * [`Preview::record`]: one root as a golden case.

mod ask;
mod children;
mod error;
mod inspect;
mod memory;
mod modules;
mod needs;
mod newcomers;
mod plan;
mod reader;
mod record;
mod target;
mod text;

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use kube::Client;
use pintle_engine::{Engine, Module};
use pintle_modules::{Budget, Compilers};
use pintle_runtime::Spawner;
use pintle_wit::Kind;
use serde_json::Value;
use tokio::sync::Semaphore;

pub use error::PreviewError;
pub use plan::Told;
pub use record::Recorded;
pub use text::diff;

/// How many modules stay compiled: the one in force and the one that somebody looks at, of two people.
const MODULES_KEPT: usize = 4;

/// Makes previews. A process has one.
pub struct Preview {
    engine: Engine,
    compilers: Option<Arc<Compilers>>,
    budget: Budget,
    spawner: Spawner,
    /// Guests compute on as many threads as there are processors.
    turns: Arc<Semaphore>,
    kept: Mutex<VecDeque<Module>>,
}

/// In whose name a preview reads.
#[derive(Clone)]
pub struct Caller {
    /// The user, for everything but the bytes of Modules.
    pub user: Client,
    /// Whoever may read the ConfigMaps that Modules are in. The user, or a gateway's own account.
    pub modules: Client,
}

/// What to plan.
#[derive(Clone, Debug, Default)]
pub struct PlanRequest {
    /// The Reconciler.
    pub reconciler: String,
    /// The module to judge. Without one it is the module in force.
    pub module: Option<ModuleChoice>,
    /// The config that the module is called with, instead of the Reconciler's.
    pub config: Option<Value>,
    /// Only roots in this namespace.
    pub namespace: Option<String>,
    /// Only roots with these labels, as kubectl writes a selector.
    pub label_selector: Option<String>,
    /// Only this root: `NAME`, in the namespace of the request, or `NAMESPACE/NAME`.
    pub root: Option<String>,
    /// Also asks the API server what it would say to each apply.
    pub server: bool,
}

/// A module to judge.
#[derive(Clone, Debug)]
pub enum ModuleChoice {
    /// The Module of this name.
    Named(String),
    /// A module that is in no cluster yet.
    Bytes {
        /// What it is called in what is said of it.
        name: String,
        /// The module.
        bytes: Vec<u8>,
    },
}

/// A root to look at.
#[derive(Clone, Debug)]
pub struct InspectRequest {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace, unless its kind has none.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// The module to ask. Without one it is the module in force.
    pub module: Option<ModuleChoice>,
    /// The root as it would be, if it is not to be read: as an API server answers to a dry run.
    pub proposed: Option<Value>,
}

impl Preview {
    /// Makes previews with this engine. With compilers, Modules are compiled in processes of their own, and otherwise in this one.
    pub fn new(engine: Engine, compilers: Option<Arc<Compilers>>, budget: Budget, spawner: Spawner) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let turns = Arc::new(Semaphore::new(processors));
        Self { engine, compilers, budget, spawner, turns, kept: Mutex::default() }
    }

    /// Keeps a module compiled, in the place of the one that was kept longest.
    fn keep(&self, module: &Module) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|known| known.digest() != module.digest());
        kept.push_back(module.clone());
        if kept.len() > MODULES_KEPT {
            kept.pop_front();
        }
    }
}
