//! [`Ending`] and [`Over`]: one side says that it is over, and the other waits for that.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tokio::sync::Notify;

#[derive(Debug, Default)]
struct Shared {
    is_over: AtomicBool,
    told: Notify,
}

/// Says that it is over, at the latest when this is dropped. Whoever waits is told in the order in which they came: tokio's `watch` tells
/// them in an order of chance, which no simulation could repeat.
#[derive(Debug, Default)]
pub struct Ending(Arc<Shared>);

/// Waits until it is over.
#[derive(Clone, Debug)]
pub struct Over(Arc<Shared>);

impl Ending {
    /// What those who wait have.
    pub fn over(&self) -> Over {
        Over(Arc::clone(&self.0))
    }

    /// It is over.
    pub fn end(&self) {
        self.0.is_over.store(true, Ordering::SeqCst);
        self.0.told.notify_waiters();
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.end();
    }
}

impl Over {
    /// Ends when it is over, also if it has been for long.
    pub async fn wait(&self) {
        // Who has this is told from now on, so that nothing is lost between the look and the wait.
        let told = self.0.told.notified();
        if !self.0.is_over.load(Ordering::SeqCst) {
            told.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn who_waits_and_who_comes_later_are_told_also_by_a_drop() {
        let ending = Ending::default();
        let over = ending.over();
        assert_eq!(over.wait().now_or_never(), None);
        let early = over.clone();
        let early = tokio::spawn(async move { early.wait().await });
        tokio::task::yield_now().await;
        drop(ending);
        early.await.unwrap();
        assert_eq!(over.wait().now_or_never(), Some(()));
    }
}
