//! The interface of what scenarios run on.

use std::time::Duration;

use pintle_preview::{Caller, Preview};
use pintle_wit::ObjectRef;
use serde_json::Value;

use super::{Cascade, Stop};

/// A moment, on the backend's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(pub Duration);

/// A mutating call of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// create, update, patch, delete or deletecollection.
    pub verb: String,
    /// The resource, with its subresource: `darkrooms/status`.
    pub resource: String,
    /// The object's namespace.
    pub namespace: Option<String>,
    /// The object's name, if the call had one.
    pub name: Option<String>,
    /// The user that the host impersonates, if any.
    pub acting_as: Option<String>,
    /// The status code of the reply.
    pub code: u16,
    /// The host had no right to do it. A 403 alone does not mean this: a namespace that is being deleted also answers with 403.
    pub forbidden: bool,
}

impl std::fmt::Display for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if let Some(namespace) = &self.namespace {
            write!(f, " in {namespace}")?;
        }
        write!(f, " {} ({})", self.name.as_deref().unwrap_or("-"), self.code)
    }
}

/// An API server with a host that works on it, for scenarios to run on. A cluster-scoped object is named with the namespace of the scenario
/// like any other, and the backend ignores the namespace.
#[allow(async_fn_in_trait, reason = "the runner awaits one thing at a time, on one thread")]
pub trait Backend {
    /// Applies an object, as `kubectl apply --server-side --force-conflicts` does.
    ///
    /// # Errors
    /// The API server's error.
    async fn apply(&self, object: &Value) -> anyhow::Result<()>;

    /// Changes an object by a JSON merge patch.
    ///
    /// # Errors
    /// The API server's error.
    async fn patch(&self, object: &ObjectRef, patch: &Value) -> anyhow::Result<()>;

    /// Deletes an object.
    ///
    /// # Errors
    /// The API server's error, also if the object does not exist.
    async fn delete(&self, object: &ObjectRef, cascade: Cascade) -> anyhow::Result<()>;

    /// Reads an object; `None` if it does not exist, or its kind is not served.
    ///
    /// # Errors
    /// If the API server does not answer.
    async fn get(&self, object: &ObjectRef) -> anyhow::Result<Option<Value>>;

    /// The reasons of the Events about an object.
    ///
    /// # Errors
    /// If the API server does not answer.
    async fn events(&self, object: &ObjectRef) -> anyhow::Result<Vec<String>>;

    /// Stops the host, and returns after it has ended.
    ///
    /// # Errors
    /// If it does not stop.
    async fn stop_host(&self, how: Stop) -> anyhow::Result<()>;

    /// Starts the host, and returns when it is ready.
    ///
    /// # Errors
    /// If it does not become ready.
    async fn start_host(&self) -> anyhow::Result<()>;

    /// Calls `look` with a preview, and with a user who may read everything.
    ///
    /// # Errors
    /// Those of `look`, and that there is no preview on this backend.
    async fn preview<T>(
        &self,
        look: impl AsyncFnOnce(&Preview, &Caller) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let _ = look;
        anyhow::bail!("no plan is made here")
    }

    /// Lets time pass.
    async fn advance(&self, time: Duration);

    /// This moment.
    fn mark(&self) -> Mark;

    /// How much later than a step says what it expects may come. None where time is simulated: what a step says is proved there.
    fn slack(&self) -> Duration {
        Duration::ZERO
    }

    /// The host's mutating calls since a moment; `None` if this backend does not count them.
    ///
    /// # Errors
    /// If the record of the calls cannot be read.
    async fn calls_since(&self, mark: Mark) -> anyhow::Result<Option<Vec<Call>>>;

    /// The last lines about this that the host logged, newest last.
    fn host_log(&self, about: &[&str], lines: usize) -> Vec<String>;
}
