use std::sync::{Arc, Mutex};

use pintle_runtime::clock::Virtual;
use tokio::time::sleep;

use super::*;
use crate::{admission::Pools, identity::issuer::now};

/// An API server that says what it was told to, and counts how often it was asked.
#[derive(Default)]
pub(crate) struct Fake(Mutex<State>);

#[derive(Default)]
struct State {
    access: Option<SubjectAccessReviewStatus>,
    /// Who may do nothing, whatever else is answered.
    denied: Vec<String>,
    /// How long an answer takes.
    takes: Duration,
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

    /// From now on a user may do nothing.
    pub(crate) fn denies(&self, user: &str) {
        self.state().denied.push(user.to_owned());
    }

    /// How many questions it was asked.
    pub(crate) fn times(&self) -> usize {
        self.state().specs.len()
    }

    /// The last question about access.
    pub(crate) fn last_spec(&self) -> SubjectAccessReviewSpec {
        self.state().specs.last().unwrap().clone()
    }
}

impl Reviews for Arc<Fake> {
    async fn access(
        &self,
        asked: &SubjectAccessReviewSpec,
    ) -> Result<SubjectAccessReviewStatus, ReviewError> {
        let takes = {
            let mut state = self.state();
            state.specs.push(asked.clone());
            state.takes
        };
        if !takes.is_zero() {
            sleep(takes).await;
        }
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
    reviewer.decide(asked, Turn { pool: &Pools::default().reviews, party: "jane" }).await
}

/// The API server, and a reviewer that asks it.
fn setting() -> (Arc<Fake>, Reviewer<Arc<Fake>>) {
    let fake = Arc::new(Fake::default());
    let reviewer = Reviewer::new(Arc::clone(&fake));
    (fake, reviewer)
}

#[tokio::test(start_paused = true)]
async fn many_who_ask_the_same_at_once_ask_once() {
    with_clock(async {
        let (fake, reviewer) = setting();
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
        let (fake, reviewer) = setting();
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
        let (fake, reviewer) = setting();
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
