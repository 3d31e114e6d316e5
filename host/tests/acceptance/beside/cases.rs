//! What is compared. A case is a claim; the requests of one are sent in a namespace of their own.

mod crowds;
mod deletes;
mod forms;
mod lists;
mod metadata;
mod owners;
mod paths;
mod watches;
mod writes;

use super::Case;

/// A case: its area, its claim, and what is done.
macro_rules! case {
    ($area:expr, $name:expr, |$side:ident| $body:block) => {
        $crate::beside::Case {
            area: $area,
            name: $name,
            run: |$side| {
                Box::pin(async move {
                    $body
                    Ok(())
                })
            },
        }
    };
}
use case;

/// All of them.
pub(super) fn all() -> impl Iterator<Item = &'static Case> {
    // Those that wait longest begin first.
    [
        owners::CASES,
        watches::CASES,
        crowds::CASES,
        deletes::CASES,
        writes::CASES,
        metadata::CASES,
        lists::CASES,
        forms::CASES,
        paths::CASES,
    ]
    .into_iter()
    .flatten()
}
