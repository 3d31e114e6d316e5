//! The server: its state, and how it handles a request.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Waker,
};

use jiff::Timestamp;
use pintle_core::object;
use pintle_runtime::clock::Random;
use pintle_wit::ObjectRef;
use serde_json::{Value, json};

use crate::{
    Act, Failure,
    access::{Access, Action, Unrestricted, User, Verdict},
    controllers::{self, ControllerAction},
    faults::{Fate, Faults, NoFaults, RequestSeen, StreamSeen, Verb},
    kinds::{self, Served},
    request::Request,
    service::Service,
    store::Store,
    verbs::{self, Done},
    watch::{Selection, Stream},
};

/// Returns the current time.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The configuration of a server.
#[derive(Clone)]
pub struct Options {
    /// Determines uids and generated names.
    pub seed: u64,
    /// The source of timestamps. By default it is always 2000-01-01T00:00:00Z.
    pub clock: Clock,
}

impl Default for Options {
    fn default() -> Self {
        Self { seed: 0, clock: Arc::new(|| Timestamp::constant(946_684_800, 0)) }
    }
}

/// A request that was carried out or refused.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The request.
    pub seen: RequestSeen,
    /// The status code of the reply.
    pub code: u16,
    /// Whether the code comes from a fault, and the server did nothing.
    pub by_fault: bool,
    /// The object before the request, for a request that changes something.
    pub before: Option<Arc<Value>>,
    /// The object after the request; `None` if it is gone, or if nothing was done.
    pub after: Option<Arc<Value>>,
    /// The server's version after the request.
    pub version: u64,
}

impl Record {
    /// Whether the request changed its object. An apply without effect does not, nor does a dry run. Of a deletion of a collection the
    /// version tells.
    pub fn changed(&self) -> bool {
        self.seen.verb.is_mutating() && self.before != self.after
    }
}

/// Every object at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// The server's version.
    pub version: u64,
    /// The whole objects.
    pub objects: BTreeMap<ObjectRef, Arc<Value>>,
}

/// A change of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Revision {
    /// The server's version after it.
    pub version: u64,
    /// The object before it; `None` if it was created.
    pub before: Option<Arc<Value>>,
    /// The object after it. If it is gone, this is its last state, with the version of its deletion.
    pub after: Arc<Value>,
    /// Whether the object is gone.
    pub gone: bool,
}

/// An in-memory API server. A clone is a handle of the same server.
#[derive(Clone)]
pub struct ApiServer {
    state: Arc<Mutex<State>>,
}

pub(crate) struct State {
    pub(crate) store: Store,
    pub(crate) random: Random,
    pub(crate) clock: Clock,
    pub(crate) faults: Box<dyn Faults>,
    access: Box<dyn Access>,
    requests: Vec<Record>,
    /// How many requests came in.
    numbers: u64,
    /// How many watches were opened.
    streams: u64,
    pub(crate) open: BTreeMap<u64, Open>,
    /// The position in the history up to which watches were woken.
    told: usize,
}

/// An open watch.
pub(crate) struct Open {
    pub(crate) client: String,
    pub(crate) served: Arc<Served>,
    pub(crate) waker: Option<Waker>,
}

impl State {
    /// Wakes the watches of kinds that have changed since the last call.
    fn wake(&mut self) {
        let news = self.store.history().get(self.told..).unwrap_or_default();
        for open in self.open.values_mut().filter(|open| news.iter().any(|entry| open.served.has(&entry.key)))
        {
            if let Some(waker) = open.waker.take() {
                waker.wake();
            }
        }
        self.told = self.store.history().len();
    }
}

/// The outcome of a request.
pub(crate) enum Answer {
    Reply { code: u16, body: Value, warnings: Vec<String> },
    Refused { failure: Failure, warnings: Vec<String> },
    Watch(Box<Stream>),
}

impl std::fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiServer").field("version", &self.version()).finish_non_exhaustive()
    }
}

impl ApiServer {
    /// A server with the namespaces of every cluster.
    pub fn new(options: Options) -> Self {
        let server = Self::of(Store::default(), Random::new(options.seed), options.clock);
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            let made = server.act("kube-apiserver", &Act::Create(object));
            debug_assert!(made.is_ok(), "{name}");
        }
        server.take_requests();
        server
    }

    /// Another server with the same objects and history, which is independent from then on. Requests, watches and faults stay with this
    /// one.
    pub fn fork(&self, options: Options) -> Self {
        let (store, random) = {
            let state = self.lock();
            // Not started again, so that earlier uids do not come again.
            (state.store.clone(), state.random.apart(options.seed))
        };
        Self::of(store, random, options.clock)
    }

    fn of(store: Store, random: Random, clock: Clock) -> Self {
        let state = State {
            told: store.history().len(),
            store,
            random,
            clock,
            faults: Box::new(NoFaults),
            access: Box::new(Unrestricted),
            requests: Vec::new(),
            numbers: 0,
            streams: 0,
            open: BTreeMap::new(),
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection for `kube::Client::new`. The name tells connections apart in [`RequestSeen`] and [`StreamSeen`].
    pub fn service(&self, client: &str) -> Service {
        Service::new(self.clone(), client)
    }

    /// Sets the faults from now on.
    pub fn set_faults(&self, faults: Box<dyn Faults>) {
        self.lock().faults = faults;
    }

    /// Sets who may do what from now on. Acts are always allowed.
    pub fn set_access(&self, access: Box<dyn Access>) {
        self.lock().access = access;
    }

    /// Acts as a user or controller of the scenario, without faults. An object that is already gone counts as refused (404).
    ///
    /// # Errors
    /// The API server's error.
    pub fn act(&self, actor: &str, act: &Act) -> Result<Value, Failure> {
        let ObjectRef { api_version, kind, .. } = act.reference();
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let mut state = self.lock();
        let served =
            kinds::of(&state.store, &api_version, &kind).ok_or_else(|| kinds::unknown(group, &kind))?;
        let request = act.request(&served.plural, actor);
        let seen = state.seen(actor, &request);
        match state.carry_out(self, seen, &request, &Fate::Pass) {
            Answer::Reply { body, .. } => Ok(body),
            Answer::Refused { failure, .. } => Err(failure),
            Answer::Watch(_) => Err(Failure::not_modelled("a watch as an act")),
        }
    }

    /// The object, if it exists.
    pub fn object(&self, reference: &ObjectRef) -> Option<Arc<Value>> {
        let state = self.lock();
        let served = kinds::of(&state.store, &reference.api_version, &reference.kind)?;
        let key = served.key(reference.namespace.as_deref(), &reference.name);
        state.store.get(&key).cloned()
    }

    /// All objects as they are now.
    pub fn snapshot(&self) -> Snapshot {
        let state = self.lock();
        let objects = state.store.objects().values();
        let objects = objects.map(|object| (object::reference(object), Arc::clone(object)));
        Snapshot { version: state.store.version(), objects: objects.collect() }
    }

    /// Every change so far, in order. What is forgotten for clients ([`ApiServer::compact`]) is here.
    pub fn history(&self) -> Vec<Revision> {
        let state = self.lock();
        let revisions = state.store.history().iter().map(|entry| Revision {
            version: entry.version,
            before: entry.before.clone(),
            after: Arc::clone(&entry.after),
            gone: entry.gone,
        });
        revisions.collect()
    }

    /// All requests so far, including acts, in the order in which they were carried out or refused.
    pub fn requests(&self) -> Vec<Record> {
        self.lock().requests.clone()
    }

    /// Removes and returns the requests so far, so that the next call returns only later ones.
    pub fn take_requests(&self) -> Vec<Record> {
        std::mem::take(&mut self.lock().requests)
    }

    /// The version of the last change.
    pub fn version(&self) -> u64 {
        self.lock().store.version()
    }

    /// Forgets the history. Watches that begin at an older version, and lists that continue, are answered with 410. Open watches continue.
    pub fn compact(&self) {
        self.lock().store.compact();
    }

    /// Ends the open watches of a client, or of all, as when connections are closed.
    pub fn close_watches(&self, client: Option<&str>) {
        let mut state = self.lock();
        let ended = state.open.extract_if(.., |_, open| client.is_none_or(|client| client == open.client));
        // They look once more, and notice that they are closed.
        ended.filter_map(|(_, open)| open.waker).for_each(Waker::wake);
    }

    /// Takes one step of the controllers of every cluster: garbage collection, namespace deletion, Deployments and their Pods. Returns
    /// whether there was anything to do. These steps have no faults.
    pub fn controllers_step(&self) -> bool {
        // A refused step must not block the other steps.
        (0..).map_while(|nth| controllers::step(&self.lock().store, nth)).any(|step| self.take_step(step))
    }

    fn take_step(&self, step: ControllerAction) -> bool {
        match step {
            ControllerAction::Act(actor, act) => self.act(actor, &act).is_ok(),
            ControllerAction::Remove(key) => {
                let mut state = self.lock();
                let gone = state.store.remove(&key).is_some();
                state.wake();
                gone
            }
        }
    }

    /// Asks the faults about a request.
    pub(crate) fn decide(&self, client: &str, request: &Request) -> (RequestSeen, Fate) {
        let mut state = self.lock();
        let seen = state.seen(client, request);
        let fate = state.faults.request(&seen);
        (seen, fate)
    }

    pub(crate) fn carry_out(&self, seen: RequestSeen, request: &Request, fate: &Fate) -> Answer {
        let mut state = self.lock();
        match state.authorize(&seen) {
            Ok(()) => state.carry_out(self, seen, request, fate),
            Err(failure) => {
                state.record(seen, failure.code, false, [None, None]);
                Answer::Refused { failure, warnings: Vec::new() }
            }
        }
    }

    /// Records a request that was not carried out.
    pub(crate) fn failed(&self, seen: RequestSeen, code: u16) {
        self.lock().record(seen, code, true, [None, None]);
    }
}

impl State {
    /// Records a request, with its object before and after it.
    fn record(
        &mut self,
        seen: RequestSeen,
        code: u16,
        by_fault: bool,
        [before, after]: [Option<Arc<Value>>; 2],
    ) {
        let version = self.store.version();
        self.requests.push(Record { seen, code, by_fault, before, after, version });
    }

    fn seen(&mut self, client: &str, request: &Request) -> RequestSeen {
        self.numbers += 1;
        let path = &request.path;
        let name = path.name.as_deref().or_else(|| {
            (request.verb == Verb::Create).then(|| request.body["metadata"]["name"].as_str()).flatten()
        });
        RequestSeen {
            number: self.numbers,
            client: client.into(),
            actor: request.user.as_ref().map_or(client, |user| &user.name).into(),
            impersonated: request.user.clone(),
            verb: request.verb,
            group: path.group.clone(),
            version: path.version.clone(),
            resource: path.resource.clone(),
            namespace: path.namespace.clone(),
            name: name.map(Into::into),
            subresource: path.subresource.clone(),
            manager: request.verb.is_mutating().then(|| request.manager()),
            force: request.is_set("force"),
            dry_run: request.is_dry_run(),
            resource_version: request.parameter("resourceVersion").map(Into::into),
            body: request.body.clone(),
        }
    }

    /// Asks whether the user of a request may do it. Everybody may discover.
    fn authorize(&mut self, seen: &RequestSeen) -> Result<(), Failure> {
        if seen.verb == Verb::Discover {
            return Ok(());
        }
        let is_named = !matches!(seen.verb, Verb::Create | Verb::Review) || seen.subresource.is_some();
        let action = Action {
            verb: seen.verb.in_roles().into(),
            group: seen.group.clone(),
            version: seen.version.clone(),
            resource: seen.resource.clone(),
            subresource: seen.subresource.clone().unwrap_or_default(),
            namespace: seen.namespace.clone().unwrap_or_default(),
            name: seen.name.clone().filter(|_| is_named).unwrap_or_default(),
            path: String::new(),
        };
        let user = user(seen);
        match self.access.may(&user, &action) {
            Verdict::Allowed => Ok(()),
            Verdict::NotAllowed(why) => Err(Failure::new(403, "Forbidden", action.refusal(&user, &why))),
        }
    }

    fn carry_out(&mut self, server: &ApiServer, seen: RequestSeen, request: &Request, fate: &Fate) -> Answer {
        let mut warnings = Vec::new();
        let done = match request.verb {
            Verb::Watch => match self.open_watch(server, &seen, request) {
                Ok(stream) => {
                    self.record(seen, 200, false, [None, None]);
                    return Answer::Watch(stream);
                }
                Err(failure) => Err(failure),
            },
            Verb::Review => verbs::review(&mut *self.access, &user(&seen), request),
            _ => self.done(request, fate, &mut warnings),
        };
        let (answer, code, objects) = match done {
            Ok(Done { code, body, before, after }) => {
                (Answer::Reply { code, body, warnings }, code, [before, after])
            }
            Err(failure) => {
                let code = failure.code;
                (Answer::Refused { failure, warnings }, code, [None, None])
            }
        };
        self.record(seen, code, false, objects);
        self.wake();
        answer
    }

    /// Carries out a request on what is stored, or tries it out on a copy.
    fn done(&mut self, request: &Request, fate: &Fate, warnings: &mut Vec<String>) -> Result<Done, Failure> {
        let as_of = if let Fate::AsOf(version) = fate { Some(*version) } else { None };
        let now = (self.clock)();
        let mut copy = (request.verb.is_mutating() && request.is_dry_run())
            .then(|| (self.store.clone(), self.random.clone()));
        let (store, random) = match &mut copy {
            Some((store, random)) => (store, random),
            None => (&mut self.store, &mut self.random),
        };
        let mut context = verbs::Context { store, random, now, warnings: Vec::new() };
        let done = verbs::carry_out(&mut context, request, as_of);
        *warnings = context.warnings;
        if copy.is_some() { done.map(Done::tried_out) } else { done }
    }

    fn open_watch(
        &mut self,
        server: &ApiServer,
        seen: &RequestSeen,
        request: &Request,
    ) -> Result<Box<Stream>, Failure> {
        let selection = Selection::of(&self.store, request)?;
        self.streams += 1;
        let stream =
            StreamSeen { number: self.streams, client: seen.client.clone(), resource: seen.resource.clone() };
        let (number, client, served) = (stream.number, stream.client.clone(), Arc::clone(&selection.served));
        let stream = Stream::open(server.clone(), &self.store, stream, selection, request)?;
        self.open.insert(number, Open { client, served, waker: None });
        Ok(Box::new(stream))
    }
}

/// As whom a request is made.
fn user(seen: &RequestSeen) -> User {
    seen.impersonated.clone().unwrap_or_else(|| User::named(&seen.client))
}
