//! Every reason and every condition that the host gives: what it means, and what to do.
//!
//! People match on reasons, so they are stable, and so there is one place for them: the files of this folder, one for each part of the
//! host that gives them. [`ALL`] is the whole list; `docs/reasons.md` is made of it, and a test sees to it that the code has no other.
//! A guest's own reasons are its own.

mod condition_types;
mod contract;
mod control;
mod gate;
mod page;
mod pass;
mod views;

use std::sync::LazyLock;

pub use condition_types::*;
pub use contract::*;
pub use control::*;
pub use gate::*;
pub use page::page;
pub use pass::*;
pub use views::*;

/// A reason.
#[derive(Clone, Copy, Debug)]
pub struct Reason {
    /// The word itself, in CamelCase.
    pub name: &'static str,
    /// Where somebody meets it.
    pub on: &'static [Object],
    /// What it says of the work.
    pub is: Is,
    /// What it means: one or two sentences.
    pub means: &'static str,
    /// What to do: one or two sentences.
    pub remedy: &'static str,
}

/// Where a reason stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    /// A custom resource that a guest reconciles.
    Root,
    /// A Reconciler.
    Reconciler,
    /// A Module.
    Module,
    /// A View.
    View,
    /// An Event that is published for it alone. Whatever fails a root has an Event of its reason besides.
    Event,
    /// What `pintle check`, `test` and `render` print.
    Offline,
    /// Inside the host: nobody is shown the word, at most its message in the log.
    Internal,
}

/// What a reason says of the work, which decides the condition that it stands in beside `Ready`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Is {
    /// `Ready` is True.
    Ready,
    /// The host goes on trying.
    Reconciling,
    /// Only a change can help.
    Stalled,
    /// One or the other, by what has happened.
    Either,
    /// It is no reason of `Ready`, but of another condition, or of an Event.
    Other,
}

/// Every reason, sorted by name.
pub static ALL: LazyLock<Vec<Reason>> = LazyLock::new(|| {
    let mut all =
        [contract::REASONS, gate::REASONS, pass::REASONS, control::REASONS, views::REASONS].concat();
    all.sort_unstable_by_key(|reason| reason.name);
    all
});

/// Makes a constant of each reason, and the list of them. So none has a constant and no text.
macro_rules! registry {
    ($($constant:ident = $name:expr, [$($on:ident),+], $is:ident, $means:literal, $remedy:literal;)+) => {
        $(
            #[doc = $means]
            pub const $constant: &str = $name;
        )+

        pub(super) const REASONS: &[super::Reason] = &[$(
            super::Reason {
                name: $constant,
                on: &[$(super::Object::$on),+],
                is: super::Is::$is,
                means: $means,
                remedy: $remedy,
            },
        )+];
    };
}
use registry;

#[cfg(test)]
mod tests;
