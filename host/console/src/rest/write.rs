//! Creates, replacements, patches and deletions.
//!
//! What was written is pruned, filled in and validated by the view's schema, before its guest judges it; and only then the API server is
//! asked, which judges the backing object as it would one from kubectl.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, Method, StatusCode, header};
use pintle_core::{
    object,
    view::{
        BackingObject, Source, Verb,
        document::{
            problem::{Doing, Refusal},
            shape::{Secrets, Written},
        },
        query::{Write as Options, WriteOptions, pinned},
        status::fault,
        version::Sent,
    },
};
use pintle_kubernetes::Backoff;
use serde_json::{Map, Value, json};

use super::{
    document,
    request::{Asked, ask, json_of, refused},
};
use crate::{
    caller::{Ask, JSON},
    documents::Shown,
    endpoint::{MERGE_PATCH, form_of},
    problem::Problem,
};

/// Creates a document.
pub(super) async fn create(asked: &Asked<'_>, body: &[u8]) -> Result<Response, Problem> {
    let lens = &asked.view.lens;
    has_form(asked, JSON)?;
    let options = options(asked, Options::Create, Doing::Create)?;
    let mut written = Written::read(json_of(body)?, &lens.served.schema)?;
    let namespace = namespace(asked, &written)?;
    asked.may(Doing::Create, Verb::Create, in_namespace(asked, &namespace), None).await?;
    let Some(name) = written.name.clone() else {
        return Err(Refusal::invalid(vec![fault::required("metadata.name", "name is required")]).into());
    };
    let secrets = written.secrets(&lens.served);
    let judged = judge(asked, &mut written, None, None, &options).await;
    let (stored, warnings) = judged.map_err(|refusal| refusal.without_secrets(&secrets))?;
    let object = lens.create_document(&name, &namespace, &stored)?;
    let path = lens.served.backing.path(in_namespace(asked, &namespace), None);
    let object = send(asked, Method::POST, path, &object, &options, &secrets).await?;
    let mut response = done(asked, StatusCode::OK, &object, warnings).await;
    let shown = lens.names.shown(object.name());
    let mut location = format!("/{}/{shown}", lens.served.rest);
    if lens.served.backing.namespaced {
        location.push_str(&format!("?namespace={namespace}"));
    }
    if let Ok(location) = HeaderValue::from_str(&location) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

/// Replaces a document.
pub(super) async fn replace(asked: &Asked<'_>, body: &[u8]) -> Result<Response, Problem> {
    let lens = &asked.view.lens;
    has_form(asked, JSON)?;
    let options = options(asked, Options::Update, Doing::Update)?;
    let written = Written::read(json_of(body)?, &lens.served.schema)?;
    same_place(asked, &written)?;
    let known = known_version(asked, &written)?.ok_or_else(Refusal::version_needed)?;
    may_update(asked).await?;
    let mut backoff = Backoff::of_write();
    loop {
        let current = asked.current(Doing::Update).await?;
        known.is(&current)?;
        let before = before(asked, &current).await?;
        match update(asked, &current, before, written.clone(), &options).await {
            // Somebody else was faster. The request as a whole has a deadline.
            Err(conflict) if conflict.status == StatusCode::CONFLICT && known == Known::Any => {
                backoff.pause().await;
            }
            done => return done,
        }
    }
}

/// Changes some fields of a document.
pub(super) async fn patch(asked: &Asked<'_>, body: &[u8]) -> Result<Response, Problem> {
    let lens = &asked.view.lens;
    has_form(asked, MERGE_PATCH)?;
    let options = options(asked, Options::Patch, Doing::Update)?;
    let patch = json_of(body)?;
    may_update(asked).await?;
    let mut backoff = Backoff::of_write();
    loop {
        let current = asked.current(Doing::Update).await?;
        let shown = read(&asked.shown(&current).await?)?;
        let before = Written::read(shown.clone(), &lens.served.schema)?.fields;
        let written = Written::patched(shown, &patch, &lens.served.schema)?;
        same_place(asked, &written)?;
        let known = known_version(asked, &written)?;
        if let Some(known) = &known {
            known.is(&current)?;
        }
        match update(asked, &current, Some(before), written, &options).await {
            Err(conflict)
                if conflict.status == StatusCode::CONFLICT && matches!(known, None | Some(Known::Any)) =>
            {
                backoff.pause().await;
            }
            done => return done,
        }
    }
}

/// Deletes a document.
pub(super) async fn delete(asked: &Asked<'_>) -> Result<Response, Problem> {
    let lens = &asked.view.lens;
    let options = options(asked, Options::Update, Doing::Delete)?;
    let of_query = asked.query.first("resourceVersion").unwrap_or_default().to_owned();
    let known = known_version(asked, &Written { version: of_query, ..Written::default() })?;
    let mut body = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
    match &known {
        Some(Known::At(version)) => body["preconditions"] = json!({"resourceVersion": version}),
        Some(Known::Past) => return Err(Refusal::modified(Doing::Delete).into()),
        Some(Known::Any) | None => {}
    }
    if options.dry_run {
        body["dryRun"] = json!(["All"]);
    }
    match asked.query.first("propagationPolicy").unwrap_or_default() {
        "" => {}
        policy @ ("Foreground" | "Background" | "Orphan") => body["propagationPolicy"] = policy.into(),
        _ => {
            let message = "the parameter propagationPolicy is Foreground, Background or Orphan";
            return Err(Refusal::bad_request(message).into());
        }
    }
    let path = asked.backing_path(Doing::Delete)?;
    let mut backoff = Backoff::of_write();
    // The request as a whole has a deadline.
    let answer = loop {
        // A selector does not bound what is asked for by name: the API server must delete the object as it is seen here, and no other.
        let (body, is_pinned_here) = if lens.served.selector.is_empty() {
            (body.clone(), false)
        } else {
            pinned(&body, &asked.current(Doing::Delete).await?)
        };
        match asked.ask(Doing::Delete, Ask::json(Method::DELETE, path.clone(), &body)).await {
            Err(changed) if changed.status == StatusCode::CONFLICT && is_pinned_here => backoff.pause().await,
            answer => break answer?,
        }
    };
    let kind = serde_json::from_slice::<Value>(&answer).unwrap_or_default();
    if kind.get("kind").and_then(Value::as_str) != Some(lens.served.backing.kind.as_str()) {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    // Somebody's finalizer holds it: it is being deleted, and still there.
    let object = asked.object(Doing::Delete, &answer, Source::Elsewhere)?;
    Ok(done(asked, StatusCode::ACCEPTED, &object, Vec::new()).await)
}

/// Whether the caller may write what becomes of the document that is asked for.
///
/// # Errors
/// 403 if it may not, 404 if no object of the view has this name.
async fn may_update(asked: &Asked<'_>) -> Result<(), Problem> {
    let name = asked.view.lens.names.backing(asked.name()).ok_or_else(|| asked.not_found(Doing::Update))?;
    // Whatever the method is: a merge patch is sent.
    asked.may(Doing::Update, Verb::Patch, asked.namespace(), Some(name)).await
}

/// The fields of a document before it is replaced. One that cannot be shown can be repaired, unless a rule compares the two.
async fn before(asked: &Asked<'_>, current: &BackingObject) -> Result<Option<Value>, Refusal> {
    let shown = asked.show(current).await?;
    if matches!(shown, Shown::Failed(_)) && !asked.view.schema.has_transition_rules() {
        return Ok(None);
    }
    let document = read(&asked.document(current, &shown)?)?;
    Ok(Some(Written::read(document, &asked.view.lens.served.schema)?.fields))
}

fn read(shown: &str) -> Result<Value, Refusal> {
    serde_json::from_str(shown).map_err(|_| Refusal::guest_failed("what it shows cannot be read"))
}

/// Writes what becomes of a document. `before` are its fields as they are shown.
async fn update(
    asked: &Asked<'_>,
    current: &BackingObject,
    before: Option<Value>,
    mut written: Written,
    options: &WriteOptions,
) -> Result<Response, Problem> {
    let lens = &asked.view.lens;
    let secrets = written.secrets(&lens.served);
    let judged = judge(asked, &mut written, Some(current), before, options).await;
    let (stored, warnings) = judged.map_err(|refusal| refusal.without_secrets(&secrets))?;
    let change = lens.update_document(current, &stored)?;
    let path = lens.served.backing.path(asked.namespace(), Some(current.name()));
    let object = send(asked, Method::PATCH, path, &change, options, &secrets).await?;
    Ok(done(asked, StatusCode::OK, &object, warnings).await)
}

/// The answer to a write that was carried out. That it cannot be shown is no reason to say that it failed: what the host knows of the document
/// is shown then, with a warning.
async fn done(
    asked: &Asked<'_>,
    code: StatusCode,
    object: &BackingObject,
    mut warnings: Vec<String>,
) -> Response {
    let lens = &asked.view.lens;
    let text = asked.shown(object).await.unwrap_or_else(|refusal| {
        warnings.push(format!("it is written, and cannot be shown: {}", refusal.details));
        lens.document_json(object, "{}")
    });
    let mut response = document(code, text, &lens.epoch.shown(object.version()));
    for warning in warnings {
        let text: String =
            warning.chars().filter(|letter| letter.is_ascii_graphic() || *letter == ' ').collect();
        let quoted = text.replace(['\\', '"'], "'");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
    response
}

/// Prunes, fills in and validates what was written, and asks the guest what becomes of it. Returns that, and what the client is to be warned
/// of.
async fn judge(
    asked: &Asked<'_>,
    written: &mut Written,
    current: Option<&BackingObject>,
    mut before: Option<Value>,
    options: &WriteOptions,
) -> Result<(Map<String, Value>, Vec<String>), Refusal> {
    let view = asked.view;
    let unknown = view.schema.prune(&mut written.fields);
    let warnings = options.field_validation.judge(&[], &unknown).map_err(Refusal::bad_request)?;
    // The API server compares with an object that has its defaults.
    let causes = match before.as_mut().map_or(Ok(()), |before| view.schema.default(before)) {
        Ok(()) => view.schema.admit(Vec::new(), &mut written.fields, before.as_ref()),
        Err(cause) => vec![cause],
    };
    if !causes.is_empty() {
        return Err(Refusal::invalid(view.lens.served.as_kubernetes_says(causes)));
    }
    Ok((view.guest.store(&view.lens, &written.fields, current).await?, warnings))
}

/// Sends a create, or a merge patch, and returns what is stored then.
async fn send(
    asked: &Asked<'_>,
    method: Method,
    path: String,
    body: &Value,
    options: &WriteOptions,
    secrets: &Secrets,
) -> Result<BackingObject, Problem> {
    let is_create = method == Method::POST;
    let (doing, form) = if is_create { (Doing::Create, JSON) } else { (Doing::Update, MERGE_PATCH) };
    let agent = asked.headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok());
    let body = Some((form, body.to_string().into_bytes()));
    let sent = Ask { body, ..ask(method, path, options.backing(agent)) };
    let answer = asked.caller.whole(asked.caller.begin(sent).await?).await?;
    if !answer.code.is_success() {
        return Err(refused(doing, &answer).without_secrets(secrets).into());
    }
    Ok(asked.object(doing, &answer.body, Source::Elsewhere)?)
}

fn options(asked: &Asked<'_>, write: Options, doing: Doing) -> Result<WriteOptions, Refusal> {
    WriteOptions::read(asked.query, write).map_err(|status| Refusal::of_status(doing, &status))
}

fn has_form(asked: &Asked<'_>, form: &'static str) -> Result<(), Refusal> {
    if form_of(asked.headers) != form {
        return Err(Refusal::unsupported(form));
    }
    Ok(())
}

/// The namespace in which a document is to be created.
fn namespace(asked: &Asked<'_>, written: &Written) -> Result<String, Refusal> {
    let namespace = match (&asked.target.namespace, &written.namespace) {
        (Some(asked), Some(written)) if asked != written => return Err(elsewhere()),
        (Some(namespace), _) | (None, Some(namespace)) => namespace.clone(),
        (None, None) => asked.target.namespace_of_one().to_owned(),
    };
    // It becomes a part of a path.
    if !object::is_namespace(&namespace) {
        return Err(Refusal::bad_request("the namespace of the document can be no name of one"));
    }
    Ok(namespace)
}

fn in_namespace<'a>(asked: &Asked<'_>, namespace: &'a str) -> Option<&'a str> {
    asked.view.lens.served.backing.namespaced.then_some(namespace)
}

fn elsewhere() -> Refusal {
    Refusal::bad_request("the namespace of the document is not the one that is asked for")
}

/// A document must be the one that the path names.
fn same_place(asked: &Asked<'_>, written: &Written) -> Result<(), Refusal> {
    if written.name.as_deref().is_some_and(|name| name != asked.name()) {
        return Err(Refusal::bad_request("the name of the document is not the one in the path"));
    }
    match written.namespace.as_deref() {
        Some(namespace) if asked.namespace() != Some(namespace) => Err(elsewhere()),
        _ => Ok(()),
    }
}

/// The version that whoever writes knows.
#[derive(Debug, PartialEq)]
enum Known {
    /// Whatever there is.
    Any,
    /// This version of the backing object.
    At(String),
    /// None that there is: it was shown by another lens, or never.
    Past,
}

impl Known {
    fn is(&self, current: &BackingObject) -> Result<(), Refusal> {
        match self {
            Self::Any => Ok(()),
            Self::At(version) if version == current.version() => Ok(()),
            Self::At(_) | Self::Past => Err(Refusal::modified(Doing::Update)),
        }
    }
}

/// The version that the header or the document names.
fn known_version(asked: &Asked<'_>, written: &Written) -> Result<Option<Known>, Refusal> {
    let version = match asked.if_match()? {
        Some(any) if any.is_empty() => return Ok(Some(Known::Any)),
        Some(header) if !written.version.is_empty() && header != written.version => {
            return Err(Refusal::bad_request("If-Match and the document name different versions"));
        }
        Some(header) => header,
        None => written.version.clone(),
    };
    let sent = Sent::read(&version)
        .map_err(|_| Refusal::bad_request("resourceVersion must be one that was shown"))?;
    Ok(match sent {
        Sent::Unset | Sent::Any => None,
        Sent::At { backing, epoch } if epoch == asked.view.lens.epoch => Some(Known::At(backing)),
        Sent::At { .. } | Sent::Foreign => Some(Known::Past),
    })
}
