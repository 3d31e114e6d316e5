//! [`Reader`]: reads a cluster as a user, patiently and within bounds.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use pintle_core::{ApiError, object};
use pintle_kubernetes::{Cluster, PageOf, Resource, builtin};
use pintle_modules::Budget;
use pintle_wit::{Kind, ObjectRef};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{PreviewError, memory::Memory};

/// How large a page may be.
#[derive(Clone, Copy)]
struct Size {
    objects: u32,
    /// The longest that is read, in bytes of JSON.
    bytes: usize,
    /// The memory that is reserved for it, in bytes: it is not read if it takes more. Small objects take some ten times as much as their JSON.
    room: u64,
}

/// The sizes that are tried, one after the other where pages are too long.
const SIZES: [Size; 5] = [
    Size { objects: 500, bytes: 1 << 20, room: 16 << 20 },
    Size { objects: 100, bytes: 1 << 20, room: 16 << 20 },
    Size { objects: 20, bytes: 8 << 20, room: 64 << 20 },
    // API servers store objects of 1.5 MiB.
    Size { objects: 4, bytes: 8 << 20, room: 64 << 20 },
    // One of which as many values are made as of any.
    Size { objects: 1, bytes: 8 << 20, room: 192 << 20 },
];

/// Pages that may be longer are read one at a time.
const SHORT_BYTES: usize = 1 << 20;

/// How often a request is sent again that the API server has no time for, and the longest wait.
const ATTEMPTS: u32 = 5;
const WAIT_MAX: Duration = Duration::from_secs(5);

/// How often a list is begun again whose later pages the API server does not know any more.
const LISTS: u32 = 3;

/// Reads a cluster.
pub(crate) struct Reader {
    cluster: Cluster,
    served: Mutex<BTreeMap<Kind, Option<Resource>>>,
    pub(crate) memory: Memory,
    /// Whose long page is read now.
    long: tokio::sync::Mutex<()>,
}

impl Reader {
    pub(crate) fn new(cluster: Cluster, budget: Budget) -> Self {
        let memory = Memory::new(budget);
        Self { cluster, served: Mutex::default(), memory, long: tokio::sync::Mutex::default() }
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
        let found = patiently(|| self.cluster.get(resource, reference)).await?;
        let bytes = found.as_ref().map_or(0, object::heap_bytes);
        self.memory.take(bytes as u64).await?;
        Ok(found)
    }

    /// The one of the host's own objects with this name.
    pub(crate) async fn own<K>(&self, name: &str) -> Result<K, PreviewError>
    where
        K: kube::Resource<DynamicType = ()> + DeserializeOwned,
    {
        let (resource, what) = (resource_of::<K>(), format!("{} {name}", K::kind(&())));
        let reference = reference(&resource.kind, None, name);
        let found = self.get(&resource, &reference).await.map_err(|error| PreviewError::of(&what, &error))?;
        let found = found.ok_or_else(|| PreviewError::NotFound(format!("there is no {what}")))?;
        serde_json::from_value(found)
            .map_err(|error| PreviewError::Unavailable(format!("{what} cannot be read: {error}")))
    }

    /// Those of the host's own objects of a kind that this version knows.
    pub(crate) async fn all_own<K>(&self) -> Result<Vec<K>, PreviewError>
    where
        K: kube::Resource<DynamicType = ()> + DeserializeOwned,
    {
        let found = self.list(&resource_of::<K>(), None, None).await;
        let found = found.map_err(|error| PreviewError::of(&format!("the {}s", K::kind(&())), &error))?;
        Ok(found.into_iter().filter_map(|value| serde_json::from_value(value).ok()).collect())
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
        self.list_lightened(resource, namespace, labels, &|_| true).await
    }

    /// The same, without what is taken out of each object, and without those that are not wanted.
    pub(crate) async fn list_lightened(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        labels: Option<&str>,
        lighten: &(dyn Fn(&mut Value) -> bool + Sync),
    ) -> Result<Vec<Value>, ApiError> {
        let [first, smaller @ ..] = SIZES;
        let (mut size, mut smaller) = (first, smaller.into_iter());
        let (mut found, mut next, mut attempt, mut lists) = (Vec::new(), None::<String>, 0, 1);
        loop {
            let _turn = if size.bytes > SHORT_BYTES { Some(self.long.lock().await) } else { None };
            self.memory.take(size.room).await?;
            let Size { objects: limit, bytes: bytes_max, room: memory_max } = size;
            let of = PageOf { namespace, labels, limit, bytes_max, memory_max, next: next.as_deref() };
            let page = self.cluster.page(resource, &of).await;
            self.memory.give_back(size.room);
            let mut page = match page {
                Err(error) if error.code == 410 && lists < LISTS => {
                    lists += 1;
                    found.clear();
                    next = None;
                    continue;
                }
                Err(error) if error.code == 413 => {
                    size = smaller.next().ok_or(error)?;
                    continue;
                }
                Err(error) if attempt < ATTEMPTS && is_busy(&error) => {
                    attempt += 1;
                    wait(&error).await;
                    continue;
                }
                page => page?,
            };
            page.items.retain_mut(lighten);
            let kept = page.items.iter().map(|item| size_of::<Value>() + object::heap_bytes(item));
            self.memory.take(kept.sum::<usize>() as u64).await?;
            attempt = 0;
            found.extend(page.items);
            match page.next {
                Some(token) => next = Some(token),
                None => return Ok(found),
            }
        }
    }
}

fn resource_of<K: kube::Resource<DynamicType = ()>>() -> Resource {
    builtin(&K::api_version(&()), &K::kind(&()), &K::plural(&()), false)
}

/// What an object of a kind is called by.
pub(crate) fn reference(kind: &Kind, namespace: Option<&str>, name: &str) -> ObjectRef {
    let Kind { api_version, kind } = kind.clone();
    ObjectRef { api_version, kind, namespace: namespace.map(Into::into), name: name.into() }
}

/// The answer to a request, which is sent again while the API server has no time for it.
pub(crate) async fn patiently<T, F>(request: impl Fn() -> F) -> Result<T, ApiError>
where
    F: Future<Output = Result<T, ApiError>>,
{
    let mut attempt = 1;
    loop {
        match request().await {
            Err(error) if attempt < ATTEMPTS && is_busy(&error) => wait(&error).await,
            answer => return answer,
        }
        attempt += 1;
    }
}

fn is_busy(error: &ApiError) -> bool {
    matches!(error.code, 429 | 503)
}

async fn wait(error: &ApiError) {
    let asked = error.retry_after.unwrap_or(Duration::from_millis(500));
    tokio::time::sleep(asked.min(WAIT_MAX)).await;
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_is_sent_again_only_while_the_api_server_has_no_time() {
        for (code, busy, sent) in [(429, 2, 3), (503, 9, ATTEMPTS), (500, 9, 1), (403, 9, 1)] {
            let count = Cell::new(0);
            let answer = patiently(|| {
                count.set(count.get() + 1);
                let is_busy = count.get() <= busy;
                async move { if is_busy { Err(ApiError { code, ..ApiError::default() }) } else { Ok(()) } }
            });
            assert_eq!((answer.await.is_ok(), count.get()), (busy < sent, sent), "{code}");
        }
    }
}
