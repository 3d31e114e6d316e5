//! [`Provider`]: which views show documents, and how their guests are called. The gateway and `pintle console` each have one of their own.

use std::sync::Arc;

use futures::future::BoxFuture;
use http::StatusCode;
use pintle_core::view::{BackingObject, Cut, Lens, document::problem::Refusal};
use pintle_schema::structural::Structural;
use pintle_wit::Failure;
use serde_json::{Map, Value};

use crate::{
    caller::Caller,
    problem::{Cause, Problem, field_of},
};

/// Knows the views that show documents.
pub trait Provider: Send + Sync {
    /// The view at a path, as far as the caller may know of it; none if there is none.
    ///
    /// # Errors
    /// 503 while it is not known, or while its guest cannot be called.
    fn view<'a>(
        &'a self,
        path: &'a str,
        caller: &'a Caller,
    ) -> BoxFuture<'a, Result<Option<Arc<DocumentView>>, Refusal>>;

    /// The paths of all views that the caller may know of: `darkrooms`.
    ///
    /// # Errors
    /// Why they are not known.
    fn paths<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, Result<Vec<String>, Refusal>>;
}

/// A view that shows documents.
pub struct DocumentView {
    /// How objects are mapped.
    pub lens: Lens,
    /// What is read of the backing kind.
    pub cut: Cut,
    /// The schema of what is written.
    pub schema: Structural,
    /// What shows and stores.
    pub guest: Arc<dyn DocumentGuest>,
}

/// What shows and stores documents.
pub trait DocumentGuest: Send + Sync {
    /// What is shown of objects, in order.
    ///
    /// # Errors
    /// When the guest cannot be called.
    fn show<'a>(
        &'a self,
        lens: &'a Lens,
        objects: &'a [BackingObject],
    ) -> BoxFuture<'a, Result<Vec<Shown>, Refusal>>;

    /// What becomes of a backing object when somebody writes this.
    ///
    /// # Errors
    /// Why the guest refuses it, or cannot be called.
    fn store<'a>(
        &'a self,
        lens: &'a Lens,
        written: &'a Value,
        current: Option<&'a BackingObject>,
    ) -> BoxFuture<'a, Result<Map<String, Value>, Refusal>>;

    /// Ends when objects are shown otherwise than by this guest.
    fn over(&self) -> BoxFuture<'static, ()>;
}

/// What a guest shows of an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Shown {
    /// Its fields: the JSON of an object.
    Fields(Arc<str>),
    /// The object cannot be shown.
    Failed(Arc<Failure>),
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::BAD_GATEWAY);
        let causes = refusal.causes.into_iter();
        Self {
            title: Some(refusal.title),
            causes: causes
                .map(|cause| Cause {
                    field: field_of(cause.field),
                    message: cause.message,
                    reason: cause.reason,
                })
                .collect(),
            reason: Some(refusal.reason).filter(|reason| !reason.is_empty()),
            retry_after: refusal.retry_after.map(|seconds| std::time::Duration::from_secs(seconds.into())),
            ..Self::new(status, refusal.details)
        }
    }
}
