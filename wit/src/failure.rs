//! [`Failure`]: why there is no answer, and the reasons that the host itself gives.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ApiVersion;

/// Why there is no answer. A guest returns it as the error of `reconcile`; the host states its own refusals in the same form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Failure {
    /// `guest.pintle.dev/v1`.
    pub api_version: ApiVersion,
    /// A stable word in CamelCase, at most 128 characters: it becomes the reason of a condition.
    pub reason: String,
    /// What is wrong and what to do, for a person.
    pub message: String,
    /// The field at fault, if there is one: `spec.source.bucket` in the root, `children[2].object.metadata.name` in an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Whether a retry can help although nothing changes. Otherwise the host waits for a change.
    #[serde(default)]
    pub retry: bool,
}

impl Failure {
    /// A failure that only a change can resolve.
    pub fn terminal(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { reason: reason.into(), message: message.into(), ..Self::default() }
    }

    /// A failure that the host should retry, with back-off.
    pub fn transient(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { retry: true, ..Self::terminal(reason, message) }
    }

    /// The same failure, naming the field at fault.
    #[must_use]
    pub fn at(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }
}

impl Failure {
    /// What is wrong, behind the path of the field, if there is one: `spec.weight: is required`.
    pub fn where_and_why(&self) -> String {
        match &self.path {
            Some(path) => format!("{path}: {}", self.message),
            None => self.message.clone(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(f, "{}: {path}: {}", self.reason, self.message),
            None => write!(f, "{}: {}", self.reason, self.message),
        }
    }
}

impl std::error::Error for Failure {}

/// Makes a constant of each word, and a list of the constants, so that a test can compare them with the page that explains them.
#[doc(hidden)]
#[macro_export]
macro_rules! words {
    (
        $(#[$about:meta])* $seen:vis const $list:ident;
        $($(#[$meaning:meta])* $visibility:vis const $name:ident: &str = $word:expr;)+
    ) => {
        $(#[$about])*
        $seen const $list: &[&str] = &[$($name),+];
        $($(#[$meaning])* $visibility const $name: &str = $word;)+
    };
}

/// The reasons that the host itself gives. They are stable: people match on them.
pub mod reasons {
    crate::words! {
        /// All of them.
        pub const CONTRACT;

        /// The bytes are not WebAssembly.
        pub const NOT_WASM: &str = "NotWasm";
        /// The bytes are a core module, not a component.
        pub const CORE_MODULE: &str = "CoreModule";
        /// The bytes are WebAssembly, but not valid, or use a feature that guests may not use.
        pub const INVALID_WASM: &str = "InvalidWasm";
        /// The module is larger than the host accepts.
        pub const MODULE_TOO_LARGE: &str = "ModuleTooLarge";
        /// Compiling the module takes more CPU time than the host grants. The result is always the same for these bytes.
        pub const COMPILE_TOO_EXPENSIVE: &str = "CompileTooExpensive";
        /// The module was not compiled this time: the compiler had too little memory, took too long, or was killed.
        pub const COMPILER_FAILED: &str = "CompilerFailed";
        /// The bytes do not have the digest that was asked for.
        pub const DIGEST_MISMATCH: &str = "DigestMismatch";
        /// The component imports something.
        pub const IMPORTS: &str = "ImportsNotAllowed";
        /// The component lacks an export of the contract.
        pub const MISSING_EXPORT: &str = "MissingExport";
        /// An export of the contract has another type.
        pub const WRONG_TYPE: &str = "WrongExportType";
        /// The guest's code trapped: it panicked, or did what WebAssembly forbids.
        pub const TRAP: &str = "GuestTrapped";
        /// The guest ran longer than its deadline.
        pub const DEADLINE: &str = "DeadlineExceeded";
        /// The guest spent its fuel. Only where calls are counted in fuel instead of time.
        pub const FUEL: &str = "FuelExhausted";
        /// The guest asked for more memory than its limit.
        pub const MEMORY: &str = "MemoryLimitExceeded";
        /// The guest used up its stack.
        pub const STACK: &str = "StackOverflow";
        /// The guest answered with a string that lies outside its memory.
        pub const OUT_OF_BOUNDS: &str = "AnswerOutOfBounds";
        /// The guest's answer is not UTF-8.
        pub const NOT_UTF8: &str = "InvalidUtf8";
        /// The guest's answer is larger than its limit.
        pub const TOO_LARGE: &str = "ResponseTooLarge";
        /// The guest's answer is nested too deeply.
        pub const TOO_DEEP: &str = "ResponseTooDeep";
        /// The guest's answer has more values than its limit.
        pub const TOO_COMPLEX: &str = "ResponseTooComplex";
        /// The parsed answer would take more memory than this call was granted. The host calls the guest again with more.
        pub const BEYOND_GRANT: &str = "AnswerBeyondGrant";
        /// A call takes more memory than the host has for one.
        pub const MEMORY_BUDGET: &str = "MemoryBudgetExceeded";
        /// A manifest is larger than a host accepts, or declares more.
        pub const MANIFEST_TOO_LARGE: &str = "ManifestTooLarge";
        /// The guest's answer is not JSON, or has a key twice.
        pub const INVALID_JSON: &str = "InvalidJson";
        /// The guest's answer has a field that the contract does not know.
        pub const UNKNOWN_FIELD: &str = "UnknownField";
        /// The guest's answer is JSON, but not the document that it should be.
        pub const INVALID_DOCUMENT: &str = "InvalidDocument";
        /// The guest kept changing its answer to the same refusals.
        pub const REFUSALS_UNSTABLE: &str = "RefusalsUnstable";
        /// The guest kept changing its needs.
        pub const NEEDS_UNSTABLE: &str = "NeedsUnstable";
        /// The objects that the guest asked to see are larger than a request may be.
        pub const NEEDS_TOO_LARGE: &str = "NeedsTooLarge";
        /// The roots of a Reconciler ask for more different fields of one kind than the host keeps for them.
        pub const TOO_MANY_FIELDS: &str = "TooManyFields";
        /// The root does not fit the guest's type.
        pub const INVALID_SPEC: &str = "InvalidSpec";
        /// The config does not fit the guest's type or schema.
        pub const CONFIG_INVALID: &str = "ConfigInvalid";
        /// The schema of the config in the manifest is no structural schema, or uses something that this host does not support.
        pub const CONFIG_SCHEMA_INVALID: &str = "ConfigSchemaInvalid";
        /// Checking the config against the schema would take too long.
        pub const CONFIG_TOO_EXPENSIVE: &str = "ConfigTooExpensive";
    }
}
