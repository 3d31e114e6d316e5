//! Answers that are sent in parts, to clients that have to read them.
//!
//! A long answer takes memory until it is sent, and whoever does not read it would hold that for as long as it likes. So it goes through a
//! channel that holds little, and is broken off where it is not read in time. Then its stream ends with an error, so that nobody takes the
//! part for the whole.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures::Stream;
use tokio::{sync::mpsc, time::timeout};

/// How much of an answer is sent at a time, in bytes.
pub const PART_BYTES: usize = 256 << 10;

/// How many such parts wait for the client.
const PARTS_WAITING: usize = 4;

/// How long a part may wait for a client that does not read.
const PART_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a whole answer may: as long as the API server lets a request take.
const WHOLE_TIMEOUT: Duration = Duration::from_secs(60);

/// The client does not read, or has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client does not read")]
pub struct Unread;

/// The answer was not sent to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer was broken off")]
pub struct BrokenOff;

/// Where parts are sent. If it is dropped before the end, the answer is broken off.
#[derive(Debug)]
pub struct PartSender(mpsc::Sender<Option<Bytes>>);

/// What arrives of them.
#[derive(Debug)]
pub struct Arriving {
    parts: mpsc::Receiver<Option<Bytes>>,
    has_ended: bool,
}

/// A way for an answer in parts.
pub fn channel() -> (PartSender, Arriving) {
    let (parts, arriving) = mpsc::channel(PARTS_WAITING);
    (PartSender(parts), Arriving { parts: arriving, has_ended: false })
}

impl PartSender {
    /// Sends a part, when there is a place for it.
    ///
    /// # Errors
    /// When there is none in time.
    pub async fn send(&self, part: Bytes) -> Result<(), Unread> {
        self.put(Some(part)).await
    }

    /// The answer has been sent.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub async fn end(self) -> Result<(), Unread> {
        self.put(None).await
    }

    /// Sends a whole answer.
    ///
    /// # Errors
    /// When it is not read in time. It is broken off then.
    pub async fn send_whole(self, text: Bytes) -> Result<(), Unread> {
        let sending = async {
            for part in text.chunks(PART_BYTES) {
                // A copy, or the last part that waits would hold all of it.
                self.send(Bytes::copy_from_slice(part)).await?;
            }
            self.end().await
        };
        timeout(WHOLE_TIMEOUT, sending).await.unwrap_or(Err(Unread))
    }

    async fn put(&self, part: Option<Bytes>) -> Result<(), Unread> {
        timeout(PART_TIMEOUT, self.0.send(part)).await.map_err(|_| Unread)?.map_err(|_| Unread)
    }
}

impl Stream for Arriving {
    type Item = Result<Bytes, BrokenOff>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        self.parts.poll_recv(context).map(|part| match part {
            Some(Some(part)) => Some(Ok(part)),
            Some(None) => {
                self.has_ended = true;
                None
            }
            None => {
                self.has_ended = true;
                Some(Err(BrokenOff))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;

    use super::*;

    async fn read(arriving: Arriving) -> Result<usize, BrokenOff> {
        let parts: Vec<_> = arriving.collect().await;
        parts.into_iter().map(|part| part.map(|part| part.len())).sum()
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_comes_to_its_end_in_parts() {
        for bytes in [0, 1, PART_BYTES, 10 * PART_BYTES + 1] {
            let (parts, arriving) = channel();
            let sending = tokio::spawn(parts.send_whole(vec![b'a'; bytes].into()));
            assert_eq!(read(arriving).await, Ok(bytes));
            assert_eq!(sending.await.unwrap(), Ok(()));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_reads_is_broken_off_and_so_is_what_is_read_too_slowly() {
        let long: Bytes = vec![b'a'; 40 * PART_BYTES].into();
        let (parts, arriving) = channel();
        assert_eq!(parts.send_whole(long.clone()).await, Err(Unread));
        assert_eq!(read(arriving).await, Err(BrokenOff), "whoever reads the rest is not told that it is all");
        let (parts, mut arriving) = channel();
        let sending = tokio::spawn(parts.send_whole(long));
        let mut read = 0;
        while let Some(Ok(part)) = arriving.next().await {
            read += part.len();
            tokio::time::sleep(Duration::from_secs(20)).await;
        }
        assert_eq!(sending.await.unwrap(), Err(Unread));
        assert!(read < 10 * PART_BYTES, "a part in 20 s is too slow: {read}");
        let (parts, gone) = channel();
        drop(gone);
        assert_eq!(parts.send(Bytes::new()).await, Err(Unread));
    }
}
