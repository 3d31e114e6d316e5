//! The limits on what a guest, a manifest or a module may cost the host and its neighbours.
//!
//! [`Limit`] is the whole list. The table in `docs/operators.md` is made of it, and `pintle_limits_hit_total` counts by it. A value
//! stands where it is enforced; here it is only shown, so that the page cannot say anything else than the code does.

use pintle_core::reconciler;
use pintle_wit::reasons;

/// A limit. Where it stands and why it is what it is: [`Limit::spec`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Limit {
    CallTime,
    CallMemory,
    AnswerBytes,
    AnswerDepth,
    ModuleBytes,
    ModuleFunctions,
}

/// What a limit is.
#[cfg_attr(
    not(test),
    allow(dead_code, reason = "the page for operators is made of what a host itself does not say")
)]
pub(crate) struct Spec {
    /// What it is called in `pintle_limits_hit_total`: lower case, with hyphens.
    pub(crate) name: &'static str,
    /// What is limited, for people.
    pub(crate) what: &'static str,
    /// The value that holds unless somebody sets another one, with its unit.
    pub(crate) default: String,
    /// Where another value is set; empty where none can be.
    pub(crate) set_by: &'static str,
    /// How the value was chosen.
    pub(crate) why: &'static str,
    /// The reason of the failure that the one who hits it meets; empty where it only waits.
    pub(crate) reason: &'static str,
}

impl Limit {
    /// All of them, in the order of the page about them.
    pub(crate) const ALL: [Self; 6] = [
        Self::CallTime,
        Self::CallMemory,
        Self::AnswerBytes,
        Self::AnswerDepth,
        Self::ModuleBytes,
        Self::ModuleFunctions,
    ];

    /// What the limit is.
    pub(crate) fn spec(self) -> Spec {
        let limits = reconciler::Limits::default();
        let answer = limits.response();
        match self {
            Self::CallTime => Spec {
                name: "call-time",
                what: "Time of a call",
                default: format!("{} ms", limits.timeout_milliseconds),
                set_by: "`spec.limits.timeoutMilliseconds`",
                why: "a thousand times what the sample guests need, and short enough for a worker to be held up",
                reason: reasons::DEADLINE,
            },
            Self::CallMemory => Spec {
                name: "call-memory",
                what: "Linear memory of a call",
                default: format!("{} MiB", limits.memory_mebibytes),
                set_by: "`spec.limits.memoryMebibytes`",
                why: "the sample guests need less than 1",
                reason: reasons::MEMORY,
            },
            Self::AnswerBytes => Spec {
                name: "answer-bytes",
                what: "Size of an answer",
                default: format!("{} KiB", limits.response_kibibytes),
                set_by: "`spec.limits.responseKibibytes`",
                why: "one object in etcd is at most 1.5 MiB",
                reason: reasons::TOO_LARGE,
            },
            Self::AnswerDepth => Spec {
                name: "answer-depth",
                what: "Nesting of an answer",
                default: format!("{} levels", answer.depth),
                set_by: "",
                why: "twice what the deepest built-in kind needs",
                reason: reasons::TOO_DEEP,
            },
            Self::ModuleBytes => Spec {
                name: "module-bytes",
                what: "Size of a module",
                default: format!("{} MiB", pintle_engine::MODULE_BYTES_MAX >> 20),
                set_by: "",
                why: "some fifty times a guest in Rust, and enough for a language that brings a runtime",
                reason: reasons::MODULE_TOO_LARGE,
            },
            Self::ModuleFunctions => Spec {
                name: "module-functions",
                what: "Functions of a module",
                default: format!("{}", pintle_engine::FUNCTIONS_MAX),
                set_by: "",
                why: "a hundred times what guest-webserver has",
                reason: reasons::MODULE_TOO_LARGE,
            },
        }
    }

    /// The limit that a failure of this reason hit, where the reason alone tells.
    pub(crate) fn of_reason(reason: &str) -> Option<Self> {
        let mut hit = Self::ALL.into_iter().filter(|limit| limit.spec().reason == reason);
        hit.next().filter(|_| hit.next().is_none())
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    const BEGIN: &str = "<!-- limits: generated -->\n";
    const END: &str = "<!-- limits: end -->";

    fn table() -> String {
        let mut table =
            "| limit | what | default | set by | why | reason |\n| --- | --- | --- | --- | --- | --- |\n"
                .to_owned();
        for spec in Limit::ALL.map(Limit::spec) {
            let Spec { name, what, default, set_by, why, reason } = spec;
            let reason = if reason.is_empty() { String::new() } else { format!("`{reason}`") };
            table.push_str(&format!("| `{name}` | {what} | {default} | {set_by} | {why} | {reason} |\n"));
        }
        table
    }

    #[test]
    fn the_page_for_operators_has_every_limit_as_the_code_has_it() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/operators.md");
        let page = fs::read_to_string(&path).unwrap();
        let (before, rest) = page.split_once(BEGIN).unwrap();
        let (written, after) = rest.split_once(END).unwrap();
        if std::env::var_os("PINTLE_WRITE_DOCS").is_some() {
            fs::write(&path, format!("{before}{BEGIN}{}{END}{after}", table())).unwrap();
            return;
        }
        assert!(
            written == table(),
            "docs/operators.md is stale; run: PINTLE_WRITE_DOCS=1 cargo test -p pintle --lib limits"
        );
    }

    #[test]
    fn every_limit_has_a_name_of_its_own_a_value_and_a_why() {
        let mut names: Vec<&str> = Limit::ALL.iter().map(|limit| limit.spec().name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Limit::ALL.len());
        for spec in Limit::ALL.map(Limit::spec) {
            assert!(
                !spec.default.is_empty() && !spec.why.is_empty() && !spec.what.is_empty(),
                "{}",
                spec.name
            );
            assert!(spec.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{}", spec.name);
        }
    }

    #[test]
    fn a_reason_that_several_limits_share_tells_none_of_them() {
        assert_eq!(Limit::of_reason(reasons::DEADLINE), Some(Limit::CallTime));
        assert_eq!(Limit::of_reason(reasons::MODULE_TOO_LARGE), None);
        assert_eq!(Limit::of_reason("AdoptionConflict"), None);
    }
}
