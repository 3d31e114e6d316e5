//! [`Reader`]: reads a cluster as a user, patiently and within bounds.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use pintle_core::ApiError;
use pintle_kubernetes::{Cluster, PageOf, Resource};
use pintle_wit::{Kind, ObjectRef};
use serde_json::Value;

/// How many objects a page brings.
const PAGE_OBJECTS: u32 = 500;

/// How many objects a page brings where those of the usual page are too long together.
const FEWER_OBJECTS: u32 = 20;

/// How much one preview reads, in bytes of JSON. Ten thousand roots with five children are about 200 MiB.
const READ_BYTES_MAX: usize = 1 << 30;

/// How often a request is sent again that the API server has no time for, and the longest wait.
const ATTEMPTS: u32 = 5;
const WAIT_MAX: Duration = Duration::from_secs(5);

/// How often a list is begun again whose later pages the API server does not know any more.
const LISTS: u32 = 3;

/// Reads a cluster.
pub(crate) struct Reader {
    cluster: Cluster,
    served: Mutex<BTreeMap<Kind, Option<Resource>>>,
    read_bytes: AtomicUsize,
}

impl Reader {
    pub(crate) fn new(cluster: Cluster) -> Self {
        Self { cluster, served: Mutex::default(), read_bytes: AtomicUsize::new(0) }
    }

    pub(crate) fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// How the API server serves a kind, if it does. A kind is asked for once.
    pub(crate) async fn resource(&self, kind: &Kind) -> Result<Option<Resource>, ApiError> {
        let known = self.served.lock().unwrap_or_else(PoisonError::into_inner).get(kind).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let found = self.cluster.discover(kind).await?;
        self.served.lock().unwrap_or_else(PoisonError::into_inner).insert(kind.clone(), found.clone());
        Ok(found)
    }

    /// The kinds that were asked for and are served.
    pub(crate) fn known(&self) -> BTreeMap<Kind, Resource> {
        let served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
        served.iter().filter_map(|(kind, resource)| Some((kind.clone(), resource.clone()?))).collect()
    }

    /// An object, if it is there.
    pub(crate) async fn get(
        &self,
        resource: &Resource,
        reference: &ObjectRef,
    ) -> Result<Option<Value>, ApiError> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            match self.cluster.get(resource, reference).await {
                Err(error) if attempt < ATTEMPTS && is_busy(&error) => wait(&error).await,
                found => return found,
            }
        }
    }

    /// An object by its names alone. A kind that is not served has none.
    pub(crate) async fn object(&self, reference: &ObjectRef) -> Result<Option<Value>, ApiError> {
        match self.resource(&reference.kind()).await? {
            Some(resource) => self.get(&resource, reference).await,
            None => Ok(None),
        }
    }

    /// Every object of a kind, page by page.
    pub(crate) async fn list(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        labels: Option<&str>,
    ) -> Result<Vec<Value>, ApiError> {
        let mut lists = 0;
        loop {
            lists += 1;
            match self.list_once(resource, namespace, labels).await {
                Err(error) if error.code == 410 && lists < LISTS => {}
                listed => return listed,
            }
        }
    }

    async fn list_once(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        labels: Option<&str>,
    ) -> Result<Vec<Value>, ApiError> {
        let mut found = Vec::new();
        let (mut next, mut limit, mut attempt) = (None::<String>, PAGE_OBJECTS, 0);
        loop {
            let of = PageOf { namespace, labels, limit, next: next.as_deref() };
            let page = match self.cluster.page(resource, &of).await {
                Err(error) if error.code == 413 && limit > FEWER_OBJECTS => {
                    limit = FEWER_OBJECTS;
                    continue;
                }
                Err(error) if attempt < ATTEMPTS && is_busy(&error) => {
                    attempt += 1;
                    wait(&error).await;
                    continue;
                }
                page => page?,
            };
            let read = self.read_bytes.fetch_add(page.bytes, Ordering::Relaxed).saturating_add(page.bytes);
            if read > READ_BYTES_MAX {
                return Err(too_much());
            }
            attempt = 0;
            found.extend(page.items);
            match page.next {
                Some(token) => next = Some(token),
                None => return Ok(found),
            }
        }
    }
}

fn too_much() -> ApiError {
    let message = format!(
        "the objects to look at are more than {} MiB together; name a namespace, labels, or one root",
        READ_BYTES_MAX >> 20
    );
    ApiError { code: 413, message, ..ApiError::default() }
}

fn is_busy(error: &ApiError) -> bool {
    matches!(error.code, 429 | 503)
}

async fn wait(error: &ApiError) {
    let asked = error.retry_after.unwrap_or(Duration::from_millis(500));
    tokio::time::sleep(asked.min(WAIT_MAX)).await;
}
