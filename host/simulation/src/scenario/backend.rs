//! What scenarios run on.

use std::time::Duration;

use pintle_wit::ObjectRef;
use serde_json::Value;

use super::{Cascade, Stop};

/// A moment, on the backend's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(pub Duration);

/// A changing call of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// create, update, patch, delete or deletecollection.
    pub verb: String,
    /// The resource, with its subresource: `darkrooms/status`.
    pub resource: String,
    /// The object's namespace.
    pub namespace: Option<String>,
    /// The object's name, where the call gave one.
    pub name: Option<String>,
    /// As which user, where not as the host itself.
    pub acting_as: Option<String>,
    /// The status code of the reply.
    pub code: u16,
    /// The host had no right to it. A 403 alone does not say so: a namespace that goes answers with one too.
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

/// Which of the host's calls are counted.
#[derive(Clone, Copy, Debug)]
pub enum CallScope<'a> {
    /// All of them.
    Everywhere,
    /// Those about objects of this namespace.
    In(&'a str),
}

/// Something that scenarios run on: an API server with a host that works on it. An object of cluster scope is named with the
/// namespace of the scenario like any other, and the backend passes over it.
#[allow(async_fn_in_trait, reason = "the runner awaits one thing at a time, on one thread")]
pub trait Backend {
    /// Applies an object, as `kubectl apply --server-side --force-conflicts` does.
    ///
    /// # Errors
    /// What the API server says against it.
    async fn apply(&self, object: &Value) -> anyhow::Result<()>;

    /// Changes an object by a JSON merge patch.
    ///
    /// # Errors
    /// What the API server says against it.
    async fn patch(&self, object: &ObjectRef, patch: &Value) -> anyhow::Result<()>;

    /// Deletes an object.
    ///
    /// # Errors
    /// What the API server says against it; that there is none is one of the things that it can say.
    async fn delete(&self, object: &ObjectRef, cascade: Cascade) -> anyhow::Result<()>;

    /// Reads an object; `None` when it is not there, or its kind is not served.
    ///
    /// # Errors
    /// When the API server does not answer.
    async fn get(&self, object: &ObjectRef) -> anyhow::Result<Option<Value>>;

    /// The reasons of the Events about an object.
    ///
    /// # Errors
    /// When the API server does not answer.
    async fn events(&self, object: &ObjectRef) -> anyhow::Result<Vec<String>>;

    /// Stops the host, and returns when it is gone.
    ///
    /// # Errors
    /// When it does not stop.
    async fn stop_host(&self, how: Stop) -> anyhow::Result<()>;

    /// Starts the host, and returns when it is ready.
    ///
    /// # Errors
    /// When it does not become ready.
    async fn start_host(&self) -> anyhow::Result<()>;

    /// Lets time pass.
    async fn advance(&self, time: Duration);

    /// This moment.
    fn mark(&self) -> Mark;

    /// The host's changing calls since a moment; `None` where nobody counts them.
    ///
    /// # Errors
    /// When what counts them cannot be read.
    async fn calls_since(&self, mark: Mark, seen: CallScope<'_>) -> anyhow::Result<Option<Vec<Call>>>;

    /// The last lines that the host logged about this, newest last.
    fn host_log(&self, about: &[&str], lines: usize) -> Vec<String>;
}
