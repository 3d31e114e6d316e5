//! Carries out requests.

mod delete;
mod evict;
mod options;
mod read;
mod review;
mod write;

pub(crate) use evict::is_ready;
pub(crate) use options::{of_list, too_new};
pub(crate) use review::{REVIEWS, review};
pub(crate) use write::CRD_FINALIZER;

use std::sync::Arc;

use jiff::Timestamp;
use pintle_runtime::clock::Random;
use serde_json::Value;

use crate::{
    Failure,
    faults::Verb,
    kinds::{self, Served},
    request::Request,
    store::{Key, Store},
};

/// What a request works on.
pub(crate) struct Context<'a> {
    pub(crate) store: &'a mut Store,
    pub(crate) random: &'a mut Random,
    pub(crate) now: Timestamp,
    /// What the client is warned of.
    pub(crate) warnings: Vec<String>,
}

/// A request that was carried out.
pub(crate) struct Done {
    pub(crate) code: u16,
    pub(crate) body: Value,
    pub(crate) before: Option<Arc<Value>>,
    pub(crate) after: Option<Arc<Value>>,
}

impl Done {
    fn read(body: Value) -> Self {
        Self { code: 200, body, before: None, after: None }
    }

    /// The reply to a request that only tried something out: nothing has changed, and the object has no new version.
    pub(crate) fn tried_out(mut self) -> Self {
        let before = self.before.as_ref().and_then(|before| before["metadata"].get("resourceVersion"));
        if let Some(metadata) = self.body.get_mut("metadata").and_then(Value::as_object_mut)
            && metadata.contains_key("uid")
        {
            match before {
                Some(version) => drop(metadata.insert("resourceVersion".into(), version.clone())),
                None => drop(metadata.remove("resourceVersion")),
            }
        }
        self.after.clone_from(&self.before);
        self
    }
}

impl Context<'_> {
    /// The time, in the form of timestamps in objects.
    pub(crate) fn time(&self) -> String {
        self.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }
}

impl Served {
    /// The key of an object of this kind.
    pub(crate) fn key(&self, namespace: Option<&str>, name: &str) -> Key {
        Key {
            group: self.group.clone(),
            resource: self.plural.clone(),
            namespace: namespace.filter(|_| self.namespaced).unwrap_or_default().into(),
            name: name.into(),
        }
    }
}

pub(crate) fn carry_out(
    context: &mut Context<'_>,
    request: &Request,
    as_of: Option<u64>,
) -> Result<Done, Failure> {
    match request.verb {
        Verb::Discover => read::discover(context.store, request),
        Verb::Get => read::get(context.store, request, as_of),
        Verb::List => read::list(context.store, request, as_of),
        Verb::Create => match request.path.subresource.as_deref() {
            None => write::create(context, request),
            Some("eviction") if request.path.resource == "pods" => evict::evict(context, request),
            Some(other) => Err(Failure::not_modelled(&format!("the subresource {other:?}"))),
        },
        Verb::Apply | Verb::Patch | Verb::Update => write::change(context, request),
        Verb::Delete => delete::delete(context, request),
        Verb::DeleteCollection => delete::collection(context, request),
        Verb::Watch | Verb::Review => Err(Failure::not_modelled("such a request here")),
    }
}

/// The kind and the key of a request for one object.
fn target(store: &Store, request: &Request) -> Result<(Arc<Served>, Key), Failure> {
    let path = &request.path;
    let served = kinds::find(store, path)?;
    if served.namespaced != path.namespace.is_some() {
        return Err(Failure::unknown_path());
    }
    let name = path.name.as_deref().ok_or_else(Failure::unknown_path)?;
    let key = served.key(path.namespace.as_deref(), name);
    match path.subresource.as_deref() {
        None => Ok((served, key)),
        Some("status") if served.status => Ok((served, key)),
        Some("status") => Err(Failure::unknown_path()),
        Some(other) => Err(Failure::not_modelled(&format!("the subresource {other:?}"))),
    }
}
