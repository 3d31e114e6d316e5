//! [`Hub`]: the watches at the API server that streams share. [`Feed`]: one of them.
//!
//! - [`wanted`]: what a client asks to see.
//! - [`log`]: the changes that one watch brought, the newest of each object.

pub(crate) mod log;
pub(crate) mod wanted;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use http::StatusCode;
use http_body_util::BodyExt;
use kube::client::Body;
use pintle_core::object;
use serde_json::Value;
use tokio::{sync::Notify, task::AbortHandle};

use crate::{
    caller::{Caller, Whole},
    problem::Problem,
};
use log::{End, Happened, Log, News, Position};
use wanted::What;

/// How long the API server keeps a watch open. A watch that goes on is not authorized again, so it is opened anew.
const WATCH_SECONDS: u64 = 540;

/// The largest event of a watch, in bytes.
const EVENT_BYTES_MAX: usize = 8 << 20;

/// How long after a failure it is tried again, at first and at most.
const BACKOFF: Duration = Duration::from_secs(1);
const BACKOFF_MAX: Duration = Duration::from_secs(30);

/// After how many failures in a row it is given up.
const FAILURES_MAX: u32 = 8;

/// How many streams there may be, in all and for one user, whatever tokens it has. A tab of a browser has one.
const STREAMS_MAX: usize = 1024;
const STREAMS_OF_ONE_MAX: usize = 128;

/// How many watches there may be, in all and for one user. A page has some five, which its other tabs share.
const FEEDS_MAX: usize = 1024;
const FEEDS_OF_ONE_MAX: usize = 128;

/// Who watches what. Tokens of one user may have different rights, so that they share no watch.
type Key = ([u8; 32], What);

/// The watches that streams share.
#[derive(Default)]
pub struct Hub {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    feeds: BTreeMap<Key, Weak<Feed>>,
    /// How many streams each user has, by name.
    streams: BTreeMap<Arc<str>, usize>,
}

/// A place for one stream. It is given back when it is dropped.
pub(crate) struct Seat {
    hub: Arc<Mutex<Inner>>,
    user: Arc<str>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut inner = lock(&self.hub);
        if let Some(count) = inner.streams.get_mut(&self.user) {
            *count -= 1;
            if *count == 0 {
                inner.streams.remove(&self.user);
            }
        }
    }
}

/// One watch at the API server.
pub(crate) struct Feed {
    /// The name of the user whose it is.
    user: Arc<str>,
    shared: Arc<Shared>,
    task: AbortHandle,
}

struct Shared {
    log: Mutex<Log>,
    /// Who is to be told when there is something new.
    waiting: Mutex<Vec<Weak<Notify>>>,
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Hub {
    /// A place for one more stream of a user.
    ///
    /// # Errors
    /// 429 when there is none.
    pub(crate) fn place(&self, caller: &Caller) -> Result<Seat, Problem> {
        let mut inner = lock(&self.inner);
        let all: usize = inner.streams.values().sum();
        let user: Arc<str> = caller.name().into();
        let own = inner.streams.get(&user).copied().unwrap_or_default();
        if all >= STREAMS_MAX || own >= STREAMS_OF_ONE_MAX {
            return Err(Problem::busy("there are too many streams", 30));
        }
        inner.streams.insert(Arc::clone(&user), own + 1);
        Ok(Seat { hub: Arc::clone(&self.inner), user })
    }

    /// The watch of what a caller wants to see, from a version on, and where the listener begins. One that goes on already is shared.
    ///
    /// # Errors
    /// 429 when there are too many.
    pub(crate) fn watch(
        &self,
        caller: &Caller,
        what: &What,
        since: &str,
    ) -> Result<(Arc<Feed>, Position), Problem> {
        let mut inner = lock(&self.inner);
        inner.feeds.retain(|_, feed| feed.strong_count() > 0);
        let key = (caller.key(), what.clone());
        if let Some(feed) = inner.feeds.get(&key).and_then(Weak::upgrade) {
            let joined = lock(&feed.shared.log).join(since);
            if let Some(position) = joined {
                return Ok((feed, position));
            }
        }
        let of_user =
            inner.feeds.values().filter_map(Weak::upgrade).filter(|feed| *feed.user == *caller.name());
        if inner.feeds.len() >= FEEDS_MAX || of_user.count() >= FEEDS_OF_ONE_MAX {
            return Err(Problem::busy("there are too many watches", 30));
        }
        let log = Log::since(since);
        let position = log.beginning();
        let shared = Arc::new(Shared { log: Mutex::new(log), waiting: Mutex::default() });
        let watch = Watch { caller: caller.clone(), what: what.clone(), shared: Arc::clone(&shared) };
        let user = caller.name().into();
        let feed = Arc::new(Feed { user, shared, task: tokio::spawn(watch.run()).abort_handle() });
        inner.feeds.insert(key, Arc::downgrade(&feed));
        Ok((feed, position))
    }

    /// How many watches go on.
    #[cfg(test)]
    pub(crate) fn feeds(&self) -> usize {
        lock(&self.inner).feeds.values().filter(|feed| feed.strong_count() > 0).count()
    }
}

impl Feed {
    /// Tells this whenever there is something new.
    pub(crate) fn tell(&self, listener: &Arc<Notify>) {
        let mut waiting = lock(&self.shared.waiting);
        waiting.retain(|waiting| waiting.strong_count() > 0);
        waiting.push(Arc::downgrade(listener));
    }

    /// What a listener is to be told next.
    pub(crate) fn next(&self, position: &mut Position) -> Option<News> {
        lock(&self.shared.log).next(position)
    }
}

impl Shared {
    fn take_down(&self, write: impl FnOnce(&mut Log)) {
        write(&mut lock(&self.log));
        for listener in lock(&self.waiting).iter().filter_map(Weak::upgrade) {
            listener.notify_one();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change under these locks is whole before anything can panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What keeps one watch open.
struct Watch {
    caller: Caller,
    what: What,
    shared: Arc<Shared>,
}

/// What came of one connection.
enum Came {
    /// It ended as it should: it is opened anew.
    Closed,
    /// It failed, and may work later.
    Failed(Problem),
    /// It does not work any more.
    Ended(End),
}

impl Watch {
    async fn run(self) {
        let mut failures = 0;
        loop {
            let began = self.shared.seen();
            let came = self.follow(&began).await;
            if self.shared.seen() != began {
                failures = 0;
            }
            match came {
                Came::Closed => failures = failures.max(1),
                Came::Failed(problem) if failures >= FAILURES_MAX => {
                    return self.shared.take_down(|log| log.end(End::Problem(problem)));
                }
                Came::Failed(problem) => {
                    failures += 1;
                    let wait = BACKOFF.saturating_mul(1 << failures.min(5)).min(BACKOFF_MAX);
                    tokio::time::sleep(problem.retry_after.unwrap_or(wait).min(BACKOFF_MAX)).await;
                    continue;
                }
                Came::Ended(end) => return self.shared.take_down(|log| log.end(end)),
            }
            if self.shared.seen() == began {
                // An API server that closes at once is not asked in a circle.
                tokio::time::sleep(BACKOFF).await;
            }
        }
    }

    /// Follows one connection to its end.
    async fn follow(&self, since: &str) -> Came {
        let ask = self.what.watch();
        let ask = ask.with("resourceVersion", since).with("timeoutSeconds", WATCH_SECONDS.to_string());
        let response = match self.caller.begin(ask).await {
            Ok(response) => response,
            Err(problem) => return Came::Failed(problem),
        };
        if response.status().is_success() {
            return self.read(response.into_body()).await;
        }
        judge(match self.caller.whole(response).await {
            Ok(Whole { code, headers, body, .. }) => Problem::of_answer(code, &headers, &body),
            Err(problem) => problem,
        })
    }

    async fn read(&self, mut body: Body) -> Came {
        let mut line = Vec::new();
        loop {
            let frame = match body.frame().await {
                None => return Came::Closed,
                Some(Ok(frame)) => frame,
                Some(Err(_)) => return Came::Failed(Problem::bad_gateway("the watch was cut off")),
            };
            let Ok(data) = frame.into_data() else { continue };
            let mut rest = &data[..];
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let (head, tail) = rest.split_at(end);
                line.extend_from_slice(head);
                rest = tail.get(1..).unwrap_or_default();
                if let Some(came) = self.take(&std::mem::take(&mut line)) {
                    return came;
                }
            }
            line.extend_from_slice(rest);
            if line.len() > EVENT_BYTES_MAX {
                return Came::Ended(End::Reset);
            }
        }
    }

    /// Takes one event of the watch.
    fn take(&self, line: &[u8]) -> Option<Came> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return None;
        }
        let Ok(mut event) = serde_json::from_slice::<Value>(line) else {
            return Some(Came::Failed(Problem::bad_gateway("an event of the watch cannot be read")));
        };
        let object = event.get_mut("object").map(Value::take).unwrap_or_default();
        let version = object::text(&object, &["metadata", "resourceVersion"]).unwrap_or_default().to_owned();
        let happened = match event.get("type").and_then(Value::as_str) {
            Some("ADDED") => Happened::Added,
            Some("MODIFIED") => Happened::Modified,
            Some("DELETED") => Happened::Deleted,
            Some("BOOKMARK") => {
                self.shared.take_down(|log| log.bookmark(&version));
                return None;
            }
            _ => {
                let code =
                    object.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
                let code =
                    code.and_then(|code| StatusCode::from_u16(code).ok()).unwrap_or(StatusCode::BAD_GATEWAY);
                let body = object.to_string();
                return Some(judge(Problem::of_answer(code, &http::HeaderMap::new(), body.as_bytes())));
            }
        };
        let name = format!("{}/{}", object::namespace(&object).unwrap_or_default(), object::name(&object));
        let told = self.what.told(object);
        self.shared.take_down(|log| log.changed(happened, name, &version, told));
        None
    }
}

impl Shared {
    fn seen(&self) -> String {
        lock(&self.log).seen().to_owned()
    }
}

fn judge(problem: Problem) -> Came {
    match problem.status {
        StatusCode::GONE => Came::Ended(End::Reset),
        StatusCode::UNAUTHORIZED => Came::Ended(End::Unauthorized),
        StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => Came::Failed(problem),
        status if status.is_client_error() => Came::Ended(End::Problem(problem)),
        _ => Came::Failed(problem),
    }
}
