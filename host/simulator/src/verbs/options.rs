//! The parameters of requests: which are valid, and what they ask for.

use pintle_schema::strict::FieldValidation;
use pintle_wit::Cause;

use crate::{Failure, failure::cause, faults::Verb, request::Request};

/// Checks the parameters of a write.
pub(super) fn of_write(request: &Request) -> Result<(), Failure> {
    let mut causes = Vec::new();
    let dry_run = request.parameter("dryRun").filter(|value| *value != "All");
    let in_body = || request.body["dryRun"].as_array().is_some_and(|all| all.iter().any(|one| one != "All"));
    let is_deletion = matches!(request.verb, Verb::Delete | Verb::DeleteCollection);
    if let Some(other) = dry_run.or_else(|| (is_deletion && in_body()).then_some("")) {
        let message = format!("Unsupported value: [{other:?}]: supported values: \"All\"");
        causes.push(cause("dryRun", "FieldValueNotSupported", message));
    }
    if let Some(other) = request.parameter("fieldValidation")
        && FieldValidation::of(other).is_none()
        && !is_deletion
    {
        let message =
            format!("Unsupported value: {other:?}: supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"");
        causes.push(cause("fieldValidation", "FieldValueNotSupported", message));
    }
    let kind = match request.verb {
        Verb::Create => "CreateOptions",
        Verb::Update => "UpdateOptions",
        Verb::Delete | Verb::DeleteCollection => "DeleteOptions",
        _ => "PatchOptions",
    };
    refuse(kind, causes)
}

/// Checks the parameters of a list or watch.
pub(crate) fn of_list(request: &Request) -> Result<(), Failure> {
    let mut causes = Vec::new();
    let mut forbidden = |field: &str, why: &str| {
        causes.push(cause(field, "FieldValueForbidden", format!("Forbidden: {why}")));
    };
    let (is_watch, streams) = (request.verb == Verb::Watch, request.parameter("sendInitialEvents").is_some());
    let matching = request.parameter("resourceVersionMatch");
    if is_watch && streams && matching != Some("NotOlderThan") {
        forbidden(
            "resourceVersionMatch",
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        );
    }
    if let Some(matching) = matching {
        if is_watch && !streams {
            let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            forbidden("resourceVersionMatch", why);
        }
        if !is_watch && request.parameter("resourceVersion").is_none() {
            let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            forbidden("resourceVersionMatch", why);
        }
        if request.parameter("continue").is_some() {
            forbidden("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided");
        }
        if !is_watch && matching == "Exact" && request.parameter("resourceVersion") == Some("0") {
            let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            forbidden("resourceVersionMatch", why);
        }
    }
    if !is_watch && streams {
        forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list");
    }
    let supported = if is_watch { "\"NotOlderThan\"" } else { "\"Exact\", \"NotOlderThan\", \"\"" };
    if let Some(other) = matching
        && other != "NotOlderThan"
        && (is_watch || other != "Exact")
    {
        let message = format!("Unsupported value: {other:?}: supported values: {supported}");
        causes.push(cause("resourceVersionMatch", "FieldValueNotSupported", message));
    }
    refuse("ListOptions", causes)
}

fn refuse(kind: &str, causes: Vec<Cause>) -> Result<(), Failure> {
    if causes.is_empty() {
        return Ok(());
    }
    Err(Failure::invalid(&format!("{kind}.meta.k8s.io"), "", causes))
}

/// A version that a list or a watch asks for, and that there is not yet. The API server waits a moment for it, and then gives up.
pub(crate) fn too_new(asked: u64, current: u64) -> Failure {
    Failure {
        retry_after_seconds: Some(1),
        causes: vec![cause("", "ResourceVersionTooLarge", "Too large resource version")],
        ..Failure::new(
            504,
            "Timeout",
            format!("Timeout: Too large resource version: {asked}, current: {current}"),
        )
    }
}
