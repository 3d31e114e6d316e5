//! [`Guests`]: asks guests what they show and store.
//!
//! What was shown of an object is remembered under its version, if that is what is stored ([`Source`]). So is that it cannot be shown, unless
//! the failure may pass: then the guest is asked again, after a pause.

use std::{sync::Arc, time::Duration};

use futures::FutureExt;
use pintle_core::view::{BackingObject, Epoch, Lens, Source, Status};
use pintle_engine::{Answer, CallError, CallLimits, CallStats, Origin, ShowAnswer, StoreAnswer, Views};
use pintle_modules::{Budget, CallMemory, NoMemory, TooLarge};
use pintle_runtime::{Spawner, clock};
use pintle_wit::{
    ApiVersion, Failure, reasons,
    views::{SHOW_BYTES, SHOW_OBJECTS_MAX, ShowItem, ShowRequest, StoreRequest},
};
use quick_cache::{Weighter, sync::Cache};
use serde_json::{Map, Value};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tracing::{debug, warn};

use crate::{metrics::Metrics, reply::RETRY_SECONDS};

/// How much memory what is remembered may take, in bytes. Most shown objects have some hundred.
const REMEMBERED_BYTES: u64 = 16 << 20;

/// How long a call waits for memory.
const MEMORY_WAIT: Duration = Duration::from_secs(15);

/// What one remembered object takes beside its text, in bytes.
const ENTRY_BYTES: u64 = 200;

/// How long a guest is not asked again about an object, after a failure that may pass: clients ask again at once, and each time would cost
/// a whole deadline.
const PAUSE: Duration = Duration::from_secs(1);

/// Of how many objects it is known that their guests pause. Beyond, the one that was asked for the least is forgotten.
const PAUSES_MAX: usize = 4_096;

/// Calls guests. A simulator has its own way, which may change what they answer.
pub trait CallViews: Send + Sync {
    /// Asks what a view of a guest shows of so many objects, as [`Views::show`].
    ///
    /// # Errors
    /// As [`Views::show`].
    fn show(
        &self,
        views: &Views,
        view: &str,
        request_json: &str,
        objects: usize,
        limits: &CallLimits,
    ) -> Result<ShowAnswer, CallError> {
        views.show(view, request_json, objects, limits)
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
    /// The object cannot be shown, whoever asks and when: its guest says so, traps, or takes more than its limits.
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
    /// None for an object whose version does not tell its content.
    fn of(lens: &Lens, object: &BackingObject) -> Option<Self> {
        (object.source == Source::Stored).then(|| Self {
            view: lens.view.as_str().into(),
            epoch: lens.epoch,
            uid: object.uid().into(),
            version: object.version().into(),
        })
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

/// One of as many calls as there are processors. The semaphore is never closed.
type Turn = Result<OwnedSemaphorePermit, AcquireError>;

/// Asks guests, so many at once as there are processors.
pub struct Guests {
    spawner: Spawner,
    caller: Arc<dyn CallViews>,
    turns: Arc<Semaphore>,
    limits: CallLimits,
    budget: Budget,
    metrics: Arc<Metrics>,
    remembered: Cache<Key, Shown, Weight>,
    /// Until when a guest is not asked again about an object.
    pauses: Cache<Key, Duration>,
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
            pauses: Cache::new(PAUSES_MAX),
        }
    }

    /// The memory that their calls reserve.
    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// What is shown of one object. Whoever asks for the same stored object at the same time waits for the same call.
    ///
    /// # Errors
    /// 503 when the guest cannot be called, or failed in a way that may pass.
    pub async fn show_one(
        &self,
        lens: &Lens,
        in_force: &InForce,
        object: &BackingObject,
    ) -> Result<Shown, Status> {
        match Key::of(lens, object) {
            None => self.alone(lens, in_force, &text(lens, object), None).await,
            Some(key) => {
                let ask = async {
                    self.pauses_about(&key)?;
                    self.alone(lens, in_force, &text(lens, object), Some(&key)).await
                };
                self.remembered.get_or_insert_async(&key, ask).await
            }
        }
    }

    /// What is shown of objects, in order.
    ///
    /// # Errors
    /// As [`Self::show_one`], for any of them.
    pub async fn show(
        &self,
        lens: &Lens,
        in_force: &InForce,
        objects: &[BackingObject],
    ) -> Result<Vec<Shown>, Status> {
        let keys: Vec<Option<Key>> = objects.iter().map(|object| Key::of(lens, object)).collect();
        let found = |key: &Option<Key>| self.remembered.get(key.as_ref()?);
        let mut shown: Vec<Option<Shown>> = keys.iter().map(found).collect();
        let mut missing = Vec::new();
        for (at, (key, object)) in keys.iter().zip(objects).enumerate() {
            if shown.get(at).is_some_and(Option::is_none) {
                key.as_ref().map_or(Ok(()), |key| self.pauses_about(key))?;
                missing.push((at, Asked { key: key.as_ref(), text: text(lens, object) }));
            }
        }
        let (places, asked): (Vec<usize>, Vec<Asked<'_>>) = missing.into_iter().unzip();
        for (at, answer) in places.into_iter().zip(self.call(lens, in_force, &asked).await?) {
            if let Some(Some(key)) = keys.get(at) {
                self.remembered.insert(key.clone(), answer.clone());
            }
            if let Some(place) = shown.get_mut(at) {
                *place = Some(answer);
            }
        }
        Ok(shown.into_iter().flatten().collect())
    }

    /// Asks the guest about objects as it sees them, a batch at a time.
    async fn call(&self, lens: &Lens, in_force: &InForce, asked: &[Asked<'_>]) -> Result<Vec<Shown>, Status> {
        let mut shown = Vec::with_capacity(asked.len());
        for batch in batches(asked) {
            if let [one] = batch {
                shown.push(self.alone(lens, in_force, &one.text, one.key).await?);
                continue;
            }
            let texts = batch.iter().map(|one| one.text.as_str());
            match self.show_batch(lens, in_force, texts).await? {
                Ok(items) => shown.extend(items),
                // One object can end the call of a whole batch. The others are shown all the same.
                Err(error) => {
                    warn!(view = lens.view, %error, "A guest failed over a batch; its objects are shown one by one");
                    for one in batch {
                        shown.push(self.alone(lens, in_force, &one.text, one.key).await?);
                    }
                }
            }
        }
        Ok(shown)
    }

    /// Asks the guest about one object. It is not asked again about the object of this key for a while, if it fails in a way that may pass.
    async fn alone(
        &self,
        lens: &Lens,
        in_force: &InForce,
        text: &str,
        key: Option<&Key>,
    ) -> Result<Shown, Status> {
        match self.show_batch(lens, in_force, std::iter::once(text)).await? {
            Ok(mut items) => items.pop().ok_or_else(nothing),
            Err(error) if may_pass(&error) => {
                debug!(view = lens.view, %error, "A guest failed in a way that may pass");
                if let Some(key) = key {
                    self.pauses.insert(key.clone(), clock::monotonic() + PAUSE);
                }
                Err(failed_for_now())
            }
            Err(error) => Ok(Shown::Failed(Arc::new(error.into()))),
        }
    }

    /// # Errors
    /// 503 while the guest is not asked about an object.
    fn pauses_about(&self, key: &Key) -> Result<(), Status> {
        match self.pauses.get(key).is_some_and(|until| clock::monotonic() < until) {
            true => Err(failed_for_now()),
            false => Ok(()),
        }
    }

    async fn show_batch(
        &self,
        lens: &Lens,
        in_force: &InForce,
        batch: impl ExactSizeIterator<Item = &str>,
    ) -> Result<Result<Vec<Shown>, CallError>, Status> {
        let (caller, views, count) = (Arc::clone(&self.caller), in_force.views.clone(), batch.len());
        let view = in_force.view.clone();
        // What is shown becomes text while its call has memory for it as values.
        let show = move |request: &str, limits: &CallLimits| {
            let Answer { response, stats, .. } = caller.show(&views, &view, request, count, limits)?;
            Ok((response.items.into_iter().map(Shown::of).collect(), stats))
        };
        self.granted(&lens.view, show_request(in_force, batch), show).await
    }

    /// What becomes of a backing object when somebody writes this.
    ///
    /// # Errors
    /// In the inner result, why the guest refuses it, or fails; in the outer, why it cannot be called, or failed in a way that may pass.
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
        let store = move |request: &str, limits: &CallLimits| {
            let Answer { response, stats, .. } = caller.store(&views, request, limits)?;
            Ok((response.object, stats))
        };
        let stored = self.granted(&lens.view, request, store).await?;
        match stored {
            Ok(object) => Ok(Ok(object)),
            Err(error) if may_pass(&error) => Err(failed_for_now()),
            Err(CallError { failure, origin, .. }) => Ok(Err((*failure, origin))),
        }
    }

    /// Calls a guest on a thread of its own, when it is its turn, with as much memory as the last call for this view needed; and again with
    /// more if that was not enough.
    async fn granted<T: Send + 'static>(
        &self,
        view: &str,
        request: String,
        call: impl Fn(&str, &CallLimits) -> Result<(T, CallStats), CallError> + Send + Sync + 'static,
    ) -> Result<Result<T, CallError>, Status> {
        let (call, request) = (Arc::new(call), Arc::<str>::from(request));
        let mut memory = CallMemory::new(&self.budget, view, self.limits, request.len());
        loop {
            let reserve = async {
                // Who asks may hold memory for the answer, and somebody else may wait for that.
                let reserved = tokio::time::timeout(MEMORY_WAIT, memory.reserve()).await;
                let reserved = reserved.map_err(|_| Status::too_many_requests(RETRY_SECONDS))?;
                reserved.map_err(|too_large| beyond_the_budget(view, too_large))
            };
            let (turn, (reserved, limits)) = self.turn_with(reserve).await?;
            let (call, request) = (Arc::clone(&call), Arc::clone(&request));
            let called = self.on_a_thread(view, (turn, reserved), move || call(&request, &limits)).await?;
            if memory.has_more(called.as_ref().err()) {
                continue;
            }
            let stats = called.as_ref().map_or_else(|error| error.stats, |(_, stats)| *stats);
            memory.saw(stats);
            self.metrics.guest_called(view, stats.duration);
            return Ok(called.map(|(answer, _)| answer));
        }
    }

    /// Does work for a view that takes up to this many bytes of memory, on a thread of its own, when it is its turn.
    ///
    /// # Errors
    /// 429 when the memory is in use for too long, 503 when there is not so much.
    pub(crate) async fn work<T: Send + 'static>(
        &self,
        view: &str,
        bytes: u64,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Status> {
        let held =
            self.turn_with(self.budget.reserve_soon(view, bytes)).await.map_err(|none| match none {
                NoMemory::InUse => Status::too_many_requests(RETRY_SECONDS),
                NoMemory::TooLarge(too_large) => {
                    warn!(view, bytes, "A request takes more memory than there is for one: {too_large:?}");
                    Status::unavailable("the gateway has too little memory for this request", RETRY_SECONDS)
                }
            })?;
        self.on_a_thread(view, held, work).await
    }

    /// Waits for a turn, and for the memory that this reserves. Nobody waits for memory with a turn in hand: a few large calls would hold up
    /// every view, and two could wait for each other.
    async fn turn_with<R, E>(&self, reserve: impl Future<Output = Result<R, E>>) -> Result<(Turn, R), E> {
        let mut reserve = std::pin::pin!(reserve);
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        if let Some(reserved) = reserve.as_mut().now_or_never() {
            return Ok((turn, reserved?));
        }
        drop(turn);
        let reserved = reserve.await?;
        Ok((Arc::clone(&self.turns).acquire_owned().await, reserved))
    }

    /// Does work that blocks, which holds its turn and its memory.
    async fn on_a_thread<T: Send + 'static>(
        &self,
        view: &str,
        held: impl Send + 'static,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Status> {
        let done = self.spawner.block(move || {
            let done = work();
            // It stays with the work, also when nobody waits for that any more.
            drop(held);
            done
        });
        done.await.map_err(|error| {
            warn!(view, %error, "Work for a request panicked");
            Status::internal_error("this request made the gateway panic")
        })
    }

    /// The most memory that one request can have, in bytes.
    pub(crate) fn bytes_max(&self) -> u64 {
        self.budget.bytes_max()
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

/// An object that a guest is asked about.
struct Asked<'a> {
    /// Under what it is remembered, if at all.
    key: Option<&'a Key>,
    /// The object as the guest sees it.
    text: String,
}

/// Whether a failure may be another one, or none, when the same is asked again: a busy machine can make a call late. Equal requests always
/// take the same memory.
fn may_pass(error: &CallError) -> bool {
    error.origin == Origin::Engine && error.failure.retry && error.failure.reason != reasons::MEMORY
}

fn failed_for_now() -> Status {
    let message = "the guest of the view did not answer in time: it is asked again in a moment";
    Status::unavailable(message, 1)
}

/// An object as its guest sees it.
fn text(lens: &Lens, object: &BackingObject) -> String {
    object.for_guest_json(lens)
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

/// Objects in batches that a guest takes. An object that is larger than a batch is one alone.
fn batches<'a, 'b>(asked: &'a [Asked<'b>]) -> impl Iterator<Item = &'a [Asked<'b>]> {
    let mut rest = asked;
    std::iter::from_fn(move || {
        let mut bytes = 0usize;
        let fits = rest.iter().take(SHOW_OBJECTS_MAX).take_while(|one| {
            bytes = bytes.saturating_add(one.text.len());
            bytes <= SHOW_BYTES
        });
        let count = fits.count().max(1);
        let (batch, others) = rest.split_at_checked(count)?;
        rest = others;
        Some(batch)
    })
}

/// The request about objects that are JSON already.
fn show_request<'a>(in_force: &InForce, objects: impl Iterator<Item = &'a str>) -> String {
    let head = ShowRequest::<Value> {
        api_version: ApiVersion,
        view: in_force.view.clone(),
        config: in_force.config.clone(),
        objects: Vec::new(),
    };
    let mut request = serde_json::to_string(&head).unwrap_or_default();
    // The objects come last in the document: `..."objects":[]}`.
    request.truncate(request.len().saturating_sub("]}".len()));
    for (at, object) in objects.enumerate() {
        if at > 0 {
            request.push(',');
        }
        request.push_str(object);
    }
    request.push_str("]}");
    request
}

#[cfg(test)]
mod tests {
    use pintle_modules::Purpose;
    use tokio::time::Instant;

    use super::*;

    #[test]
    fn batches_keep_the_order_and_the_limits_and_lose_nothing() {
        let text = |at: usize| "x".repeat(if at % 50 == 7 { 300 << 10 } else { at });
        let asked: Vec<Asked<'_>> = (0..200).map(|at| Asked { key: None, text: text(at) }).collect();
        let lengths = |batch: &[Asked<'_>]| batch.iter().map(|one| one.text.len()).collect::<Vec<_>>();
        let batches: Vec<Vec<usize>> = batches(&asked).map(lengths).collect();
        assert_eq!(batches.concat(), lengths(&asked));
        for batch in &batches {
            let bytes: usize = batch.iter().sum();
            assert!(batch.len() == 1 || batch.len() <= SHOW_OBJECTS_MAX && bytes <= SHOW_BYTES);
        }
        assert!(batches.len() < 20, "{}", batches.len());
    }

    fn error(reason: &str, retry: bool, origin: Origin) -> CallError {
        let failure = Failure { retry, ..Failure::terminal(reason, "it failed") };
        CallError { failure: Box::new(failure), origin, stats: pintle_engine::CallStats::default() }
    }

    #[test]
    fn a_late_call_may_pass_and_what_the_guest_says_traps_and_the_limit_of_memory_do_not() {
        assert!(may_pass(&error(reasons::DEADLINE, true, Origin::Engine)));
        assert!(!may_pass(&error(reasons::MEMORY, true, Origin::Engine)));
        assert!(!may_pass(&error(reasons::TRAP, false, Origin::Engine)));
        assert!(!may_pass(&error("AnyReason", true, Origin::Guest)));
    }

    #[test]
    fn only_what_is_stored_has_a_key() {
        let lens = Lens::new("llamas", Default::default(), Default::default(), Vec::new(), Epoch::default());
        let object = |source| BackingObject { source, ..BackingObject::default() };
        assert!(Key::of(&lens, &object(Source::Stored)).is_some());
        assert_eq!(Key::of(&lens, &object(Source::Elsewhere)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_memory_holds_up_nobody_who_finds_some() {
        let budget = Budget::fixed(512 << 20);
        let metrics = Arc::new(Metrics::default());
        let guests = Guests::new(Spawner::default(), Arc::new(InModules), budget.clone(), metrics);
        let _held = budget.reserve("others", Purpose::Call, 200 << 20).await.unwrap();
        let large = (0..=guests.turns.available_permits()).map(|_| guests.work("llamas", 200 << 20, || ()));
        let mut large = std::pin::pin!(futures::future::join_all(large));
        assert!(large.as_mut().now_or_never().is_none());
        let began = Instant::now();
        assert_eq!(guests.work("farmpods", 1 << 10, || "done").await, Ok("done"));
        assert!(began.elapsed().is_zero());
        assert!(large.await.iter().all(|waited| waited.as_ref().is_err_and(|refused| refused.code == 429)));
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_finds_no_memory_waits_and_then_is_told_to_come_again() {
        let budget = Budget::fixed(512 << 20);
        let metrics = Arc::new(Metrics::default());
        let guests = Guests::new(Spawner::default(), Arc::new(InModules), budget.clone(), metrics);
        let work = |bytes: u64| guests.work("llamas", bytes, || "done");
        let held = budget.reserve("others", Purpose::Call, 200 << 20).await.unwrap();
        assert_eq!(work(200 << 20).await.map_err(|refused| refused.code), Err(429));
        drop(held);
        assert_eq!(work(200 << 20).await, Ok("done"));
        assert_eq!(work(1 << 40).await.map_err(|refused| refused.code), Err(503));
        assert_eq!(budget.standing().waiting, 0);
    }
}
