//! Reviews: who somebody is, and whether they may do something.

use serde_json::{Value, json};

use super::Done;
use crate::{
    Failure,
    access::{Access, Action, User, Verdict},
    failure::cause,
    request::Request,
};

/// The kinds that are reviewed when they are created, by their names in paths.
pub(crate) const REVIEWS: [(&str, &str, &str); 4] = [
    ("authentication.k8s.io", "tokenreviews", "TokenReview"),
    ("authorization.k8s.io", "localsubjectaccessreviews", "LocalSubjectAccessReview"),
    ("authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    ("authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview"),
];

/// Answers a review by a user.
pub(crate) fn review(access: &mut dyn Access, by: &User, request: &Request) -> Result<Done, Failure> {
    let path = &request.path;
    let is_asked = |review: &&(&str, &str, &str)| review.0 == path.group && review.1 == path.resource;
    let (group, resource, kind) =
        *REVIEWS.iter().find(is_asked).filter(|_| path.version == "v1").ok_or_else(Failure::unknown_path)?;
    if path.namespace.is_some() != (resource == "localsubjectaccessreviews") {
        return Err(Failure::unknown_path());
    }
    let spec = &request.body["spec"];
    let status = match resource {
        "tokenreviews" => token(access, spec),
        "selfsubjectaccessreviews" => {
            whole(spec, true)?;
            verdict(access, by, spec)
        }
        _ => {
            whole(spec, false)?;
            if path.namespace.is_some()
                && spec["resourceAttributes"]["namespace"].as_str() != path.namespace.as_deref()
            {
                let why = "namespace on resource attributes must match namespace on subject access review";
                return Err(Failure::bad_request(why));
            }
            verdict(access, &User::read(spec, "user"), spec)
        }
    };
    let mut body = request.body.clone();
    body["kind"] = kind.into();
    body["apiVersion"] = format!("{group}/v1").into();
    body["metadata"] = request.body.get("metadata").cloned().unwrap_or_else(|| json!({}));
    body["status"] = status;
    Ok(Done { code: 201, ..Done::read(body) })
}

fn token(access: &mut dyn Access, spec: &Value) -> Value {
    match access.owner(spec["token"].as_str().unwrap_or_default()) {
        Some(user) => {
            let mut status = json!({"authenticated": true, "user": user.to_json()});
            if spec["audiences"].is_array() {
                status["audiences"] = spec["audiences"].clone();
            }
            status
        }
        None => json!({"user": {}, "error": "invalid bearer token"}),
    }
}

/// The review must say who wants what.
fn whole(spec: &Value, by_itself: bool) -> Result<(), Failure> {
    let invalid = |field: &str, why: &str| {
        let causes = vec![cause(field, "FieldValueInvalid", format!("Invalid value: {why}"))];
        Failure::invalid(".authorization.k8s.io", "", causes)
    };
    if spec["resourceAttributes"].is_object() == spec["nonResourceAttributes"].is_object() {
        let why = "null: exactly one of nonResourceAttributes or resourceAttributes must be specified";
        return Err(invalid("spec.resourceAttributes", why));
    }
    let is_nobody = spec["user"].as_str().unwrap_or_default().is_empty()
        && spec["groups"].as_array().is_none_or(Vec::is_empty);
    if !by_itself && is_nobody {
        return Err(invalid("spec.user", "\"\": at least one of user or group must be specified"));
    }
    Ok(())
}

fn verdict(access: &mut dyn Access, user: &User, spec: &Value) -> Value {
    match access.may(user, &Action::read(spec)) {
        Verdict::Allowed => json!({"allowed": true}),
        Verdict::NotAllowed(why) if why.is_empty() => json!({"allowed": false}),
        Verdict::NotAllowed(why) => json!({"allowed": false, "reason": why}),
    }
}
