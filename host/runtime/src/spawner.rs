//! Where the operator's tasks run: on the runtime's threads, or all on one that a simulator can end at any point.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::{AbortHandle, JoinError, JoinHandle};

use crate::clock;
use crate::heartbeat::{self, Heartbeats};

/// Starts tasks. Clones start them at the same place.
#[derive(Clone, Debug, Default)]
pub struct Spawner {
    simulated: Option<Arc<Simulated>>,
    /// What the tasks on the runtime's threads are doing.
    beats: Heartbeats,
}

/// A simulated host: its clock, and what it has running.
#[derive(Debug)]
struct Simulated {
    clock: Arc<clock::Virtual>,
    tasks: Mutex<Vec<AbortHandle>>,
}

/// How many tasks are remembered before those that ended are forgotten.
const TASKS_KEPT: usize = 256;

impl Spawner {
    /// A simulated host's: its tasks go by this clock, and what would block a thread runs where it is called.
    pub fn simulated(clock: Arc<clock::Virtual>) -> Self {
        let simulated = Some(Arc::new(Simulated { clock, tasks: Mutex::default() }));
        Self { simulated, beats: Heartbeats::default() }
    }

    /// What tells whether its tasks get on.
    pub fn heartbeats(&self) -> &Heartbeats {
        &self.beats
    }

    /// Starts a task.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.spawn_as(heartbeat::name_of::<F>(), future)
    }

    /// Starts a task that has a name of its own, should it ever not get on.
    pub fn spawn_as<F>(&self, name: &'static str, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let Some(simulated) = &self.simulated else { return tokio::spawn(self.beats.watch(name, future)) };
        let task = tokio::spawn(Arc::clone(&simulated.clock).scope(future));
        let mut tasks = simulated.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        if tasks.len() >= TASKS_KEPT {
            tasks.retain(|task| !task.is_finished());
        }
        tasks.push(task.abort_handle());
        task
    }

    /// Runs what computes for long, or waits without yielding, on a thread that gives way to those of the tasks.
    ///
    /// # Errors
    /// When it panicked.
    pub async fn block<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        match &self.simulated {
            None => {
                tokio::task::spawn_blocking(|| {
                    give_way();
                    work()
                })
                .await
            }
            Some(_) => Ok(work()),
        }
    }

    /// Ends every task of a simulated host where it is, as the end of a process does. Does nothing to a real one.
    pub fn end_all(&self) {
        let Some(simulated) = &self.simulated else { return };
        for task in simulated.tasks.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            task.abort();
        }
    }
}

/// How much a thread that computes for long gives way to those that have I/O to do, as `nice` has it: where all processors are busy, it
/// gets a tenth of what one of those does.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// Has this thread give way to all others, from now on. A runtime's thread for what blocks is never used for anything else.
fn give_way() {
    // On Linux, and there alone, it is of the one thread that asks.
    #[cfg(target_os = "linux")]
    {
        thread_local!(static GIVES_WAY: std::cell::Cell<bool> = const { std::cell::Cell::new(false) });
        if !GIVES_WAY.replace(true) {
            // Where it may not be set, all threads are even.
            let _ = rustix::process::nice(NICENESS);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_end_of_a_simulated_host_ends_every_task_of_it() {
        let clock = Arc::new(clock::Virtual::new(jiff::Timestamp::UNIX_EPOCH, 0));
        let spawner = Spawner::simulated(clock);
        let inner = spawner.clone();
        let outer = spawner.spawn(async move { inner.spawn(std::future::pending::<()>()).await });
        tokio::time::sleep(Duration::from_secs(1)).await;
        spawner.end_all();
        assert!(outer.await.unwrap_err().is_cancelled());
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn what_computes_for_long_gives_way_to_what_has_io_to_do() {
        let niceness = || rustix::process::getpriority_process(None).unwrap();
        let here = niceness();
        let there = Spawner::default().block(niceness).await.unwrap();
        assert_eq!((there, niceness()), ((here + NICENESS).min(19), here));
    }

    #[tokio::test(start_paused = true)]
    async fn what_blocks_runs_on_the_threads_that_called_it_in_a_simulated_host() {
        let clock = Arc::new(clock::Virtual::new(jiff::Timestamp::UNIX_EPOCH, 0));
        let here = std::thread::current().id();
        let there = Spawner::simulated(clock).block(move || std::thread::current().id()).await;
        assert_eq!(there.unwrap(), here);
    }
}
