//! Whether a caller may do what it asks for. The gateway decides nothing itself: it asks the API server, which has the rules.

use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, ResourceAttributes, SubjectAccessReviewSpec,
};
use pintle_core::view::{Served, Status, status::Denied};

use crate::{
    admission::Full,
    identity::{MASTERS, User},
    reviews::{Reviewer, Reviews, Turn, Undecided},
};

/// What a caller asks for.
#[derive(Clone, Copy, Debug)]
pub enum Asked<'a> {
    /// Objects of a view.
    Resource {
        /// The resource.
        served: &'a Served,
        /// The verb, as RBAC writes it.
        verb: &'a str,
        /// The namespace; none for all of them.
        namespace: Option<&'a str>,
        /// The name of the object; empty for a list or a create.
        name: &'a str,
    },
    /// A path that leads to no resource: discovery and OpenAPI.
    Path {
        /// The method, in lower case.
        verb: &'a str,
        /// The path, without its query.
        path: &'a str,
    },
}

impl Asked<'_> {
    /// The question for the API server.
    fn review(&self, user: &User) -> SubjectAccessReviewSpec {
        let filled = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let mut spec = SubjectAccessReviewSpec {
            user: Some(user.name.clone()),
            uid: filled(&user.uid),
            groups: Some(user.groups.clone()),
            extra: (!user.extra.is_empty()).then(|| user.extra.clone()),
            ..SubjectAccessReviewSpec::default()
        };
        match *self {
            Self::Resource { served, verb, namespace, name } => {
                spec.resource_attributes = Some(ResourceAttributes {
                    verb: filled(verb),
                    group: filled(served.group()),
                    version: filled(served.version()),
                    resource: filled(&served.plural),
                    namespace: namespace.and_then(filled),
                    name: filled(name),
                    ..ResourceAttributes::default()
                });
            }
            Self::Path { verb, path } => {
                spec.non_resource_attributes =
                    Some(NonResourceAttributes { verb: filled(verb), path: filled(path) });
            }
        }
        spec
    }

    /// The answer to a caller who may not.
    fn denied(&self, user: &User, why: &str) -> Status {
        match *self {
            Self::Resource { served, verb, namespace, name } => {
                Status::denied(served, Denied { user: &user.name, verb, namespace, name, why })
            }
            Self::Path { verb, path } => Status::denied_path(&user.name, verb, path, why),
        }
    }
}

/// Finds out whether a caller may do what it asks for.
///
/// # Errors
/// 403 when it may not, 429 when too much is asked at a time, and 500 when there is no answer.
pub async fn authorize<R: Reviews>(
    reviewer: &Reviewer<R>,
    turn: Turn<'_>,
    user: &User,
    asked: Asked<'_>,
) -> Result<(), Status> {
    if user.is_in(MASTERS) {
        return Ok(());
    }
    match reviewer.decide(&asked.review(user), turn).await {
        Ok(decision) if decision.is_allowed => Ok(()),
        Ok(decision) => Err(asked.denied(user, &decision.reason)),
        Err(Undecided::Full) => Err(Full.into()),
        // The cause is in the log: what the API server says about the gateway is not the caller's business.
        Err(Undecided::Unanswered(_)) => {
            Err(Status::internal_error("the API server did not say whether this is allowed"))
        }
    }
}

#[cfg(test)]
mod tests;
