//! What the API server says of a backing object, said of the object that is shown.
//!
//! Messages name the resource, uids and versions of the backing kind, so that none is passed on as it is: each is built again by its
//! reason. Under [`Access::View`] the backing kind is private, and nothing is said of it at all.

use serde_json::Value;

use super::{CONTINUE_ANEW, CONTINUE_EXPIRED, Cause, MODIFIED, Status, WATCH_EXPIRED};
use crate::view::{
    query::shown_continue,
    served::{Access, Lens, Verb},
};

/// The seconds after which it is worth asking again, unless the API server says otherwise.
const RETRY_SECONDS: u32 = 1;

/// What is said instead of what the API server says of a private backing kind.
const NOT_STORED: &str = "the backing object cannot be stored like this";
const NOT_ALLOWED: &str = "the API server does not allow this on the backing object";
const NOT_DONE: &str = "the API server could not do this on the backing object";

/// What the API server reads in answer to a request to the backing kind.
struct Said<'a> {
    lens: &'a Lens,
    status: &'a Value,
    code: u16,
    message: &'a str,
    /// The name that is shown of the object that it is about; empty if it is about none.
    name: String,
}

impl Status {
    /// The Status of a request to the backing kind, as the answer to the request to the view. `http_code` is that of the reply: a body
    /// that is no Status has no code of its own.
    ///
    /// A 404 stays one only if it is about an object of the backing kind, or says that a namespace is missing. Any other one, for instance
    /// of a backing kind that is not served, is no proof that the object is gone, and becomes a 503. So does a 401: it is the gateway that
    /// was not known.
    pub fn translate(lens: &Lens, http_code: u16, status: &Value) -> Self {
        let said = Said::new(lens, http_code, status);
        if status["status"] == "Success" || said.code < 400 {
            let uid = status["details"]["uid"].as_str().map(|uid| lens.mask.map(uid));
            return Self::success(&lens.served, &said.name, &uid.unwrap_or_default());
        }
        let translated = said.translated();
        match said.retry_after() {
            Some(seconds) => translated.retry_after(seconds),
            None => translated,
        }
    }
}

impl<'a> Said<'a> {
    fn new(lens: &'a Lens, http_code: u16, status: &'a Value) -> Self {
        let code = status["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(http_code);
        let name = status["details"]["name"].as_str().unwrap_or_default();
        let name = if name.is_empty() { String::new() } else { lens.names.shown(name) };
        Self { lens, status, code, message: status["message"].as_str().unwrap_or_default(), name }
    }

    fn detail(&self, field: &str) -> &'a str {
        self.status["details"][field].as_str().unwrap_or_default()
    }

    fn retry_after(&self) -> Option<u32> {
        self.status["details"]["retryAfterSeconds"].as_u64().and_then(|seconds| u32::try_from(seconds).ok())
    }

    fn is_private(&self) -> bool {
        self.lens.access == Access::View
    }

    /// What the API server says, or this if the backing kind is private.
    fn unless_private(&self, text: &'a str, instead: &'a str) -> &'a str {
        if self.is_private() || text.is_empty() { instead } else { text }
    }

    /// What a message says about its object: what stands behind the name of the resource and of the object.
    fn behind(&self, mark: &str) -> &'a str {
        self.message.split_once(mark).map_or(self.message, |(_, rest)| rest)
    }

    /// Whether it is about a label selector, which a client has written.
    fn is_about_selector(&self) -> bool {
        ["unable to parse requirement: ", "found '"].iter().any(|begin| self.message.starts_with(begin))
    }

    /// Whether it is about the backing kind, or one object of it.
    fn is_about_backing(&self) -> bool {
        let backing = &self.lens.served.backing;
        let group = backing.api_version.split_once('/').map_or("", |(group, _)| group);
        self.detail("kind") == backing.plural && self.detail("group") == group
    }

    fn causes(&self) -> Vec<Cause> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let causes = self.status["details"]["causes"].as_array().into_iter().flatten();
        causes
            .map(|cause| Cause {
                field: text(&cause["field"]),
                reason: text(&cause["reason"]),
                message: text(&cause["message"]),
            })
            .collect()
    }

    fn translated(&self) -> Status {
        let (served, name) = (&self.lens.served, self.name.as_str());
        match self.status["reason"].as_str().unwrap_or_default() {
            "NotFound" => self.not_found(),
            "AlreadyExists" => self.already_exists(),
            "Conflict" => Status::conflict(served, name, &self.conflict()),
            "Forbidden" => self.forbidden(),
            "Invalid" => self.invalid(),
            "BadRequest" if self.is_about_selector() => Status::bad_request(self.message),
            "BadRequest" => Status::bad_request(self.unless_private(self.message, NOT_STORED)),
            "MethodNotAllowed" => self.method_not_allowed(),
            "Expired" | "Gone" => self.expired(),
            "RequestEntityTooLarge" => {
                let message = self.unless_private(self.message, "Request entity too large");
                Status::new(413, "RequestEntityTooLarge", message)
            }
            "TooManyRequests" => Status::too_many_requests(RETRY_SECONDS),
            "Timeout" => match self.causes().iter().any(|cause| cause.reason == "ResourceVersionTooLarge") {
                true => Status::too_large_version(),
                false => Status::timeout(
                    self.unless_private(self.behind("Timeout: "), NOT_DONE),
                    self.retry_after().unwrap_or(RETRY_SECONDS),
                ),
            },
            "ServerTimeout" => self.server_timeout(),
            "ServiceUnavailable" | "Unauthorized" => self.unavailable(),
            _ => self.by_code(),
        }
    }

    /// The answer to what has no reason that is known: a proxy or a load balancer said it.
    fn by_code(&self) -> Status {
        match self.code {
            429 => Status::too_many_requests(RETRY_SECONDS),
            401 | 404 | 502 | 503 => self.unavailable(),
            504 => Status::timeout(NOT_DONE, RETRY_SECONDS),
            _ => {
                let why = self.behind("Internal error occurred: ");
                Status::internal_error(self.unless_private(why, NOT_DONE))
            }
        }
    }

    fn not_found(&self) -> Status {
        if self.is_about_backing() && !self.name.is_empty() {
            return Status::not_found(&self.lens.served, &self.name);
        }
        let namespace = self.detail("name");
        if self.detail("kind") == "namespaces" && self.detail("group").is_empty() && !namespace.is_empty() {
            let mut status = Status::new(404, "NotFound", format!("namespaces {namespace:?} not found"));
            status.details.kind = "namespaces".to_owned();
            status.details.name = namespace.to_owned();
            return status;
        }
        self.unavailable()
    }

    fn method_not_allowed(&self) -> Status {
        let first = self.message.split(' ').next().unwrap_or_default();
        let verb = Verb::ALL.into_iter().map(Verb::name).find(|verb| *verb == first);
        Status::method_not_allowed(&self.lens.served, verb.unwrap_or("this request"))
    }

    fn already_exists(&self) -> Status {
        const GENERATED: &str = ", the server was not able to generate a unique name for the object";
        const DELETING: &str = "object is being deleted: ";
        let mut status = Status::already_exists(&self.lens.served, &self.name);
        if self.message.ends_with(GENERATED) {
            status.message.push_str(GENERATED);
        }
        if self.message.starts_with(DELETING) {
            status.message.insert_str(0, DELETING);
        }
        status
    }

    /// Why there is a conflict. What a precondition says of uids and versions is mapped.
    fn conflict(&self) -> String {
        let (mask, epoch) = (&self.lens.mask, self.lens.epoch);
        let uid = |uid: &str| mask.map(uid);
        let version = |version: &str| epoch.shown(version);
        for (what, map) in [("UID", &uid as &dyn Fn(&str) -> String), ("ResourceVersion", &version)] {
            let (first, second) = (
                format!("Precondition failed: {what} in precondition: "),
                format!(", {what} in object meta: "),
            );
            let found = self.message.split_once(&first).and_then(|(_, rest)| rest.split_once(&second));
            if let Some((expected, found)) = found {
                return format!("{first}{}{second}{}", map(expected), map(found));
            }
        }
        // What stands behind the name; a key of the store is nobody's business.
        let why = self.behind("\": ");
        if why.contains("StorageError") {
            MODIFIED.to_owned()
        } else {
            self.unless_private(why, MODIFIED).to_owned()
        }
    }

    fn forbidden(&self) -> Status {
        let why = self.behind(" is forbidden: ");
        let terminating: Vec<Cause> =
            self.causes().into_iter().filter(|cause| cause.reason == "NamespaceTerminating").collect();
        // Namespaces are no secret: clients wait for one that goes away.
        let why = if terminating.is_empty() { self.unless_private(why, NOT_ALLOWED) } else { why };
        let causes = if self.is_private() { terminating } else { self.causes() };
        Status::forbidden(&self.lens.served, &self.name, why).caused(causes)
    }

    fn invalid(&self) -> Status {
        let served = &self.lens.served;
        let causes = if self.is_private() { Vec::new() } else { self.causes() };
        let mut status = Status::invalid(served, &self.name, causes);
        if status.details.causes.is_empty() {
            let why = self.unless_private(self.behind(" is invalid: "), NOT_STORED);
            status.message = format!("{}: {why}", status.message);
            // kubectl prints the causes of a refusal, and nothing else of it.
            let cause = Cause { message: why.to_owned(), ..Cause::default() };
            status.details.causes.push(cause);
        }
        status
    }

    /// Where a page is too old, the API server says with which token the list goes on as it is now.
    fn expired(&self) -> Status {
        if !self.message.contains("continue") {
            return Status::expired(WATCH_EXPIRED);
        }
        match self.status["metadata"]["continue"].as_str().unwrap_or_default() {
            "" => Status::expired(CONTINUE_EXPIRED),
            token => {
                let mut status = Status::expired(CONTINUE_ANEW);
                status.details.next = shown_continue(self.lens.epoch, token);
                status
            }
        }
    }

    fn server_timeout(&self) -> Status {
        let operation = self.detail("name");
        let resource = self.lens.served.qualified();
        let message = format!(
            "The {operation} operation against {resource} could not be completed at this time, please try again."
        );
        Status::new(500, "ServerTimeout", message)
            .about(&self.lens.served, operation)
            .retry_after(RETRY_SECONDS)
    }

    fn unavailable(&self) -> Status {
        Status::unavailable("the objects behind this view cannot be reached at present", RETRY_SECONDS)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::view::{
        served::{Backing, Served},
        version::Epoch,
    };

    const UID: &str = "6f9619ff-8b86-4011-b42d-00c04fc964ff";

    fn lens(access: Access) -> Lens {
        let served = Served {
            api_version: "farm.example.com/v1alpha".into(),
            kind: "FarmPod".into(),
            plural: "farmpods".into(),
            prefix: "farm-".into(),
            backing: Backing {
                api_version: "store.example.com/v1".into(),
                kind: "Record".into(),
                plural: "records".into(),
                namespaced: true,
            },
            ..Served::default()
        };
        Lens::new("farmpods", served, access, Vec::new(), Epoch::default())
    }

    fn failure(code: u16, reason: &str, message: &str, details: Value) -> Value {
        let mut details = details;
        for (field, value) in [("group", "store.example.com"), ("kind", "records"), ("name", "x")] {
            if details[field].is_null() {
                details[field] = value.into();
            }
        }
        json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message, "details": details})
    }

    fn translated(access: Access, status: &Value) -> Status {
        Status::translate(&lens(access), 500, status)
    }

    fn message(access: Access, status: &Value) -> String {
        translated(access, status).message
    }

    #[test]
    fn a_404_of_the_backing_object_is_one_of_the_object_that_is_shown() {
        let backing = failure(404, "NotFound", "records.store.example.com \"x\" not found", json!({}));
        let shown = Status::not_found(&lens(Access::View).served, "farm-x");
        for access in [Access::View, Access::ViewAndBacking] {
            assert_eq!(translated(access, &backing), shown);
        }
    }

    #[test]
    fn a_404_of_anything_else_is_no_proof_that_an_object_is_gone() {
        let path = "the server could not find the requested resource";
        for status in [
            json!({"kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound", "message": path, "details": {}}),
            failure(404, "NotFound", "x", json!({"kind": "others"})),
            failure(404, "NotFound", "x", json!({"group": "other.example.com"})),
            failure(404, "NotFound", "x", json!({"name": ""})),
            json!("404 page not found"),
        ] {
            let status = Status::translate(&lens(Access::ViewAndBacking), 404, &status);
            assert_eq!((status.code, status.details.retry_after_seconds), (503, Some(1)));
        }
        let missing = failure(
            404,
            "NotFound",
            "namespaces \"x\" not found",
            json!({"group": "", "kind": "namespaces"}),
        );
        let status = translated(Access::View, &missing);
        assert_eq!((status.code, status.message.as_str()), (404, "namespaces \"x\" not found"));
        assert_eq!((status.details.kind.as_str(), status.details.name.as_str()), ("namespaces", "x"));
    }

    #[test]
    fn a_conflict_names_the_uids_and_versions_that_are_shown() {
        let lens = lens(Access::View);
        let of = |why: &str| {
            let text = format!("Operation cannot be fulfilled on records.store.example.com \"x\": {why}");
            failure(409, "Conflict", &text, json!({}))
        };
        let store = "StorageError: invalid object, Code: 4, Key: /registry/records/a/x, ResourceVersion: 0, AdditionalErrorMsg: ";
        let begin = "Operation cannot be fulfilled on farmpods.farm.example.com \"farm-x\": ";
        let uids =
            of(&format!("{store}Precondition failed: UID in precondition: {UID}, UID in object meta: {UID}"));
        let shown = lens.mask.map(UID);
        assert_eq!(
            message(Access::ViewAndBacking, &uids),
            format!("{begin}Precondition failed: UID in precondition: {shown}, UID in object meta: {shown}")
        );
        let versions =
            of("Precondition failed: ResourceVersion in precondition: 7, ResourceVersion in object meta: 8");
        assert_eq!(
            message(Access::View, &versions),
            format!(
                "{begin}Precondition failed: ResourceVersion in precondition: 7000000, ResourceVersion in object meta: 8000000"
            )
        );
        assert_eq!(message(Access::View, &of(MODIFIED)), format!("{begin}{MODIFIED}"));
        assert_eq!(message(Access::ViewAndBacking, &of(store)), format!("{begin}{MODIFIED}"));
        assert_eq!(message(Access::ViewAndBacking, &of("it is locked")), format!("{begin}it is locked"));
        assert_eq!(message(Access::View, &of("it is locked")), format!("{begin}{MODIFIED}"));
    }

    #[test]
    fn what_is_said_of_a_private_backing_kind_names_nothing_of_it() {
        let secret = "records.store.example.com \"x\" Record";
        let causes = json!({"causes": [{"reason": "FieldValueInvalid", "message": "Record", "field": "spec.records"}]});
        for (code, reason) in [
            (400, "BadRequest"),
            (401, "Unauthorized"),
            (403, "Forbidden"),
            (404, "NotFound"),
            (405, "MethodNotAllowed"),
            (406, "NotAcceptable"),
            (409, "AlreadyExists"),
            (409, "Conflict"),
            (410, "Expired"),
            (413, "RequestEntityTooLarge"),
            (415, "UnsupportedMediaType"),
            (422, "Invalid"),
            (429, "TooManyRequests"),
            (500, "InternalError"),
            (500, "ServerTimeout"),
            (500, ""),
            (503, "ServiceUnavailable"),
            (504, "Timeout"),
            (599, "Unheard"),
        ] {
            let before = [" is forbidden: ", " is invalid: ", "Timeout: ", "\": ", ""];
            for mark in before {
                let text = format!("patch {mark}{secret}");
                let status = translated(Access::View, &failure(code, reason, &text, causes.clone()));
                let written = status.to_value().to_string().to_lowercase();
                assert!(!written.contains("record") && !written.contains("store."), "{reason}: {written}");
                assert!(!status.message.is_empty() && status.code >= 400, "{reason}");
            }
        }
    }

    #[test]
    fn whoever_may_see_the_backing_object_is_told_what_is_wrong_with_it() {
        let cause =
            json!({"reason": "FieldValueInvalid", "message": "Invalid value: 1", "field": "spec.size"});
        let text = "Record.store.example.com \"x\" is invalid: spec.size: Invalid value: 1";
        let invalid = translated(
            Access::ViewAndBacking,
            &failure(422, "Invalid", text, json!({"kind": "Record", "causes": [cause]})),
        );
        assert_eq!(
            invalid.message,
            "FarmPod.farm.example.com \"farm-x\" is invalid: spec.size: Invalid value: 1"
        );
        assert_eq!((invalid.details.kind.as_str(), invalid.details.causes.len()), ("FarmPod", 1));
        let forbidden =
            failure(403, "Forbidden", "records.store.example.com \"x\" is forbidden: no rule", json!({}));
        assert_eq!(
            message(Access::ViewAndBacking, &forbidden),
            "farmpods.farm.example.com \"farm-x\" is forbidden: no rule"
        );
    }

    #[test]
    fn that_a_namespace_goes_away_is_said_to_everybody() {
        let why = "unable to create new content in namespace a because it is being terminated";
        let cause = json!({"reason": "NamespaceTerminating", "message": "namespace a is being terminated", "field": "metadata.namespace"});
        let text = format!("records.store.example.com \"x\" is forbidden: {why}");
        let status = translated(
            Access::View,
            &failure(403, "Forbidden", &text, json!({"causes": [cause, {"reason": "Other"}]})),
        );
        assert_eq!(status.message, format!("farmpods.farm.example.com \"farm-x\" is forbidden: {why}"));
        assert_eq!(status.details.causes.len(), 1);
        assert_eq!(status.details.causes[0].reason, "NamespaceTerminating");
    }

    #[test]
    fn a_client_learns_when_to_ask_again_and_when_to_list_again() {
        let busy = failure(429, "TooManyRequests", "busy", json!({"retryAfterSeconds": 7}));
        assert_eq!(translated(Access::View, &busy).details.retry_after_seconds, Some(7));
        let old = failure(410, "Expired", "too old resource version: 5 (9)", json!({}));
        assert_eq!(message(Access::View, &old), WATCH_EXPIRED);
        let mut page = failure(410, "Expired", "The provided continue parameter is too old", json!({}));
        assert_eq!(message(Access::View, &page), CONTINUE_EXPIRED);
        page["metadata"] = json!({"continue": "next"});
        let expired = translated(Access::View, &page);
        assert_eq!((expired.code, expired.message.as_str()), (410, CONTINUE_ANEW));
        assert_eq!(
            expired.to_value()["metadata"]["continue"],
            shown_continue(lens(Access::View).epoch, "next")
        );
        let cause = json!({"causes": [{"reason": "ResourceVersionTooLarge"}], "retryAfterSeconds": 1});
        let ahead = failure(504, "Timeout", "Timeout: Too large resource version: 5, current: 3", cause);
        assert_eq!(translated(Access::View, &ahead), Status::too_large_version());
        let slow = failure(500, "ServerTimeout", "slow", json!({"name": "list"}));
        assert_eq!(
            message(Access::View, &slow),
            "The list operation against farmpods.farm.example.com could not be completed at this time, please try again."
        );
    }

    #[test]
    fn what_is_wrong_with_a_clients_selector_is_said_of_a_private_kind_too() {
        let why = "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt";
        assert_eq!(message(Access::View, &failure(400, "BadRequest", why, json!({}))), why);
    }

    #[test]
    fn a_verb_that_the_backing_kind_lacks_is_said_of_the_view() {
        for (said, verb) in [("patch is not supported", "patch"), ("records cannot", "this request")] {
            let shown = Status::method_not_allowed(&lens(Access::View).served, verb);
            assert_eq!(translated(Access::View, &failure(405, "MethodNotAllowed", said, json!({}))), shown);
        }
    }

    #[test]
    fn that_an_object_is_deleted_is_said_with_its_shown_name_and_uid() {
        let done = json!({"kind": "Status", "status": "Success", "details": {"group": "store.example.com", "kind": "records", "name": "x", "uid": UID}});
        let lens = lens(Access::View);
        assert_eq!(
            Status::translate(&lens, 200, &done),
            Status::success(&lens.served, "farm-x", &lens.mask.map(UID))
        );
    }

    #[test]
    fn whoever_may_not_know_the_cause_is_told_one_that_kubectl_prints() {
        let causes =
            json!({"causes": [{"reason": "FieldValueInvalid", "field": "spec.secret", "message": "no"}]});
        let refused = failure(422, "Invalid", "Record \"x\" is invalid: spec.secret: no", causes);
        let told = translated(Access::View, &refused).to_value();
        assert_eq!(told["details"]["causes"], json!([{"message": NOT_STORED}]));
        assert!(!told.to_string().contains("secret"), "{told}");
    }
}
