//! The call of the guest: what it is shown, whether it must be called at all, and what its answer leads to.

use std::sync::Arc;

use pintle_wit::{Failure, Host, Refusal, Request, Response};
use serde_json::Value;

use super::{
    Pass, Step,
    answer::{Answer, ChildState},
    flow::{Awaited, Flow},
};
use crate::{POLICY_VERSION, desired, gate, object, reconciler::CAPABILITIES, request};

/// What the guest was asked.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// The hash of the request.
    pub(super) hash: [u8; 32],
    /// The refusals that the request contains.
    pub(super) refusals: Vec<Refusal>,
    /// How many different requests there were. One request may take several calls until the guest has seen what it needs.
    pub(super) rounds: u32,
}

impl Pass {
    /// The objects that the guest asked to see are there. Calls the guest, unless nothing has changed since the last pass.
    pub(super) fn call_guest(&mut self) -> Flow {
        let request = self.request();
        self.asked.hash = self.hash(&request);
        if !self.needs.called {
            self.asked.rounds = 1;
            if self.nothing_changed() {
                // Finalizers and status may still differ. A pass without an answer does nothing else.
                return Flow::Done;
            }
        }
        self.counts.guest_calls += 1;
        self.count_call();
        // The guest answers anew, and two answers for one root are never held at once.
        self.answer = None;
        self.ask_for(Awaited::Answer, Step::CallGuest(Box::new(request)))
    }

    fn request(&mut self) -> Request {
        self.asked.refusals = self.memory.refusals.list();
        let mut children: Vec<Value> = self
            .live
            .values()
            .filter(|child| self.owns(child))
            .filter_map(|child| child.object.clone())
            .collect();
        request::sort(&mut children);
        Request {
            object: request::project_root(&self.root, self.binding.manifest.observe_status),
            config: self.binding.config.value().clone(),
            children,
            needs: self.needs.answers.clone(),
            refusals: self.asked.refusals.clone(),
            deleting: object::is_deleting(&self.root),
            host: Host { capabilities: CAPABILITIES.map(Into::into).into() },
            ..Request::default()
        }
    }

    fn hash(&self, request: &Request) -> [u8; 32] {
        // A request is plain data with string keys, so that writing it as JSON cannot fail.
        let text = serde_json::to_vec(request).unwrap_or_default();
        let generation = self.binding.generation.to_le_bytes();
        desired::hash_parts(&[
            self.binding.digest.as_bytes(),
            self.binding.uid.as_bytes(),
            &generation,
            &POLICY_VERSION.to_le_bytes(),
            &text,
        ])
    }

    /// Whether the last pass already did everything that this pass would do: the request is the same, no child drifted, appeared or
    /// disappeared, and no stage is due.
    fn nothing_changed(&self) -> bool {
        let Some(memo) = &self.memory.memo else { return false };
        memo.is_about(&self.asked.hash)
            && !self.needs.patches_drifted
            && self.unread().is_empty()
            && !self.is_stage_due(memo)
            && memo.children_are_as_they_were(self.live.iter(), |child| self.owns(child))
    }

    pub(super) fn answered(&mut self, answer: Result<Response, Failure>) -> Flow {
        let answer = match self.answer_to_needs(answer) {
            Ok(answer) => answer,
            Err(flow) => return *flow,
        };
        let binding = Arc::clone(&self.binding);
        let context = binding.context(&self.root);
        let judged = answer.and_then(|response| {
            gate::gate(&context, response).map_err(|found| {
                self.counts.unlisted_violations += found.unlisted();
                found.failure()
            })
        });
        match judged {
            Ok(mut allowed) => {
                allowed.stamp(&self.root, &crate::conditions::time(self.now));
                let states = allowed.children().iter().map(|_| ChildState::Pending).collect();
                self.answer = Some(Answer { allowed, states, adopts: false });
                Flow::Done
            }
            Err(failure) => {
                self.answer = None;
                self.fail(failure)
            }
        }
    }
}
