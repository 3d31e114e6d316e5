//! [`Bounds`]: how large the body of a request may be, and how slowly it may come.

use std::{pin::pin, time::Duration};

use axum::body::HttpBody;
use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout_at};

use crate::problem::Problem;

/// What a body may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// How many bytes it has at most.
    pub bytes_max: usize,
    /// How long the first bytes may take.
    pub begins: Duration,
    /// How many bytes come in each second from then on, at least.
    pub bytes_a_second: u32,
    /// How long all of it may take.
    pub whole: Duration,
}

/// Why a body was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// It is too large.
    #[error("the body has more than {bytes_max} bytes")]
    TooLarge {
        /// How many bytes it has at most.
        bytes_max: usize,
    },
    /// It comes too slowly.
    #[error("the body came too slowly")]
    TooSlow,
    /// It ended too early.
    #[error("the body ended too early")]
    Broken,
}

/// How long the first bytes of a body may take: a client that has something to send does so at once.
const BEGINS: Duration = Duration::from_secs(5);

/// How many bytes of a body come in a second: less than the slowest telephone sends.
const BYTES_A_SECOND: u32 = 16 << 10;

/// The body of a request of which nobody knows yet who sends it: a secret, which has some dozen bytes.
pub const OF_NOBODY: Bounds =
    Bounds { bytes_max: 4 << 10, begins: BEGINS, bytes_a_second: BYTES_A_SECOND, whole: BEGINS };

impl Bounds {
    /// What a user sends whole before it is looked at.
    pub const fn of_user(bytes_max: usize) -> Self {
        Self { bytes_max, begins: BEGINS, bytes_a_second: BYTES_A_SECOND, whole: Duration::from_secs(60) }
    }

    /// What may be large: it may take as long as it has bytes.
    pub const fn of_upload(bytes_max: usize) -> Self {
        Self { bytes_max, begins: BEGINS, bytes_a_second: BYTES_A_SECOND, whole: Duration::MAX }
    }

    /// When the next bytes are due, from the beginning, after so many came.
    fn due(&self, received: usize) -> Duration {
        let sent = Duration::from_secs_f64(received as f64 / f64::from(self.bytes_a_second));
        self.begins.saturating_add(sent).min(self.whole)
    }

    /// Reads a body.
    ///
    /// # Errors
    /// When it is too large, comes too slowly, or ends too early.
    pub async fn read<B>(&self, body: B) -> Result<Bytes, Unread>
    where
        B: HttpBody<Data = Bytes>,
    {
        let mut body = pin!(body);
        let mut read = BytesMut::new();
        let began = Instant::now();
        loop {
            let due = began + self.due(read.len());
            let frame = timeout_at(due, body.frame()).await.map_err(|_| Unread::TooSlow)?;
            // Of a body that always has something, if only a little, the next piece is there whenever it is asked for.
            if Instant::now() > due {
                return Err(Unread::TooSlow);
            }
            let Some(frame) = frame else { return Ok(read.freeze()) };
            let Ok(data) = frame.map_err(|_| Unread::Broken)?.into_data() else { continue };
            if read.len() + data.len() > self.bytes_max {
                return Err(self.too_large());
            }
            read.extend_from_slice(&data);
        }
    }

    /// That a body is too large.
    pub fn too_large(&self) -> Unread {
        Unread::TooLarge { bytes_max: self.bytes_max }
    }
}

impl From<Unread> for Problem {
    fn from(unread: Unread) -> Self {
        let detail = unread.to_string();
        match unread {
            Unread::TooLarge { .. } => Self::too_large(detail),
            Unread::TooSlow => Self::new(StatusCode::REQUEST_TIMEOUT, detail).because("TooSlow"),
            Unread::Broken => Self::bad_request(detail),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use axum::body::Body;
    use futures::{StreamExt, stream};

    use super::*;

    /// Pieces of so many bytes, each after so many milliseconds, and then the end, or none for ever.
    fn pieces(pieces: &[(u64, usize)], ends: bool) -> Body {
        let pieces = stream::iter(pieces.to_vec()).then(|(milliseconds, bytes)| async move {
            tokio::time::sleep(Duration::from_millis(milliseconds)).await;
            Ok::<_, std::io::Error>(Bytes::from(vec![b' '; bytes]))
        });
        let rest = stream::poll_fn(move |_| match ends {
            true => Poll::Ready(None),
            false => Poll::Pending,
        });
        Body::from_stream(pieces.chain(rest))
    }

    async fn read(bounds: Bounds, body: Body) -> Result<usize, u16> {
        let read = bounds.read(body).await;
        read.map(|body| body.len()).map_err(|unread| Problem::from(unread).status.as_u16())
    }

    #[test]
    fn a_body_is_due_after_a_head_start_at_its_pace_and_within_a_minute() {
        let bounds = Bounds::of_user(3 << 20);
        for (bytes, seconds) in
            [(0, 5), (1, 5), (16 << 10, 6), (160 << 10, 15), (1 << 20, 60), (3 << 20, 60), (usize::MAX, 60)]
        {
            assert_eq!(bounds.due(bytes).as_secs(), seconds, "{bytes}");
        }
        assert!(Bounds::of_upload(usize::MAX).due(1 << 40) > Duration::from_secs(1 << 20));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_has_to_come_on() {
        let bounds = Bounds::of_user(1 << 20);
        let upload = Bounds::of_upload(4 << 20);
        for (bounds, count, milliseconds, status) in [
            (bounds, 1024, 50, None),
            (bounds, 1024, 58, None),
            (bounds, 1024, 60, Some(408)),
            (bounds, 400, 100, Some(408)),
            (bounds, 1, 6_000, Some(408)),
            (bounds, 1025, 1, Some(413)),
            (upload, 4096, 60, None),
            (upload, 400, 100, Some(408)),
            (OF_NOBODY, 4, 1_000, None),
            (OF_NOBODY, 4, 2_000, Some(408)),
            (OF_NOBODY, 5, 1, Some(413)),
        ] {
            let read = read(bounds, pieces(&vec![(milliseconds, 1 << 10); count], true)).await;
            let expected = status.map_or(Ok(count << 10), Err);
            assert_eq!(read, expected, "{bounds:?}: {count} pieces, one in {milliseconds} ms");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_pauses_is_waited_for_until_it_is_behind_its_pace() {
        let second = 16 << 10;
        let large = 3 << 20;
        for (what, sent, ends, expected) in [
            ("at once", vec![(0, 2_000)], true, Ok(2_000)),
            ("nothing", vec![], true, Ok(0)),
            ("short and late", vec![(4_900, 1)], true, Ok(1)),
            ("a quick half, and a pause", vec![(0, second), (5_500, second)], true, Ok(2 * second)),
            ("not at all", vec![], false, Err(408)),
            ("a byte a second", vec![(1_000, 1); 60], true, Err(408)),
            ("a byte, and no more", vec![(0, 1)], false, Err(408)),
            ("at the pace for too long", vec![(900, second); 100], true, Err(408)),
            ("too large", vec![(0, large), (0, 1)], true, Err(413)),
        ] {
            assert_eq!(read(Bounds::of_user(large), pieces(&sent, ends)).await, expected, "{what}");
        }
    }
}
