//! Watches: each is a watch of the backing kind, mapped event by event.

use std::{sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use http::StatusCode;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use kube::client::Body;
use pintle_core::{
    bulk::Bulk,
    view::{
        BackingObject, Source, Status, Unshowable,
        accept::{Asked, Form, JSON, META},
        item::{INITIAL_EVENTS_END, event_json},
        query::ListOptions,
        status::WATCH_EXPIRED,
        table::Row,
        target::Objects,
        unshowable::{Change, LeftOut},
    },
};
use pintle_runtime::{clock, paced::BrokenOff};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tracing::{debug, warn};

use crate::{
    admission::Admitted,
    answer::{Call, Parts},
    directory::Resource,
    over::Over,
    read::{METADATA, OBJECT, TableRow, cannot_be_shown, is_selected, read_object},
    reply::{self, Reply},
    room::{self, Room},
    show::Shown,
    upstream::{self, Sent},
};

/// How many events wait for a client that does not read them. The connection has buffers besides.
const WAITING: usize = 16;

/// What an event takes before memory is reserved for it, in bytes: that of a Pod, for instance. Few are mapped at a time, and those that
/// wait for their clients are text, which watches share.
const FREE_BYTES: u64 = 256 << 10;

/// How long the events of a watch may wait for a client that does not read them. The API server waits about as long.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest event, in bytes: one object, and its managed fields.
const EVENT_BYTES_MAX: usize = 8 << 20;

impl Parts {
    /// A watch. What is wrong with it at its beginning is the answer; what is wrong later is its last event.
    pub(crate) async fn watch(
        self: &Arc<Self>,
        call: &Call<'_>,
        target: &Objects,
        options: &ListOptions,
        admitted: Admitted,
    ) -> Result<Reply, Status> {
        let form = Form::negotiate(call.accept(), Asked::Watch, call.query.first("includeObject"))?;
        let (resource, lens) = (Arc::clone(call.resource), &call.resource.lens);
        let accept = if matches!(form, Form::Metadata) { METADATA } else { OBJECT };
        let path = lens.served.backing.path(target.namespace.as_deref(), None);
        let query = match options.backing(lens) {
            Ok(query) => query,
            // A client that follows changes knows what to do when the stream says so.
            Err(expired) if expired.code == 410 => return Ok(only(&expired)),
            Err(refused) => return Err(refused),
        };
        let sent = Sent {
            query,
            audit_id: call.audit_id(),
            ..Sent::get(upstream::whom(lens, call.user), path, accept)
        };
        let response = self.upstream.begin(sent).await?;
        if !response.status().is_success() {
            return Err(upstream::refusal(lens, &upstream::whole(response, None).await?));
        }
        let (events, stream) = mpsc::channel(WAITING);
        let over = resource.over.clone();
        let watch = Watch {
            room: Room::new(self.guests.budget(), FREE_BYTES, 0),
            parts: Arc::clone(self),
            resource,
            form,
            events,
            has_columns: false,
            left_out: LeftOut::default(),
        };
        self.spawner.spawn(async move {
            watch.follow(response.into_body(), over).await;
            drop(admitted);
        });
        // The room of an event is given back when it is on its way.
        let stream =
            ReceiverStream::new(stream).map(|(event, _): Sending| Ok::<_, BrokenOff>(Frame::data(event)));
        Ok(reply::with_body(StatusCode::OK, JSON, StreamBody::new(stream).boxed_unsync()))
    }
}

/// A watch that ends with its first event.
fn only(status: &Status) -> Reply {
    reply::json(StatusCode::OK, event_json("ERROR", &status.to_value().to_string()))
}

/// An event that waits for the client, with its memory.
type Sending = (Bytes, Room);

/// A watch that is being followed.
struct Watch {
    parts: Arc<Parts>,
    resource: Arc<Resource>,
    form: Form,
    events: mpsc::Sender<Sending>,
    /// Whether a table has said what its columns are. Only its first event does.
    has_columns: bool,
    /// What the client does not have, because it cannot be shown.
    left_out: LeftOut,
    /// The memory of the event that arrives.
    room: Room,
}

/// Why a watch ends.
#[derive(Debug)]
enum End {
    /// The client has gone, or does not read.
    Unread,
    /// The client is told.
    Told(Box<Status>),
}

impl From<Status> for End {
    fn from(status: Status) -> Self {
        Self::Told(Box::new(status))
    }
}

/// An event as the API server sends it.
#[derive(Deserialize)]
struct Event<'a> {
    r#type: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// An event of the view.
struct Mapped {
    event: String,
    /// Whether a guest has shown it: then it is the same for whoever watches, now and later.
    is_lasting: bool,
}

impl Mapped {
    /// An event that is made anew for each watch.
    fn now(event: String) -> Self {
        Self { event, is_lasting: false }
    }
}

impl Watch {
    async fn follow(mut self, body: Body, over: Over) {
        let ended = tokio::select! {
            biased;
            // It is shown differently from now on, so that what the client knows is void.
            () = over.wait() => Err(Status::expired(WATCH_EXPIRED).into()),
            ended = self.events(body) => ended,
        };
        match ended {
            Ok(()) => {}
            Err(End::Unread) => debug!(view = self.resource.lens.view, "A watch ends: nobody reads it"),
            Err(End::Told(status)) => {
                debug!(
                    view = self.resource.lens.view,
                    code = status.code,
                    message = status.message,
                    "A watch ends"
                );
                let event = event_json("ERROR", &status.to_value().to_string());
                let _ = self.send(event.into()).await;
            }
        }
    }

    async fn events(&mut self, mut body: Body) -> Result<(), End> {
        let mut lines = Lines::default();
        loop {
            let frame = tokio::select! {
                // In an order that a simulation can repeat.
                biased;
                () = self.events.closed() => return Err(End::Unread),
                frame = body.frame() => frame,
            };
            let Some(frame) = frame else { return Ok(()) };
            let Ok(data) = frame.map(Frame::into_data) else {
                // The connection to the API server ended. The client begins again where it is.
                return Ok(());
            };
            let Ok(chunk) = data else { continue };
            lines.push(&chunk);
            self.hold(lines.rest_bytes() as u64).await?;
            while let Some(line) = lines.next() {
                if let Some(event) = self.made(&line).await? {
                    self.send(event).await?;
                }
            }
            self.hold(lines.rest_bytes() as u64).await?;
            if lines.rest_bytes() > EVENT_BYTES_MAX {
                return Err(Status::internal_error("an event of the API server is too large").into());
            }
        }
    }

    /// An event of the view, if there is one, for an event of the backing kind: as another watch has made it, or made now.
    async fn made(&mut self, line: &Bytes) -> Result<Option<Bytes>, End> {
        // Tables say how old an object is now. With Omit, an event depends on what this client has.
        let is_alike = self.form == Form::Object && self.resource.lens.unshowable == Unshowable::Fail;
        let parts = Arc::clone(&self.parts);
        if let Some(event) = is_alike.then(|| parts.made.find(&self.resource, line)).flatten() {
            return Ok(Some(event));
        }
        self.hold(room::of_shown(&Bulk::of(line))).await?;
        let Some(Mapped { event, is_lasting }) = self.mapped(line).await? else { return Ok(None) };
        let event = Bytes::from(event);
        if is_alike && is_lasting {
            parts.made.put(&self.resource, line, &event);
        }
        Ok(Some(event))
    }

    /// An event of the view, if there is one, for an event of the backing kind.
    async fn mapped(&mut self, line: &Bytes) -> Result<Option<Mapped>, End> {
        if line.trim_ascii().is_empty() {
            return Ok(None);
        }
        let event: Event<'_> = serde_json::from_slice(line).map_err(|error| {
            warn!(%error, "An event of the API server cannot be read");
            Status::unavailable("an event of the API server cannot be read", 1)
        })?;
        let json = line.slice_ref(event.object.get().as_bytes());
        if let Some(change) = Change::of(event.r#type) {
            // What has left a selection is told as it was before, under the version at which it left.
            let source = if change == Change::Deleted { Source::Elsewhere } else { Source::Stored };
            let object = read_object(&self.resource, &json, source)?;
            if !is_selected(&self.resource, &object) {
                return Ok(None);
            }
            return self.changed(change, &object).await;
        }
        match event.r#type {
            "BOOKMARK" => {
                let object = read_object(&self.resource, &json, Source::Elsewhere)?;
                Ok(Some(Mapped::now(event_json("BOOKMARK", &self.bookmark(&object)))))
            }
            "ERROR" => {
                let status: Value = serde_json::from_slice(&json).unwrap_or_default();
                let code =
                    status.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
                Err(Status::translate(&self.resource.lens, code.unwrap_or(500), &status).into())
            }
            other => {
                warn!(r#type = other, "The API server sent an event of an unknown type");
                Ok(None)
            }
        }
    }

    /// What the client is told of a change of an object, if anything.
    async fn changed(&mut self, change: Change, object: &BackingObject) -> Result<Option<Mapped>, End> {
        let lens = &self.resource.lens;
        if self.form == Form::Metadata {
            return Ok(Some(Mapped::now(event_json(change.name(), &lens.metadata_json(object)))));
        }
        let shown = match self.resource.in_force() {
            Ok(in_force) => self.parts.guests.show_one(lens, in_force, object).await,
            Err(unavailable) => Err(unavailable),
        };
        let is_lasting = matches!(shown, Ok(Shown::Fields(_)));
        let shown = match shown {
            // That an object is gone is told whether or not a guest can still show it.
            Ok(Shown::Failed(_)) | Err(_) if change == Change::Deleted => Shown::Fields("{}".into()),
            shown => shown?,
        };
        if let Form::Table(include) = self.form {
            let with_columns = !std::mem::replace(&mut self.has_columns, true);
            let row = TableRow::of(lens, object, &shown);
            let columns = &self.resource.columns;
            let table = columns.one(include, with_columns, row.as_row(), clock::now());
            return Ok(Some(Mapped::now(event_json(change.name(), &table))));
        }
        let told = match lens.unshowable {
            Unshowable::Fail => Some(change),
            Unshowable::Omit => self.left_out.told(change, object.uid(), matches!(shown, Shown::Fields(_))),
        };
        let fields = match (told, &shown) {
            (None, _) => return Ok(None),
            (Some(_), Shown::Fields(fields)) => fields,
            (Some(Change::Deleted), Shown::Failed(_)) => "{}",
            (Some(_), Shown::Failed(failure)) => return Err(cannot_be_shown(lens, object, failure).into()),
        };
        let event = |told: Change| event_json(told.name(), &lens.object_json(object, fields));
        Ok(told.map(|told| Mapped { event: event(told), is_lasting }))
    }

    /// Waits until there are so many bytes of memory for an event. Of a long one, a part of which has arrived, they double each time.
    async fn hold(&self, bytes: u64) -> Result<(), End> {
        Ok(self.room.hold(bytes.next_power_of_two()).await?)
    }

    fn bookmark(&self, object: &BackingObject) -> String {
        let marks = object.metadata.get("annotations");
        let is_initial_end = marks.and_then(|marks| marks.get(INITIAL_EVENTS_END)).is_some();
        let lens = &self.resource.lens;
        let metadata = lens.bookmark(object.version(), is_initial_end);
        let (api_version, kind) = match self.form {
            Form::Metadata => (META, "PartialObjectMetadata"),
            Form::Object | Form::Table(..) => (lens.served.api_version.as_str(), lens.served.kind.as_str()),
        };
        let object = json!({"kind": kind, "apiVersion": api_version, "metadata": metadata});
        match self.form {
            Form::Table(include) => {
                self.resource.columns.one(include, false, Row::Shown(&object), clock::now())
            }
            Form::Object | Form::Metadata => object.to_string(),
        }
    }

    async fn send(&mut self, event: Bytes) -> Result<(), End> {
        let next = Room::new(self.parts.guests.budget(), FREE_BYTES, 0);
        let room = std::mem::replace(&mut self.room, next);
        let sent = tokio::time::timeout(READ_TIMEOUT, self.events.send((event, room))).await;
        sent.map_err(|_| End::Unread)?.map_err(|_| End::Unread)
    }
}

/// The lines of a stream that arrives in pieces. Each byte is looked at once, however many pieces a line comes in.
#[derive(Debug, Default)]
struct Lines {
    waiting: BytesMut,
    /// How many of the bytes that wait have no end of a line among them.
    searched: usize,
}

impl Lines {
    /// Takes in what arrived.
    fn push(&mut self, chunk: &[u8]) {
        self.waiting.extend_from_slice(chunk);
    }

    /// The next line that is complete, with its end.
    fn next(&mut self) -> Option<Bytes> {
        let unsearched = self.waiting.get(self.searched..).unwrap_or_default();
        let Some(at) = unsearched.iter().position(|byte| *byte == b'\n') else {
            self.searched = self.waiting.len();
            return None;
        };
        let line = self.waiting.split_to(self.searched + at + 1).freeze();
        self.searched = 0;
        Some(line)
    }

    /// The length of what is left, in bytes.
    fn rest_bytes(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_apart_alike_however_they_arrive_and_no_byte_is_looked_at_twice() {
        let text = b"{\"a\":1}\n\n{\"long\":\"event\"}\n{\"not";
        for size in 1..=text.len() {
            let (mut lines, mut all) = (Lines::default(), Vec::new());
            for chunk in text.chunks(size) {
                lines.push(chunk);
                while let Some(line) = lines.next() {
                    all.push(line);
                }
                assert_eq!(lines.searched, lines.rest_bytes(), "the next search begins with what arrives");
            }
            assert_eq!(all, ["{\"a\":1}\n", "\n", "{\"long\":\"event\"}\n"], "{size}");
            assert_eq!(lines.rest_bytes(), 5);
        }
    }
}
