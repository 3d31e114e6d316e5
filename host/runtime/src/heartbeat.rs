//! Whether the host makes progress, for `/healthz`.
//!
//! A task is busy while it is polled. While it waits, for instance for the API server, it is not. So a task that is busy for long holds up
//! a thread of the runtime. The lock is judged by how often it was taken: if it is held, and nobody else has taken it since the last look,
//! it holds up everything. Nothing here waits for what it judges.

use std::{
    future::poll_fn,
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use slab::Slab;

use crate::clock;

/// How long there may be no progress. A guest may compute for 10 s, but not on these threads, and their own work takes milliseconds.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The name of the control loop among the tasks.
pub const CONTROL: &str = "the control loop";

/// The running tasks, and since when each of them is busy. Clones share the same list.
#[derive(Clone, Debug, Default)]
pub struct Heartbeats(Arc<Mutex<Slab<Arc<Beat>>>>);

#[derive(Debug)]
struct Beat {
    name: &'static str,
    /// The clock's time in nanoseconds, plus one; 0 while the task waits.
    since: AtomicU64,
}

/// Marks a task as being polled, until this is dropped, also by a panic.
struct Busy<'a>(&'a Beat);

impl Beat {
    fn busy(&self) -> Busy<'_> {
        let now = u64::try_from(clock::monotonic().as_nanos()).unwrap_or(u64::MAX - 1);
        self.since.store(now + 1, Ordering::Relaxed);
        Busy(self)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.since.store(0, Ordering::Relaxed);
    }
}

/// Marks a task as running, until this is dropped.
struct There {
    all: Heartbeats,
    key: usize,
    beat: Arc<Beat>,
}

impl Drop for There {
    fn drop(&mut self) {
        self.all.beats().try_remove(self.key);
    }
}

impl Heartbeats {
    fn beats(&self) -> MutexGuard<'_, Slab<Arc<Beat>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same task, watched under this name.
    pub fn watch<F: Future>(&self, name: &'static str, task: F) -> impl Future<Output = F::Output> + use<F> {
        let all = self.clone();
        async move {
            let beat = Arc::new(Beat { name, since: AtomicU64::new(0) });
            let key = all.beats().insert(Arc::clone(&beat));
            let there = There { all, key, beat };
            let mut task = pin!(task);
            poll_fn(|context| {
                let _busy = there.beat.busy();
                task.as_mut().poll(context)
            })
            .await
        }
    }

    /// The task that has been busy for longest, and for how long.
    fn busiest(&self, now: Duration) -> Option<(&'static str, Duration)> {
        let since = |beat: &Arc<Beat>| {
            let since = beat.since.load(Ordering::Relaxed).checked_sub(1)?;
            Some((beat.name, now.saturating_sub(Duration::from_nanos(since))))
        };
        self.beats().iter().filter_map(|(_, beat)| since(beat)).max_by_key(|(_, busy)| *busy)
    }

    /// Whether all tasks make progress.
    ///
    /// # Errors
    /// The task that does not.
    pub fn check(&self, now: Duration) -> Result<(), Standstill> {
        match self.busiest(now) {
            Some((CONTROL, busy)) if busy >= PATIENCE => Err(Standstill::Control(busy)),
            Some((task, busy)) if busy >= PATIENCE => Err(Standstill::Worker { task, busy }),
            _ => Ok(()),
        }
    }
}

/// A part of the host that makes no progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Standstill {
    /// The control loop, for this long.
    #[error("the control loop makes no progress for {} s", .0.as_secs())]
    Control(Duration),
    /// A worker thread.
    #[error("a worker thread makes no progress for {} s, in {task}", busy.as_secs())]
    Worker {
        /// The task that it runs.
        task: &'static str,
        /// For how long.
        busy: Duration,
    },
    /// Whoever has the lock of what the host knows, for this long.
    #[error("the lock of what the host knows has been held for {} s", .0.as_secs())]
    Lock(Duration),
}

/// How many times a lock was taken, and since when a look has found it held with this same count.
#[derive(Debug, Default)]
pub struct LockWatch {
    taken: AtomicU64,
    seen: Mutex<Option<(u64, Duration)>>,
}

impl LockWatch {
    /// Counts that the lock was taken. The caller holds it.
    pub fn taken(&self) {
        self.taken.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the lock is released, as far as a look now and then can show.
    ///
    /// # Errors
    /// For how long it has been held.
    pub fn check(&self, is_held: bool, now: Duration) -> Result<(), Standstill> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_held {
            *seen = None;
            return Ok(());
        }
        let taken = self.taken.load(Ordering::Relaxed);
        let (_, since) = seen.filter(|(before, _)| *before == taken).unwrap_or((taken, now));
        *seen = Some((taken, since));
        let held = now.saturating_sub(since);
        match held >= PATIENCE {
            true => Err(Standstill::Lock(held)),
            false => Ok(()),
        }
    }
}

/// The name of a task's type, in short: `worker::reconcile`.
pub fn name_of<F>() -> &'static str {
    let name = std::any::type_name::<F>();
    let name = name.split(['<', '{']).next().unwrap_or(name).trim_end_matches(':');
    let ours = name.strip_prefix("pintle_").and_then(|name| name.split_once("::"));
    ours.map_or(name, |(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Longer than anything may take.
    const LONG: Duration = Duration::from_secs(31);

    /// Runs a task on this thread, which is no runtime's.
    fn run<F: Future>(task: F) -> F::Output {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(task)
    }

    fn later() -> Duration {
        clock::monotonic() + LONG
    }

    #[tokio::test(start_paused = true)]
    async fn what_computes_for_too_long_is_named_and_what_waits_is_not() {
        let beats = Heartbeats::default();
        assert_eq!(beats.check(later()), Ok(()), "nothing runs");
        for (name, text) in [
            (CONTROL, "the control loop makes no progress for 31 s"),
            ("worker::reconcile", "a worker thread makes no progress for 31 s, in worker::reconcile"),
        ] {
            // The task itself looks while it computes, by the same clock, which stands still.
            let task = async {
                assert_eq!(beats.check(clock::monotonic()), Ok(()), "not for long yet");
                assert_eq!(beats.check(later()).unwrap_err().to_string(), text);
            };
            beats.watch(name, task).await;
            assert_eq!(beats.check(later()), Ok(()), "it is over");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_an_api_server_that_does_not_answer_is_not_held_up() {
        let beats = Heartbeats::default();
        let waits = beats.watch(CONTROL, std::future::pending::<()>());
        assert!(tokio::time::timeout(Duration::from_secs(3600), waits).await.is_err());
        let mut waits = pin!(beats.watch(CONTROL, std::future::pending::<()>()));
        assert!(futures::poll!(waits.as_mut()).is_pending());
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!(beats.check(clock::monotonic()), Ok(()));
        assert_eq!(beats.beats().len(), 1, "the first one is no longer there");
    }

    #[test]
    fn a_panic_ends_what_was_busy() {
        let beats = Heartbeats::default();
        let task = beats.watch(CONTROL, async { panic!("a mistake") });
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(task)));
        assert!(ended.is_err());
        assert_eq!((beats.check(later()), beats.beats().len()), (Ok(()), 0));
    }

    #[test]
    fn a_lock_that_is_held_is_told_from_one_that_is_taken_often() {
        let watch = LockWatch::default();
        let at = Duration::from_secs;
        watch.taken();
        assert_eq!(watch.check(true, at(0)), Ok(()));
        assert_eq!(watch.check(true, at(29)), Ok(()));
        assert_eq!(
            watch.check(true, at(30)).unwrap_err().to_string(),
            "the lock of what the host knows has been held for 30 s"
        );
        watch.taken();
        assert_eq!(watch.check(true, at(31)), Ok(()), "by another by now");
        assert_eq!(watch.check(false, at(50)), Ok(()));
        assert_eq!(watch.check(true, at(62)), Ok(()), "it was free meanwhile");
        assert!(watch.check(true, at(92)).is_err());
    }

    #[test]
    fn the_name_of_a_task_is_short() {
        fn of<F>(_: &F) -> &'static str {
            name_of::<F>()
        }
        async fn reconcile() {}
        assert_eq!(of(&reconcile()), "heartbeat::tests::the_name_of_a_task_is_short::reconcile");
    }
}
