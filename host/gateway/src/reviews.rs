//! [`Reviews`]: what the API server is asked about callers; and [`Reviewer`], which asks each question once in a while.
//!
//! An answer is remembered for ten seconds, as the API server's own servers do. What could not be asked is not remembered, and never
//! counts as a yes. Whoever has a question that is not remembered takes a place for it, also while somebody else asks the same.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec, TokenReviewStatus},
    authorization::v1::{SubjectAccessReview, SubjectAccessReviewSpec, SubjectAccessReviewStatus},
};
use kube::{Api, Client, api::PostParams};
use pintle_runtime::remembered::{Key, Remembered};
use tracing::warn;

use crate::{
    admission::{Full, Party, Pool},
    identity::{Authentication, Caller, Presented, Refused, User, identify},
};

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
    /// Whose token this is, if it is a token for the API server.
    ///
    /// # Errors
    /// When there is no answer.
    fn token(&self, token: &str) -> impl Future<Output = Result<TokenReviewStatus, ReviewError>> + Send;

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
    async fn token(&self, token: &str) -> Result<TokenReviewStatus, ReviewError> {
        // Without audiences, the token must be for the API server.
        let spec = TokenReviewSpec { token: token.to_owned(), audiences: None };
        let review = TokenReview { spec, ..TokenReview::default() };
        let reviewed = Api::<TokenReview>::all(self.clone()).create(&PostParams::default(), &review).await;
        answered(reviewed.map(|review| review.status))
    }

    async fn access(
        &self,
        asked: &SubjectAccessReviewSpec,
    ) -> Result<SubjectAccessReviewStatus, ReviewError> {
        let review = SubjectAccessReview { spec: asked.clone(), ..SubjectAccessReview::default() };
        let api = Api::<SubjectAccessReview>::all(self.clone());
        answered(api.create(&PostParams::default(), &review).await.map(|review| review.status))
    }
}

fn answered<T>(status: Result<Option<T>, kube::Error>) -> Result<T, ReviewError> {
    match status {
        Ok(Some(status)) => Ok(status),
        Ok(None) => Err(ReviewError("the API server answered a review without a status".into())),
        Err(kube::Error::Api(status)) => Err(ReviewError(status.message)),
        Err(error) => Err(ReviewError(error.to_string())),
    }
}

/// Where a question takes its place, and whose share that is of.
#[derive(Clone, Copy, Debug)]
pub struct Turn<'a> {
    /// The questions that are asked at a time.
    pub pool: &'a Pool,
    /// Who asks.
    pub party: &'a Party,
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
    tokens: Remembered<Option<User>>,
    decisions: Remembered<Decision>,
}

impl<R: Reviews> Reviewer<R> {
    /// A reviewer that remembers nothing yet.
    pub fn new(reviews: R) -> Self {
        let (tokens, decisions) = (Remembered::new(REMEMBERED_MAX), Remembered::new(REMEMBERED_MAX));
        Self { reviews, tokens, decisions }
    }

    /// Who the caller is: [`identify`], and for whoever has a token, the API server's word.
    ///
    /// # Errors
    /// When the caller is refused.
    pub async fn authenticate(
        &self,
        presented: Presented<'_>,
        authentication: &Authentication,
        now: Timestamp,
        turn: Turn<'_>,
    ) -> Result<User, Refused> {
        let token = match identify(presented, authentication, now)? {
            Caller::Known(user) => return Ok(user),
            Caller::HasToken(token) => token.0,
        };
        let ask = async || Ok(judged(self.reviews.token(&token).await?));
        match answer(&self.tokens, Key::of(token.as_bytes()), turn, ask).await {
            Ok(Some(user)) => Ok(user),
            Ok(None) => Err(Refused::Token("the API server does not know it".into())),
            Err(Undecided::Full) => Err(Refused::Full),
            Err(Undecided::Unanswered(error)) => {
                warn!(%error, "A token cannot be reviewed; is the gateway's account bound to system:auth-delegator?");
                Err(Refused::Token(error.to_string()))
            }
        }
    }

    /// Whether somebody may do something.
    pub(crate) async fn decide(
        &self,
        asked: &SubjectAccessReviewSpec,
        turn: Turn<'_>,
    ) -> Result<Decision, Undecided> {
        let question = serde_json::to_vec(asked)
            .map_err(|error| Undecided::Unanswered(ReviewError(error.to_string())))?;
        let ask = async || Ok(decided(self.reviews.access(asked).await?));
        let decision = answer(&self.decisions, Key::of(&question), turn, ask).await;
        decision.inspect_err(|undecided| {
            if let Undecided::Unanswered(error) = undecided {
                warn!(%error, "Access cannot be reviewed; is the gateway's account bound to system:auth-delegator?");
            }
        })
    }
}

/// The answer to a question: the one that is remembered, or another one once there is a place to ask.
async fn answer<T: Clone>(
    remembered: &Remembered<T>,
    key: Key,
    turn: Turn<'_>,
    ask: impl AsyncFnOnce() -> Result<T, ReviewError>,
) -> Result<T, Undecided> {
    if let Some(known) = remembered.get(key) {
        return Ok(known);
    }
    let _place = turn.pool.admit(turn.party).await.map_err(|Full| Undecided::Full)?;
    let answer = tokio::time::timeout(REVIEW_TIMEOUT, remembered.get_or_ask(key, ask)).await;
    let seconds = REVIEW_TIMEOUT.as_secs();
    answer
        .unwrap_or_else(|_| Err(ReviewError(format!("a review was not answered within {seconds} s"))))
        .map_err(Undecided::Unanswered)
}

/// The user whose token it is.
fn judged(status: TokenReviewStatus) -> Option<User> {
    let is_authenticated = status.authenticated == Some(true);
    status.user.filter(|_| is_authenticated).and_then(User::reviewed)
}

/// Allowed is only what is plainly allowed.
fn decided(status: SubjectAccessReviewStatus) -> Decision {
    let is_allowed = status.allowed && status.denied != Some(true);
    Decision { is_allowed, reason: status.reason.unwrap_or_default() }
}

#[cfg(test)]
pub(crate) mod tests;
