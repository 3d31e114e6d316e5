//! Generates a guest's `crd.yaml` and `config.schema.json` from its types, so that they cannot differ from the code.
//!
//! A guest implements [`CustomResource`] for its spec, beside the type, and has a native binary of one line that calls [`run`]:
//!
//! ```text
//! fn main() -> std::process::ExitCode {
//!     pintle_guest::schema::run::<my_guest::Greeting>(env!("CARGO_MANIFEST_DIR"))
//! }
//! ```
//!
//! `cargo run --features schema` then writes both files. `-- --check` compares them, and exits with 1 if one is stale.
//!
//! `-- call` reads a request from the standard input, as JSON, calls the guest and prints its answer or its failure. A guest that panics
//! writes the message to the standard error, which WebAssembly has no place for: `pintle render`, `test` and `simulate` use it to show
//! the message when a module traps.

mod crd;
mod files;
mod resource;

pub use crd::{Invalid, crd};
pub use files::{GenerateError, config_schema, generated, run};
pub use resource::{Column, Crd, CustomResource, Root, Rule, Scale};
