//! Whether the root is as the pass knows it. Where that is in doubt, and a write would do harm, the root is read live before.

use std::time::Duration;

use serde_json::Value;

use super::{
    ApiError, Pass, Step,
    flow::{Awaited, Flow, Phase},
};
use crate::object;

/// How far the root that a pass works on can be trusted to be the present one.
#[derive(Debug, Default)]
pub(super) struct Freshness {
    /// This host has looked at the root before.
    pub(super) had_a_pass: bool,
    /// The root's resourceVersion, if only a list has shown the root and no pass has read it live since. The root may be newer by now.
    listed_at: Option<String>,
    /// The root was read live in this pass, and is still as the pass knows it.
    confirmed: bool,
}

impl Freshness {
    /// Of a root that only a list has shown, in this version, or that a watch has brought.
    pub(super) fn of(had_a_pass: bool, listed_at: Option<String>) -> Self {
        Self { had_a_pass, listed_at, confirmed: false }
    }

    /// Whether the root was read live in this pass.
    pub(super) fn is_confirmed(&self) -> bool {
        self.confirmed
    }
}

impl Pass {
    /// Whether only the list at the start of this host has shown the root, and no pass has read it since. The list may be older than the
    /// last writes of the host before.
    pub(super) fn is_root_unconfirmed(&self) -> bool {
        self.freshness.listed_at.is_some() && !self.freshness.confirmed
    }

    /// Whether this host has neither written the root's status nor read the root live. A watch that begins with an old list can be behind
    /// what the host before has written, so the first status is written only over the version that this host knows.
    pub(super) fn is_root_unproven(&self) -> bool {
        !self.memory.wrote_root && !self.freshness.confirmed
    }

    pub(super) fn read_root(&mut self) -> Flow {
        self.ask_for(Awaited::Root, Step::ReadRoot)
    }

    /// The root was read live. If it is gone, is being deleted, was edited or is another root by now, the pass ends and the watch
    /// brings the root back. If only a list had shown the root, any change of it ends the pass.
    pub(super) fn root_read(&mut self, found: Result<Option<Value>, ApiError>) -> Flow {
        let version = |live: &Value| object::text(live, &["metadata", "resourceVersion"]).map(str::to_owned);
        let listed_at = &self.freshness.listed_at;
        match found {
            Ok(Some(live))
                if object::uid(&live) == self.uid()
                    && object::generation(&live) == object::generation(&self.root)
                    && object::is_deleting(&live) == object::is_deleting(&self.root)
                    && (listed_at.is_none() || *listed_at == version(&live)) =>
            {
                self.memory.is_as_listed.clone_from(listed_at);
                self.freshness.confirmed = true;
                Flow::Again
            }
            // The write would overwrite a status that this host has not seen.
            Err(error) if self.is_root_unconfirmed() => self.give_up(error),
            Err(error) => self.stop(error),
            Ok(_) => self.outdated(),
        }
    }

    /// The root has changed since it was seen. Another pass decides what to do, as soon as the watch shows the change.
    pub(super) fn outdated(&mut self) -> Flow {
        self.wake.retry(Duration::ZERO);
        self.memory.memo = None;
        Flow::To(Phase::Over)
    }
}
