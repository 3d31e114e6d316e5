//! The generated bindings of the world `reconciler`. [`export!`](crate::export!) uses them; a guest's own code does not. They come from
//! `src/bin/bindings.rs`, which `cargo xtask gen` runs.
#![allow(
    unsafe_code,
    reason = "generated code, which lifts and lowers strings across the component boundary"
)]
#![allow(missing_docs, unreachable_pub, reason = "generated code")]

include!("bindings/reconciler.rs");
