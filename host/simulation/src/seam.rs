//! [`Seam`]: a layer between a simulated host and everything else: its requests, their replies, watch events, and answers of guests.

use std::{
    collections::HashSet,
    convert::Infallible,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{
        Arc, LazyLock, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use pintle_engine::{Answer, CallError, CallLimits, CallStats, Guest, Origin};
use pintle_offline as offline;
use pintle_operator::CallGuest;
use pintle_schema::fit::Kinds;
use pintle_simulator::Lost;
use pintle_wit::{Beyond, Weight, reasons};
use serde_json::Value;
use tower::Service as _;

/// A request of a host.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    /// GET, PATCH and so on.
    pub method: String,
    /// The path with the query.
    pub path: String,
    /// The body; null if there is none.
    pub body: Value,
}

/// A layer between a host and everything else, which may change what passes through it. Tests use it to make hosts and guests that are
/// broken in a known way. Each start of a host has a new one.
pub trait Seam: Send + Sync {
    /// A request before it is sent. If this returns a reply, the request is not sent, and the host gets that reply.
    fn request(&self, request: &mut Sent) -> Option<Value> {
        let _ = request;
        None
    }

    /// The reply to a request.
    fn reply(&self, request: &Sent, code: &mut u16, body: &mut Value) {
        let _ = (request, code, body);
    }

    /// An event of a watch. If this returns false, the host does not get it.
    fn event(&self, path: &str, event: &mut Value) -> bool {
        let _ = (path, event);
        true
    }

    /// The grant of a call.
    fn limits(&self, limits: &mut CallLimits) {
        let _ = limits;
    }

    /// The answer of a guest. Null for a gateway whose guest was late: it gets what is put there instead.
    fn answer(&self, request: &Value, answer: &mut Value) {
        let _ = (request, answer);
    }
}

/// Makes a seam for each start of a host.
pub type Seams = Arc<dyn Fn() -> Arc<dyn Seam> + Send + Sync>;

/// The body of a reply.
pub(super) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Sends a request through a seam.
pub(super) async fn through<B>(
    seam: Arc<dyn Seam>,
    mut service: pintle_simulator::Service,
    request: http::Request<B>,
) -> Result<http::Response<Body>, Lost>
where
    B: http_body::Body + Send,
    B::Data: Send,
{
    let (mut head, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| Lost)?.to_bytes();
    let path = head.uri.path_and_query().map_or_else(String::new, ToString::to_string);
    let body = serde_json::from_slice(&body).unwrap_or_default();
    let mut sent = Sent { method: head.method.to_string(), path, body };
    if let Some(pretended) = seam.request(&mut sent) {
        return Ok(response(200, &pretended));
    }
    head.uri = sent.path.parse().map_err(|_| Lost)?;
    let bytes = if sent.body.is_null() { Bytes::new() } else { Bytes::from(sent.body.to_string()) };
    let reply = service.call(http::Request::from_parts(head, Full::new(bytes))).await?;
    let (head, body) = reply.into_parts();
    if sent.path.contains("watch=true") && head.status.is_success() {
        let shown = move |bytes: Bytes| {
            let mut event: Value = serde_json::from_slice(&bytes).unwrap_or_default();
            if !seam.event(&sent.path, &mut event) {
                return Bytes::new();
            }
            // The type comes first, as from the API server.
            format!("{{\"type\":{},\"object\":{}}}\n", event["type"], event["object"]).into()
        };
        let body = body.map_frame(move |frame| frame.map_data(&shown)).boxed_unsync();
        return Ok(http::Response::from_parts(head, body));
    }
    let bytes = body.collect().await.map_err(|_| Lost)?.to_bytes();
    let mut value = serde_json::from_slice(&bytes).unwrap_or_default();
    let mut code = head.status.as_u16();
    seam.reply(&sent, &mut code, &mut value);
    Ok(response(code, &value))
}

fn response(code: u16, body: &Value) -> http::Response<Body> {
    let mut response = http::Response::new(Full::new(body.to_string().into()).boxed_unsync());
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap_or(http::StatusCode::BAD_GATEWAY);
    response
}

/// Counts the calls of guests, and records what is wrong with their answers.
#[derive(Debug, Default)]
pub(super) struct Impure {
    /// Answers must fit these kinds, if there are any.
    kinds: Option<Arc<Kinds>>,
    /// Where an answer did not depend only on its request.
    pub(super) caught: OnceLock<Caught>,
    /// A parsed answer that took more memory than its call was granted.
    pub(super) beyond: OnceLock<String>,
    /// What of an answer does not fit its kind.
    pub(super) unfit: OnceLock<String>,
    /// The first request at which a guest trapped.
    pub(super) trapped: OnceLock<String>,
    asked: AtomicU64,
}

/// Two answers that should have been equal.
#[derive(Clone, Debug)]
pub(super) struct Caught {
    /// How the second request differed.
    pub(super) how: &'static str,
    pub(super) first: String,
    pub(super) again: String,
}

impl Impure {
    pub(super) fn new(kinds: Option<Arc<Kinds>>) -> Self {
        Self { kinds, ..Self::default() }
    }

    /// How many times hosts called a guest.
    pub(super) fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }

    fn judge(&self, request: &str, limits: &CallLimits, called: &Result<Answer, CallError>) {
        match called {
            Ok(answer) => {
                let fits = self.kinds.as_ref().map(|kinds| offline::run::fits(kinds, &answer.response));
                if let Some(Err(failure)) = fits {
                    self.unfit.get_or_init(|| failure.to_string());
                }
                if let Some(what) = beyond(answer, limits) {
                    self.beyond.get_or_init(|| what);
                }
            }
            Err(error) if error.origin == Origin::Engine && error.failure.reason == reasons::TRAP => {
                self.trapped.get_or_init(|| request.to_owned());
            }
            Err(_) => {}
        }
    }
}

/// How a parsed answer took more memory than its call was granted, if it did.
fn beyond(answer: &Answer, limits: &CallLimits) -> Option<String> {
    let (granted, memory) = (limits.response.parsed_bytes, limits.memory_bytes);
    match Weight::of(&answer.text, limits.response).map(|weight| weight.parsed_bytes()) {
        Ok(bytes) if bytes <= granted && answer.stats.peak_memory_bytes <= memory => None,
        Ok(bytes) => Some(format!(
            "of an answer values of up to {bytes} bytes were made, and the call was granted {granted}, and {memory} bytes of linear memory"
        )),
        Err(Beyond::Values(_)) => Some("values were made of an answer that has too many of them".into()),
        Err(Beyond::Depth(_)) => Some("values were made of an answer that is nested too deep".into()),
    }
}

/// Calls every guest more often than needed, and records where the answers differ: with the same request, and with the children in another
/// order.
pub(super) fn strictly(impure: Arc<Impure>, seam: Option<Arc<dyn Seam>>) -> CallGuest {
    Arc::new(move |guest, text, limits| {
        impure.asked.fetch_add(1, Ordering::Relaxed);
        let call = |text: &str| ask(guest, text, limits, seam.as_deref());
        let first = call(text);
        impure.judge(text, limits, &first);
        // A request of a sound host that this guest already got, in any run, has been checked.
        if seam.is_none() && !is_new(guest, text) {
            return first;
        }
        // An answer that ran out of fuel or memory proves nothing, and takes long.
        if impure.caught.get().is_some() || first.as_ref().is_err_and(|error| error.origin == Origin::Engine)
        {
            return first;
        }
        let said = |answer: &Result<Answer, CallError>| match answer {
            Ok(answer) => answer.text.clone(),
            // The message of an engine may count bytes and fuel.
            Err(error) if error.origin == Origin::Engine => error.failure.reason.clone(),
            Err(error) => error.failure.to_string(),
        };
        let compare = |text: &str, how: &'static str| {
            let again = call(text);
            if said(&again) != said(&first) {
                impure.caught.get_or_init(|| Caught { how, first: said(&first), again: said(&again) });
            }
        };
        compare(text, "asked the same again");
        let mut other: Value = serde_json::from_str(text).unwrap_or_default();
        if let Some(children) = other["children"].as_array_mut().filter(|children| children.len() > 1) {
            children.reverse();
            compare(&other.to_string(), "asked with its children in another order");
        }
        first
    })
}

/// Whether this guest gets this request for the first time in this process. Most runs of a search begin in the same way.
fn is_new(guest: &Guest, text: &str) -> bool {
    static ASKED: LazyLock<Mutex<HashSet<u64>>> = LazyLock::new(Mutex::default);
    let mut hasher = DefaultHasher::new();
    (guest.digest().to_string(), text).hash(&mut hasher);
    ASKED.lock().unwrap_or_else(PoisonError::into_inner).insert(hasher.finish())
}

fn ask(guest: &Guest, text: &str, limits: &CallLimits, seam: Option<&dyn Seam>) -> Result<Answer, CallError> {
    let Some(seam) = seam else { return guest.reconcile(text, limits) };
    let mut limits = *limits;
    seam.limits(&mut limits);
    let answer = guest.reconcile(text, &limits)?;
    let request: Value = serde_json::from_str(text).unwrap_or_default();
    let mut value: Value = serde_json::from_str(&answer.text).unwrap_or_default();
    seam.answer(&request, &mut value);
    let text = value.to_string();
    let (weight, parsed) = pintle_wit::weigh_and_parse_response(&text, limits.response);
    let stats = CallStats { parsed_bytes: weight.parsed_bytes(), response_bytes: text.len(), ..answer.stats };
    match parsed {
        Ok(response) => Ok(Answer { response, text, stats }),
        Err(failure) => Err(CallError { failure: Box::new(failure), origin: Origin::Engine, stats }),
    }
}
