//! [`Guests`]: asks guests what they show and store. What was shown of an object is remembered, so that many watches of one resource cost one
//! call an event.

use std::sync::Arc;

use pintle_core::{
    budget::Need,
    view::{BackingObject, Epoch, Lens, Status},
};
use pintle_engine::{Answer, CallError, CallLimits, Origin, ShowAnswer, StoreAnswer, Views};
use pintle_modules::{Budget, TooLarge, grants};
use pintle_runtime::Spawner;
use pintle_wit::{
    ApiVersion, Failure,
    views::{SHOW_BYTES, SHOW_OBJECTS_MAX, ShowItem, ShowRequest, StoreRequest},
};
use quick_cache::{Weighter, sync::Cache};
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use tracing::warn;

use crate::{metrics::Metrics, reply::RETRY_SECONDS};

/// How much memory what is remembered may take, in bytes. Most shown objects have some hundred.
const REMEMBERED_BYTES: u64 = 16 << 20;

/// What one remembered object takes beside its text, in bytes.
const ENTRY_BYTES: u64 = 200;

/// Calls guests. A simulator has its own way, which may change what they answer.
pub trait CallViews: Send + Sync {
    /// Asks what a guest shows of so many objects, as [`Views::show`].
    ///
    /// # Errors
    /// As [`Views::show`].
    fn show(
        &self,
        views: &Views,
        request_json: &str,
        objects: usize,
        limits: &CallLimits,
    ) -> Result<ShowAnswer, CallError> {
        views.show(request_json, objects, limits)
    }

    /// Asks what a guest stores, as [`Views::store`].
    ///
    /// # Errors
    /// As [`Views::store`].
    fn store(
        &self,
        views: &Views,
        request_json: &str,
        limits: &CallLimits,
    ) -> Result<StoreAnswer, CallError> {
        views.store(request_json, limits)
    }
}

/// Calls guests in their modules.
#[derive(Clone, Copy, Debug, Default)]
pub struct InModules;

impl CallViews for InModules {}

/// A guest's views in force, and the config that they are called with.
#[derive(Clone, Debug)]
pub struct InForce {
    /// What is called.
    pub views: Views,
    /// The name of the view in it.
    pub view: String,
    /// The config.
    pub config: Value,
}

/// What a guest shows of an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Shown {
    /// Its fields besides `apiVersion`, `kind` and `metadata`: the JSON of an object.
    Fields(Arc<str>),
    /// The object cannot be shown.
    Failed(Arc<Failure>),
}

/// What identifies what is shown: the resource, the epoch, and the backing object's uid and version.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    view: Arc<str>,
    epoch: Epoch,
    uid: Box<str>,
    version: Box<str>,
}

impl Key {
    fn of(lens: &Lens, object: &BackingObject) -> Self {
        Self {
            view: lens.view.as_str().into(),
            epoch: lens.epoch,
            uid: object.uid().into(),
            version: object.version().into(),
        }
    }
}

#[derive(Clone)]
struct Weight;

impl Weighter<Key, Shown> for Weight {
    fn weight(&self, key: &Key, shown: &Shown) -> u64 {
        let text = match shown {
            Shown::Fields(fields) => fields.len(),
            Shown::Failed(failure) => failure.message.len(),
        };
        ENTRY_BYTES + (key.uid.len() + key.version.len() + text) as u64
    }
}

/// Asks guests, so many at once as there are processors.
pub struct Guests {
    spawner: Spawner,
    caller: Arc<dyn CallViews>,
    turns: Arc<Semaphore>,
    limits: CallLimits,
    budget: Budget,
    metrics: Arc<Metrics>,
    remembered: Cache<Key, Shown, Weight>,
}

impl Guests {
    /// Guests that are called in this way, on this spawner's threads, with memory of this budget.
    pub fn new(spawner: Spawner, caller: Arc<dyn CallViews>, budget: Budget, metrics: Arc<Metrics>) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        // An estimate that the cache sizes its tables by.
        let objects = usize::try_from(REMEMBERED_BYTES / (2 * ENTRY_BYTES)).unwrap_or(usize::MAX);
        Self {
            spawner,
            caller,
            turns: Arc::new(Semaphore::new(processors)),
            limits: CallLimits::default(),
            budget,
            metrics,
            remembered: Cache::with_weighter(objects, REMEMBERED_BYTES, Weight),
        }
    }

    /// What is shown of one object. Whoever asks for the same at the same time waits for the same call.
    ///
    /// # Errors
    /// When the guest cannot be called.
    pub async fn show_one(
        &self,
        lens: &Lens,
        in_force: &InForce,
        object: &BackingObject,
    ) -> Result<Shown, Status> {
        let ask = async {
            let mut shown = self.call(lens, in_force, vec![text(lens, object)]).await?;
            shown.pop().ok_or_else(|| Status::internal_error("a guest showed nothing"))
        };
        self.remembered.get_or_insert_async(&Key::of(lens, object), ask).await
    }

    /// What is shown of objects, in order.
    ///
    /// # Errors
    /// When the guest cannot be called.
    pub async fn show(
        &self,
        lens: &Lens,
        in_force: &InForce,
        objects: &[BackingObject],
    ) -> Result<Vec<Shown>, Status> {
        let keys: Vec<Key> = objects.iter().map(|object| Key::of(lens, object)).collect();
        let mut shown: Vec<Option<Shown>> = keys.iter().map(|key| self.remembered.get(key)).collect();
        let missing: Vec<usize> =
            (0..objects.len()).filter(|at| shown.get(*at).is_some_and(Option::is_none)).collect();
        let asked =
            missing.iter().filter_map(|at| objects.get(*at)).map(|object| text(lens, object)).collect();
        for (at, answer) in missing.into_iter().zip(self.call(lens, in_force, asked).await?) {
            if let (Some(key), Some(place)) = (keys.get(at), shown.get_mut(at)) {
                self.remembered.insert(key.clone(), answer.clone());
                *place = Some(answer);
            }
        }
        Ok(shown.into_iter().flatten().collect())
    }

    /// Asks the guest about objects as it sees them, a batch at a time.
    async fn call(&self, lens: &Lens, in_force: &InForce, texts: Vec<String>) -> Result<Vec<Shown>, Status> {
        let mut shown = Vec::with_capacity(texts.len());
        for batch in batches(&texts) {
            match self.show_batch(lens, in_force, batch).await? {
                Ok(items) => shown.extend(items),
                Err(error) if batch.len() == 1 => shown.push(Shown::Failed(Arc::new(error.into()))),
                // One object can end the call of a whole batch. The others are shown all the same.
                Err(error) => {
                    warn!(view = lens.view, %error, "A guest failed over a batch; its objects are shown one by one");
                    for object in batch {
                        let alone = self.show_batch(lens, in_force, std::slice::from_ref(object)).await?;
                        shown.push(match alone {
                            Ok(mut items) => items.pop().ok_or_else(nothing)?,
                            Err(error) => Shown::Failed(Arc::new(error.into())),
                        });
                    }
                }
            }
        }
        Ok(shown)
    }

    async fn show_batch(
        &self,
        lens: &Lens,
        in_force: &InForce,
        batch: &[String],
    ) -> Result<Result<Vec<Shown>, CallError>, Status> {
        let (caller, views, count) = (Arc::clone(&self.caller), in_force.views.clone(), batch.len());
        let show = move |request: &str, limits: &CallLimits| caller.show(&views, request, count, limits);
        let answer = self.granted(&lens.view, show_request(in_force, batch), show).await?;
        Ok(answer.map(|answer| answer.response.items.into_iter().map(Shown::of).collect()))
    }

    /// What becomes of a backing object when somebody writes this.
    ///
    /// # Errors
    /// In the inner result, why the guest refuses it, or fails; in the outer, why it cannot be called.
    pub async fn store(
        &self,
        lens: &Lens,
        in_force: &InForce,
        written: &Value,
        current: Option<&BackingObject>,
    ) -> Result<Result<Map<String, Value>, (Failure, Origin)>, Status> {
        let request = StoreRequest {
            api_version: ApiVersion,
            view: in_force.view.clone(),
            config: in_force.config.clone(),
            object: written.clone(),
            current: current.map(|object| object.for_guest(lens)),
        };
        let request =
            serde_json::to_string(&request).map_err(|error| Status::internal_error(&error.to_string()))?;
        let (caller, views) = (Arc::clone(&self.caller), in_force.views.clone());
        let store = move |request: &str, limits: &CallLimits| caller.store(&views, request, limits);
        let stored = self.granted(&lens.view, request, store).await?;
        Ok(stored
            .map(|answer| answer.response.object)
            .map_err(|CallError { failure, origin, .. }| (*failure, origin)))
    }

    /// Calls a guest on a thread of its own, when it is its turn, with as much memory as earlier calls for this view needed; and again with
    /// more if that was not enough.
    async fn granted<T: Send + 'static>(
        &self,
        view: &str,
        request: String,
        call: impl Fn(&str, &CallLimits) -> Result<Answer<T>, CallError> + Send + Sync + 'static,
    ) -> Result<Result<Answer<T>, CallError>, Status> {
        let (call, request) = (Arc::new(call), Arc::<str>::from(request));
        let most = grants::most(&self.limits);
        let mut grant = self.budget.grant(view, most);
        // The last grant, which was not enough.
        let mut too_little = Need::default();
        loop {
            let turn = Arc::clone(&self.turns).acquire_owned().await;
            let reserved = self.budget.reserve_call(view, &mut grant, too_little, request.len() as u64).await;
            let reservation = reserved.map_err(|too_large| beyond_the_budget(view, too_large))?;
            let (call, request, limits) =
                (Arc::clone(&call), Arc::clone(&request), grants::granted(self.limits, grant));
            let called = self.spawner.block(move || {
                let called = call(&request, &limits);
                // They stay with the call, also when nobody waits for it any more.
                drop((turn, reservation));
                called
            });
            let called = called.await.map_err(|error| {
                warn!(%error, "A call of a guest panicked in the host");
                Status::internal_error("a call of a guest ended the thread that it ran on")
            })?;
            if let Some(more) = called.as_ref().err().and_then(|error| grants::more(error, grant, most)) {
                (too_little, grant) = (grant, more);
                continue;
            }
            let stats = called.as_ref().map_or_else(|error| error.stats, |answer| answer.stats);
            self.budget.saw(view, grants::need(stats));
            self.metrics.guest_called(view, stats.duration);
            return Ok(called);
        }
    }
}

fn beyond_the_budget(view: &str, TooLarge { bytes, bytes_max }: TooLarge) -> Status {
    let (bytes, bytes_max) = (bytes.div_ceil(1 << 20), bytes_max >> 20);
    warn!(
        view,
        "A call of a guest takes up to {bytes} MiB, and the gateway has at most {bytes_max} MiB for one"
    );
    Status::unavailable("the gateway has too little memory for a call of the guest", RETRY_SECONDS)
}

/// An object as its guest sees it.
fn text(lens: &Lens, object: &BackingObject) -> String {
    object.for_guest(lens).to_string()
}

fn nothing() -> Status {
    Status::internal_error("a guest showed nothing")
}

impl Shown {
    fn of(item: ShowItem) -> Self {
        match item {
            ShowItem::Object(fields) => Self::Fields(Value::Object(fields).to_string().into()),
            ShowItem::Failure(failure) => Self::Failed(Arc::new(failure)),
        }
    }
}

/// The texts of objects in batches that a guest takes. An object that is larger than a batch is one alone.
fn batches(texts: &[String]) -> impl Iterator<Item = &[String]> {
    let mut rest = texts;
    std::iter::from_fn(move || {
        let mut bytes = 0usize;
        let fits = rest.iter().take(SHOW_OBJECTS_MAX).take_while(|text| {
            bytes = bytes.saturating_add(text.len());
            bytes <= SHOW_BYTES
        });
        let count = fits.count().max(1);
        let (batch, others) = rest.split_at_checked(count)?;
        rest = others;
        Some(batch)
    })
}

/// The request about objects that are JSON already.
fn show_request(in_force: &InForce, objects: &[String]) -> String {
    let head = ShowRequest::<Value> {
        api_version: ApiVersion,
        view: in_force.view.clone(),
        config: in_force.config.clone(),
        objects: Vec::new(),
    };
    let mut request = serde_json::to_string(&head).unwrap_or_default();
    // The objects come last in the document: `..."objects":[]}`.
    request.truncate(request.len().saturating_sub("]}".len()));
    request.push_str(&objects.join(","));
    request.push_str("]}");
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_keep_the_order_and_the_limits_and_lose_nothing() {
        let texts: Vec<String> =
            (0..200).map(|at| "x".repeat(if at % 50 == 7 { 300 << 10 } else { at })).collect();
        let batches: Vec<&[String]> = batches(&texts).collect();
        assert_eq!(batches.concat(), texts);
        for batch in &batches {
            let bytes: usize = batch.iter().map(String::len).sum();
            assert!(batch.len() == 1 || batch.len() <= SHOW_OBJECTS_MAX && bytes <= SHOW_BYTES);
        }
        assert!(batches.len() < 20, "{}", batches.len());
    }
}
