//! The generated bindings of the worlds. [`export!`](crate::export!) uses them; a guest's own code does not. They come from
//! `xtask/generators`, which `cargo xtask gen` runs.
#![allow(
    unsafe_code,
    reason = "generated code, which lifts and lowers strings across the component boundary"
)]
#![allow(missing_docs, unreachable_pub, reason = "generated code")]

pub mod reconciler {
    include!("bindings/reconciler.rs");
}

pub mod viewer {
    include!("bindings/viewer.rs");
}
