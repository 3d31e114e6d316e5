//! The roots that fail, and why.

use std::sync::Arc;

use pintle_core::text;

use super::RootKey;

/// How many failing roots are named.
pub(super) const NAMED: usize = 3;

/// The most bytes of a message that are kept for each root that fails.
const MESSAGE_BYTES_MAX: usize = 256;

/// Why a root fails: the reason and the message with which its last pass ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cause {
    /// In one CamelCase word.
    pub(crate) reason: Arc<str>,
    /// For people.
    pub(crate) message: Box<str>,
}

impl Cause {
    pub(crate) fn new(reason: &str, message: &str) -> Self {
        // The message of a failure begins with its reason.
        let rest = message.strip_prefix(reason).and_then(|rest| rest.strip_prefix(": "));
        let message = text::clean(rest.unwrap_or(message), MESSAGE_BYTES_MAX);
        Self { reason: reason.into(), message: message.into() }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        size_of::<Self>() + self.reason.len() + self.message.len()
    }
}

/// The roots of a Reconciler that fail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Failures {
    /// The first [`NAMED`] of them.
    pub(crate) first: Vec<(RootKey, Cause)>,
    /// How many of them there are for each reason, the commonest first.
    pub(crate) reasons: Vec<(Arc<str>, u32)>,
}
