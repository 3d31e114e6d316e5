//! Lists: the backing kind is asked page by page, and its objects are shown while they arrive.
//!
//! What is wrong with the beginning of an answer is its status. The rest is sent while it is made. If something goes wrong then, its stream
//! is reset, so that no client takes the part for the whole, and the log says why.

use std::{sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use http::{HeaderValue, StatusCode};
use http_body_util::BodyExt;
use jiff::Timestamp;
use kube::client::Body;
use pintle_core::{
    bulk::Bulk,
    view::{
        BackingObject, Lens, Source, Status, Unshowable,
        accept::{Asked, Form, JSON, META},
        item::{list_begin, list_end},
        query::{ListOptions, shown_continue},
        target::Objects,
        unshowable,
    },
};
use pintle_runtime::{
    clock,
    paced::{self, PART_BYTES, PartSender, Unread},
};
use pintle_wit::{Failure, views::SHOW_OBJECTS_MAX};
use serde_json::Value;
use tracing::{info, warn};

use crate::{
    admission::Admitted,
    answer::{Call, Parts},
    directory::Resource,
    identity::User,
    items::{Items, NoList},
    read::{METADATA_OF_ALL, OBJECT, TableRow, is_selected, read_object},
    reply::{self, Reply},
    room::{self, FREE_BYTES, OBJECT_BYTES, Room, Share},
    show::{Guests, Shown},
    upstream::{self, REQUEST_TIMEOUT, Sent, Upstream},
};

/// The memory that objects take while they are shown, as a multiple of what they take as values: as they are, as text for the guest, as what
/// it shows, and as text for the client. A text takes no more than its values.
const WAITING_FACTOR: u64 = 4;

/// How much of a list is made before its answer begins, in bytes: more than one object takes, or a page of ordinary ones. So what is wrong
/// with those is a status, and not the end of a stream.
const BEGIN_BYTES: usize = 2 << 20;

/// How many objects that cannot be shown an error names.
const NAMED: usize = 10;

/// When the objects that have arrived are shown, in bytes that they take as values: some hundred small ones are less.
const WAITING_BYTES: usize = 1 << 20;

impl Parts {
    /// A list.
    pub(crate) async fn list(
        self: &Arc<Self>,
        call: &Call<'_>,
        target: &Objects,
        options: &ListOptions,
        admitted: Admitted,
        share: Share,
    ) -> Result<Reply, Status> {
        let form = Form::negotiate(call.accept(), Asked::List, call.query.first("includeObject"))?;
        let lens = &call.resource.lens;
        let pages = Pages {
            upstream: self.upstream.clone(),
            resource: Arc::clone(call.resource),
            user: call.user.clone(),
            path: lens.served.backing.path(target.namespace.as_deref(), None),
            accept: if form == Form::Metadata { METADATA_OF_ALL } else { OBJECT },
            audit_id: call.audit_id(),
            options: options.clone(),
        };
        let until = clock::monotonic() + REQUEST_TIMEOUT;
        let body = pages.open(None).await?;
        let mut list = List::new(&self.guests, form, pages, body);
        list.room = list.room.with(share);
        let too_long = |_| Status::timeout("the list took too long", 1);
        let is_complete =
            tokio::time::timeout(REQUEST_TIMEOUT, list.make(BEGIN_BYTES)).await.map_err(too_long)??;
        let warning = list.warning(is_complete);
        let mut reply = if is_complete {
            let text = std::mem::take(&mut list.text).freeze();
            self.send_from(reply::json(StatusCode::OK, text), list.room)
        } else {
            let (parts, arriving) = paced::channel();
            self.spawner.spawn(async move {
                let left = until.saturating_sub(clock::monotonic());
                send_on(list, parts, left).await;
                drop(admitted);
            });
            reply::arriving(StatusCode::OK, JSON, arriving)
        };
        reply::warn(&mut reply, Vec::new(), warning.as_slice());
        Ok(reply)
    }
}

/// Sends a list that has begun, until it ends or fails.
async fn send_on(mut list: List, parts: PartSender, left: Duration) {
    let failed = match tokio::time::timeout(left, list.send(parts)).await {
        Ok(Ok(())) => return,
        Ok(Err(failed)) => failed,
        Err(_) => Status::timeout("the list took too long", 1),
    };
    let view = &list.pages.resource.lens.view;
    info!(view, code = failed.code, error = failed.message, "A list that has begun is broken off");
}

/// How the API server is asked for the pages of a list.
struct Pages {
    upstream: Upstream,
    resource: Arc<Resource>,
    user: User,
    path: String,
    accept: &'static str,
    audit_id: Option<HeaderValue>,
    options: ListOptions,
}

impl Pages {
    /// Asks for the first page, or for the one behind this token. Its body is yet to be read.
    async fn open(&self, token: Option<&str>) -> Result<Body, Status> {
        let lens = &self.resource.lens;
        let query = match token {
            None => self.options.first_page(lens)?,
            Some(token) => self.options.next_page(lens, token),
        };
        let sent = Sent {
            query,
            audit_id: self.audit_id.clone(),
            ..Sent::get(upstream::whom(lens, &self.user), self.path.clone(), self.accept)
        };
        let response = self.upstream.begin(sent).await?;
        if response.status().is_success() {
            return Ok(response.into_body());
        }
        Err(upstream::refusal(lens, &upstream::whole(response, None).await?))
    }
}

/// A list that is being made.
struct List {
    guests: Arc<Guests>,
    form: Form,
    now: Timestamp,
    pages: Pages,
    /// The page that arrives, if there is more.
    body: Option<Body>,
    items: Items,
    /// Objects that have arrived and are not shown yet.
    waiting: Vec<BackingObject>,
    /// The memory that these take as values.
    waiting_bytes: usize,
    /// The memory that the largest of them takes while it is shown.
    most_bytes: u64,
    /// What is made and not sent.
    text: BytesMut,
    /// How many objects there have been.
    count: usize,
    has_items: bool,
    unshown: Unshown,
    room: Room,
}

impl List {
    fn new(guests: &Arc<Guests>, form: Form, pages: Pages, body: Body) -> Self {
        let resource = &pages.resource;
        let served = &resource.lens.served;
        let begin = match form {
            Form::Object => list_begin(&served.api_version, &served.list_kind),
            Form::Metadata => list_begin(META, "PartialObjectMetadataList"),
            Form::Table(_) => resource.columns.list_begin(),
        };
        Self {
            room: Room::new(guests.budget(), FREE_BYTES, OBJECT_BYTES),
            guests: Arc::clone(guests),
            form,
            now: clock::now(),
            body: Some(body),
            items: Items::default(),
            waiting: Vec::new(),
            waiting_bytes: 0,
            most_bytes: 0,
            text: begin.as_bytes().into(),
            pages,
            count: 0,
            has_items: false,
            unshown: Unshown::default(),
        }
    }

    /// Makes more of it, until so many bytes are to be sent or it is complete. Returns whether it is.
    ///
    /// # Errors
    /// What is wrong with it.
    async fn make(&mut self, bytes: usize) -> Result<bool, Status> {
        let mut arrived = Vec::new();
        while self.text.len() < bytes {
            let Some(body) = &mut self.body else { return Ok(true) };
            let Some(frame) = body.frame().await else {
                self.page_ended().await?;
                continue;
            };
            let frame = frame.map_err(|error| {
                warn!(%error, "A list of the API server is not complete");
                not_complete(NoList::Incomplete)
            })?;
            let Ok(chunk) = frame.into_data() else { continue };
            self.items.push(&chunk, &mut arrived).map_err(not_complete)?;
            for item in arrived.drain(..) {
                self.read(&item).await?;
                if self.waiting.len() == SHOW_OBJECTS_MAX || self.waiting_bytes >= WAITING_BYTES {
                    self.show().await?;
                }
            }
            // What it takes as values is known when all of it is there.
            self.hold(self.items.unfinished_bytes() as u64).await?;
        }
        Ok(self.body.is_none())
    }

    /// Reads an object that has arrived.
    async fn read(&mut self, text: &Bytes) -> Result<(), Status> {
        let bulk = Bulk::of(text);
        self.most_bytes = self.most_bytes.max(room::of_shown(&bulk));
        self.hold(0).await?;
        let object = read_object(&self.pages.resource, text, Source::Stored)?;
        if !is_selected(&self.pages.resource, &object) {
            return Ok(());
        }
        self.waiting_bytes += object.bytes();
        self.waiting.push(object);
        Ok(())
    }

    /// Waits until there is memory for what is held already, for the largest object that is to be shown, and for so much besides.
    async fn hold(&mut self, bytes: u64) -> Result<(), Status> {
        let waiting = WAITING_FACTOR * self.waiting_bytes as u64 + self.most_bytes;
        self.room.hold(self.text.len() as u64 + waiting + bytes).await
    }

    /// Shows the objects that wait.
    async fn show(&mut self) -> Result<(), Status> {
        self.hold(0).await?;
        (self.waiting_bytes, self.most_bytes) = (0, 0);
        let objects = std::mem::take(&mut self.waiting);
        self.count += objects.len();
        let (resource, guests) = (Arc::clone(&self.pages.resource), Arc::clone(&self.guests));
        let lens = &resource.lens;
        if self.form == Form::Metadata {
            return objects.iter().try_for_each(|object| self.add(&lens.metadata_json(object)));
        }
        if objects.is_empty() {
            return Ok(());
        }
        let shown = guests.show(lens, resource.in_force()?, &objects).await?;
        for (object, shown) in objects.iter().zip(shown) {
            if let Shown::Failed(failure) = &shown {
                self.unshown.add(lens, object, failure);
            }
            self.add_shown(object, &shown)?;
        }
        Ok(())
    }

    fn add_shown(&mut self, object: &BackingObject, shown: &Shown) -> Result<(), Status> {
        let resource = Arc::clone(&self.pages.resource);
        match (self.form, shown) {
            (Form::Table(include), shown) => {
                let row = TableRow::of(&resource.lens, object, shown);
                self.add(&resource.columns.row_json(include, &row.as_row(), self.now))
            }
            (_, Shown::Fields(fields)) => self.add(&resource.lens.object_json(object, fields)),
            (_, Shown::Failed(_)) => Ok(()),
        }
    }

    fn add(&mut self, item: &str) -> Result<(), Status> {
        // What follows only tells which objects cannot be shown.
        if self.fails() {
            self.text.clear();
            return Ok(());
        }
        if std::mem::replace(&mut self.has_items, true) {
            self.text.extend_from_slice(b",");
        }
        self.text.extend_from_slice(item.as_bytes());
        Ok(())
    }

    /// Whether it fails over what cannot be shown.
    fn fails(&self) -> bool {
        let is_over_objects = self.form == Form::Object && self.unshown.count > 0;
        is_over_objects && self.pages.resource.lens.unshowable == Unshowable::Fail
    }

    /// All of a page has arrived: another one follows, or the list ends.
    async fn page_ended(&mut self) -> Result<(), Status> {
        self.body = None;
        self.show().await?;
        let rest = std::mem::take(&mut self.items).rest().map_err(not_complete)?;
        let rest: Value = serde_json::from_slice(&rest).map_err(|_| not_complete(NoList::Incomplete))?;
        let metadata = rest.get("metadata").unwrap_or(&Value::Null);
        let next = metadata.get("continue").and_then(Value::as_str).filter(|token| !token.is_empty());
        if self.fails() {
            return Err(self.unshown.error());
        }
        if let Some(token) = next.filter(|_| self.pages.options.is_whole()) {
            self.body = Some(self.pages.open(Some(token)).await?);
            return Ok(());
        }
        let lens = &self.pages.resource.lens;
        let next = next.map(|token| shown_continue(lens.epoch, token));
        let end = list_end(&lens.list_metadata(metadata, next));
        self.text.extend_from_slice(end.as_bytes());
        Ok(())
    }

    /// What a client is warned of: the objects that are left out, as far as that is known when the answer begins.
    fn warning(&self, is_complete: bool) -> Option<String> {
        let omits = self.form == Form::Object && self.pages.resource.lens.unshowable == Unshowable::Omit;
        let among = (!is_complete).then_some(self.count);
        omits.then(|| unshowable::warning(self.unshown.count, among)).flatten()
    }

    /// Sends it, to the end.
    ///
    /// # Errors
    /// Why it cannot be sent to the end. The client has to be told that something is missing.
    async fn send(&mut self, parts: PartSender) -> Result<(), Status> {
        let unread = |_: Unread| Status::timeout("the client does not read", 1);
        loop {
            let is_complete = self.make(PART_BYTES).await?;
            while self.text.len() >= PART_BYTES || is_complete && !self.text.is_empty() {
                let part = self.text.split_to(self.text.len().min(PART_BYTES));
                // A copy, or a part that waits would hold the buffer that it is a piece of.
                parts.send(Bytes::copy_from_slice(&part)).await.map_err(unread)?;
            }
            if is_complete {
                return parts.end().await.map_err(unread);
            }
        }
    }
}

/// The objects of a list that cannot be shown.
#[derive(Debug, Default)]
struct Unshown {
    count: usize,
    /// The first of them, each with what is wrong.
    names: Vec<String>,
}

impl Unshown {
    fn add(&mut self, lens: &Lens, object: &BackingObject, failure: &Failure) {
        self.count += 1;
        if self.names.len() < NAMED {
            self.names.push(format!("{}: {}", lens.names.shown(object.name()), failure.where_and_why()));
        }
    }

    /// What is wrong with a list that fails over them.
    fn error(&self) -> Status {
        let more = match self.count.saturating_sub(self.names.len()) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        Status::internal_error(&format!("some objects cannot be shown: {}{more}", self.names.join("; ")))
    }
}

/// A list of the API server that cannot be read to its end.
pub(crate) fn not_complete(error: NoList) -> Status {
    Status::unavailable(error.to_string(), 1)
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::{Mutex, PoisonError},
    };

    use futures::StreamExt;
    use http::{Request, Response};
    use pintle_core::view::query::Query;
    use pintle_modules::Budget;
    use pintle_runtime::Spawner;
    use serde_json::json;

    use super::*;
    use crate::{directory::tests::resource, metrics::Metrics, show::InModules};

    /// More objects of a kibibyte each than the beginning of an answer has room for.
    const MANY: usize = 4_000;

    /// A page with so many objects, and what stands behind them.
    fn page(count: usize, end: &str) -> String {
        let item = |at: usize| {
            let note = "x".repeat(900);
            format!("{{\"metadata\": {{\"name\": \"a{at}\", \"annotations\": {{\"note\": \"{note}\"}}}}}}")
        };
        let items: Vec<String> = (0..count).map(item).collect();
        format!("{{\"kind\": \"ThingList\", \"items\": [{}{end}", items.join(","))
    }

    /// What stands behind the objects of a page that this token continues.
    fn end(token: &str) -> String {
        let metadata = json!({"resourceVersion": "9", "continue": token, "remainingItemCount": 3});
        format!("], \"metadata\": {metadata}}}")
    }

    /// What the API server was asked.
    type Asked = Arc<Mutex<Vec<String>>>;

    /// A list of metadata, for which no guest is called, with these options, of an API server that has these pages.
    async fn list(options: &str, pages: Vec<String>) -> (Result<List, Status>, Asked) {
        let asked = Asked::default();
        let (known, pages) = (Arc::clone(&asked), Arc::new(Mutex::new(pages.into_iter())));
        let service = tower::service_fn(move |request: Request<Body>| {
            let query = request.uri().query().unwrap_or_default().to_owned();
            known.lock().unwrap_or_else(PoisonError::into_inner).push(query);
            let page = pages.lock().unwrap_or_else(PoisonError::into_inner).next();
            let page = page.unwrap_or_default().into_bytes();
            async move { Ok::<_, Infallible>(Response::new(Body::from(page))) }
        });
        let pairs = options.split('&').filter_map(|pair| pair.split_once('='));
        let query = Query::new(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let pages = Pages {
            upstream: Upstream::new(kube::Client::new(service, "default")),
            resource: Arc::new(resource()),
            user: User::default(),
            path: "/api/v1/things".into(),
            accept: METADATA_OF_ALL,
            audit_id: None,
            options: ListOptions::read(&query).unwrap(),
        };
        let metrics = Arc::new(Metrics::default());
        let guests = Guests::new(Spawner::default(), Arc::new(InModules), Budget::fixed(512 << 20), metrics);
        let list = match pages.open(None).await {
            Ok(body) => Ok(List::new(&Arc::new(guests), Form::Metadata, pages, body)),
            Err(refused) => Err(refused),
        };
        (list, asked)
    }

    /// What a client is sent, and how it ends.
    async fn sent(mut list: List) -> (Vec<u8>, Result<(), Status>) {
        let (parts, mut received) = paced::channel();
        let sending = tokio::spawn(async move { list.send(parts).await });
        let mut all = Vec::new();
        while let Some(Ok(part)) = received.next().await {
            assert!(part.len() <= PART_BYTES);
            all.extend_from_slice(&part);
        }
        (all, sending.await.unwrap())
    }

    #[tokio::test]
    async fn a_short_list_is_whole_before_it_is_answered_and_a_page_names_the_next_one() {
        let (list, asked) = list("limit=2", vec![page(2, &end("more"))]).await;
        let mut list = list.unwrap();
        assert_eq!(list.make(PART_BYTES).await, Ok(true));
        let read: Value = serde_json::from_slice(&list.text).unwrap();
        assert_eq!(read["items"].as_array().map(Vec::len), Some(2));
        let kind = (&read["kind"], &read["items"][1]["metadata"]["name"]);
        assert_eq!(kind, (&json!("PartialObjectMetadataList"), &json!("a1")));
        assert_eq!(read["metadata"]["remainingItemCount"], 3);
        assert_eq!(read["metadata"]["resourceVersion"], "9000000");
        assert!(read["metadata"]["continue"].is_string());
        assert_eq!(*asked.lock().unwrap(), ["limit=2"]);
    }

    #[tokio::test]
    async fn a_whole_list_is_read_page_by_page_and_sent_while_it_is_made() {
        let last = "], \"metadata\": {\"resourceVersion\": \"9\"}}";
        let pages = vec![page(MANY, &end("one")), page(MANY, &end("two")), page(1, last)];
        let (list, asked) = list("", pages).await;
        let mut list = list.unwrap();
        assert_eq!(list.make(PART_BYTES).await, Ok(false));
        assert_eq!(asked.lock().unwrap().len(), 1, "no further page is read before it is needed");
        let (text, ended) = sent(list).await;
        assert_eq!(ended, Ok(()));
        let read: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(read["items"].as_array().map(Vec::len), Some(2 * MANY + 1));
        assert_eq!(read["metadata"], json!({"resourceVersion": "9000000"}));
        let expected = ["limit=500", "limit=500&continue=one", "limit=500&continue=two"];
        assert_eq!(*asked.lock().unwrap(), expected);
    }

    #[tokio::test]
    async fn a_long_list_that_the_api_server_does_not_end_is_no_list_to_the_client() {
        let (list, _) = list("", vec![page(MANY, &end("one")), page(MANY, "")]).await;
        let mut list = list.unwrap();
        assert_eq!(list.make(PART_BYTES).await, Ok(false));
        let (text, ended) = sent(list).await;
        assert_eq!(ended.unwrap_err().code, 503);
        assert!(serde_json::from_slice::<Value>(&text).is_err(), "it is not well-formed");
    }
}
