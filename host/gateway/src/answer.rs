//! [`Gateway`]: answers a request. Who asks is found out first, then whether they may, which the request line alone says; only then a request
//! takes a seat, and only then its body is read.

use std::{panic::AssertUnwindSafe, sync::Arc};

use bytes::Bytes;
use futures::FutureExt;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header, request};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use pintle_core::{
    bulk::Bulk,
    view::{
        Status, Verb,
        accept::{self, Discovery},
        discovery,
        query::{ListOptions, Query},
        target::{GroupVersion, Objects, Target},
    },
};
use pintle_runtime::{Spawner, clock, paced};
use serde_json::{Value, json};
use tokio::sync::watch;
use tracing::{debug, error};

use crate::{
    admission::{Admitted, Pools},
    authorize::{self, authorize},
    body,
    directory::{Directory, Document, Resource},
    documents::Documents,
    events::Events,
    identity::{Authentication, User},
    metrics::Metrics,
    reply::{self, RETRY_SECONDS, Reply},
    reviews::{Reviewer, Reviews, Turn},
    room::Room,
    show::Guests,
    sort::Sort,
    upstream::Upstream,
};

/// The header with the id under which audit logs have a request.
pub(crate) const AUDIT_ID: &str = "audit-id";

/// What answers requests.
pub struct Gateway<R> {
    reviewer: Reviewer<R>,
    parts: Arc<Parts>,
    /// Which resources are served. None: the Views have not been read yet.
    directory: watch::Receiver<Option<Arc<Directory>>>,
    /// How the cluster authenticates. None: that has not been read yet.
    authentication: watch::Receiver<Option<Arc<Authentication>>>,
    pools: Pools,
    metrics: Arc<Metrics>,
}

/// What requests are carried out with.
pub(crate) struct Parts {
    pub(crate) upstream: Upstream,
    pub(crate) guests: Arc<Guests>,
    pub(crate) spawner: Spawner,
    pub(crate) made: Events,
}

impl Parts {
    /// An answer whose memory is given back when it is sent, or is not read in time. A short one takes none.
    pub(crate) fn send_from(&self, reply: Reply, mut room: Room) -> Reply {
        let Some(bytes) = reply.body().size_hint().exact().filter(|_| room.is_held()) else {
            return reply::keeping(reply, room);
        };
        let (mut head, body) = reply.into_parts();
        head.headers.insert(header::CONTENT_LENGTH, bytes.into());
        let (parts, arriving) = paced::channel();
        self.spawner.spawn(async move {
            // It is there already.
            if let Ok(text) = body.collect().await {
                let _ = parts.send_whole(text.to_bytes()).await;
            }
            drop(room);
        });
        Reply::from_parts(head, reply::body_of(arriving))
    }
}

/// A request about objects, of somebody who may make it.
pub(crate) struct Call<'a> {
    pub(crate) resource: &'a Arc<Resource>,
    pub(crate) directory: &'a Directory,
    pub(crate) user: &'a User,
    pub(crate) query: Query,
    pub(crate) body: Bytes,
    /// The memory for an object, until the answer is sent.
    pub(crate) room: Room,
    headers: &'a HeaderMap,
}

impl Call<'_> {
    fn header(&self, name: &header::HeaderName) -> Option<&str> {
        header_of(self.headers, name)
    }

    /// The forms that the client reads.
    pub(crate) fn accept(&self) -> Option<&str> {
        self.header(&header::ACCEPT)
    }

    /// The form of the body.
    pub(crate) fn content_type(&self) -> Option<&str> {
        self.header(&header::CONTENT_TYPE)
    }

    /// What the client calls itself.
    pub(crate) fn user_agent(&self) -> Option<&str> {
        self.header(&header::USER_AGENT)
    }

    /// The id of the request in audit logs.
    pub(crate) fn audit_id(&self) -> Option<HeaderValue> {
        self.headers.get(AUDIT_ID).cloned()
    }

    /// The body, if there is one.
    ///
    /// # Errors
    /// 400 for one that is no object, 415 for one in another form.
    pub(crate) fn json_body(&self) -> Result<Option<Value>, Status> {
        if self.body.is_empty() {
            return Ok(None);
        }
        let form = accept::Body::read(self.content_type())?;
        let ignored = pintle_core::view::query::FieldValidation::Ignore;
        crate::body::object(form, &self.body, ignored, &mut Vec::new()).map(Some)
    }
}

impl<R: Reviews> Gateway<R> {
    /// A gateway that serves what the directory has, to whom the reviews allow it.
    pub fn new(
        reviews: R,
        upstream: Upstream,
        guests: Guests,
        spawner: Spawner,
        metrics: Arc<Metrics>,
        directory: watch::Receiver<Option<Arc<Directory>>>,
        authentication: watch::Receiver<Option<Arc<Authentication>>>,
    ) -> Self {
        let guests = Arc::new(guests);
        let parts = Parts { upstream, guests, spawner, made: Events::default() };
        Self {
            reviewer: Reviewer::new(reviews),
            parts: Arc::new(parts),
            directory,
            authentication,
            pools: Pools::default(),
            metrics,
        }
    }

    /// The documents that it knows, for the console's door.
    pub fn documents(&self) -> Documents {
        Documents::new(Arc::clone(&self.parts.guests), self.directory.clone())
    }

    /// What is missing until it can answer, in a word or two; nothing when it can.
    pub fn waits_for(&self) -> Option<&'static str> {
        if self.authentication.borrow().is_none() {
            return Some("authentication");
        }
        self.directory.borrow().is_none().then_some("views")
    }

    /// How the cluster authenticates, for the handshake.
    pub fn authentication(&self) -> watch::Receiver<Option<Arc<Authentication>>> {
        self.authentication.clone()
    }

    /// Answers a request of the front proxy.
    pub async fn answer<B>(&self, request: Request<B>) -> Reply
    where
        B: http_body::Body<Data = Bytes> + Send,
    {
        let (head, body) = request.into_parts();
        let answered = AssertUnwindSafe(self.answered(&head, body)).catch_unwind().await;
        let answered = answered.unwrap_or_else(|_| {
            error!(method = %head.method, path = head.uri.path(), "A request panicked");
            Err(Status::internal_error("this request made the gateway panic"))
        });
        answered.unwrap_or_else(|refused| {
            debug!(method = %head.method, path = head.uri.path(), code = refused.code, message = refused.message, "A request is refused");
            reply::status(&refused)
        })
    }

    async fn answered<B>(&self, head: &request::Parts, body: B) -> Result<Reply, Status>
    where
        B: http_body::Body<Data = Bytes> + Send,
    {
        let path = head.uri.path();
        let target = Target::read(path)?;
        let query = Query::new(pairs(head.uri.query().unwrap_or_default()));
        let sort = Sort::of(&head.method, &target, &query);
        let not_yet = || {
            Status::unavailable("the gateway has not read yet how this cluster authenticates", RETRY_SECONDS)
        };
        let authentication = self.authentication.borrow().clone().ok_or_else(not_yet)?;
        let user = authentication.user(&head.headers)?;
        let party = user.name.as_str();
        let not_read = || Status::unavailable("the gateway has not read the Views yet", RETRY_SECONDS);
        let directory = self.directory.borrow().clone();
        if let Target::Objects(objects) = &target {
            let directory = directory.ok_or_else(not_read)?;
            let asker = Asker { user: &user, party, head, sort, query };
            let began = clock::monotonic();
            let answered = self.about_objects(&directory, objects, asker, body).await;
            let code = answered.as_ref().map_or_else(|refused| refused.code, |reply| reply.status().as_u16());
            let verb = sort.verb().map_or("other", Verb::name);
            let took = (sort != Sort::Watch).then(|| clock::monotonic().saturating_sub(began));
            // A resource that nobody serves is whatever somebody wrote.
            let of = &objects.group_version;
            if directory.resource(of, &objects.resource).is_ok() {
                self.metrics.answered(verb, &of.group, &objects.resource, code, took);
            }
            return answered;
        }
        // Of a resource that is served, what there is not is not there; of any other one, nobody can say.
        if let (Target::Other(other), Some(directory)) = (&target, &directory)
            && let Ok(resource) = directory.resource(&other.group_version, &other.resource)
        {
            return Err(Status::not_found(&resource.lens.served, &other.name));
        }
        let verb = head.method.as_str().to_ascii_lowercase();
        let turn = Turn { pool: &self.pools.reviews, party };
        authorize(&self.reviewer, turn, &user, authorize::Asked::Path { verb: &verb, path }).await?;
        if head.method != Method::GET && head.method != Method::HEAD {
            return Err(Status::read_only_path());
        }
        match target {
            Target::Build => Ok(reply::json(StatusCode::OK, build().to_string())),
            Target::Nothing => Err(Status::no_such_path()),
            target => described(
                &target,
                directory.ok_or_else(not_read)?.as_ref(),
                &head.headers,
                query.first("hash"),
            ),
        }
    }

    async fn about_objects<B>(
        &self,
        directory: &Directory,
        objects: &Objects,
        asker: Asker<'_>,
        body: B,
    ) -> Result<Reply, Status>
    where
        B: http_body::Body<Data = Bytes> + Send,
    {
        let Asker { user, party, head, sort, query } = asker;
        let resource = directory.resource(&objects.group_version, &objects.resource)?;
        let served = &resource.lens.served;
        let verb = sort
            .verb()
            .ok_or_else(|| Status::method_not_allowed(served, &head.method.as_str().to_ascii_lowercase()))?;
        let options = match verb {
            Verb::List | Verb::Watch | Verb::DeleteCollection => Some(ListOptions::read(&query)?),
            _ => None,
        };
        let chosen = options.as_ref().and_then(ListOptions::name);
        let name = objects.name.as_deref().or(chosen).unwrap_or_default().to_owned();
        let name = name.as_str();
        let asked = authorize::Asked::Resource {
            served,
            verb: verb.name(),
            namespace: objects.namespace.as_deref(),
            name,
        };
        authorize(&self.reviewer, Turn { pool: &self.pools.reviews, party }, user, asked).await?;
        resource.open()?;
        if !served.allows(verb) {
            return Err(Status::method_not_allowed(served, verb.name()));
        }
        // There is no such path, so nobody takes it for that of an object that is gone.
        let needs_namespace = served.backing.namespaced
            && (objects.name.is_some() || !matches!(verb, Verb::List | Verb::Watch));
        match objects.namespace.is_some() {
            false if needs_namespace => return Err(Status::no_such_path()),
            true if !served.backing.namespaced => {
                return Err(Status::bad_request(
                    "the path names a namespace, and the resource is of cluster scope",
                ));
            }
            _ => {}
        }
        let budget = self.parts.guests.budget();
        let share = || (self.pools.large.clone(), party.to_owned());
        let room = match verb {
            Verb::Create | Verb::Update | Verb::Patch => Room::for_write(budget, share()),
            _ => Room::for_object(budget, share()),
        };
        if matches!(verb, Verb::Update | Verb::Patch) && objects.name.is_none() {
            if verb == Verb::Patch {
                accept::PatchType::read(header_of(&head.headers, &header::CONTENT_TYPE))?;
            }
            return Err(Status::bad_request("name must be provided"));
        }
        let (admitted, body) = self.seated(party, verb, &head.headers, body, &room).await?;
        let call = Call { resource, directory, user, query, body, room, headers: &head.headers };
        let parts = &self.parts;
        let reply = match (verb, options) {
            (Verb::Get, _) => parts.get(&call, objects, name).await,
            (Verb::Create, _) => parts.create(&call, objects).await,
            (Verb::Update, _) => parts.update(&call, objects, name).await,
            (Verb::Patch, _) => parts.patch(&call, objects, name).await,
            (Verb::Delete, _) => parts.delete(&call, objects, name).await,
            // Their seats are taken until they end, and not until they are answered.
            (Verb::List, Some(options)) => parts.list(&call, objects, &options, admitted, share()).await,
            (Verb::Watch, Some(options)) => parts.watch(&call, objects, &options, admitted).await,
            (Verb::DeleteCollection, Some(options)) => {
                parts.delete_collection(&call, objects, &options).await
            }
            _ => Err(Status::method_not_allowed(served, verb.name())),
        }?;
        Ok(parts.send_from(reply, call.room))
    }

    /// Takes a seat for a request that may be made, until it is answered, reads its body, and waits until there is room for what it says.
    async fn seated<B>(
        &self,
        party: &str,
        verb: Verb,
        headers: &HeaderMap,
        body: B,
        room: &Room,
    ) -> Result<(Admitted, Bytes), Status>
    where
        B: http_body::Body<Data = Bytes> + Send,
    {
        let seats = self.pools.seats(verb);
        let has_body = !matches!(verb, Verb::Get | Verb::List | Verb::Watch) && !body.is_end_stream();
        if !has_body {
            return Ok((seats.admit(party).await?, Bytes::new()));
        }
        // It comes first: who waits to send a body must not have a seat meanwhile.
        let _arriving = self.pools.bodies.admit(party).await?;
        let seat = seats.admit(party).await?;
        let body = body::read(headers, body).await?;
        room.hold_object(&Bulk::of(&body)).await?;
        Ok((seat, body))
    }

    /// What it counts.
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// What `/metrics` shows.
    pub(crate) fn metrics_text(&self) -> String {
        self.metrics.text(&self.pools.figures())
    }
}

fn header_of<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Somebody who is known, and what they ask for.
struct Asker<'a> {
    user: &'a User,
    party: &'a str,
    head: &'a request::Parts,
    sort: Sort,
    query: Query,
}

/// Discovery and OpenAPI. The hash is that of the document that a client wants.
fn described(
    target: &Target,
    directory: &Directory,
    headers: &HeaderMap,
    hash: Option<&str>,
) -> Result<Reply, Status> {
    let accepted = header_of(headers, &header::ACCEPT);
    let served = directory.served(None);
    let missing =
        |what: &str| Status::unavailable(format!("no View serves {what} at present"), RETRY_SECONDS);
    let at = |of: &GroupVersion| of.api_version();
    let of = |content: Value| Document::of(&content);
    let (content_type, document) = match target {
        Target::Groups => match Discovery::negotiate(accepted)? {
            form @ Discovery::Aggregated => (form.content_type(), of(discovery::aggregated(&served))),
            form @ Discovery::Plain => (form.content_type(), of(discovery::group_list(&served))),
        },
        Target::Group(group) => {
            accept::plain(accepted)?;
            (accept::JSON, of(discovery::group(&served, group).ok_or_else(|| missing(group))?))
        }
        Target::Version(version) => {
            accept::plain(accepted)?;
            let list = discovery::resource_list(&served, &at(version));
            (accept::JSON, of(list.ok_or_else(|| missing(&at(version)))?))
        }
        Target::OpenApi => {
            accept::plain(accepted)?;
            (accept::JSON, directory.openapi().root.clone())
        }
        Target::OpenApiOf(version) => {
            accept::plain(accepted)?;
            let document = directory.openapi().versions.get(version);
            (accept::JSON, document.cloned().ok_or_else(|| missing(&at(version)))?)
        }
        Target::Other(other) => return Err(missing(&format!("this path of {}", at(&other.group_version)))),
        _ => return Err(missing("this path")),
    };
    let Document { etag, text } = document;
    // Of another hash it is the present document, which may not be kept under that: the API server lets no redirect through.
    let is_by_hash = matches!(target, Target::OpenApiOf(_)) && hash == Some(etag.hash());
    let known = header_of(headers, &header::IF_NONE_MATCH).unwrap_or_default();
    let mut reply = match etag.is_in(known) {
        true => reply::json(StatusCode::NOT_MODIFIED, Bytes::new()),
        false => reply::text(StatusCode::OK, content_type, text),
    };
    if is_by_hash {
        reply::may_be_kept(&mut reply, clock::now());
    }
    if let Ok(tag) = HeaderValue::from_str(&etag.quoted()) {
        reply.headers_mut().insert(header::ETAG, tag);
    }
    reply.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
    Ok(reply)
}

fn build() -> Value {
    json!({"gitVersion": format!("v{}", env!("CARGO_PKG_VERSION")), "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH)})
}

/// Parameters, decoded.
fn pairs(query: &str) -> impl Iterator<Item = (String, String)> {
    form_urlencoded::parse(query.as_bytes()).into_owned()
}

#[cfg(test)]
pub(crate) mod tests;
