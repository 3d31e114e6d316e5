//! The client of the API server.
//!
//! Every request of the operator that is not a watch goes through [`Cluster`]: JSON in, JSON out, one deadline each, and no retry.
//! `pintle-core` decides what is retried, and when; a client with its own retry could hold up a pass for minutes. Every write also
//! passes [`Hold`], so that a host that is not the leader, or not any more, writes nothing.

mod access;
mod backoff;
pub mod connect;
mod discover;
mod finalizers;
mod hold;
pub mod items;
pub mod observer;
mod pages;
mod prompt;
mod reading;
mod reduced;

use std::{sync::Arc, time::Duration};

use http::{HeaderValue, Method, Request, StatusCode, header};
use kube::{Client, client::Body};
use pintle_core::{
    ApiError, Apply, Claim, Deletion, EvictionWrite, FinalizerWrite, StatusWrite, account::Account, object,
    reasons,
};
use pintle_wit::{Cause, EvictionMode, Kind, ObjectRef};
use serde_json::{Value, json};

pub use access::{access_review, host_account};
pub use backoff::Backoff;
pub use discover::Resource;
pub use hold::{Held, Hold, Lapsed};
pub use prompt::prompt;
pub use reading::{Page, PageOf};
pub use reduced::Reduced;

/// How long one request may take. The API server itself gives up on a write after 34 s, but after more than ten seconds it is better to
/// send the request again.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The largest reply that is read, in bytes: one object is at most 1.5 MiB in etcd, and about as much again in managed fields.
const REPLY_BYTES_MAX: usize = 8 << 20;

/// The field manager of the host's own objects.
const OWN_MANAGER: &str = "pintle";

/// The forms of bodies.
const JSON: &str = "application/json";
const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";

/// The `Accept` header of a list of which only the metadata are needed.
const METADATA_OF_ALL: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// An API server.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    hold: Hold,
    account: Option<Arc<Account>>,
}

/// How much of an object a reply or a watch brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Projection {
    /// All of it.
    Whole,
    /// Its metadata alone: enough to see drift, and all that may be seen of a Secret. The rest, for instance a Secret's data, does not
    /// leave the API server.
    Metadata,
}

impl Projection {
    fn accept(self) -> &'static str {
        match self {
            Self::Whole => JSON,
            Self::Metadata => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        }
    }
}

/// What the API server replied to a request that it accepted.
#[derive(Debug)]
pub struct Reply {
    /// The object, without what [`Reduced`] leaves out.
    pub object: Value,
    /// Whether it was created by the request.
    pub created: bool,
}

impl Cluster {
    /// The API server that a client talks to. Its own retry must be off.
    pub fn new(client: Client) -> Self {
        Self { client, hold: Hold::always(), account: None }
    }

    /// The same API server, with writes only as long as this gives the right to write.
    pub fn with_hold(&self, hold: Hold) -> Self {
        Self { hold, ..self.clone() }
    }

    /// The same API server, with requests as this account instead of as the host. It uses the same pool of connections, because the user
    /// is a header of each request (impersonation). The groups are not sent: the API server knows the groups of a ServiceAccount, and
    /// would require the right to impersonate each of them.
    pub fn acting_as(&self, account: Account) -> Self {
        Self { account: Some(Arc::new(account)), ..self.clone() }
    }

    /// The right to write.
    pub fn hold(&self) -> &Hold {
        &self.hold
    }

    /// The client for watches: each of its lists comes in pages of few bytes, and an answer that does not begin in time is an error, as
    /// [`prompt`] says.
    pub fn client(&self) -> Client {
        pages::bounded(&prompt(&self.client))
    }

    /// Reads an object; `None` if it does not exist.
    ///
    /// # Errors
    /// Every error of the API server except 404.
    pub async fn get(&self, resource: &Resource, reference: &ObjectRef) -> Result<Option<Value>, ApiError> {
        let found = self.send(Call::get(resource.path_of(reference))).await;
        if_found(found.map(|reply| reply.object))
    }

    /// Reads an object whole, with everything that [`Reduced`] leaves out, which includes the fields that others set.
    ///
    /// # Errors
    /// As [`Cluster::get`].
    pub async fn get_whole(
        &self,
        resource: &Resource,
        reference: &ObjectRef,
    ) -> Result<Option<Value>, ApiError> {
        self.document_of(Call::get(resource.path_of(reference))).await
    }

    /// Reads only an object's metadata. The rest, for instance a Secret's data, does not leave the API server.
    ///
    /// # Errors
    /// As [`Cluster::get`].
    pub async fn get_metadata(
        &self,
        resource: &Resource,
        reference: &ObjectRef,
    ) -> Result<Option<Value>, ApiError> {
        let call = Call::get(resource.path_of(reference)).accepting(Projection::Metadata.accept());
        let found = if_found(self.send(call).await)?;
        Ok(found.map(|Reply { mut object, .. }| {
            object::set_kind(&mut object, reference.kind());
            object
        }))
    }

    /// Whether any object of a kind has this label with this value. This asks the API server, because a watch may be behind.
    ///
    /// # Errors
    /// As [`Cluster::get`].
    pub async fn any_has_label(
        &self,
        resource: &Resource,
        label: &str,
        value: &str,
    ) -> Result<bool, ApiError> {
        let selector = escape(&format!("{label}={value}"));
        let path = format!("{}?limit=1&labelSelector={selector}", resource.path(None, None));
        // With its kind every object is gone.
        let page = self.document_of(Call::get(path).accepting(METADATA_OF_ALL)).await?.unwrap_or_default();
        Ok(page["items"].as_array().is_some_and(|items| !items.is_empty()))
    }

    /// Carries out an apply that a pass decided. The reply contains this much of the object as it is afterwards.
    ///
    /// # Errors
    /// Every error of the API server, or that there was no reply; 409 or 422 if the object is not the one that the apply is for.
    pub async fn apply(
        &self,
        resource: &Resource,
        apply: &Apply,
        projection: Projection,
    ) -> Result<Reply, ApiError> {
        let path = resource.path_of(apply.reference());
        let call = Call::apply(&path, apply.manager(), apply.force(), apply.object());
        self.send(call.accepting(projection.accept())).await
    }

    /// Asks what would come of an apply, and has it change nothing: every check of the API server is made, and nothing is stored.
    ///
    /// # Errors
    /// What the API server would say to the apply itself.
    pub async fn try_apply(&self, resource: &Resource, apply: &Apply) -> Result<Value, ApiError> {
        let path = resource.path_of(apply.reference());
        let mut call = Call::apply(&path, apply.manager(), apply.force(), apply.object());
        call.uri.push_str("&dryRun=All");
        Ok(self.send(call).await?.object)
    }

    /// Carries out a claim that a pass decided, and returns the child as it is now.
    ///
    /// # Errors
    /// As [`Cluster::apply`]; 409 or 422 when it has changed since it was read.
    pub async fn claim(&self, resource: &Resource, claim: &Claim) -> Result<Value, ApiError> {
        let path = resource.path_of(claim.reference());
        Ok(self.send(Call::patch(&path, claim.manager(), JSON_PATCH, claim.patch())).await?.object)
    }

    /// Evicts or deletes a Pod, as a pass decided.
    ///
    /// # Errors
    /// As [`Cluster::apply`]; 429 while a PodDisruptionBudget does not allow it, 404 if the Pod is gone.
    pub async fn evict(&self, eviction: &EvictionWrite) -> Result<(), ApiError> {
        let reference = eviction.reference();
        let path = builtin("v1", "Pod", "pods", true).path_of(reference);
        let preconditions = json!({"uid": eviction.uid()});
        let call = match eviction.mode() {
            EvictionMode::Evict => {
                let body = json!({
                    "apiVersion": "policy/v1", "kind": "Eviction",
                    "metadata": {"name": reference.name, "namespace": reference.namespace},
                    "deleteOptions": {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions},
                });
                Call::write(Method::POST, format!("{path}/eviction"), JSON, &body)
            }
            EvictionMode::Delete => {
                let body =
                    json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions});
                Call::write(Method::DELETE, path, JSON, &body)
            }
        };
        self.send(call).await.map(|_| ())
    }

    /// Carries out a deletion that a pass decided. An object that does not exist counts as deleted.
    ///
    /// # Errors
    /// As [`Cluster::apply`].
    pub async fn delete(&self, resource: &Resource, deletion: &Deletion) -> Result<(), ApiError> {
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background",
            "preconditions": {"uid": deletion.uid(), "resourceVersion": deletion.resource_version()},
        });
        let path = resource.path_of(deletion.reference());
        if_found(self.send(Call::write(Method::DELETE, path, JSON, &options)).await).map(|_| ())
    }

    /// Writes a status that a pass decided, and returns the root as it is now.
    ///
    /// # Errors
    /// As [`Cluster::apply`].
    pub async fn write_status(&self, resource: &Resource, write: &StatusWrite) -> Result<Value, ApiError> {
        let path = format!("{}/status", resource.path_of(&object::reference(write.object())));
        Ok(self.send(Call::apply(&path, write.manager(), true, write.object())).await?.object)
    }

    /// Writes the status of one of the host's own resources, if it is still as it was read, and returns its new version. A status is a
    /// memory too: a status that follows from an outdated cache must not replace what was recorded since.
    ///
    /// # Errors
    /// As [`Cluster::apply`]; 409 when it has changed meanwhile.
    pub async fn write_own_status(
        &self,
        resource: &Resource,
        name: &str,
        version: &str,
        status: &Value,
    ) -> Result<String, ApiError> {
        let object = json!({
            "apiVersion": resource.kind.api_version, "kind": resource.kind.kind,
            "metadata": {"name": name, "resourceVersion": version}, "status": status,
        });
        let path = format!("{}/status", resource.path(None, Some(name)));
        let call = Call::apply(&path, OWN_MANAGER, true, &object).accepting(Projection::Metadata.accept());
        Ok(version_of(&self.send(call).await?.object))
    }

    /// Sets or clears the host's finalizers on one of its own resources, if it is still as it was read, and returns its new version.
    ///
    /// # Errors
    /// As [`Cluster::apply`]; 409 or 422 when it has changed meanwhile.
    pub async fn set_finalizers(
        &self,
        resource: &Resource,
        name: &str,
        version: &str,
        finalizers: &[String],
    ) -> Result<String, ApiError> {
        let patch = json!({"metadata": {"resourceVersion": version, "finalizers": finalizers}});
        let object = self.merge(resource.path(None, Some(name)), &patch).await?;
        Ok(version_of(&object))
    }

    /// Merges a patch into one of the host's own objects, and returns it as it is now.
    ///
    /// # Errors
    /// As [`Cluster::apply`]; 409 if the patch names another resourceVersion than the object has.
    pub async fn merge(&self, path: String, patch: &Value) -> Result<Value, ApiError> {
        Ok(self.send(Call::patch(&path, OWN_MANAGER, MERGE_PATCH, patch)).await?.object)
    }

    /// Changes a root's finalizers, if they are still as they were read.
    ///
    /// # Errors
    /// As [`Cluster::apply`]; 422 when they have changed meanwhile.
    pub async fn patch_finalizers(
        &self,
        resource: &Resource,
        write: &FinalizerWrite,
    ) -> Result<Value, ApiError> {
        let path = resource.path_of(write.reference());
        Ok(self.send(Call::patch(&path, OWN_MANAGER, JSON_PATCH, &write.patch())).await?.object)
    }

    /// Creates one of the host's own objects.
    ///
    /// # Errors
    /// As [`Cluster::apply`]; 409 when it exists.
    pub async fn create(&self, resource: &Resource, object: &Value) -> Result<Value, ApiError> {
        let path = resource.path(object::namespace(object), None);
        let call = Call::write(Method::POST, format!("{path}?fieldManager={OWN_MANAGER}"), JSON, object);
        Ok(self.send(call).await?.object)
    }

    /// Makes a request about an object.
    async fn send(&self, call: Call) -> Result<Reply, ApiError> {
        let (status, bytes) = self.ask(call).await?;
        let Reduced(object) = serde_json::from_slice(&bytes).map_err(no_json)?;
        Ok(Reply { object, created: status == StatusCode::CREATED })
    }

    /// Reads what is no object, or an object with all that it has; `None` if it does not exist.
    async fn document_of(&self, call: Call) -> Result<Option<Value>, ApiError> {
        let Some((_, bytes)) = if_found(self.ask(call).await)? else { return Ok(None) };
        serde_json::from_slice(&bytes).map(Some).map_err(no_json)
    }

    /// Makes a request, and reads the answer if it is a success. Every request that is not clearly a read needs the right to write.
    async fn ask(&self, call: Call) -> Result<(StatusCode, bytes::Bytes), ApiError> {
        let (is_read, patience, bytes_max) = (call.method == Method::GET, call.patience, call.bytes_max);
        let request = self.request(call)?;
        let exchange = tokio::time::timeout(patience, async {
            let (parts, body) = self.response(request).await?.into_parts();
            Ok::<_, ApiError>((parts.status, read_reply(body, bytes_max).await?))
        });
        let reply = if is_read { Ok(exchange.await) } else { self.hold.guard(exchange).await };
        match reply {
            Ok(Ok(reply)) => reply.map_err(with_remedy),
            Ok(Err(_)) => Err(too_late(patience)),
            Err(Lapsed::Before) => Err(ApiError::not_leading()),
            Err(Lapsed::During) => Err(no_reply("the lease lapsed before a reply came".into())),
        }
    }

    /// The request of a call, as the account if there is one.
    fn request(&self, call: Call) -> Result<Request<Body>, ApiError> {
        let mut request =
            Request::builder().method(call.method).uri(call.uri).header(header::ACCEPT, call.accept);
        if let Some(account) = &self.account {
            // If the header cannot be made, the request must not be sent as the host's own.
            let user = HeaderValue::try_from(account.user()).map_err(|error| no_reply(error.to_string()))?;
            request = request.header("impersonate-user", user);
        }
        let request = match call.body {
            Some((form, body)) => request.header(header::CONTENT_TYPE, form).body(Body::from(body)),
            None => request.body(Body::empty()),
        };
        let request = request.map_err(|error| no_reply(error.to_string()))?;
        if is_sound(request.uri().path()) { Ok(request) } else { Err(not_sent()) }
    }

    /// The response to a request, if it is a success. Its body is yet to be read.
    async fn response(&self, request: Request<Body>) -> Result<http::Response<Body>, ApiError> {
        let response = self.client.send(request).await.map_err(|error| no_reply(chain(&error)))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let (parts, body) = response.into_parts();
        let retry_after =
            parts.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let bytes = read_reply(body, REPLY_BYTES_MAX).await?;
        Err(refused(parts.status.as_u16(), &bytes, retry_after.map(Duration::from_secs)))
    }
}

/// A request to the API server.
struct Call {
    method: Method,
    uri: String,
    accept: &'static str,
    /// The body, and its form.
    body: Option<(&'static str, Vec<u8>)>,
    /// How long it may take, with its answer.
    patience: Duration,
    /// How long the answer may be, in bytes.
    bytes_max: usize,
}

impl Call {
    fn get(uri: String) -> Self {
        let (patience, bytes_max) = (REQUEST_TIMEOUT, REPLY_BYTES_MAX);
        Self { method: Method::GET, uri, accept: JSON, body: None, patience, bytes_max }
    }

    fn write(method: Method, uri: String, form: &'static str, body: &Value) -> Self {
        // Plain data with string keys: writing it as JSON cannot fail.
        let body = serde_json::to_vec(body).unwrap_or_default();
        Self { method, body: Some((form, body)), ..Self::get(uri) }
    }

    fn patch(path: &str, manager: &str, form: &'static str, patch: &Value) -> Self {
        Self::write(Method::PATCH, format!("{path}?fieldManager={}", escape(manager)), form, patch)
    }

    fn apply(path: &str, manager: &str, force: bool, object: &Value) -> Self {
        let mut call = Self::patch(path, manager, "application/apply-patch+yaml", object);
        call.uri.push_str(&format!("&force={force}"));
        call
    }

    fn accepting(self, accept: &'static str) -> Self {
        Self { accept, ..self }
    }
}

async fn read_reply(body: Body, bytes_max: usize) -> Result<bytes::Bytes, ApiError> {
    let body = http_body_util::Limited::new(body, bytes_max);
    match http_body_util::BodyExt::collect(body).await {
        Ok(read) => Ok(read.to_bytes()),
        Err(error) => Err(no_reply(error.to_string())),
    }
}

/// `None` where there is nothing.
fn if_found<T>(found: Result<T, ApiError>) -> Result<Option<T>, ApiError> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

fn version_of(object: &Value) -> String {
    object::text(object, &["metadata", "resourceVersion"]).unwrap_or_default().to_owned()
}

fn too_late(patience: Duration) -> ApiError {
    no_reply(format!("nothing came within {} s", patience.as_secs()))
}

/// The API server names the missing right to impersonate an account by a verb that is not the one in our roles.
fn with_remedy(mut error: ApiError) -> ApiError {
    if error.code == 403 && error.message.contains("cannot impersonate") {
        error.message.push_str("; apply deploy/namespace/impersonate.yaml in the account's namespace");
    }
    error
}

fn no_json(error: serde_json::Error) -> ApiError {
    no_reply(format!("the reply is no JSON object: {error}"))
}

/// Whether each part of a path is a plain name: a proxy, or the API server, may read `..` or an escaped slash as another path. Names are
/// checked where they come from, and this check keeps any other one from being sent.
fn is_sound(path: &str) -> bool {
    let is_name = |part: &str| {
        let escapes = part.match_indices('%').map(|(at, _)| part.get(at + 1..at + 3).unwrap_or_default());
        !matches!(part, "" | "." | "..") && escapes.into_iter().all(|escape| escape == "3A")
    };
    path.strip_prefix('/').is_some_and(|path| path.split('/').all(is_name))
}

fn not_sent() -> ApiError {
    ApiError {
        code: 400,
        reason: reasons::NAME_INVALID.into(),
        message: "a name is none that an object can have: nothing was sent".into(),
        ..ApiError::default()
    }
}

fn no_reply(message: String) -> ApiError {
    ApiError { message, ..ApiError::default() }
}

/// An error with its causes: hyper's own words rarely say what happened.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// The error in a reply that is not a success; its body usually is a Status.
fn refused(code: u16, body: &[u8], retry_after: Option<Duration>) -> ApiError {
    let status: Value = serde_json::from_slice(body).unwrap_or_default();
    let text =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut message = text(&status, "message");
    if message.is_empty() {
        message = String::from_utf8_lossy(body).chars().take(500).collect();
    }
    let causes = status.pointer("/details/causes").and_then(Value::as_array);
    let causes = causes.into_iter().flatten().map(|cause| Cause {
        field: text(cause, "field"),
        reason: text(cause, "reason"),
        message: text(cause, "message"),
    });
    // For a PodDisruptionBudget it is only in the body.
    let in_body =
        || status.pointer("/details/retryAfterSeconds").and_then(Value::as_u64).map(Duration::from_secs);
    let retry_after = retry_after.or_else(in_body);
    ApiError { code, reason: text(&status, "reason"), message, causes: causes.collect(), retry_after }
        .without_objects()
}

/// Escapes a value for a query: every character that is not clearly harmless.
fn escape(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

/// The kinds of the host itself and of the core group that it uses by name.
pub fn builtin(api_version: &str, kind: &str, plural: &str, namespaced: bool) -> Resource {
    Resource { kind: Kind::new(api_version, kind), plural: plural.into(), namespaced }
}

#[cfg(test)]
mod tests;
