//! [`Bypasses`]: which policies, webhooks and quotas name the resources of Views and see no write of them, as a look at all of them found.
//!
//! They are listed once a minute instead of watched, because a ResourceQuota changes with each object that it counts. What a look found is
//! told once: each gateway looks at another time, and one that went on saying what it found earlier would contradict the others.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use pintle_api::View;
use pintle_core::{
    ApiError,
    bulk::Bulk,
    view::admission::{AdmissionKind, Bypassed, Target},
};
use pintle_kubernetes::{Cluster, PageOf, Resource};
use pintle_runtime::{Spawner, clock};
use serde_json::Value;
use tokio::sync::Notify;
use tracing::{info, warn};

use super::held;
use crate::metrics::Metrics;

/// How often a gateway looks. Whoever writes a policy can wait for a minute, and some lists a minute cost the API server nothing.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// How many objects a page has. A ResourceQuota has some 2 KiB, so most clusters have one page.
const PAGE_OBJECTS: u32 = 250;

/// How long a page may be, in bytes: the largest object of etcd, and about as much again as JSON. A page that is longer is read again with
/// fewer objects.
const PAGE_BYTES_MAX: usize = 4 << 20;

/// How many objects of a kind one look is at, and how many bytes of them: a ResourceQuota in each of so many namespaces. Tenants may write
/// more, and larger ones; the gateway then looks at no more than this in a minute.
const OBJECTS_MAX: usize = 10_000;
const BYTES_MAX: usize = 32 << 20;

/// The largest object that is looked at, in bytes of memory as values: many times what one with a hundred rules takes.
const VALUE_BYTES_MAX: usize = 8 << 20;

/// What a look found of a View that it has not been told yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// What was looked for.
    pub(crate) target: Target,
    /// What is to be said of it. None: nothing is bypassed.
    pub(crate) message: Option<String>,
}

/// The Views of which something can be written, each with its generation: whoever changes a View has a look at once.
type Wanted = BTreeMap<String, (Option<i64>, Target)>;

/// Looks, and knows what the last look found.
pub(crate) struct Bypasses {
    cluster: Cluster,
    spawner: Spawner,
    metrics: Arc<Metrics>,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    woken: Arc<Notify>,
}

#[derive(Default)]
struct State {
    /// What the last look is for that has begun.
    asked: Wanted,
    is_looking: bool,
    /// When the last look ended.
    ended_at: Option<Duration>,
    /// What no View has been told yet.
    found: BTreeMap<String, Found>,
    /// The kinds that the gateway may not list.
    denied: BTreeSet<AdmissionKind>,
}

impl Bypasses {
    /// Nothing yet. The control loop is woken when a look has ended.
    pub(crate) fn new(cluster: Cluster, spawner: Spawner, metrics: Arc<Metrics>, woken: Arc<Notify>) -> Self {
        Self { cluster, spawner, metrics, shared: Arc::new(Shared { state: Mutex::default(), woken }) }
    }

    /// What Views are to be told now. A look begins if it is time for one, and if anything can be written through a View.
    pub(crate) fn look(&self, views: &BTreeMap<String, View>) -> BTreeMap<String, Found> {
        let wanted = wanted(views);
        let mut state = self.shared.state();
        state.found.retain(|name, _| wanted.contains_key(name));
        if state.is_due(&wanted, clock::monotonic()) {
            (state.is_looking, state.asked) = (true, wanted.clone());
            let (cluster, metrics) = (self.cluster.clone(), Arc::clone(&self.metrics));
            let shared = Arc::clone(&self.shared);
            self.spawner.spawn(async move {
                let found = shared.look_for(&cluster, &metrics, &wanted).await;
                let mut state = shared.state();
                (state.is_looking, state.ended_at) = (false, Some(clock::monotonic()));
                state.found.extend(found.unwrap_or_default());
                drop(state);
                shared.woken.notify_one();
            });
        }
        state.found.clone()
    }

    /// A View says this now.
    pub(crate) fn told(&self, view: &str, told: &Found) {
        let mut state = self.shared.state();
        // Another look may have ended meanwhile.
        if state.found.get(view) == Some(told) {
            state.found.remove(view);
        }
    }

    /// In how much time it is time for a look.
    pub(crate) fn due_in(&self, views: &BTreeMap<String, View>) -> Duration {
        let state = self.shared.state();
        match state.ended_at {
            Some(ended_at) if !state.is_looking && !wanted(views).is_empty() => {
                (ended_at + LOOK_EVERY).saturating_sub(clock::monotonic())
            }
            _ => Duration::MAX,
        }
    }
}

fn wanted(views: &BTreeMap<String, View>) -> Wanted {
    let written = views.iter().filter_map(|(name, view)| {
        let target = Target::of(view.status.as_ref()?.served.as_ref()?)?;
        (!held::is_deleted(view)).then(|| (name.clone(), (view.metadata.generation, target)))
    });
    written.collect()
}

impl State {
    fn is_due(&self, wanted: &Wanted, now: Duration) -> bool {
        let is_time = || self.ended_at.is_none_or(|at| now.saturating_sub(at) >= LOOK_EVERY);
        !self.is_looking && !wanted.is_empty() && (self.asked != *wanted || is_time())
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // A panic leaves nothing in it half-changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What there is to tell each View; none if that is not known.
    async fn look_for(
        &self,
        cluster: &Cluster,
        metrics: &Metrics,
        wanted: &Wanted,
    ) -> Option<BTreeMap<String, Found>> {
        let mut bypassed = BTreeMap::new();
        for kind in AdmissionKind::ALL {
            let read = read(cluster, kind, wanted, &mut bypassed).await;
            let plural = kind.plural();
            match read {
                Ok(is_all) => {
                    self.state().denied.remove(&kind);
                    if !is_all {
                        metrics.admission_cut(plural);
                        info!(
                            resource = plural,
                            "There is more that may say what can be written than a gateway looks at"
                        );
                    }
                }
                // Without the right, views are served as ever.
                Err(error) if error.code == 403 => {
                    if self.state().denied.insert(kind) {
                        info!(
                            right = format!("list {plural}"),
                            "Views cannot say whether one of these names them; is deploy/gateway.yaml applied?"
                        );
                    }
                }
                Err(error) => {
                    warn!(resource = plural, %error, "It is not known what names the resources of Views; the next look is in a minute");
                    return None;
                }
            }
        }
        let found = wanted.iter().map(|(name, (_, target))| {
            let message = bypassed.get(name).and_then(|bypassed| target.message(bypassed));
            (name.clone(), Found { target: target.clone(), message })
        });
        Some(found.collect())
    }
}

/// Looks at the objects of a kind, page by page. Returns whether it was at all of them.
async fn read(
    cluster: &Cluster,
    kind: AdmissionKind,
    wanted: &Wanted,
    bypassed: &mut BTreeMap<String, Bypassed>,
) -> Result<bool, ApiError> {
    let resource =
        Resource { kind: kind.kind(), plural: kind.plural().to_owned(), namespaced: kind.namespaced() };
    let (mut limit, mut next) = (PAGE_OBJECTS, None::<String>);
    let (mut objects, mut bytes, mut is_all) = (0, 0, true);
    loop {
        let of = PageOf { limit, bytes_max: PAGE_BYTES_MAX, next: next.as_deref(), ..PageOf::default() };
        let page = match cluster.texts(&resource, &of).await {
            Ok(page) => page,
            // The API server has no such kind. The simulator has some less, and says 501.
            Err(error) if matches!(error.code, 404 | 501) => return Ok(true),
            Err(error) if error.code == 413 => {
                bytes += PAGE_BYTES_MAX;
                if limit == 1 || bytes >= BYTES_MAX {
                    return Ok(false);
                }
                limit = (limit / 4).max(1);
                continue;
            }
            Err(error) => return Err(error),
        };
        objects += page.items.len();
        bytes += page.bytes;
        for text in &page.items {
            is_all &= look_at(text, kind, wanted, bypassed);
        }
        match page.next {
            None => return Ok(is_all),
            Some(_) if objects >= OBJECTS_MAX || bytes >= BYTES_MAX => return Ok(false),
            token => next = token,
        }
    }
}

/// Whether an object is small enough to be looked at.
fn look_at(
    text: &Bytes,
    kind: AdmissionKind,
    wanted: &Wanted,
    bypassed: &mut BTreeMap<String, Bypassed>,
) -> bool {
    if Bulk::of(text).value_bytes() > VALUE_BYTES_MAX {
        return false;
    }
    let Ok(object) = serde_json::from_slice::<Value>(text) else { return false };
    for (name, (_, target)) in wanted {
        if target.is_missed_by(kind, &object) {
            bypassed.entry(name.clone()).or_default().add(kind, &object);
        }
    }
    true
}

#[cfg(test)]
mod tests;
