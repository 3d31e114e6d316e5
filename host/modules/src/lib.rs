//! Gets a Module ready to be called, for every process that calls guests: fetches its bytes, verifies them against the digest, and
//! compiles them in a process of its own.
//!
//! - [`Loader`]: the way from a Module to a [`pintle_engine::Module`].
//! - [`module_bytes`]: the bytes alone, for whoever does not compile them.
//! - [`Compilers`]: the places to compile in, and what is not tried again. [`child`] is one compiler.
//! - [`Budget`]: the memory that compilers and the calls of guests may take together. [`CallMemory`]: how much of it a call is given.
//!   [`memory_limit`]: how much the process has.
//! - [`upload`]: from bytes to a Module.
//! - [`Report`]: what a process gives to be told what happens.

mod budget;
pub mod child;
mod compilers;
mod fetch;
mod grants;
mod loader;
pub mod memory_limit;
mod report;
pub mod upload;

pub use budget::{Budget, NoMemory, Purpose, Reservation, Standing, TooLarge};
pub use compilers::{Compilers, Run, retry_after};
pub use fetch::module_bytes;
pub use grants::CallMemory;
pub use loader::{Loader, Order};
pub use report::{Limit, Report};
