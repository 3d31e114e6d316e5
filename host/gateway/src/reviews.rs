//! [`Reviews`]: what the API server is asked about callers; and [`Reviewer`], which asks each question once in a while.
//!
//! An answer is remembered for ten seconds, as the API server's own servers do. What could not be asked is not remembered, and never
//! counts as a yes. Whoever has a question that is not remembered takes a place for it, also while somebody else asks the same.

use std::time::Duration;

use k8s_openapi::api::authorization::v1::{
    SubjectAccessReview, SubjectAccessReviewSpec, SubjectAccessReviewStatus,
};
use kube::{Api, Client, api::PostParams};
use pintle_runtime::remembered::{Key, Remembered};
use tracing::warn;

use crate::admission::{Full, Pool};

/// How long a question may take, with the wait for somebody who asks the same.
pub const REVIEW_TIMEOUT: Duration = Duration::from_secs(10);

/// How many answers of a sort are remembered. One takes some hundred bytes.
const REMEMBERED_MAX: usize = 10_000;

/// A question could not be asked, or was not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ReviewError(pub String);

/// What answers questions about callers.
pub trait Reviews: Send + Sync {
    /// Whether somebody may do something.
    ///
    /// # Errors
    /// When there is no answer.
    fn access(
        &self,
        asked: &SubjectAccessReviewSpec,
    ) -> impl Future<Output = Result<SubjectAccessReviewStatus, ReviewError>> + Send;
}

/// The API server answers.
impl Reviews for Client {
    async fn access(
        &self,
        asked: &SubjectAccessReviewSpec,
    ) -> Result<SubjectAccessReviewStatus, ReviewError> {
        let review = SubjectAccessReview { spec: asked.clone(), ..SubjectAccessReview::default() };
        let api = Api::<SubjectAccessReview>::all(self.clone());
        match api.create(&PostParams::default(), &review).await.map(|review| review.status) {
            Ok(Some(status)) => Ok(status),
            Ok(None) => Err(ReviewError("the API server answered a review without a status".into())),
            Err(kube::Error::Api(status)) => Err(ReviewError(status.message)),
            Err(error) => Err(ReviewError(error.to_string())),
        }
    }
}

/// Where a question takes its place, and whose share that is of.
#[derive(Clone, Copy, Debug)]
pub struct Turn<'a> {
    /// The questions that are asked at a time.
    pub pool: &'a Pool,
    /// Who asks.
    pub party: &'a str,
}

/// Why there is no decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Undecided {
    /// Too much is asked at a time.
    Full,
    /// There was no answer.
    Unanswered(ReviewError),
}

/// The answer to whether somebody may do something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) is_allowed: bool,
    /// What the authorizer says about it.
    pub(crate) reason: String,
}

/// Asks questions about callers, each at most once in ten seconds.
pub struct Reviewer<R> {
    reviews: R,
    decisions: Remembered<Decision>,
}

impl<R: Reviews> Reviewer<R> {
    /// A reviewer that remembers nothing yet.
    pub fn new(reviews: R) -> Self {
        Self { reviews, decisions: Remembered::new(REMEMBERED_MAX) }
    }

    /// Whether somebody may do something: the answer that is remembered, or another one once there is a place to ask.
    pub(crate) async fn decide(
        &self,
        asked: &SubjectAccessReviewSpec,
        turn: Turn<'_>,
    ) -> Result<Decision, Undecided> {
        let question = serde_json::to_vec(asked)
            .map_err(|error| Undecided::Unanswered(ReviewError(error.to_string())))?;
        let key = Key::of(&question);
        if let Some(known) = self.decisions.get(key) {
            return Ok(known);
        }
        let _place = turn.pool.admit(turn.party).await.map_err(|Full| Undecided::Full)?;
        let ask = async || Ok(decided(self.reviews.access(asked).await?));
        let answer = tokio::time::timeout(REVIEW_TIMEOUT, self.decisions.get_or_ask(key, ask)).await;
        let seconds = REVIEW_TIMEOUT.as_secs();
        let answer = answer
            .unwrap_or_else(|_| Err(ReviewError(format!("a review was not answered within {seconds} s"))));
        answer.map_err(|error| {
            warn!(%error, "Access cannot be reviewed; is the gateway's account bound to system:auth-delegator?");
            Undecided::Unanswered(error)
        })
    }
}

/// Allowed is only what is plainly allowed.
fn decided(status: SubjectAccessReviewStatus) -> Decision {
    let is_allowed = status.allowed && status.denied != Some(true);
    Decision { is_allowed, reason: status.reason.unwrap_or_default() }
}

#[cfg(test)]
pub(crate) mod tests;
