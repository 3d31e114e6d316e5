//! Calling a guest that reconciles, and watching that it is a pure function.

use pintle_core::reasons;
use pintle_engine::{CallError, Origin};
use pintle_wit::{Failure, Request};

/// What came of a call.
pub(crate) type Called = Result<pintle_engine::Answer, CallError>;

/// The text of a request, as a guest gets it.
pub(crate) fn text_of(request: &impl serde::Serialize) -> String {
    // A request is plain data with string keys, so that writing it as JSON cannot fail.
    serde_json::to_string(request).unwrap_or_default()
}

/// Asks the same again, and with its children backwards: the answer must be the same.
pub(crate) fn impurity(
    ask: impl Fn(&Request) -> Called,
    request: &Request,
    first: &Called,
) -> Option<Failure> {
    let mut backwards = request.clone();
    backwards.children.reverse();
    let in_another_order = ("asked with the children in another order,", &backwards);
    let other_orders = (backwards.children.len() > 1).then_some(in_another_order);
    let mut others = std::iter::once(("asked the same again,", request)).chain(other_orders);
    others.find_map(|(how, other)| {
        let (first, again) = (said(first), said(&ask(other)));
        let message = || format!("{how} the guest answered otherwise: {}", where_they_part(&first, &again));
        (first != again).then(|| Failure::terminal(reasons::NOT_DETERMINISTIC, message()))
    })
}

/// What a guest said, byte by byte; of a failure of the engine only the reason, since its message may count bytes and fuel.
fn said(answer: &Called) -> String {
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
