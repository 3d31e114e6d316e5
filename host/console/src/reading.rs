//! [`Reading`]: a list of the API server that is taken apart while it arrives, so that a page of any size takes the memory of one object.
//! [`page`]: as much of a list as an answer may have.

use std::collections::VecDeque;

use bytes::Bytes;
use http::Response;
use http_body_util::BodyExt;
use kube::client::Body;
use pintle_core::bulk::Bulk;
use pintle_kubernetes::items::{Items, NoList};
use pintle_modules::Reservation;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};
use tracing::warn;

use crate::{
    caller::{Ask, Caller, PAGE, REQUEST_TIMEOUT},
    memory::{UNRESERVED_BYTES, of_text},
    problem::Problem,
};

/// How much an answer with a page of a list has at most, in bytes. Of larger objects a page has fewer.
pub(crate) const PAGE_BYTES_MAX: usize = 8 << 20;

/// How often a page is asked for again with fewer objects.
const TRIES: usize = 5;

/// A list while it arrives.
pub(crate) struct Reading<'a> {
    caller: &'a Caller,
    body: Body,
    until: Instant,
    items: Items,
    arrived: VecDeque<Bytes>,
    bytes: usize,
    memory: Option<Reservation>,
    /// What the largest object so far takes, in bytes.
    most_bytes: u64,
}

/// What a list says of itself.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ListMeta {
    /// The version of the list.
    pub(crate) resource_version: String,
    /// What asks for the next page; empty on the last.
    pub(crate) r#continue: String,
    /// How many more there are, if the API server says so.
    pub(crate) remaining_item_count: Option<i64>,
}

/// A page of a list that was read.
pub(crate) struct Listed<T> {
    /// The version of the list.
    pub(crate) version: String,
    /// What asks for the next page.
    pub(crate) next: Option<String>,
    /// How many more there are.
    pub(crate) remaining: Option<i64>,
    /// What was wanted of it.
    pub(crate) items: Vec<T>,
}

/// How many bytes of an answer are taken, and how many objects they are of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filled {
    bytes: usize,
    objects: u64,
}

impl Filled {
    /// Adds what is made of one more object. Where it does not fit, says how many objects to ask for instead.
    pub(crate) fn add(&mut self, bytes: usize) -> Result<(), u64> {
        self.bytes += bytes;
        if self.bytes > PAGE_BYTES_MAX && self.objects > 0 {
            return Err(self.objects);
        }
        self.objects += 1;
        Ok(())
    }
}

impl<'a> Reading<'a> {
    /// Reads an answer that is a list.
    pub(crate) fn of(caller: &'a Caller, response: Response<Body>) -> Self {
        Self {
            caller,
            body: response.into_body(),
            until: Instant::now() + REQUEST_TIMEOUT,
            items: Items::default(),
            arrived: VecDeque::new(),
            bytes: 0,
            memory: None,
            most_bytes: 0,
        }
    }

    /// The next object; none when all were read.
    ///
    /// # Errors
    /// 502 or 504 when the list ends too early, or is none; 429 when there is no memory for it.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        loop {
            if let Some(item) = self.arrived.pop_front() {
                return Ok(Some(item));
            }
            let late = |_| Problem::too_late("the API server took too long to answer");
            let frame = match timeout_at(self.until, self.body.frame()).await.map_err(late)? {
                None => return Ok(None),
                Some(frame) => frame.map_err(|_| broken(NoList::Incomplete))?,
            };
            let Ok(chunk) = frame.into_data() else { continue };
            self.bytes += chunk.len();
            let mut complete = Vec::new();
            self.items.push(&chunk, &mut complete).map_err(broken)?;
            let most = complete.iter().map(|item| of_text(&Bulk::of(item))).max().unwrap_or_default();
            self.make_room(most).await?;
            self.arrived.extend(complete);
        }
    }

    /// Waits until there is memory for an object that takes so many bytes, and for what is made of those before it.
    async fn make_room(&mut self, object_bytes: u64) -> Result<(), Problem> {
        let is_larger = object_bytes > self.most_bytes;
        self.most_bytes = self.most_bytes.max(object_bytes);
        let is_large = self.most_bytes.max(self.bytes as u64) > UNRESERVED_BYTES;
        if is_large && (is_larger || self.memory.is_none()) {
            // Nobody waits while it holds, so that no two lists wait for each other.
            self.memory = None;
            let wanted = self.most_bytes.next_power_of_two();
            self.most_bytes = wanted;
            self.memory = Some(self.caller.memory().of_list(wanted).await?);
        }
        Ok(())
    }

    /// What the list says of itself, once all objects were read; and the memory that it holds until this is dropped.
    ///
    /// # Errors
    /// 502 when the list is not complete.
    pub(crate) fn end(self) -> Result<(ListMeta, Option<Reservation>), Problem> {
        #[derive(Deserialize)]
        struct List {
            #[serde(default)]
            metadata: ListMeta,
        }
        let rest = self.items.rest().map_err(broken)?;
        let list: List = serde_json::from_slice(&rest).map_err(|_| broken(NoList::Incomplete))?;
        Ok((list.metadata, self.memory))
    }
}

fn broken(why: NoList) -> Problem {
    warn!(%why, "A list of the API server cannot be read");
    match why {
        NoList::Incomplete => Problem::bad_gateway("an answer of the API server cannot be read"),
        NoList::TooLarge => {
            Problem::bad_gateway("an object of the API server is too large").because("AnswerTooLarge")
        }
    }
}

/// Reads a page of a list: what is made of the objects that are wanted, each with its size in bytes. If they are too much for one answer,
/// it is asked again for as many objects as fit.
///
/// # Errors
/// Why the API server does not answer, or with what cannot be read.
pub(crate) async fn page<T>(
    caller: &Caller,
    ask: &Ask,
    limit: u64,
    mut reduce: impl FnMut(Value) -> Option<(T, usize)>,
) -> Result<Listed<T>, Problem> {
    let mut limit = limit;
    'asked: for _ in 0..TRIES {
        let asked = ask.clone().with("limit", limit.to_string());
        let mut reading = Reading::of(caller, caller.succeed(asked).await?);
        let (mut items, mut filled) = (Vec::new(), Filled::default());
        while let Some(item) = reading.next().await? {
            // One at a time: a list as values takes many times the memory of its text.
            let object = serde_json::from_slice(&item).map_err(|_| broken(NoList::Incomplete))?;
            let reduced = reduce(object);
            if let Err(fitting) = filled.add(reduced.as_ref().map_or(0, |(_, bytes)| *bytes)) {
                limit = fitting;
                continue 'asked;
            }
            items.extend(reduced.map(|(item, _)| item));
        }
        let (ListMeta { resource_version, r#continue, remaining_item_count }, _) = reading.end()?;
        let next = Some(r#continue).filter(|token| !token.is_empty());
        return Ok(Listed { version: resource_version, next, remaining: remaining_item_count, items });
    }
    Err(too_large())
}

/// Reads all pages of a list: what is made of the objects that are wanted.
///
/// # Errors
/// As [`page`].
pub(crate) async fn all<T>(
    caller: &Caller,
    ask: &Ask,
    mut reduce: impl FnMut(Value) -> Option<T>,
) -> Result<Vec<T>, Problem> {
    let (mut items, mut next) = (Vec::new(), None);
    loop {
        let ask = ask.clone().with_some("continue", next);
        let listed = page(caller, &ask, PAGE, |object| Some((reduce(object)?, 0))).await?;
        items.extend(listed.items);
        next = listed.next;
        if next.is_none() {
            return Ok(items);
        }
    }
}

/// 502: every page that was asked for is too large.
pub(crate) fn too_large() -> Problem {
    Problem::bad_gateway("the answer of the API server is too large: ask for fewer objects")
        .because("AnswerTooLarge")
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use serde_json::json;

    use super::*;
    use crate::fake::{self, upstream};

    /// The reader of lists that have as many objects as are asked for, of so many KiB each.
    fn reader(kibibytes: usize) -> (Caller, fake::Log) {
        let (client, log) = upstream(move |asked| {
            let (_, limit) = asked.path.split_once("limit=").unwrap();
            let limit: usize = limit.split('&').next().unwrap().parse().unwrap();
            let item = json!({"metadata": {"name": "a"}, "text": "x".repeat(kibibytes << 10)});
            let metadata = json!({"resourceVersion": "7", "continue": format!("after-{limit}")});
            (200, json!({"metadata": metadata, "items": vec![item; limit]}))
        });
        (Caller::of_kubeconfig(client, fake::memory()), log)
    }

    #[tokio::test]
    async fn a_page_has_as_many_objects_as_fit_and_goes_on_behind_them() {
        let (caller, log) = reader(200);
        let ask = Ask::get("/apis/a.example/v1/rooms".into());
        let whole = |object: Value| Some((object["text"].as_str()?.len(), 200 << 10));
        let listed = page(&caller, &ask, 100, whole).await.unwrap();
        assert_eq!((listed.items.len(), listed.next.as_deref()), (40, Some("after-40")));
        let name = |object: Value| Some((object["metadata"]["name"].clone(), 10));
        let listed = page(&caller, &ask, 100, name).await.unwrap();
        assert_eq!((listed.items.len(), listed.version.as_str()), (100, "7"));
        let paths: Vec<String> = log.lock().unwrap().iter().map(|asked| asked.path.clone()).collect();
        let path = |limit: u64| format!("/apis/a.example/v1/rooms?limit={limit}");
        assert_eq!(paths, [path(100), path(40), path(100)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_list_waits_for_memory_and_a_small_one_needs_none() {
        let (caller, _) = reader(100);
        let mut held = Vec::new();
        while let Some(list) = caller.memory().of_list(8 << 20).now_or_never() {
            held.push(list.unwrap());
        }
        let ask = Ask::get("/apis/a.example/v1/rooms".into());
        let read =
            async |limit| page(&caller, &ask, limit, |_| Some(((), 0))).await.map(|page| page.items.len());
        assert_eq!(read(1).await.unwrap(), 1);
        let refused = read(12).await.unwrap_err();
        assert_eq!((refused.status.as_u16(), refused.retry_after.is_some()), (429, true));
        held.pop();
        assert_eq!(read(12).await.unwrap(), 12);
        assert_eq!(read(12).await.unwrap(), 12, "it was given back");
    }

    #[test]
    fn the_first_object_fits_whatever_it_has() {
        let mut filled = Filled::default();
        assert_eq!(filled.add(PAGE_BYTES_MAX + 1), Ok(()));
        assert_eq!(filled.add(0), Err(1));
    }
}
