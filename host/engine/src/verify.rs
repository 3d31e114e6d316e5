//! Checks that bytes are a component that is allowed as a guest, before the compiler sees them.

use pintle_wit::{Failure, reasons};
use wasmparser::{BinaryReaderError, Encoding, FunctionBody, Parser, Payload, Validator};

use crate::{
    config::{EngineConfig, features},
    digest::Digest,
    failure::quoted,
};

/// How many functions a module may have: a hundred times as many as guest-webserver has.
pub const FUNCTIONS_MAX: u32 = 50_000;

/// The largest function, in bytes of its body. Compiling one is not linear in its size, and it is compiled in one piece; the
/// interpreter loop of a scripting language, the largest function that compilers make, has some 100 KB.
pub const FUNCTION_BYTES_MAX: usize = 512 << 10;

/// How many locals a function may have, without its parameters. At every point where paths of a function join, the compiler may need a
/// value for each of them. Optimising compilers leave some hundreds in their largest functions.
pub const LOCALS_MAX: u32 = 10_000;

/// The limit that a module exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    /// [`EngineConfig::module_bytes_max`].
    Bytes,
    /// [`FUNCTIONS_MAX`].
    Functions,
    /// [`FUNCTION_BYTES_MAX`].
    FunctionBytes,
    /// [`LOCALS_MAX`].
    Locals,
}

/// Why a module is refused without being compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The failure.
    pub failure: Failure,
    /// The limit that it exceeds, if it exceeds one.
    pub excess: Option<Excess>,
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self { failure, excess: None }
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        refused.failure
    }
}

fn excess(excess: Excess, message: String) -> Refused {
    Refused { failure: Failure::terminal(reasons::MODULE_TOO_LARGE, message), excess: Some(excess) }
}

/// How many imports a message names.
const IMPORTS_NAMED_MAX: usize = 10;

const PAGE_BYTES: u64 = 64 << 10;

/// Checks everything that can be checked without compiling, and returns the digest.
pub(crate) fn verify(
    bytes: &[u8],
    expected: Option<&Digest>,
    config: &EngineConfig,
) -> Result<Digest, Refused> {
    let bytes_max = config.module_bytes_max;
    if bytes.len() > bytes_max {
        let message = format!("the module has {} bytes, the limit is {bytes_max}", bytes.len());
        return Err(excess(Excess::Bytes, message));
    }
    let digest = Digest::of(bytes);
    if let Some(expected) = expected.filter(|expected| **expected != digest) {
        let message = format!("the bytes have the digest {digest}, and should have {expected}");
        // A Module cannot change, and where its bytes are can: they are fetched again.
        return Err(Failure::transient(reasons::DIGEST_MISMATCH, message).into());
    }
    sniff(bytes)?;
    let imports = walk(bytes, config.memory_bytes_max)?;
    Validator::new_with_features(features()).validate_all(bytes).map_err(invalid)?;
    if imports.is_empty() {
        return Ok(digest);
    }
    let mut names: Vec<String> = imports.iter().take(IMPORTS_NAMED_MAX).map(|name| quoted(name)).collect();
    if imports.len() > IMPORTS_NAMED_MAX {
        names.push(format!("{} more", imports.len() - IMPORTS_NAMED_MAX));
    }
    let message = format!(
        "the guest imports {}, and a guest may import nothing; build it without WASI, in Rust for \
         wasm32-unknown-unknown; run: pintle build",
        names.join(", ")
    );
    Err(Failure::terminal(reasons::IMPORTS, message).into())
}

/// What the file is, as a hint for people who chose the wrong one.
fn sniff(bytes: &[u8]) -> Result<(), Failure> {
    let not_wasm = |message: &str| Err(Failure::terminal(reasons::NOT_WASM, message));
    if bytes.is_empty() {
        return not_wasm("the file is empty");
    }
    if !bytes.starts_with(b"\0asm") {
        return match str::from_utf8(bytes) {
            Ok(text) if text.trim_start().starts_with("(component") => {
                not_wasm("the file is WebAssembly in text form; a guest is the binary form")
            }
            Ok(_) => not_wasm("the file is text, not WebAssembly"),
            Err(_) => not_wasm("the file is not WebAssembly"),
        };
    }
    if Parser::is_core_wasm(bytes) {
        return Err(Failure::terminal(
            reasons::CORE_MODULE,
            "the file is a core module, and a guest is a component; run: pintle build",
        ));
    }
    if !Parser::is_component(bytes) {
        let message = "the file has a version of WebAssembly that this host does not know";
        return Err(Failure::terminal(reasons::INVALID_WASM, message));
    }
    Ok(())
}

/// Measures the parts of the component, and returns the names that it imports.
fn walk(bytes: &[u8], memory_bytes_max: usize) -> Result<Vec<String>, Refused> {
    let mut imports = Vec::new();
    let mut functions = 0u32;
    let mut depth = 0usize;
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.map_err(invalid)? {
            Payload::Version { encoding: Encoding::Component | Encoding::Module, .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::FunctionSection(section) => functions = functions.saturating_add(section.count()),
            Payload::MemorySection(section) => {
                for memory in section {
                    let memory_bytes = memory.map_err(invalid)?.initial.saturating_mul(PAGE_BYTES);
                    if memory_bytes > memory_bytes_max as u64 {
                        let message = format!(
                            "the guest starts with {memory_bytes} bytes of memory, the limit is {memory_bytes_max}"
                        );
                        return Err(Failure::terminal(reasons::MEMORY, message).into());
                    }
                }
            }
            Payload::CodeSectionEntry(body) => check_function(&body)?,
            // Nested components import from each other; only the outermost one imports from the host.
            Payload::ComponentImportSection(section) if depth == 1 => {
                for import in section {
                    imports.push(import.map_err(invalid)?.name.name.to_owned());
                }
            }
            _ => {}
        }
    }
    if functions > FUNCTIONS_MAX {
        let message = format!("the guest has {functions} functions, the limit is {FUNCTIONS_MAX}");
        return Err(excess(Excess::Functions, message));
    }
    Ok(imports)
}

fn check_function(body: &FunctionBody<'_>) -> Result<(), Refused> {
    let start = body.range().start;
    let bytes = body.as_bytes().len();
    if bytes > FUNCTION_BYTES_MAX {
        let message =
            format!("the function at byte {start} has {bytes} bytes, the limit is {FUNCTION_BYTES_MAX}");
        return Err(excess(Excess::FunctionBytes, message));
    }
    let mut locals = 0u32;
    for group in body.get_locals_reader().map_err(invalid)? {
        let (count, _) = group.map_err(invalid)?;
        locals = locals.saturating_add(count);
    }
    if locals > LOCALS_MAX {
        let message = format!("the function at byte {start} has {locals} locals, the limit is {LOCALS_MAX}");
        return Err(excess(Excess::Locals, message));
    }
    Ok(())
}

fn invalid(error: BinaryReaderError) -> Failure {
    Failure::terminal(
        reasons::INVALID_WASM,
        format!("the file is not valid WebAssembly: at byte {}: {}", error.offset(), error.message()),
    )
}
