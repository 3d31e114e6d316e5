use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use http::{HeaderMap, HeaderValue};
use k8s_openapi::api::authentication::v1::UserInfo;
use pintle_core::view::Status;
use pintle_runtime::clock::Virtual;
use tokio::time::{advance, sleep};

use super::*;
use crate::identity::{AUTHENTICATED, issuer::now};

/// An API server that says what it was told to, and counts how often it was asked.
#[derive(Default)]
pub(crate) struct Fake(Mutex<State>);

#[derive(Default)]
struct State {
    tokens: BTreeMap<String, TokenReviewStatus>,
    access: Option<SubjectAccessReviewStatus>,
    /// How long an answer takes.
    takes: Duration,
    asked: Vec<String>,
    specs: Vec<SubjectAccessReviewSpec>,
}

impl Fake {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// From now on this is the answer to whether somebody may do something; none: there is no answer.
    pub(crate) fn answer(&self, access: Option<(bool, &str)>) {
        self.state().access = access.map(|(allowed, reason)| SubjectAccessReviewStatus {
            allowed,
            reason: Some(reason.to_owned()),
            ..SubjectAccessReviewStatus::default()
        });
    }

    fn takes(&self, takes: Duration) {
        self.state().takes = takes;
    }

    /// How many questions it was asked.
    pub(crate) fn times(&self) -> usize {
        self.state().asked.len()
    }

    /// The last question about access.
    pub(crate) fn last_spec(&self) -> SubjectAccessReviewSpec {
        self.state().specs.last().unwrap().clone()
    }

    async fn asked(&self, question: &str) {
        let takes = {
            let mut state = self.state();
            state.asked.push(question.to_owned());
            state.takes
        };
        sleep(takes).await;
    }
}

impl Reviews for Arc<Fake> {
    async fn token(&self, token: &str) -> Result<TokenReviewStatus, ReviewError> {
        self.asked(token).await;
        self.state().tokens.get(token).cloned().ok_or_else(|| ReviewError("no reply".into()))
    }

    async fn access(
        &self,
        asked: &SubjectAccessReviewSpec,
    ) -> Result<SubjectAccessReviewStatus, ReviewError> {
        self.state().specs.push(asked.clone());
        self.asked("access").await;
        self.state().access.clone().ok_or_else(|| ReviewError("no reply".into()))
    }
}

/// Runs a test with a clock that stands still unless it is advanced.
pub(crate) async fn with_clock<T>(test: impl Future<Output = T>) -> T {
    Arc::new(Virtual::new(now(), 1)).scope(test).await
}

async fn user_of(reviewer: &Reviewer<Arc<Fake>>, token: &str) -> Result<User, Refused> {
    let mut headers = HeaderMap::new();
    headers.insert("authorization", HeaderValue::try_from(format!("Bearer {token}")).unwrap());
    let presented = Presented { certificates: &[], headers: &headers };
    reviewer.authenticate(presented, &Authentication::default(), now()).await
}

/// The API server, a reviewer that asks it, and a token of jane's.
fn asked_about_jane() -> (Arc<Fake>, Reviewer<Arc<Fake>>) {
    let fake = Arc::new(Fake::default());
    let info = UserInfo {
        username: Some("jane".into()),
        uid: Some("42".into()),
        groups: Some(vec!["shepherds".into()]),
        extra: Some([("scopes".to_owned(), vec!["read".to_owned()])].into()),
    };
    let good =
        TokenReviewStatus { authenticated: Some(true), user: Some(info.clone()), ..Default::default() };
    let expired = TokenReviewStatus { error: Some("token has expired".into()), ..Default::default() };
    // Nobody should answer like this.
    let odd = TokenReviewStatus { authenticated: None, user: Some(info), ..Default::default() };
    let nameless = TokenReviewStatus { authenticated: Some(true), ..Default::default() };
    fake.state().tokens = [("good", good), ("expired", expired), ("odd", odd), ("nameless", nameless)]
        .map(|(token, status)| (token.to_owned(), status))
        .into();
    let reviewer = Reviewer::new(Arc::clone(&fake));
    (fake, reviewer)
}

#[tokio::test(start_paused = true)]
async fn the_api_server_says_whose_token_it_is_once_in_ten_seconds() {
    with_clock(async {
        let (fake, reviewer) = asked_about_jane();
        let jane = user_of(&reviewer, "good").await.unwrap();
        assert_eq!((jane.name.as_str(), jane.uid.as_str()), ("jane", "42"));
        assert_eq!(jane.groups, ["shepherds", AUTHENTICATED]);
        assert_eq!(jane.extra["scopes"], ["read"]);
        advance(Duration::from_millis(9_999)).await;
        assert_eq!((user_of(&reviewer, "good").await, fake.times()), (Ok(jane), 1));
        // It was revoked.
        fake.state().tokens.insert("good".into(), TokenReviewStatus::default());
        advance(Duration::from_millis(1)).await;
        assert!(user_of(&reviewer, "good").await.is_err());
        assert_eq!(fake.times(), 2);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_not_plainly_somebodys_is_unauthorized_and_that_is_remembered_too() {
    with_clock(async {
        let (fake, reviewer) = asked_about_jane();
        for token in ["expired", "odd", "nameless"] {
            for _ in 0..2 {
                let refused = user_of(&reviewer, token).await.unwrap_err();
                assert_eq!(Status::from(refused), Status::unauthorized(), "{token}");
            }
        }
        assert_eq!(fake.times(), 3);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_token_that_cannot_be_reviewed_is_unauthorized_until_it_can() {
    with_clock(async {
        let (fake, reviewer) = asked_about_jane();
        let good = fake.state().tokens.remove("good").unwrap();
        let refused = user_of(&reviewer, "good").await.unwrap_err();
        assert_eq!(Status::from(refused), Status::unauthorized());
        fake.state().tokens.insert("good".into(), good);
        assert_eq!(user_of(&reviewer, "good").await.unwrap().name, "jane");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn many_who_ask_the_same_at_once_ask_once() {
    with_clock(async {
        let (fake, reviewer) = asked_about_jane();
        fake.answer(Some((true, "")));
        fake.takes(Duration::from_secs(1));
        let (same, other) = (SubjectAccessReviewSpec::default(), spec_of("other"));
        let (a, b, c, d) = tokio::join!(
            reviewer.decide(&same),
            reviewer.decide(&same),
            reviewer.decide(&other),
            reviewer.decide(&same)
        );
        assert!([a, b, c, d].iter().all(|decision| decision.as_ref().unwrap().is_allowed));
        assert_eq!(fake.times(), 2);
    })
    .await;
}

fn spec_of(user: &str) -> SubjectAccessReviewSpec {
    SubjectAccessReviewSpec { user: Some(user.into()), ..SubjectAccessReviewSpec::default() }
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_somebody_that_gives_up_asks_itself() {
    with_clock(async {
        let (fake, reviewer) = asked_about_jane();
        fake.answer(Some((true, "")));
        fake.takes(Duration::from_secs(1));
        let spec = spec_of("jane");
        let gives_up = tokio::time::timeout(Duration::from_millis(500), reviewer.decide(&spec));
        let (gave_up, answer) = tokio::join!(gives_up, reviewer.decide(&spec));
        assert!(gave_up.is_err() && answer.unwrap().is_allowed);
        assert_eq!(fake.times(), 2);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_review_that_takes_longer_than_ten_seconds_is_no_answer_for_anybody_who_waits() {
    with_clock(async {
        let (fake, reviewer) = asked_about_jane();
        fake.answer(Some((true, "")));
        fake.takes(Duration::from_secs(60));
        let spec = spec_of("jane");
        let began = clock_now();
        let (first, second) = tokio::join!(reviewer.decide(&spec), reviewer.decide(&spec));
        assert_eq!(first.unwrap_err(), ReviewError("a review was not answered within 10 s".into()));
        assert!(second.is_err());
        assert_eq!(clock_now() - began, REVIEW_TIMEOUT);
    })
    .await;
}

fn clock_now() -> Duration {
    pintle_runtime::clock::monotonic()
}

#[tokio::test(start_paused = true)]
async fn no_more_answers_are_kept_than_there_is_room_for() {
    with_clock(async {
        let known = Remembered::new(8);
        let ask = |n: u32| {
            let key = Key::of(&n.to_le_bytes());
            known.get_or_ask(key, async move || Ok::<u32, ReviewError>(n))
        };
        for n in 0..1000 {
            assert_eq!(ask(n).await, Ok(n));
        }
        assert!(known.len() <= 8 * 2, "{}", known.len());
    })
    .await;
}

#[test]
fn only_a_plain_yes_is_a_yes() {
    let decided = |allowed, denied| {
        decided(SubjectAccessReviewStatus { allowed, denied, ..SubjectAccessReviewStatus::default() })
            .is_allowed
    };
    assert!(decided(true, None) && decided(true, Some(false)));
    assert!(!decided(true, Some(true)) && !decided(false, None));
}
