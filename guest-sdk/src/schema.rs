//! Generates a guest's files from its types, so that they cannot differ from the code: `crd.yaml` and `config.schema.json` of one that
//! reconciles, `views.json` of one that serves views.
//!
//! A guest implements [`CustomResource`] for its spec, beside the type, and has a native binary of one line that calls [`run`]:
//!
//! ```text
//! fn main() -> std::process::ExitCode {
//!     pintle_guest::schema::run::<my_guest::Greeting>(env!("CARGO_MANIFEST_DIR"))
//! }
//! ```
//!
//! A guest that serves views calls [`run_views`], one that does both [`run_both`]. `cargo run --features schema` then writes the files. `-- --check` compares them, and exits with 1 if one is stale.
//!
//! `-- call` reads a request from the standard input, as JSON, calls the guest and prints its answer or its failure. A guest that panics
//! writes the message to the standard error, which WebAssembly has no place for: `pintle render`, `test` and `simulate` use it to show
//! the message when a module traps. A guest that serves views has `-- show` and `-- store` instead.

mod crd;
mod files;
mod resource;
mod views;

pub use crd::{Invalid, crd};
pub use files::{GenerateError, config_schema, generated, generated_views, run, run_both, run_views};
pub use resource::{Column, Crd, CustomResource, Root, Rule, Scale};
pub use views::ViewSchemas;
