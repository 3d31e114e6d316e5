//! The names of the limits, by which `pintle_limits_hit_total` counts.
//!
//! Each value is defined where it is enforced. `docs/operators.md` says what the limits are, and how they were chosen.

use pintle_core::reasons;
use pintle_modules::Limit;
use pintle_wit::words;

words! {
    /// All of them.
    pub(crate) const LIMITS;

    /// The time of a call.
    pub(crate) const CALL_TIME: &str = "call-time";
    /// The linear memory of a call.
    pub(crate) const CALL_MEMORY: &str = "call-memory";
    /// The size of an answer.
    pub(crate) const ANSWER_BYTES: &str = "answer-bytes";
    /// The nesting of an answer.
    pub(crate) const ANSWER_DEPTH: &str = "answer-depth";
    /// The values of an answer, a manifest or a failure.
    pub(crate) const ANSWER_VALUES: &str = "answer-values";
    /// What is wrong with an answer, put into words.
    pub(crate) const VIOLATIONS: &str = "violations";
    /// The memory of all calls, their answers and the compiler together.
    pub(crate) const MEMORY_BUDGET: &str = "memory-budget";
    /// The size of a module.
    pub(crate) const MODULE_BYTES: &str = Limit::ModuleBytes.name();
    /// The functions of a module.
    pub(crate) const MODULE_FUNCTIONS: &str = Limit::ModuleFunctions.name();
    /// The size of a function of a module.
    pub(crate) const FUNCTION_BYTES: &str = Limit::FunctionBytes.name();
    /// The locals of a function of a module.
    pub(crate) const FUNCTION_LOCALS: &str = Limit::FunctionLocals.name();
    /// The processors' time of compiling a module.
    pub(crate) const COMPILE_CPU: &str = Limit::CompileCpu.name();
    /// The time of compiling a module.
    pub(crate) const COMPILE_TIME: &str = Limit::CompileTime.name();
    /// The memory of compiling a module.
    pub(crate) const COMPILE_MEMORY: &str = Limit::CompileMemory.name();
    /// The size of what a module is compiled to.
    pub(crate) const COMPILED_BYTES: &str = Limit::CompiledBytes.name();
    /// The steps of checking a config against its schema.
    pub(crate) const CONFIG_STEPS: &str = "config-steps";
    /// The size of a manifest, what it declares, and what its schema of a config has in it.
    pub(crate) const MANIFEST: &str = "manifest";
    /// The needs of an answer.
    pub(crate) const NEEDS: &str = "needs";
    /// The fields of a need, and its selector.
    pub(crate) const NEED_SIZE: &str = "need-size";
    /// The different fields of one kind that the roots of a Reconciler ask for.
    pub(crate) const NEED_FIELDS: &str = "need-fields";
    /// The size of all objects that guests ask to see.
    pub(crate) const NEEDS_SIZE: &str = "needs-size";
    /// What a call is shown for its needs.
    pub(crate) const SHOWN: &str = "shown";
    /// The lists of one kind because somebody asks for another field.
    pub(crate) const RELISTS: &str = "relists";
    /// The new deadlines, and the needs of other fields, of a root that nobody has edited.
    pub(crate) const ASKING: &str = "asking";
    /// The Events about a root.
    pub(crate) const EVENTS: &str = "events";
    /// The entries of each list in a root's `status.pintle`.
    pub(crate) const RECORDS: &str = "records";
    /// The size of a root.
    pub(crate) const ROOT_SIZE: &str = "root-size";
    /// The size of all roots together.
    pub(crate) const ROOTS_SIZE: &str = "roots-size";
}

/// The limit that a failure with this reason has hit, if the reason alone shows it. A reason that several limits share shows none of them.
pub(crate) fn of_reason(reason: &str) -> Option<&'static str> {
    match reason {
        reasons::DEADLINE => Some(CALL_TIME),
        reasons::MEMORY => Some(CALL_MEMORY),
        reasons::TOO_LARGE => Some(ANSWER_BYTES),
        reasons::TOO_DEEP => Some(ANSWER_DEPTH),
        reasons::TOO_COMPLEX => Some(ANSWER_VALUES),
        reasons::MEMORY_BUDGET => Some(MEMORY_BUDGET),
        reasons::CONFIG_TOO_EXPENSIVE => Some(CONFIG_STEPS),
        reasons::MANIFEST_TOO_LARGE => Some(MANIFEST),
        reasons::TOO_MANY_NEEDS => Some(NEEDS),
        reasons::NEED_TOO_COMPLEX => Some(NEED_SIZE),
        reasons::TOO_MANY_FIELDS => Some(NEED_FIELDS),
        reasons::NEEDS_TOO_LARGE => Some(SHOWN),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_page_for_operators_has_every_limit_and_no_other() {
        let page = include_str!("../../../docs/operators.md");
        let (_, section) = page.split_once("\n## Limits\n").unwrap();
        let (section, _) = section.split_once("\n## ").unwrap();
        let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
        let written: BTreeSet<&str> = rows.map(|(limit, _)| limit).collect();
        let mut limits = LIMITS.to_vec();
        limits.sort_unstable();
        assert_eq!(limits, Vec::from_iter(written));
    }

    #[test]
    fn a_reason_that_several_limits_share_shows_none_of_them() {
        assert_eq!(of_reason(reasons::DEADLINE), Some(CALL_TIME));
        assert_eq!(of_reason(reasons::MODULE_TOO_LARGE), None);
    }
}
