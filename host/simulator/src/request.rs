//! Parses requests: a method, a path and headers become a verb, a kind and an object.

use std::collections::BTreeMap;

use http::{HeaderMap, Method, Uri, header};
use percent_encoding::percent_decode_str;
use pintle_schema::strict;
use serde_json::Value;

use crate::{Failure, access::User, faults::Verb, verbs::REVIEWS};

/// The form of a patch's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchForm {
    Json,
    Merge,
}

/// A request, as far as it can be parsed without knowledge of the kinds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Request {
    pub(crate) verb: Verb,
    pub(crate) path: Path,
    pub(crate) query: BTreeMap<String, String>,
    pub(crate) patch: Option<PatchForm>,
    /// Whether the reply shows only metadata.
    pub(crate) metadata_only: bool,
    /// The user that the client impersonates.
    pub(crate) user: Option<User>,
    pub(crate) user_agent: Option<String>,
    pub(crate) body: Value,
    /// The paths of the fields that the body has twice.
    pub(crate) duplicates: Vec<String>,
}

/// What a path names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Path {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) resource: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
}

impl Request {
    /// # Errors
    /// The error with which the API server, or the simulator, answers at once.
    pub(crate) fn read(
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<Self, Failure> {
        let path = path(uri.path())?;
        let query = query(uri.query().unwrap_or_default());
        let text = |name: &header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        let content = text(&header::CONTENT_TYPE).unwrap_or_default().split(';').next().unwrap_or_default();
        let (verb, patch) = verb(method, &path, &query, content)?;
        let accept = text(&header::ACCEPT).unwrap_or_default();
        if accept.contains("protobuf") && !accept.contains("json") {
            return Err(Failure::not_modelled("protobuf"));
        }
        // A client names the form that it prefers first.
        let first = accept.split(',').next().unwrap_or_default();
        let metadata_only = first.contains("as=PartialObjectMetadata");
        let strict::Parsed { value: body, duplicates } = match body {
            b"" => strict::Parsed { value: Value::Null, duplicates: Vec::new() },
            body => strict::parse(body)
                .map_err(|error| Failure::bad_request(format!("the body is no JSON: {error}")))?,
        };
        let user = impersonated(headers)?;
        let user_agent = text(&header::USER_AGENT).map(Into::into);
        Ok(Self { verb, path, query, patch, metadata_only, user, user_agent, body, duplicates })
    }

    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    pub(crate) fn is_set(&self, name: &str) -> bool {
        matches!(self.parameter(name), Some("true" | "1"))
    }

    /// The version that a list or a watch asks for; 0 for none.
    ///
    /// # Errors
    /// 400 for what is no version.
    pub(crate) fn version(&self) -> Result<u64, Failure> {
        let text = self.parameter("resourceVersion").unwrap_or("0");
        text.parse().map_err(|_| {
            let why = format!("Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax");
            Failure::bad_request(format!("invalid resource version: resourceVersion: {why}"))
        })
    }

    /// Whether nothing is to be stored. A deletion may say so in its body.
    pub(crate) fn is_dry_run(&self) -> bool {
        let options = [&self.body, &self.body["deleteOptions"]];
        let is_in = |options: &&Value| options["dryRun"].as_array().is_some_and(|all| !all.is_empty());
        let has_options = matches!(self.verb, Verb::Delete | Verb::DeleteCollection)
            || self.path.subresource.as_deref() == Some("eviction");
        self.parameter("dryRun").is_some() || has_options && options.iter().any(is_in)
    }

    /// The field manager. Without a name, it is the user agent up to its first slash, as with the API server.
    pub(crate) fn manager(&self) -> String {
        let agent = self.user_agent.as_deref().and_then(|agent| agent.split('/').next());
        self.parameter("fieldManager").or(agent).unwrap_or("unknown").to_owned()
    }
}

fn verb(
    method: &Method,
    path: &Path,
    query: &BTreeMap<String, String>,
    content: &str,
) -> Result<(Verb, Option<PatchForm>), Failure> {
    let on_object = path.name.is_some();
    let watch = matches!(query.get("watch").map(String::as_str), Some("true" | "1"));
    Ok(match method.as_str() {
        "GET" if path.resource.is_empty() => (Verb::Discover, None),
        "GET" if watch => (Verb::Watch, None),
        "GET" if on_object => (Verb::Get, None),
        "GET" => (Verb::List, None),
        "POST" if REVIEWS.iter().any(|review| review.0 == path.group && review.1 == path.resource) => {
            (Verb::Review, None)
        }
        "POST" => (Verb::Create, None),
        "PUT" if on_object => (Verb::Update, None),
        "DELETE" if on_object => (Verb::Delete, None),
        "DELETE" => (Verb::DeleteCollection, None),
        "PATCH" if on_object => match content {
            "application/apply-patch+yaml" => (Verb::Apply, None),
            "application/json-patch+json" => (Verb::Patch, Some(PatchForm::Json)),
            "application/merge-patch+json" => (Verb::Patch, Some(PatchForm::Merge)),
            other => return Err(Failure::not_modelled(&format!("a patch of type {other:?}"))),
        },
        other => return Err(Failure::not_modelled(&format!("{other} of {:?}", path.resource))),
    })
}

/// The user that the headers of a request impersonate.
fn impersonated(headers: &HeaderMap) -> Result<Option<User>, Failure> {
    let texts = |name: &str| {
        let values = headers.get_all(name).into_iter();
        values.filter_map(|value| value.to_str().ok()).map(str::to_owned).collect::<Vec<_>>()
    };
    let mut extra = BTreeMap::new();
    for name in headers.keys() {
        if let Some(key) = name.as_str().strip_prefix("impersonate-extra-") {
            extra.insert(unescape(key), texts(name.as_str()));
        }
    }
    let (groups, uid) = (texts("impersonate-group"), texts("impersonate-uid").pop());
    match texts("impersonate-user").pop() {
        Some(name) => Ok(Some(User { name, uid: uid.unwrap_or_default(), groups, extra })),
        None if groups.is_empty() && uid.is_none() && extra.is_empty() => Ok(None),
        None => {
            Err(Failure::new(500, "InternalError", "groups, a uid or more are impersonated without a user"))
        }
    }
}

fn path(path: &str) -> Result<Path, Failure> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let (group, version, rest) = match parts.as_slice() {
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        ["version", rest @ ..] => ("", "version", rest),
        _ => return Err(Failure::not_modelled(&format!("the path {path}"))),
    };
    let at = |resource: &str, namespace: Option<&str>, name: Option<&str>, subresource: Option<&str>| Path {
        group: group.into(),
        version: version.into(),
        resource: resource.into(),
        namespace: namespace.map(Into::into),
        name: name.map(Into::into),
        subresource: subresource.map(Into::into),
    };
    Ok(match *rest {
        [] => at("", None, None, None),
        ["namespaces", name, sub @ ("status" | "finalize")] => at("namespaces", None, Some(name), Some(sub)),
        ["namespaces", namespace, resource] => at(resource, Some(namespace), None, None),
        ["namespaces", namespace, resource, name] => at(resource, Some(namespace), Some(name), None),
        ["namespaces", namespace, resource, name, sub] => {
            at(resource, Some(namespace), Some(name), Some(sub))
        }
        [resource] => at(resource, None, None, None),
        [resource, name] => at(resource, None, Some(name), None),
        [resource, name, sub] => at(resource, None, Some(name), Some(sub)),
        _ => return Err(Failure::unknown_path()),
    })
}

fn query(text: &str) -> BTreeMap<String, String> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs.map(|(key, value)| (unescape(key), unescape(&value.replace('+', " ")))).collect()
}

fn unescape(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(method: &str, uri: &str) -> Result<Request, Failure> {
        Request::read(&method.parse().unwrap(), &uri.parse().unwrap(), &HeaderMap::new(), b"")
    }

    #[test]
    fn a_path_names_kind_namespace_object_and_subresource() {
        let request = read("GET", "/apis/apps/v1/namespaces/n/deployments/d/status").unwrap();
        let path = request.path;
        assert_eq!(
            (path.group.as_str(), path.version.as_str(), path.resource.as_str()),
            ("apps", "v1", "deployments")
        );
        assert_eq!((path.namespace.as_deref(), path.name.as_deref()), (Some("n"), Some("d")));
        assert_eq!((request.verb, path.subresource.as_deref()), (Verb::Get, Some("status")));
        assert_eq!(read("GET", "/api/v1/namespaces/n").unwrap().path.name.as_deref(), Some("n"));
        assert_eq!(read("GET", "/api/v1/pods?watch=true").unwrap().verb, Verb::Watch);
        assert_eq!(read("GET", "/apis/apps/v1").unwrap().verb, Verb::Discover);
    }

    #[test]
    fn a_query_is_unescaped() {
        let request = read("GET", "/api/v1/pods?labelSelector=a%3Db%2Cc&fieldManager=x+y").unwrap();
        assert_eq!(request.parameter("labelSelector"), Some("a=b,c"));
        assert_eq!(request.manager(), "x y");
    }

    #[test]
    fn a_client_may_act_as_somebody_else() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("impersonate-user", "jane"),
            ("impersonate-group", "a"),
            ("impersonate-group", "b"),
            ("impersonate-extra-example.com%2fscope", "x"),
        ] {
            headers.append(name, value.parse().unwrap());
        }
        let uri: Uri = "/api/v1/pods".parse().unwrap();
        let user = Request::read(&Method::GET, &uri, &headers, b"").unwrap().user.unwrap();
        let extra = BTreeMap::from([("example.com/scope".to_owned(), vec!["x".to_owned()])]);
        let groups = vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(user, User { groups, extra, ..User::named("jane") });
        headers.remove("impersonate-user");
        assert_eq!(Request::read(&Method::GET, &uri, &headers, b"").unwrap_err().code, 500);
    }

    #[test]
    fn what_is_not_modelled_is_501() {
        assert_eq!(read("GET", "/openapi/v3").unwrap_err().code, 501);
        assert_eq!(read("PATCH", "/api/v1/namespaces/n/pods/p").unwrap_err().code, 501);
    }
}
