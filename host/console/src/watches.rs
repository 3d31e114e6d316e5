//! Watches at the API server: how many there may be ([`Watches`]), and how one is read ([`WatchReader`]).

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::BytesMut;
use http::Response;
use http_body_util::BodyExt;
use kube::client::Body;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{caller::Caller, problem::Problem};

/// How many watches there may be, in all and for one user, whatever tokens it has. A page has some five, which its other tabs share.
const WATCHES_MAX: usize = 2048;
pub(crate) const WATCHES_OF_ONE_MAX: usize = 256;

/// The longest event, in bytes: one object, and its managed fields.
const EVENT_BYTES_MAX: usize = 8 << 20;

/// How many watches each user has, by name.
#[derive(Clone, Default)]
pub struct Watches(Arc<Mutex<BTreeMap<String, usize>>>);

/// The right to some watches. It is given back when it is dropped.
pub(crate) struct WatchPermit {
    watches: Watches,
    user: String,
    count: usize,
}

impl Watches {
    /// Lets a user have so many more.
    ///
    /// # Errors
    /// 429 when there are too many.
    pub(crate) fn acquire(&self, caller: &Caller, count: usize) -> Result<WatchPermit, Problem> {
        let mut open = self.open();
        let all: usize = open.values().sum();
        let own = open.get(caller.name()).copied().unwrap_or_default();
        if all + count > WATCHES_MAX || own + count > WATCHES_OF_ONE_MAX {
            return Err(Problem::busy("there are too many watches", 30));
        }
        let user = caller.name().to_owned();
        open.insert(user.clone(), own + count);
        Ok(WatchPermit { watches: self.clone(), user, count })
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<String, usize>> {
        // Every change under this lock is whole before anything can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for WatchPermit {
    fn drop(&mut self) {
        let mut open = self.watches.open();
        if let Some(own) = open.get_mut(&self.user) {
            *own -= self.count;
            if *own == 0 {
                open.remove(&self.user);
            }
        }
    }
}

/// An event of a watch, as the API server sends it.
#[derive(Deserialize)]
pub(crate) struct WatchEvent {
    r#type: String,
    /// The object; or the Status that says why the watch has failed.
    pub(crate) object: Box<RawValue>,
}

impl WatchEvent {
    /// What our clients call it; nothing when the watch has failed.
    pub(crate) fn name(&self) -> Option<&'static str> {
        match self.r#type.as_str() {
            "ADDED" => Some("added"),
            "MODIFIED" => Some("modified"),
            "DELETED" => Some("deleted"),
            "BOOKMARK" => Some("bookmark"),
            _ => None,
        }
    }
}

/// The events of a watch, while they arrive.
pub(crate) struct WatchReader {
    body: Body,
    arrived: BytesMut,
    /// How many of these bytes have no end of a line among them, so that each is looked at once.
    searched: usize,
}

impl WatchReader {
    /// Reads an answer that is a watch.
    pub(crate) fn of(response: Response<Body>) -> Self {
        Self { body: response.into_body(), arrived: BytesMut::new(), searched: 0 }
    }

    /// The next event; none when the watch has ended or was cut off, as happens now and then.
    ///
    /// # Errors
    /// 502 for what is no event.
    pub(crate) async fn next(&mut self) -> Result<Option<WatchEvent>, Problem> {
        loop {
            while let Some(line) = self.line() {
                if !line.trim_ascii().is_empty() {
                    let unreadable = |_| Problem::bad_gateway("an event of the API server cannot be read");
                    return serde_json::from_slice(&line).map(Some).map_err(unreadable);
                }
            }
            if self.arrived.len() > EVENT_BYTES_MAX {
                return Err(Problem::bad_gateway("an event of the API server is too large"));
            }
            let Some(Ok(frame)) = self.body.frame().await else { return Ok(None) };
            self.arrived.extend_from_slice(&frame.into_data().unwrap_or_default());
        }
    }

    /// The next line that is complete.
    fn line(&mut self) -> Option<BytesMut> {
        let Some(at) = self.arrived.iter().skip(self.searched).position(|byte| *byte == b'\n') else {
            self.searched = self.arrived.len();
            return None;
        };
        let line = self.arrived.split_to(self.searched + at + 1);
        self.searched = 0;
        Some(line)
    }
}
