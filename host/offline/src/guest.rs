//! Calling a guest, and watching that it is a pure function.

use pintle_core::reasons;
use pintle_engine::{Answer, CallError, CallLimits, CallStats, Guest, Origin};
use pintle_wit::{Failure, Request};

/// A guest under test.
pub(super) struct TestedGuest<'a> {
    pub(super) guest: &'a Guest,
    pub(super) limits: CallLimits,
    /// Call it more often than needed, and compare.
    pub(super) strict: bool,
}

/// What came of a call.
pub(super) struct Called {
    pub(super) answer: Result<Answer, CallError>,
    /// What is wrong although there is an answer.
    pub(super) violation: Option<Failure>,
}

impl Called {
    pub(super) fn stats(&self) -> CallStats {
        match &self.answer {
            Ok(answer) => answer.stats,
            Err(error) => error.stats,
        }
    }

    pub(super) fn is_trap(&self) -> bool {
        self.answer
            .as_ref()
            .is_err_and(|error| error.origin == Origin::Engine && error.failure.reason == reasons::TRAP)
    }
}

/// The text of a request, as a guest gets it.
pub(super) fn text_of(request: &Request) -> String {
    // A request is plain data with string keys, so that writing it as JSON cannot fail.
    serde_json::to_string(request).unwrap_or_default()
}

impl TestedGuest<'_> {
    pub(super) fn call(&self, request: &Request) -> Called {
        let answer = self.ask(request);
        let violation = if self.strict { self.compare(request, &answer) } else { None };
        Called { answer, violation }
    }

    fn ask(&self, request: &Request) -> Result<Answer, CallError> {
        self.guest.reconcile(&text_of(request), &self.limits)
    }

    /// The same request again, and with its children in other orders, must give the same answer.
    fn compare(&self, request: &Request, first: &Result<Answer, CallError>) -> Option<Failure> {
        let differs = |other: &Request, how: &str| {
            let again = self.ask(other);
            let (first, again) = (said(first), said(&again));
            let message =
                || format!("{how} the guest answered otherwise: {}", where_they_part(&first, &again));
            (first != again).then(|| Failure::terminal(reasons::NOT_DETERMINISTIC, message()))
        };
        differs(request, "asked the same again,").or_else(|| {
            shuffled(request)
                .iter()
                .find_map(|other| differs(other, "asked with the children in another order,"))
        })
    }
}

/// The request with its children in other orders: none when there are less than two.
fn shuffled(request: &Request) -> Vec<Request> {
    let mut others = Vec::new();
    if request.children.len() > 1 {
        let mut reversed = request.clone();
        reversed.children.reverse();
        others.push(reversed);
    }
    if request.children.len() > 2 {
        let mut rotated = request.clone();
        rotated.children.rotate_left(1);
        others.push(rotated);
    }
    others
}

/// What a guest said, byte by byte; of a failure of the engine only the reason, since its message may count bytes and fuel.
fn said(answer: &Result<Answer, CallError>) -> String {
    match answer {
        Ok(answer) => answer.text.clone(),
        Err(error) if error.origin == Origin::Engine => error.failure.reason.clone(),
        Err(error) => error.failure.to_string(),
    }
}

/// How much of two answers a message shows, in characters.
const SHOWN: usize = 60;

fn where_they_part(left: &str, right: &str) -> String {
    let same = left.chars().zip(right.chars()).take_while(|(left, right)| left == right).count();
    let from = same.saturating_sub(SHOWN / 2);
    let piece = |text: &str| text.chars().skip(from).take(SHOWN).collect::<String>();
    format!("...{}... and ...{}...", piece(left), piece(right))
}
