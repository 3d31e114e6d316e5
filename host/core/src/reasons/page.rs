//! `docs/reasons.md`.

use std::fmt::Write;

use super::{ALL, CONDITION_TYPES, ConditionType, Is, Object, Reason};

/// The page about reasons, `docs/reasons.md`.
pub fn page() -> String {
    let mut page = String::from(INTRODUCTION);
    for (object, title) in SECTIONS {
        let _ = write!(page, "\n## {title}\n\n");
        let has_condition = !matches!(object, Object::Event | Object::Offline | Object::Internal);
        page.push_str(match has_condition {
            true => "| reason | beside `Ready` | what it means | what to do |\n| --- | --- | --- | --- |\n",
            false => "| reason | what it means | what to do |\n| --- | --- | --- |\n",
        });
        for Reason { name, is, means, remedy, .. } in ALL.iter().filter(|one| one.on.contains(object)) {
            let beside = match is {
                Is::Ready => "none; it is True",
                Is::Reconciling => "`Reconciling`",
                Is::Stalled => "`Stalled`",
                Is::Either => "`Reconciling` or `Stalled`",
                Is::Other => "not of `Ready`",
            };
            let beside = if has_condition { format!(" {beside} |") } else { String::new() };
            let _ = writeln!(page, "| `{name}` |{beside} {} | {} |", cell(means), cell(remedy));
        }
    }
    page.push_str(
        "\n## Other conditions\n\n| condition | on | True is | what True means | what to do |\n| --- | --- | --- | --- | --- |\n",
    );
    for ConditionType { name, on, is_good, means, remedy } in CONDITION_TYPES {
        let on = match on {
            Object::Module => "a Module",
            Object::View => "a View",
            _ => "a Reconciler",
        };
        let is = if *is_good { "as it should be" } else { "something to know" };
        let _ = writeln!(page, "| `{name}` | {on} | {is} | {} | {} |", cell(means), cell(remedy));
    }
    page
}

/// Text in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

const INTRODUCTION: &str = "# Reasons

What conditions and Events say. Generated from the code; see host/core/src/reasons.rs.

`Ready` is True, with the reason `Succeeded`, when everything is as it should be. Otherwise it is False, and its reason and message say \
what is first in the way. `Reconciling` is True while Pintle goes on trying, and `Stalled` when only a change can help; both are absent \
when all is well, and may have the reason of something further behind. Look at the custom resource first, then at its Reconciler, then \
at the Module. When a custom resource begins to fail, or the `Ready` of a Reconciler or a Module turns, there is also an Event of the \
same reason.

A reason that is not listed here is the guest's own, or the API server's word for what it refused: what failed on its side \
(`InternalError`, `ServiceUnavailable`) is tried again.
";

const SECTIONS: &[(Object, &str)] = &[
    (Object::Root, "Custom resources"),
    (Object::Reconciler, "Reconcilers"),
    (Object::Module, "Modules"),
    (Object::View, "Views"),
    (Object::Event, "Events"),
    (Object::Offline, "What `pintle check`, `test` and `render` print"),
    (Object::Internal, "Inside the host: at most the message is logged"),
];
