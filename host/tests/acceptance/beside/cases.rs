//! What is compared. A case is a claim; the requests of one are sent in a namespace of their own.

#[path = "cases/crowds.rs"]
mod crowds;
#[path = "cases/deletes.rs"]
mod deletes;
#[path = "cases/forms.rs"]
mod forms;
#[path = "cases/lists.rs"]
mod lists;
#[path = "cases/metadata.rs"]
mod metadata;
#[path = "cases/owners.rs"]
mod owners;
#[path = "cases/paths.rs"]
mod paths;
#[path = "cases/watches.rs"]
mod watches;
#[path = "cases/writes.rs"]
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
