//! Whether bytes are a component that guests may be, before the compiler sees them.

use pintle_wit::{Failure, reasons};
use wasmparser::{BinaryReaderError, Encoding, Parser, Payload, Validator};

use crate::{config::features, failure::quoted};

/// How many functions a module may have, a hundred times as many as guest-webserver has. Bounds compiling, which no deadline does.
pub const FUNCTIONS_MAX: u32 = 50_000;

/// How many imports a message names.
const IMPORTS_NAMED_MAX: usize = 10;

const PAGE_BYTES: u64 = 64 << 10;

/// Checks everything that can be known without compiling.
pub(crate) fn verify(bytes: &[u8], memory_bytes_max: usize) -> Result<(), Failure> {
    sniff(bytes)?;
    let imports = walk(bytes, memory_bytes_max)?;
    Validator::new_with_features(features()).validate_all(bytes).map_err(invalid)?;
    if imports.is_empty() {
        return Ok(());
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
    Err(Failure::terminal(reasons::IMPORTS, message))
}

/// What the file is, for people who took the wrong one.
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
fn walk(bytes: &[u8], memory_bytes_max: usize) -> Result<Vec<String>, Failure> {
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
                        return Err(Failure::terminal(reasons::MEMORY, message));
                    }
                }
            }
            // Inside, components import from each other; only the outermost imports from the host.
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
        return Err(Failure::terminal(reasons::MODULE_TOO_LARGE, message));
    }
    Ok(imports)
}

fn invalid(error: BinaryReaderError) -> Failure {
    Failure::terminal(
        reasons::INVALID_WASM,
        format!("the file is not valid WebAssembly: at byte {}: {}", error.offset(), error.message()),
    )
}
