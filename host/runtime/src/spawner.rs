//! [`Spawner`]: starts the operator's tasks, either on the runtime's threads, or all on one thread where a simulator can end them at any
//! point.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::{
    sync::SetOnce,
    task::{AbortHandle, JoinError, JoinHandle},
};

use crate::clock;

/// Starts tasks. Clones start their tasks in the same place.
#[derive(Clone, Debug, Default)]
pub struct Spawner {
    simulated: Option<Arc<Simulated>>,
    /// The first task to end of those that were to last.
    ended: Arc<SetOnce<&'static str>>,
}

/// A simulated host: its clock, and its running tasks.
#[derive(Debug)]
struct Simulated {
    clock: Arc<clock::Virtual>,
    tasks: Mutex<Vec<AbortHandle>>,
}

/// Tells that a task has ended which was to last, when it is dropped with it: also by a panic.
#[derive(Debug)]
struct Lasting {
    name: &'static str,
    ended: Arc<SetOnce<&'static str>>,
}

impl Drop for Lasting {
    fn drop(&mut self) {
        let _ = self.ended.set(self.name);
    }
}

/// How many tasks are remembered before those that ended are forgotten.
const TASKS_KEPT: usize = 256;

impl Spawner {
    /// The spawner of a simulated host. Its tasks use this clock, and blocking work runs on the calling thread.
    pub fn simulated(clock: Arc<clock::Virtual>) -> Self {
        let simulated = Some(Arc::new(Simulated { clock, tasks: Mutex::default() }));
        Self { simulated, ..Self::default() }
    }

    /// Starts a task.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let Some(simulated) = &self.simulated else { return tokio::spawn(future) };
        let task = tokio::spawn(Arc::clone(&simulated.clock).scope(future));
        let mut tasks = simulated.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        if tasks.len() >= TASKS_KEPT {
            tasks.retain(|task| !task.is_finished());
        }
        tasks.push(task.abort_handle());
        task
    }

    /// Starts a task that is to last as long as its process. Where it ends, by a panic or by itself, [`Self::ended`] says so.
    pub fn spawn_lasting<F>(&self, future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let lasting = Lasting { name: name_of::<F>(), ended: Arc::clone(&self.ended) };
        self.spawn(async move {
            let _lasting = lasting;
            future.await;
        });
    }

    /// Waits until a task has ended that was to last, and names it.
    pub async fn ended(&self) -> &'static str {
        *self.ended.wait().await
    }

    /// Runs work that computes for long, or blocks, on a thread with a lower priority than those of the tasks.
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

    /// Ends every task of a simulated host at its present point, as the end of a process does. Does nothing on a real host.
    pub fn end_all(&self) {
        let Some(simulated) = &self.simulated else { return };
        for task in simulated.tasks.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            task.abort();
        }
    }
}

/// The name of a task's type, in short: `worker::reconcile`.
fn name_of<F>() -> &'static str {
    let name = std::any::type_name::<F>();
    let name = name.split(['<', '{']).next().unwrap_or(name).trim_end_matches(':');
    let ours = name.strip_prefix("pintle_").and_then(|name| name.split_once("::"));
    ours.map_or(name, |(_, rest)| rest)
}

/// The `nice` value of a thread that computes for long. When all processors are busy, it gets a tenth of the time of a thread that does
/// I/O.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// Lowers the priority of this thread, from now on. The runtime never uses a thread for blocking work for anything else.
fn give_way() {
    // Only on Linux this applies to the calling thread alone.
    #[cfg(target_os = "linux")]
    {
        thread_local!(static GIVES_WAY: std::cell::Cell<bool> = const { std::cell::Cell::new(false) });
        if !GIVES_WAY.replace(true) {
            // If it may not be set, all threads have the same priority.
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

    #[test]
    fn the_name_of_a_task_is_short() {
        fn of<F>(_: &F) -> &'static str {
            name_of::<F>()
        }
        async fn reconcile() {}
        assert_eq!(of(&reconcile()), "spawner::tests::the_name_of_a_task_is_short::reconcile");
    }
}
