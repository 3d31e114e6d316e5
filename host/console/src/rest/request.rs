//! [`Asked`]: one request for documents, and how the API server is asked for it.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, Response, Uri, header};
use kube::client::Body;
use pintle_core::view::{
    BackingObject, Source, Verb,
    document::{
        problem::{Doing, Refusal},
        target::Target,
    },
    query::Query,
};
use pintle_schema::strict;
use serde_json::Value;

use super::PARAMETERS;
use crate::{
    app::App,
    caller::{Answer, Ask, Caller, JSON},
    documents::{DocumentView, Shown},
    problem::Problem,
    users::Check,
};

/// The longest query, in bytes.
const QUERY_BYTES_MAX: usize = 32 << 10;

/// One request for documents.
pub(super) struct Asked<'a> {
    /// What serves it.
    pub(super) app: &'a Arc<App>,
    /// Who asks.
    pub(super) caller: &'a Caller,
    /// The view.
    pub(super) view: &'a Arc<DocumentView>,
    /// What of it.
    pub(super) target: &'a Target,
    /// The options.
    pub(super) query: &'a Query,
    /// The headers.
    pub(super) headers: &'a HeaderMap,
}

/// The parameters of a request.
///
/// # Errors
/// 400 for one that there is not.
pub(super) fn query(uri: &Uri) -> Result<Query, Refusal> {
    let raw = uri.query().unwrap_or_default();
    if raw.len() > QUERY_BYTES_MAX {
        return Err(Refusal::bad_request(format!("the query has more than {QUERY_BYTES_MAX} bytes")));
    }
    let pairs: Vec<(String, String)> = form_urlencoded::parse(raw.as_bytes()).into_owned().collect();
    if let Some((name, _)) = pairs.iter().find(|(name, _)| !PARAMETERS.contains(&name.as_str())) {
        let name: String = name.chars().take(64).collect();
        return Err(Refusal::bad_request(format!("the parameter {name:?} is not known here")));
    }
    Ok(Query::new(pairs))
}

impl Asked<'_> {
    /// Whether the View lets this be done.
    ///
    /// # Errors
    /// 405 if it does not.
    pub(super) fn allows(&self, verb: Verb) -> Result<(), Refusal> {
        if !self.view.lens.served.allows(verb) {
            return Err(Refusal::not_allowed(verb.name()));
        }
        Ok(())
    }

    /// The name of the document that is asked for.
    pub(super) fn name(&self) -> &str {
        self.target.name.as_deref().unwrap_or_default()
    }

    /// The namespace of one document; none where the backing kind has none.
    pub(super) fn namespace(&self) -> Option<&str> {
        self.view.lens.served.backing.namespaced.then(|| self.target.namespace_of_one())
    }

    /// The namespace of a list; none for all of them.
    pub(super) fn namespace_of_all(&self) -> Option<&str> {
        self.target.namespace.as_deref().filter(|_| self.view.lens.served.backing.namespaced)
    }

    /// The path of the backing object that is asked for.
    ///
    /// # Errors
    /// 404 for a name that no object of the view has.
    pub(super) fn backing_path(&self, doing: Doing) -> Result<String, Refusal> {
        let lens = &self.view.lens;
        let name = lens.names.backing(self.name()).ok_or_else(|| self.not_found(doing))?;
        Ok(lens.served.backing.path(self.namespace(), Some(name)))
    }

    /// 404.
    pub(super) fn not_found(&self, doing: Doing) -> Refusal {
        let message = format!("{} {:?} not found", self.view.lens.served.plural, self.name());
        Refusal::of_answer(doing, 404, None, &serde_json::json!({"reason": "NotFound", "message": message}))
    }

    /// Asks the API server, and returns its answer as soon as it begins, if it does what was asked.
    ///
    /// # Errors
    /// Why it does not.
    pub(super) async fn begin(&self, doing: Doing, ask: Ask) -> Result<Response<Body>, Problem> {
        let response = self.caller.begin(ask).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(refused(doing, &self.caller.whole(response).await?).into())
    }

    /// Asks the API server, and reads its answer if it did what was asked.
    ///
    /// # Errors
    /// Why it did not.
    pub(super) async fn ask(&self, doing: Doing, ask: Ask) -> Result<Bytes, Problem> {
        Ok(self.caller.whole(self.begin(doing, ask).await?).await?.body)
    }

    /// Whether the caller may do this to the backing object, or to the kind: what a guest must not be asked by those who may not.
    ///
    /// # Errors
    /// 403 if it may not.
    pub(super) async fn may(
        &self,
        doing: Doing,
        verb: Verb,
        namespace: Option<&str>,
        name: Option<&str>,
    ) -> Result<(), Problem> {
        let backing = &self.view.lens.served.backing;
        let group = backing.api_version.split_once('/').map(|(group, _)| group).unwrap_or_default();
        let check = Check {
            verb: verb.name().into(),
            group: group.into(),
            resource: backing.plural.clone(),
            subresource: None,
            namespace: namespace.map(Into::into),
            name: name.map(Into::into),
        };
        if !self.app.users.may(self.caller, &check).await? {
            return Err(forbidden(doing, self.caller.name(), &check).into());
        }
        Ok(())
    }

    /// The backing object that is asked for.
    ///
    /// # Errors
    /// 404 if there is none that the view shows.
    pub(super) async fn current(&self, doing: Doing) -> Result<BackingObject, Problem> {
        let body = self.ask(doing, Ask::get(self.backing_path(doing)?)).await?;
        let object = self.object(doing, &body, Source::Stored)?;
        if !self.view.lens.selects(&object) {
            return Err(self.not_found(doing).into());
        }
        Ok(object)
    }

    /// An object in an answer.
    ///
    /// # Errors
    /// 502 when it is none.
    pub(super) fn object(&self, doing: Doing, body: &[u8], source: Source) -> Result<BackingObject, Refusal> {
        let unreadable = |_| Refusal::bad_gateway(doing, "the answer of the API server cannot be read");
        self.view.cut.read(body, source).map_err(unreadable)
    }

    /// The document that is shown of an object, as JSON.
    ///
    /// # Errors
    /// 500 when it cannot be shown.
    pub(super) async fn shown(&self, object: &BackingObject) -> Result<String, Refusal> {
        let shown = self.show(object).await?;
        self.document(object, &shown)
    }

    /// What its guest shows of an object.
    ///
    /// # Errors
    /// When the guest cannot be called.
    pub(super) async fn show(&self, object: &BackingObject) -> Result<Shown, Refusal> {
        let shown = self.view.guest.show(&self.view.lens, std::slice::from_ref(object)).await?;
        shown.into_iter().next().ok_or_else(|| Refusal::guest_failed("it showed nothing"))
    }

    /// The document of an object of which this is shown, as JSON.
    ///
    /// # Errors
    /// 500 when it cannot be shown.
    pub(super) fn document(&self, object: &BackingObject, shown: &Shown) -> Result<String, Refusal> {
        let lens = &self.view.lens;
        match shown {
            Shown::Fields(fields) => Ok(lens.document_json(object, fields)),
            Shown::Failed(failure) => {
                Err(cannot_be_shown(&[(lens.names.shown(object.name()), failure.message.clone())]))
            }
        }
    }

    /// The version that the header `If-Match` names: none without one, and the empty one if any will do.
    ///
    /// # Errors
    /// 400 for what is no version.
    pub(super) fn if_match(&self) -> Result<Option<String>, Refusal> {
        let Some(value) = self.headers.get(header::IF_MATCH) else { return Ok(None) };
        let text = value.to_str().unwrap_or_default().trim();
        if text == "*" {
            return Ok(Some(String::new()));
        }
        let version = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or_default();
        if version.is_empty() || !version.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(Refusal::bad_request("If-Match is the ETag of the document, as it was read"));
        }
        Ok(Some(version.to_owned()))
    }
}

/// 403, in the words of the API server.
fn forbidden(doing: Doing, user: &str, check: &Check) -> Refusal {
    let Check { verb, group, resource, namespace, name, .. } = check;
    let kind = if group.is_empty() { resource.clone() } else { format!("{resource}.{group}") };
    let user = if user.is_empty() { String::new() } else { format!("User {user:?} ") };
    let of = name.as_ref().map(|name| format!(" {name:?}")).unwrap_or_default();
    let within = match namespace {
        Some(namespace) => format!("in the namespace {namespace:?}"),
        None => "at the cluster scope".to_owned(),
    };
    let message = format!(
        "{kind}{of} is forbidden: {user}cannot {verb} resource {resource:?} in API group {group:?} {within}"
    );
    Refusal::of_answer(doing, 403, None, &serde_json::json!({"reason": "Forbidden", "message": message}))
}

/// What the API server refused.
pub(super) fn refused(doing: Doing, answer: &Answer) -> Refusal {
    let retry_after =
        answer.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let status: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    Refusal::of_answer(doing, answer.code.as_u16(), retry_after, &status)
}

/// Which objects cannot be shown, and why: the first ten.
pub(super) fn cannot_be_shown(failing: &[(String, String)]) -> Refusal {
    let named = failing.iter().take(10).map(|(name, why)| format!("{name}: {why}"));
    let mut named = named.collect::<Vec<_>>().join("; ");
    if failing.len() > 10 {
        named.push_str(&format!("; and {} more", failing.len() - 10));
    }
    Refusal::guest_failed(&format!("not everything can be shown: {named}"))
}

/// A request to the API server with these parameters.
pub(super) fn ask(method: Method, path: String, pairs: Vec<(String, String)>) -> Ask {
    let query = pairs.into_iter().map(|(name, value)| (name.into(), value)).collect();
    Ask { method, path, query, accept: JSON, body: None }
}

/// The body of a request as JSON.
///
/// # Errors
/// 400 when it cannot be read. Numbers are read as the API server reads them, and one that cannot be is named by its field.
pub(super) fn json_of(body: &[u8]) -> Result<Value, Refusal> {
    let parsed = strict::parse(body).map_err(|unreadable| {
        if unreadable.path.is_empty() {
            return Refusal::unreadable();
        }
        Refusal::bad_request(format!("Could not read entity: {unreadable}"))
    });
    Ok(parsed?.value)
}
