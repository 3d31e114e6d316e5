//! What a process gives to those who get Modules ready for it: where they report.

use std::time::Duration;

use pintle_engine::Excess;

/// A limit that a module can hit before it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    /// The size of the module.
    ModuleBytes,
    /// Its number of functions.
    ModuleFunctions,
    /// The size of one function.
    FunctionBytes,
    /// The number of locals of one function.
    FunctionLocals,
    /// The processor time of its compiler.
    CompileCpu,
    /// The elapsed time of its compiler.
    CompileTime,
    /// The memory of its compiler.
    CompileMemory,
    /// The size of what it was compiled to.
    CompiledBytes,
}

impl Limit {
    /// Its name in metrics and in docs/operators.md.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ModuleBytes => "module-bytes",
            Self::ModuleFunctions => "module-functions",
            Self::FunctionBytes => "function-bytes",
            Self::FunctionLocals => "function-locals",
            Self::CompileCpu => "compile-cpu",
            Self::CompileTime => "compile-time",
            Self::CompileMemory => "compile-memory",
            Self::CompiledBytes => "compiled-bytes",
        }
    }
}

impl From<Excess> for Limit {
    fn from(excess: Excess) -> Self {
        match excess {
            Excess::Bytes => Self::ModuleBytes,
            Excess::Functions => Self::ModuleFunctions,
            Excess::FunctionBytes => Self::FunctionBytes,
            Excess::Locals => Self::FunctionLocals,
        }
    }
}

/// Is told what happens while Modules are made ready, for the metrics of the process.
pub trait Report: Send + Sync {
    /// A compiler ended like this: `made`, `invalid`, `too-expensive`, `failed` (it is tried again), or `stopped` to be run again where it
    /// holds up no others.
    fn compiled(&self, outcome: &'static str, took: Duration);

    /// A module hit a limit. It is counted for somebody, or for nobody if that is empty.
    fn limit_hit(&self, counted_for: &str, limit: Limit);
}
