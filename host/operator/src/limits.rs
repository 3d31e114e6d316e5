//! The limits on what a guest, a manifest or a module may cost the host and its neighbours.
//!
//! [`Limit`] is the whole list. The table in `docs/operators.md` is generated from it, and `pintle_limits_hit_total` counts by it. Each
//! value is defined where it is enforced, and is only shown here, so that the page and the code cannot differ.

use std::{collections::BTreeMap, sync::LazyLock};

use pintle_core::{
    gate,
    needs::{SHOWN_BYTES_MAX, SHOWN_OBJECTS_MAX},
    pass::{ASKING_BURST, DEADLINE_COST, EVENTS_AT_ONCE, EVENTS_EVERY, RECORDED_MAX},
    reasons, reconciler,
};
use pintle_modules::child;
use pintle_schema::config_schema;
use pintle_wit::{manifest_limits, syntax, views};

use crate::needs::{FIELDS_KEPT_MAX, RELIST_EVERY};

/// A limit. [`Limit::spec`] says where it is set and how it was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Limit {
    CallTime,
    CallMemory,
    AnswerBytes,
    AnswerDepth,
    AnswerValues,
    Violations,
    MemoryBudget,
    ModuleBytes,
    ModuleFunctions,
    FunctionBytes,
    FunctionLocals,
    CompileCpu,
    CompileTime,
    CompileMemory,
    CompiledBytes,
    SchemaNodes,
    SchemaBytes,
    SchemaDepth,
    SchemaPatterns,
    SchemaPatternBytes,
    ConfigSteps,
    Manifest,
    Needs,
    NeedSize,
    NeedFields,
    Shown,
    Relists,
    Asking,
    Events,
    Records,
}

impl From<config_schema::Excess> for Limit {
    fn from(excess: config_schema::Excess) -> Self {
        use config_schema::Excess;
        match excess {
            Excess::Nodes => Self::SchemaNodes,
            Excess::Bytes => Self::SchemaBytes,
            Excess::Depth => Self::SchemaDepth,
            Excess::Patterns => Self::SchemaPatterns,
            Excess::PatternBytes => Self::SchemaPatternBytes,
        }
    }
}

impl From<pintle_modules::Limit> for Limit {
    fn from(limit: pintle_modules::Limit) -> Self {
        use pintle_modules::Limit;
        match limit {
            Limit::ModuleBytes => Self::ModuleBytes,
            Limit::ModuleFunctions => Self::ModuleFunctions,
            Limit::FunctionBytes => Self::FunctionBytes,
            Limit::FunctionLocals => Self::FunctionLocals,
            Limit::CompileCpu => Self::CompileCpu,
            Limit::CompileTime => Self::CompileTime,
            Limit::CompileMemory => Self::CompileMemory,
            Limit::CompiledBytes => Self::CompiledBytes,
        }
    }
}

/// The description of a limit.
#[cfg_attr(
    not(test),
    allow(dead_code, reason = "the page for operators is made of what a host itself does not say")
)]
pub(crate) struct Spec {
    /// Its name in `pintle_limits_hit_total`: lower case, with hyphens.
    pub(crate) name: &'static str,
    /// What is limited, for people.
    pub(crate) what: &'static str,
    /// The default value, with its unit.
    pub(crate) default: String,
    /// Where another value can be set; empty if none can be set.
    pub(crate) set_by: &'static str,
    /// How the value was chosen.
    pub(crate) why: &'static str,
    /// The reason of the failure when the limit is hit; empty if there is only a wait.
    pub(crate) reason: &'static str,
}

impl Limit {
    /// All of them, in the order of the page about them.
    pub(crate) const ALL: [Self; 30] = [
        Self::CallTime,
        Self::CallMemory,
        Self::AnswerBytes,
        Self::AnswerDepth,
        Self::AnswerValues,
        Self::Violations,
        Self::MemoryBudget,
        Self::ModuleBytes,
        Self::ModuleFunctions,
        Self::FunctionBytes,
        Self::FunctionLocals,
        Self::CompileCpu,
        Self::CompileTime,
        Self::CompileMemory,
        Self::CompiledBytes,
        Self::SchemaNodes,
        Self::SchemaBytes,
        Self::SchemaDepth,
        Self::SchemaPatterns,
        Self::SchemaPatternBytes,
        Self::ConfigSteps,
        Self::Manifest,
        Self::Needs,
        Self::NeedSize,
        Self::NeedFields,
        Self::Shown,
        Self::Relists,
        Self::Asking,
        Self::Events,
        Self::Records,
    ];

    /// What the limit is.
    #[expect(clippy::too_many_lines, reason = "a table with a row for each limit")]
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
            Self::AnswerValues => Spec {
                name: "answer-values",
                what: "Values of an answer, a manifest or a failure: objects, lists and all that is in them",
                default: format!("{} for each KiB that it may have", pintle_wit::VALUES_PER_KIBIBYTE),
                set_by: "`spec.limits.responseKibibytes`",
                why: "objects of Kubernetes have a value in some twenty bytes; in memory one takes up to 832",
                reason: reasons::TOO_COMPLEX,
            },
            Self::Violations => Spec {
                name: "violations",
                what: "What is wrong with an answer, put into words; the rest is a number",
                default: format!("{}", pintle_core::gate::LISTED_MAX),
                set_by: "",
                why: "more than anybody mends at a time",
                reason: "",
            },
            Self::MemoryBudget => Spec {
                name: "memory-budget",
                what: "Memory of all calls, their answers and the compiler together; who finds none free waits",
                default: "three quarters of what the host does not keep of its memory limit".to_owned(),
                set_by: "`--memory-budget`, or the memory limit of the host",
                why: "with it the host stays below its limit whatever guests answer",
                reason: reasons::MEMORY_BUDGET,
            },
            Self::ModuleBytes => Spec {
                name: pintle_modules::Limit::ModuleBytes.name(),
                what: "Size of a module",
                default: format!("{} MiB", pintle_engine::MODULE_BYTES_MAX >> 20),
                set_by: "",
                why: "some fifty times a guest in Rust, and enough for a language that brings a runtime",
                reason: reasons::MODULE_TOO_LARGE,
            },
            Self::ModuleFunctions => Spec {
                name: pintle_modules::Limit::ModuleFunctions.name(),
                what: "Functions of a module",
                default: format!("{}", pintle_engine::FUNCTIONS_MAX),
                set_by: "",
                why: "a hundred times what guest-webserver has",
                reason: reasons::MODULE_TOO_LARGE,
            },
            Self::FunctionBytes => Spec {
                name: pintle_modules::Limit::FunctionBytes.name(),
                what: "Size of a function of a module",
                default: format!("{} KiB", pintle_engine::FUNCTION_BYTES_MAX >> 10),
                set_by: "",
                why: "some five times the interpreter loop of a scripting language; compiling a function is not linear in its size",
                reason: reasons::MODULE_TOO_LARGE,
            },
            Self::FunctionLocals => Spec {
                name: pintle_modules::Limit::FunctionLocals.name(),
                what: "Locals of a function of a module",
                default: format!("{}", pintle_engine::LOCALS_MAX),
                set_by: "",
                why: "some ten times what optimising compilers leave; wherever paths join, each may cost",
                reason: reasons::MODULE_TOO_LARGE,
            },
            Self::CompileCpu => Spec {
                name: pintle_modules::Limit::CompileCpu.name(),
                what: "Processors' time of compiling a module",
                default: format!("{} s", child::CPU.as_secs()),
                set_by: "",
                why: "a guest in Rust takes a tenth of one second; remembered by digest while the host runs",
                reason: reasons::COMPILE_TOO_EXPENSIVE,
            },
            Self::CompileTime => Spec {
                name: pintle_modules::Limit::CompileTime.name(),
                what: "Time of compiling a module",
                default: format!("{} s", child::WALL.as_secs()),
                set_by: "",
                why: "four times its processors' time, for a machine that does much else; tried again",
                reason: reasons::COMPILER_FAILED,
            },
            Self::CompileMemory => Spec {
                name: pintle_modules::Limit::CompileMemory.name(),
                what: "Memory of compiling a module",
                default: format!(
                    "{} MiB and {} times the module",
                    child::DATA_BYTES >> 20,
                    child::DATA_FACTOR
                ),
                set_by: "",
                why: "half as much again as guests in Rust take; a process of its own fails, not the host. Tried again, at most 5 min apart",
                reason: reasons::COMPILER_FAILED,
            },
            Self::CompiledBytes => Spec {
                name: pintle_modules::Limit::CompiledBytes.name(),
                what: "Size of what a module is compiled to",
                default: format!(
                    "{} times the module and 1 MiB, at most {} MiB",
                    child::ARTIFACT_FACTOR,
                    child::ARTIFACT_BYTES_MAX >> 20
                ),
                set_by: "",
                why: "guests in Rust take three to six times their size",
                reason: reasons::COMPILE_TOO_EXPENSIVE,
            },
            Self::SchemaNodes => Spec {
                name: "config-schema-nodes",
                what: "Schemas, names and values of `enum` in a config's schema, each counted as often as a `$ref` leads to it",
                default: config_schema::NODES_MAX.to_string(),
                set_by: "",
                why: "some hundred times what the sample guests have",
                reason: reasons::CONFIG_SCHEMA_INVALID,
            },
            Self::SchemaBytes => Spec {
                name: "config-schema-bytes",
                what: "Text of these",
                default: format!("{} KiB", config_schema::BYTES_MAX >> 10),
                set_by: "",
                why: "as much as a whole manifest may have",
                reason: reasons::CONFIG_SCHEMA_INVALID,
            },
            Self::SchemaDepth => Spec {
                name: "config-schema-depth",
                what: "Nesting of schemas in a config's schema, a `$ref` counted as a level",
                default: format!("{} levels", config_schema::DEPTH_MAX),
                set_by: "",
                why: "deeper than a manifest can be without `$ref`",
                reason: reasons::CONFIG_SCHEMA_INVALID,
            },
            Self::SchemaPatterns => Spec {
                name: "config-schema-patterns",
                what: "Different patterns in a config's schema",
                default: config_schema::PATTERNS_MAX.to_string(),
                set_by: "",
                why: "the sample guests have none",
                reason: reasons::CONFIG_SCHEMA_INVALID,
            },
            Self::SchemaPatternBytes => Spec {
                name: "config-schema-pattern-bytes",
                what: "Size of a compiled pattern",
                default: format!("{} KiB", config_schema::PATTERN_BYTES_MAX >> 10),
                set_by: "",
                why: "some 2,000 characters that are matched as they stand",
                reason: reasons::CONFIG_SCHEMA_INVALID,
            },
            Self::ConfigSteps => Spec {
                name: "config-steps",
                what: "Steps of checking a config against its schema: a look at a value, or a sixteenth of a byte for a pattern",
                default: config_schema::STEPS_MAX.to_string(),
                set_by: "",
                why: "half a second on a thread of its own; a config of a hundred fields takes some thousands",
                reason: reasons::CONFIG_TOO_EXPENSIVE,
            },
            Self::Manifest => Spec {
                name: "manifest",
                what: "Size of a manifest; kinds of children, of needs and of patches; indexes of a kind, fields of a patch; length \
                       of their paths. Of a manifest of views: views; fields that a view reads, and that it writes; columns; labels of \
                       its selector, short names, categories; length of its prefix",
                default: format!(
                    "{} KiB; {} of each; {}, {}; {} bytes in {} steps; {}; {} of each; {}; {} of each; {} bytes",
                    manifest_limits::BYTES >> 10,
                    manifest_limits::KINDS,
                    manifest_limits::INDEXES,
                    manifest_limits::FIELDS,
                    syntax::PATH_BYTES_MAX,
                    syntax::PATH_STEPS_MAX,
                    views::limits::VIEWS,
                    views::limits::FIELDS,
                    views::limits::COLUMNS,
                    views::limits::NAMES,
                    views::limits::PREFIX_BYTES,
                ),
                set_by: "",
                why: "some ten times what the largest sample guest has; a kind costs a watch, an index a look at each object",
                reason: reasons::MANIFEST_TOO_LARGE,
            },
            Self::Needs => Spec {
                name: "needs",
                what: "Needs of an answer",
                default: gate::NEEDS_MAX.to_string(),
                set_by: "",
                why: "each is looked up with every pass; enough to follow a hundred Pods to their owners",
                reason: reasons::TOO_MANY_NEEDS,
            },
            Self::NeedSize => Spec {
                name: "need-size",
                what: "Fields of a need, labels and further requirements of its selector, values of a requirement",
                default: format!(
                    "{}, {} and as many, {}",
                    gate::FIELDS_MAX,
                    gate::REQUIREMENTS_MAX,
                    gate::REQUIREMENT_VALUES_MAX
                ),
                set_by: "",
                why: "six times what the sample guests ask for; a selector is compared with every object of its namespace",
                reason: reasons::NEED_TOO_COMPLEX,
            },
            Self::NeedFields => Spec {
                name: "need-fields",
                what: "Different fields of one kind that the roots of a Reconciler ask for at a time",
                default: FIELDS_KEPT_MAX.to_string(),
                set_by: "",
                why: "each is looked for in every object that a watch brings",
                reason: reasons::TOO_MANY_FIELDS,
            },
            Self::Shown => Spec {
                name: "shown",
                what: "What a call is shown for its needs",
                default: format!("{} MiB, {SHOWN_OBJECTS_MAX} objects", SHOWN_BYTES_MAX >> 20),
                set_by: "",
                why: "twice a thousand Pods by their metadata",
                reason: reasons::NEEDS_TOO_LARGE,
            },
            Self::Relists => Spec {
                name: "relists",
                what: "Lists of one kind because somebody asks for another field",
                default: format!("one in {} s", RELIST_EVERY.as_secs()),
                set_by: "",
                why: "as often as a clock may step; what is known already is answered meanwhile. Counted for no Reconciler: all share \
                      the list",
                reason: "",
            },
            Self::Asking => Spec {
                name: "asking",
                what: "New deadlines, and needs of other fields, of a root that nobody has edited; then it is slowed (`Throttled`)",
                default: format!(
                    "{ASKING_BURST} deadlines at once, then one in {} s; a tenth of that for fields",
                    DEADLINE_COST.as_secs()
                ),
                set_by: "",
                why: "a clock steps as often, and a list costs as much as a child that is put right",
                reason: "",
            },
            Self::Events => Spec {
                name: "events",
                what: "Events about a root; the last 5 are the host's alone. What is more is dropped",
                default: format!("{EVENTS_AT_ONCE} at once, then one in {} min", EVENTS_EVERY.as_mins()),
                set_by: "",
                why: "client-go's filter of spam",
                reason: "",
            },
            Self::Records => Spec {
                name: "records",
                what: "Entries of each list in a root's `status.pintle` that count; those that name no object do not",
                default: RECORDED_MAX.to_string(),
                set_by: "",
                why: "twice the children that an answer may have; whoever may write the status may write anything there",
                reason: "",
            },
        }
    }

    /// The limit that a failure with this reason has hit, if the reason alone shows it.
    pub(crate) fn of_reason(reason: &str) -> Option<Self> {
        // Made once, because every pass that fails needs it, and a spec allocates its texts.
        static ALONE: LazyLock<BTreeMap<&'static str, Option<Limit>>> = LazyLock::new(|| {
            let mut alone = BTreeMap::new();
            for limit in Limit::ALL {
                alone.entry(limit.spec().reason).and_modify(|only| *only = None).or_insert(Some(limit));
            }
            alone
        });
        ALONE.get(reason).copied().flatten()
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
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operators.md");
        let page = fs::read_to_string(&path).unwrap();
        let (before, rest) = page.split_once(BEGIN).unwrap();
        let (written, after) = rest.split_once(END).unwrap();
        if std::env::var_os("PINTLE_WRITE_DOCS").is_some() {
            fs::write(&path, format!("{before}{BEGIN}{}{END}{after}", table())).unwrap();
            return;
        }
        assert!(
            written == table(),
            "docs/operators.md is stale; run: PINTLE_WRITE_DOCS=1 cargo test -p pintle-operator --lib limits"
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
