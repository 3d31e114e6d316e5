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
use crate::{
    admission::Pools,
    identity::{AUTHENTICATED, Network, issuer::now},
};

/// An API server that says what it was told to, and counts how often it was asked.
#[derive(Default)]
pub(crate) struct Fake(Mutex<State>);

#[derive(Default)]
struct State {
    tokens: BTreeMap<String, TokenReviewStatus>,
    access: Option<SubjectAccessReviewStatus>,
    /// Who may do nothing, whatever else is answered.
    denied: Vec<String>,
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

    /// How long an answer takes from now on.
    pub(crate) fn takes(&self, takes: Duration) {
        self.state().takes = takes;
    }

    /// From now on a token is this user's.
    pub(crate) fn knows(&self, token: &str, user: &str) {
        let user = UserInfo { username: Some(user.to_owned()), ..UserInfo::default() };
        let status = TokenReviewStatus { authenticated: Some(true), user: Some(user), ..Default::default() };
        self.state().tokens.insert(token.to_owned(), status);
    }

    /// From now on a user may do nothing.
    pub(crate) fn denies(&self, user: &str) {
        self.state().denied.push(user.to_owned());
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
        if !takes.is_zero() {
            sleep(takes).await;
        }
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
        let state = self.state();
        if asked.user.as_ref().is_some_and(|user| state.denied.contains(user)) {
            return Ok(SubjectAccessReviewStatus::default());
        }
        state.access.clone().ok_or_else(|| ReviewError("no reply".into()))
    }
}

/// Runs a test with a clock that stands still unless it is advanced.
pub(crate) async fn with_clock<T>(test: impl Future<Output = T>) -> T {
    Arc::new(Virtual::new(now(), 1)).scope(test).await
}

/// Somebody with a turn where nobody else asks.
async fn decide(
    reviewer: &Reviewer<Arc<Fake>>,
    asked: &SubjectAccessReviewSpec,
) -> Result<Decision, Undecided> {
    reviewer.decide(asked, Turn { pool: &Pools::default().reviews, party: &Party::User("jane".into()) }).await
}

fn network(last: u8) -> Party {
    Party::Network(Network::of([192, 0, 2, last].into()))
}

async fn user_of(reviewer: &Reviewer<Arc<Fake>>, token: &str) -> Result<User, Refused> {
    user_at(reviewer, token, Turn { pool: &Pools::default().tokens, party: &network(1) }).await
}

async fn user_at(reviewer: &Reviewer<Arc<Fake>>, token: &str, turn: Turn<'_>) -> Result<User, Refused> {
    let mut headers = HeaderMap::new();
    headers.insert("authorization", HeaderValue::try_from(format!("Bearer {token}")).unwrap());
    let presented = Presented { certificates: &[], headers: &headers };
    reviewer.authenticate(presented, &Authentication::default(), now(), turn).await
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
            decide(&reviewer, &same),
            decide(&reviewer, &same),
            decide(&reviewer, &other),
            decide(&reviewer, &same)
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
        let gives_up = tokio::time::timeout(Duration::from_millis(500), decide(&reviewer, &spec));
        let (gave_up, answer) = tokio::join!(gives_up, decide(&reviewer, &spec));
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
        let (first, second) = tokio::join!(decide(&reviewer, &spec), decide(&reviewer, &spec));
        let too_late = ReviewError("a review was not answered within 10 s".into());
        assert_eq!(first.unwrap_err(), Undecided::Unanswered(too_late));
        assert!(second.is_err());
        assert_eq!(clock_now() - began, REVIEW_TIMEOUT);
    })
    .await;
}

fn clock_now() -> Duration {
    pintle_runtime::clock::monotonic()
}

#[tokio::test(start_paused = true)]
async fn made_up_tokens_hold_up_nobody_who_is_elsewhere_or_known_already() {
    with_clock(async {
        let (fake, reviewer) = asked_about_jane();
        let pools = Pools::default();
        let at = |last| (network(last), &pools.reviews);
        let (stranger, jane) = (at(1), at(2));
        let ask = async |token: &str, (party, pool): &(Party, &Pool)| {
            user_at(&reviewer, token, Turn { pool, party }).await
        };
        ask("good", &stranger).await.unwrap();
        fake.takes(Duration::from_secs(9));
        let made_up: Vec<String> = (0..20).map(|number| format!("made-up-{number}")).collect();
        let began = clock_now();
        let strangers = futures::future::join_all(made_up.iter().map(|token| ask(token, &stranger)));
        let others = async {
            // Once all of the strangers have come.
            sleep(Duration::from_millis(1)).await;
            let again = ask("good", &stranger).await;
            let remembered_after = clock_now() - began;
            (again.unwrap().name, remembered_after, ask("expired", &jane).await)
        };
        let (strangers, (name, remembered_after, elsewhere)) = tokio::join!(strangers, others);
        assert_eq!((name.as_str(), remembered_after), ("jane", Duration::from_millis(1)));
        assert_eq!(elsewhere, Err(Refused::Token("the API server does not know it".into())));
        let full = strangers.iter().filter(|refused| **refused == Err(Refused::Full)).count();
        assert_eq!(full, 16, "four are asked about at a time");
        assert_eq!(Status::from(Refused::Full).code, 429);
        assert_eq!(fake.times(), 1 + 4 + 1);
    })
    .await;
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
