//! [`Status`]: the answer to a request that was refused, in the API server's own words; and [`fault`], what is wrong with a field.

pub mod fault;
mod translate;

use pintle_wit::Cause;
use serde_json::{Map, Value, json};

use super::served::Served;

/// What the API server says to somebody who wrote over what another has written in between.
pub const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// What the API server says of a page whose list is too old.
pub const CONTINUE_EXPIRED: &str = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.";

/// The same where a token tells how the list goes on as it is now.
pub const CONTINUE_ANEW: &str = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/// What the API server says of a watch that begins at a version that is too old.
pub const WATCH_EXPIRED: &str = "The resourceVersion for the provided watch is too old.";

/// The API server's answer when it has no object to answer with: mostly, why a request was refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The HTTP status code. Below 400, the request was carried out.
    pub code: u16,
    /// The machine-readable reason: `NotFound`. Empty for success.
    pub reason: &'static str,
    /// What happened, in words. Empty for success.
    pub message: String,
    /// What it is about.
    pub details: Box<Details>,
}

/// What a [`Status`] is about. What is empty is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// The group.
    pub group: String,
    /// The resource; for an invalid object, its kind.
    pub kind: String,
    /// The name of the object.
    pub name: String,
    /// The uid of the object.
    pub uid: String,
    /// The fields that are at fault.
    pub causes: Vec<Cause>,
    /// The seconds after which the client should ask again.
    pub retry_after_seconds: Option<u32>,
    /// With what a list whose page is too old goes on as it is now. It stands in the metadata.
    pub next: String,
}

/// An action that a review denied.
#[derive(Clone, Copy, Debug)]
pub struct Denied<'a> {
    /// The caller.
    pub user: &'a str,
    /// The verb, as RBAC writes it.
    pub verb: &'a str,
    /// The namespace; none for all of them.
    pub namespace: Option<&'a str>,
    /// The name of the object; empty for a list or a create.
    pub name: &'a str,
    /// What the authorizer said about it, if anything.
    pub why: &'a str,
}

impl Status {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: Box::default() }
    }

    /// With the resource, and the object if it has a name.
    fn about(mut self, served: &Served, name: &str) -> Self {
        self.details.group = served.group().to_owned();
        self.details.kind.clone_from(&served.plural);
        self.details.name = name.to_owned();
        self
    }

    fn caused(mut self, causes: Vec<Cause>) -> Self {
        self.details.causes = causes;
        self
    }

    /// The same, with the seconds after which the client should ask again.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.details.retry_after_seconds = Some(seconds);
        self
    }

    /// 404: there is no such object. Say it only of an object of which the API server says so, or whose name cannot be that of one: the
    /// garbage collector takes it as proof.
    pub fn not_found(served: &Served, name: &str) -> Self {
        let message = format!("{} {name:?} not found", served.qualified());
        Self::new(404, "NotFound", message).about(served, name)
    }

    /// 409: there is such an object.
    pub fn already_exists(served: &Served, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", served.qualified());
        Self::new(409, "AlreadyExists", message).about(served, name)
    }

    /// 409: the object is not in the state that the request expects, and why.
    pub fn conflict(served: &Served, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", served.qualified());
        Self::new(409, "Conflict", message).about(served, name)
    }

    /// 409: somebody has written the object since.
    pub fn modified(served: &Served, name: &str) -> Self {
        Self::conflict(served, name, MODIFIED)
    }

    /// 403, and why. Without a name it is about the resource.
    pub fn forbidden(served: &Served, name: &str, why: &str) -> Self {
        let subject = match name {
            "" => served.qualified(),
            name => format!("{} {name:?}", served.qualified()),
        };
        Self::new(403, "Forbidden", format!("{subject} is forbidden: {why}")).about(served, name)
    }

    /// 403: a review denied it.
    pub fn denied(served: &Served, denied: Denied<'_>) -> Self {
        let Denied { user, verb, namespace, name, why } = denied;
        let place = match namespace {
            Some(namespace) => format!("in the namespace {namespace:?}"),
            None => "at the cluster scope".to_owned(),
        };
        let (resource, group) = (&served.plural, served.group());
        let message =
            format!("User {user:?} cannot {verb} resource {resource:?} in API group {group:?} {place}");
        Self::forbidden(served, name, &explained(&message, why))
    }

    /// 403: a review denied a path that is no resource. As the API server has it, it has no resource in the details.
    pub fn denied_path(user: &str, verb: &str, path: &str, why: &str) -> Self {
        let message = format!("User {user:?} cannot {verb} path {path:?}");
        Self::new(403, "Forbidden", format!("forbidden: {}", explained(&message, why)))
    }

    /// 422: an object of the view is not valid.
    pub fn invalid(served: &Served, name: &str, causes: Vec<Cause>) -> Self {
        Self::invalid_kind(served.group(), &served.kind, name, causes)
    }

    /// 422: the options of a request are not valid: `ListOptions`.
    pub fn invalid_options(kind: &str, causes: Vec<Cause>) -> Self {
        Self::invalid_kind("meta.k8s.io", kind, "", causes)
    }

    fn invalid_kind(group: &str, kind: &str, name: &str, causes: Vec<Cause>) -> Self {
        let mut message = format!("{kind}.{group} {name:?} is invalid");
        if let Some(causes) = fault::listed(&causes) {
            message.push_str(": ");
            message.push_str(&causes);
        }
        let mut status = Self::new(422, "Invalid", message).caused(causes);
        status.details.group = group.to_owned();
        status.details.kind = kind.to_owned();
        status.details.name = name.to_owned();
        status
    }

    /// 400: the request cannot be understood.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 400: what was written cannot be read as an object of the view, and why.
    pub fn undecodable(served: &Served, why: &str) -> Self {
        let Served { kind, api_version, .. } = served;
        let version = api_version.rsplit('/').next().unwrap_or_default();
        Self::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}"))
    }

    /// 422: what a patch makes of an object cannot be read as an object of the view, and why.
    pub fn patch_undecodable(served: &Served, name: &str, why: &str) -> Self {
        let cause =
            Cause { field: "patch".into(), reason: "FieldValueInvalid".into(), message: why.to_owned() };
        Self::invalid(served, name, vec![cause])
    }

    /// 422: a JSON patch has an operation that there is not, and what is wrong with it.
    pub fn no_operation(why: &str) -> Self {
        Self::new(422, "Invalid", format!("error decoding patch: {why}"))
    }

    /// 401: nobody knows who asks.
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// 404: the server has no such path. Never say it of a path of a group: that may be the path of an object.
    pub fn no_such_path() -> Self {
        Self::new(404, "NotFound", "the server has no such path")
    }

    /// 405: the path can only be read.
    pub fn read_only_path() -> Self {
        Self::new(405, "MethodNotAllowed", "the path can only be read")
    }

    /// 405: the resource does not have this verb.
    pub fn method_not_allowed(served: &Served, verb: &str) -> Self {
        let message = format!("{verb} is not supported on resources of kind {:?}", served.qualified());
        Self::new(405, "MethodNotAllowed", message).about(served, "")
    }

    /// 406: the answer cannot be given in any form that the client reads.
    pub fn not_acceptable(accepted: &[&str]) -> Self {
        let accepted = accepted.join(", ");
        Self::new(406, "NotAcceptable", format!("only the following media types are accepted: {accepted}"))
    }

    /// 415: the body has a form that is not read here.
    pub fn unsupported_media_type(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// 415: an object is to be applied by the server, which a view does not do: it keeps nothing, and so not who manages which field.
    pub fn no_server_side_apply() -> Self {
        let message = "server-side apply is not supported by this API: use `kubectl apply --server-side=false`, or apply the object behind \
                       the view";
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// 410: what the client knows is too old, and it must list again. The API server's texts are [`CONTINUE_EXPIRED`] and
    /// [`WATCH_EXPIRED`].
    pub fn expired(message: &str) -> Self {
        Self::new(410, "Expired", message)
    }

    /// 413: the body has more bytes than are read.
    pub fn too_large(bytes_max: usize) -> Self {
        let message = format!("Request entity too large: limit is {bytes_max}");
        Self::new(413, "RequestEntityTooLarge", message)
    }

    /// 413: a JSON patch has more operations than are applied.
    pub fn too_many_operations(count: usize, max: usize) -> Self {
        let message = format!(
            "Request entity too large: The allowed maximum operations in a JSON patch is {max}, got {count}"
        );
        Self::new(413, "RequestEntityTooLarge", message)
    }

    /// 408: the body of the request comes too slowly.
    pub fn too_slow() -> Self {
        Self::new(408, "Timeout", "Timeout: the body of the request was not received in time")
    }

    /// 429: the caller asks too much at a time.
    pub fn too_many_requests(retry_after_seconds: u32) -> Self {
        Self::new(429, "TooManyRequests", "too many requests, please try again later")
            .retry_after(retry_after_seconds)
    }

    /// 500, and why. The reason goes to the client: it names nothing that is private.
    pub fn internal_error(why: &str) -> Self {
        let cause = Cause { message: why.to_owned(), ..Cause::default() };
        Self::new(500, "InternalError", format!("Internal error occurred: {why}")).caused(vec![cause])
    }

    /// 503: it cannot be answered at present. This, and no 404, is the answer about an object of which nobody was asked.
    pub fn unavailable(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        Self::new(503, "ServiceUnavailable", message).retry_after(retry_after_seconds)
    }

    /// 504: it took too long.
    pub fn timeout(message: &str, retry_after_seconds: u32) -> Self {
        Self::new(504, "Timeout", format!("Timeout: {message}")).retry_after(retry_after_seconds)
    }

    /// 504: the client names a version that is not there yet. Clients know it by its cause, and ask again.
    pub fn too_large_version() -> Self {
        let message = "Too large resource version";
        let cause = Cause {
            reason: "ResourceVersionTooLarge".to_owned(),
            message: message.to_owned(),
            ..Cause::default()
        };
        Self::timeout(message, 1).caused(vec![cause])
    }

    /// 200: it is done, and there is no object to show.
    pub fn success(served: &Served, name: &str, uid: &str) -> Self {
        let mut status = Self::new(200, "", "").about(served, name);
        status.details.uid = uid.to_owned();
        status
    }

    /// Whether the request was carried out.
    pub fn is_success(&self) -> bool {
        self.code < 400
    }

    /// The Status as the API server writes it.
    pub fn to_value(&self) -> Value {
        let metadata: Map<String, Value> = present([("continue", self.details.next.as_str())]).collect();
        let mut status = json!({"kind": "Status", "apiVersion": "v1", "metadata": metadata});
        let texts = [("message", self.message.as_str()), ("reason", self.reason)];
        if let Some(fields) = status.as_object_mut() {
            fields.insert("status".into(), if self.is_success() { "Success" } else { "Failure" }.into());
            fields.extend(present(texts));
            let details = self.details.fields();
            if !details.is_empty() {
                fields.insert("details".into(), details.into());
            }
            // As in the API server, success has no code in the body.
            if !self.is_success() {
                fields.insert("code".into(), self.code.into());
            }
        }
        status
    }
}

impl Details {
    fn fields(&self) -> Map<String, Value> {
        let texts =
            [("name", &*self.name), ("group", &*self.group), ("kind", &*self.kind), ("uid", &*self.uid)];
        let mut fields: Map<String, Value> = present(texts).collect();
        if !self.causes.is_empty() {
            let cause = |cause: &Cause| -> Value {
                let texts = [
                    ("reason", cause.reason.as_str()),
                    ("message", cause.message.as_str()),
                    ("field", cause.field.as_str()),
                ];
                present(texts).collect::<Map<_, _>>().into()
            };
            fields.insert("causes".into(), self.causes.iter().map(cause).collect());
        }
        if let Some(seconds) = self.retry_after_seconds {
            fields.insert("retryAfterSeconds".into(), seconds.into());
        }
        fields
    }
}

/// The fields that are not empty.
fn present<'a>(
    fields: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> impl Iterator<Item = (String, Value)> {
    fields.into_iter().filter(|(_, text)| !text.is_empty()).map(|(name, text)| (name.to_owned(), text.into()))
}

/// A text that no browser takes for HTML, with what the authorizer says about it.
fn explained(message: &str, why: &str) -> String {
    let message = message.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    if why.is_empty() { message } else { format!("{message}: {why}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn llamas() -> Served {
        Served {
            api_version: "farm.example.com/v1alpha".into(),
            kind: "Llama".into(),
            plural: "llamas".into(),
            ..Served::default()
        }
    }

    fn said(status: &Status) -> (u16, &str, &str) {
        (status.code, status.reason, &status.message)
    }

    #[test]
    fn a_status_is_written_as_the_api_server_writes_it() {
        assert_eq!(
            Status::not_found(&llamas(), "x").to_value(),
            json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "llamas.farm.example.com \"x\" not found", "reason": "NotFound",
                "details": {"name": "x", "group": "farm.example.com", "kind": "llamas"}, "code": 404,
            })
        );
        assert_eq!(
            Status::success(&llamas(), "x", "u").to_value(),
            json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                "details": {"name": "x", "group": "farm.example.com", "kind": "llamas", "uid": "u"},
            })
        );
        assert_eq!(
            Status::unauthorized().to_value(),
            json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "Unauthorized", "reason": "Unauthorized", "code": 401,
            })
        );
        assert_eq!(
            Status::internal_error("it broke").to_value()["details"],
            json!({"causes": [{"message": "it broke"}]})
        );
        let details = Status::too_large_version().to_value()["details"].clone();
        let cause = json!({"reason": "ResourceVersionTooLarge", "message": "Too large resource version"});
        assert_eq!(details, json!({"causes": [cause], "retryAfterSeconds": 1}));
    }

    #[test]
    fn each_refusal_has_the_code_the_reason_and_the_text_of_the_api_server() {
        let llamas = llamas();
        for (status, expected) in [
            (
                Status::already_exists(&llamas, "x"),
                (409, "AlreadyExists", "llamas.farm.example.com \"x\" already exists"),
            ),
            (
                Status::modified(&llamas, "x"),
                (
                    409,
                    "Conflict",
                    "Operation cannot be fulfilled on llamas.farm.example.com \"x\": the object has been modified; please apply your changes to the latest version and try again",
                ),
            ),
            (
                Status::forbidden(&llamas, "", "no"),
                (403, "Forbidden", "llamas.farm.example.com is forbidden: no"),
            ),
            (Status::bad_request("no"), (400, "BadRequest", "no")),
            (
                Status::method_not_allowed(&llamas, "patch"),
                (
                    405,
                    "MethodNotAllowed",
                    "patch is not supported on resources of kind \"llamas.farm.example.com\"",
                ),
            ),
            (
                Status::not_acceptable(&["application/json"]),
                (406, "NotAcceptable", "only the following media types are accepted: application/json"),
            ),
            (
                Status::unsupported_media_type(&["application/json", "application/yaml"]),
                (
                    415,
                    "UnsupportedMediaType",
                    "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml",
                ),
            ),
            (Status::expired(WATCH_EXPIRED), (410, "Expired", WATCH_EXPIRED)),
            (
                Status::too_large(3 << 20),
                (413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728"),
            ),
            (
                Status::too_many_requests(1),
                (429, "TooManyRequests", "too many requests, please try again later"),
            ),
            (
                Status::too_slow(),
                (408, "Timeout", "Timeout: the body of the request was not received in time"),
            ),
            (Status::unavailable("not yet", 1), (503, "ServiceUnavailable", "not yet")),
            (Status::timeout("too slow", 1), (504, "Timeout", "Timeout: too slow")),
        ] {
            assert_eq!(said(&status), expected);
        }
    }

    #[test]
    fn who_may_not_is_told_what_and_where() {
        let denied = |namespace, name, why| {
            let denied = Denied { user: "u", verb: "list", namespace, name, why };
            Status::denied(&llamas(), denied).message
        };
        assert_eq!(
            denied(Some("default"), "", ""),
            "llamas.farm.example.com is forbidden: User \"u\" cannot list resource \"llamas\" in API group \"farm.example.com\" in the namespace \"default\""
        );
        assert_eq!(
            denied(None, "x", "no rule"),
            "llamas.farm.example.com \"x\" is forbidden: User \"u\" cannot list resource \"llamas\" in API group \"farm.example.com\" at the cluster scope: no rule"
        );
        let path = Status::denied_path("<b>", "get", "/metrics", "");
        assert_eq!(path.message, "forbidden: User \"&lt;b&gt;\" cannot get path \"/metrics\"");
        assert_eq!(*path.details, Details::default());
    }

    #[test]
    fn an_invalid_object_names_its_kind_and_every_fault_once() {
        let faults = vec![fault::required("spec.weight", ""), fault::required("spec.weight", "")];
        let status = Status::invalid(&llamas(), "x", faults.clone());
        assert_eq!(
            said(&status),
            (422, "Invalid", "Llama.farm.example.com \"x\" is invalid: spec.weight: Required value")
        );
        assert_eq!((status.details.kind.as_str(), status.details.causes), ("Llama", faults));
        let two = vec![fault::required("a", ""), fault::forbidden("b", "no")];
        assert_eq!(
            Status::invalid_options("ListOptions", two).message,
            "ListOptions.meta.k8s.io \"\" is invalid: [a: Required value, b: Forbidden: no]"
        );
        assert_eq!(
            Status::invalid(&llamas(), "x", Vec::new()).message,
            "Llama.farm.example.com \"x\" is invalid"
        );
    }
}
