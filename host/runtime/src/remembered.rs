//! [`Remembered`]: answers that hold for a while, and that are asked for once however many want them.

use std::time::Duration;

use quick_cache::sync::Cache;
use sha2::{Digest, Sha256};

use crate::clock;

/// How long an answer holds, from when it was asked for: as long as with the API server's own servers.
pub const HOLDS: Duration = Duration::from_secs(10);

/// A question, as its hash: no token is kept, and no question is large.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key([u8; 32]);

impl Key {
    /// The key of a question.
    pub fn of(question: &[u8]) -> Self {
        Self(Sha256::digest(question).into())
    }
}

/// A bounded number of answers.
pub struct Remembered<T>(Cache<Key, Answer<T>>);

#[derive(Clone)]
struct Answer<T> {
    asked_at: Duration,
    value: T,
}

impl<T> Answer<T> {
    fn holds(&self) -> bool {
        clock::monotonic() < self.asked_at + HOLDS
    }
}

impl<T: Clone> Remembered<T> {
    /// Remembers at most so many answers.
    pub fn new(answers_max: usize) -> Self {
        Self(Cache::new(answers_max))
    }

    /// How many answers are remembered.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The answer to a question, if it is remembered and holds.
    pub fn get(&self, key: Key) -> Option<T> {
        let answer = self.0.get(&key)?;
        answer.holds().then_some(answer.value)
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The answer to a question. Who asks while somebody else asks the same waits for that answer, and asks itself if there was none.
    ///
    /// # Errors
    /// When there is no answer. This is not remembered.
    pub async fn get_or_ask<E>(&self, key: Key, ask: impl AsyncFnOnce() -> Result<T, E>) -> Result<T, E> {
        let place = loop {
            match self.0.get_value_or_guard_async(&key).await {
                Ok(answer) if answer.holds() => return Ok(answer.value),
                // Unless somebody has asked anew since.
                Ok(answer) => drop(self.0.remove_if(&key, |known| known.asked_at == answer.asked_at)),
                Err(place) => break place,
            }
        };
        let asked_at = clock::monotonic();
        let value = ask().await?;
        // It is not kept if somebody else has taken the place.
        let _ = place.insert(Answer { asked_at, value: value.clone() });
        Ok(value)
    }
}
