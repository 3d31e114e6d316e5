//! Views without a gateway: what a guest shows and stores of objects from files, and whether it keeps the laws of a lens.
//!
//! * [`fields`]: objects cut to what a view reads, and the fields that a write takes.
//! * [`laws`]: the laws, as functions over `show` and `store`.
//! * [`search`]: looks for an object that breaks a law, among generated ones.
//! * [`view`]: a view with the schemas of its kinds.
//! * [`subject`]: a view of a module, and its calls.

pub mod fields;
pub mod laws;
pub mod search;
pub mod subject;
pub mod view;
