//! Asking about one root: a preview's steps carried out with reads and calls of the guest.

use std::sync::Arc;

use futures::future::join_all;
use jiff::Timestamp;
use pintle_core::{
    Outcome, RootMemory, Snapshot, Step, object,
    pass::{Preview as Pass, Previewed},
    plan::Unknown,
    reasons,
};
use pintle_modules::CallMemory;
use pintle_wit::{Failure, Request, Response};
use serde_json::Value;

use crate::{
    Preview,
    children::{Children, Known, observed},
    needs::Needs,
    reader::Reader,
    target::Target,
};

/// What all roots of a preview are asked with.
pub(crate) struct Asking {
    pub(crate) reader: Reader,
    pub(crate) target: Target,
    pub(crate) children: Children,
    pub(crate) needs: Needs,
    pub(crate) now: Timestamp,
}

/// What came of a root.
pub(crate) struct Asked {
    pub(crate) previewed: Previewed,
    /// What could not be read, so that the answer means nothing.
    pub(crate) unknown: Vec<Unknown>,
    /// The request of the last call.
    pub(crate) request: Option<Request>,
    /// What was read.
    pub(crate) known: Known,
    /// What the guest asked to see, as it was read.
    pub(crate) needed: Vec<Value>,
}

impl Preview {
    /// Asks about a root.
    pub(crate) async fn ask(&self, asking: &Asking, root: &Arc<Value>) -> Asked {
        let target = &asking.target;
        let children = asking.children.of(object::uid(root));
        let mut asked = Asked {
            previewed: Previewed::default(),
            unknown: target.unknown.iter().chain(&asking.children.unread).cloned().collect(),
            request: None,
            known: Known::of(children),
            needed: Vec::new(),
        };
        if asking.children.is_blind {
            // The guest would be shown less than there is.
            return asked;
        }
        let account = target.account.clone();
        if let Err(failure) = account.and_then(|rule| rule.map(|rule| rule.account_for(root)).transpose()) {
            asked.previewed.failure = Some(failure);
            return asked;
        }
        let snapshot = Snapshot {
            binding: Arc::clone(&target.binding),
            root: Arc::clone(root),
            root_listed_at: None,
            children: children.iter().map(|child| observed(child, target)).collect(),
            memory: RootMemory::default(),
            now: asking.now,
        };
        let mut pass = Pass::new(snapshot);
        let mut step = pass.step(Outcome::Start);
        while let Some(wanted) = step {
            let outcome = match wanted {
                Step::CallGuest(request) => {
                    let answer = self.call(target, &request).await;
                    asked.request = Some(*request);
                    Outcome::Answered(answer)
                }
                Step::Look(lookups) => {
                    let found = join_all(lookups.iter().map(|look| asking.needs.look(&asking.reader, look)));
                    let found = found.await;
                    for failure in found.iter().filter_map(|found| found.as_ref().err()) {
                        let what = "what the guest asks to see".to_owned();
                        asked.unknown.push(Unknown { what, why: failure.message.clone() });
                    }
                    asked.needed = found.iter().flatten().flatten().cloned().collect();
                    Outcome::Looked(found)
                }
                Step::Get(references) => {
                    let mut found = Vec::with_capacity(references.len());
                    for reference in &references {
                        let live = match asked.known.get(reference) {
                            Some(live) => Ok(Some(Arc::clone(live))),
                            None => asking.reader.object(reference).await.map(|live| live.map(Arc::new)),
                        };
                        found.push(live.map(|live| {
                            let live = live?;
                            let seen = observed(&live, target);
                            asked.known.add(live);
                            Some(seen)
                        }));
                    }
                    Outcome::Got(found)
                }
                Step::Inspect(references) => {
                    let mut found = Vec::with_capacity(references.len());
                    for reference in &references {
                        found.push(asking.reader.object(reference).await);
                    }
                    Outcome::Inspected(found)
                }
                // A preview asks for nothing else.
                _ => break,
            };
            step = pass.step(outcome);
        }
        let known = &asked.known;
        asked.previewed = pass.finish(|reference| known.get(reference).map(Arc::as_ref));
        let is_unread = |failure: &Failure| failure.reason == reasons::NEED_UNREAD;
        if asked.previewed.failure.as_ref().is_some_and(is_unread) && !asked.unknown.is_empty() {
            asked.previewed.failure = None;
        }
        asked
    }

    /// Calls the guest within the Reconciler's limits and the budget, on a thread that may wait. As many calls as there are processors are
    /// made at once.
    async fn call(&self, target: &Target, request: &Request) -> Result<Response, Failure> {
        let Ok(text) = serde_json::to_string(request) else {
            let message = "the request cannot be written as JSON";
            return Err(Failure::transient(reasons::REQUEST_INVALID, message));
        };
        let text: Arc<str> = text.into();
        let mut memory = CallMemory::new(&self.budget, &target.name, target.limits, text.len());
        loop {
            let turn = Arc::clone(&self.turns).acquire_owned().await;
            let (reserved, limits) = memory.reserve().await?;
            let (guest, text) = (target.guest.clone(), Arc::clone(&text));
            let called = self.spawner.block(move || {
                let _held = (turn, reserved);
                guest.reconcile(&text, &limits)
            });
            let called = called.await;
            let called =
                called.map_err(|error| Failure::transient(reasons::ENGINE_FAILED, error.to_string()))?;
            if memory.has_more(called.as_ref().err()) {
                continue;
            }
            memory.saw(called.as_ref().map_or_else(|error| error.stats, |answer| answer.stats));
            return called.map(|answer| answer.response).map_err(Failure::from);
        }
    }
}
