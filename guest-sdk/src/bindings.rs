//! The generated bindings of the world `reconciler`. [`export!`](crate::export!) uses them; a guest's own code does not.
#![allow(
    unsafe_code,
    reason = "generated code, which lifts and lowers strings across the component boundary"
)]
#![allow(missing_docs, unreachable_pub, reason = "generated code")]

wit_bindgen::generate!({
    path: "../wit/worlds",
    world: "reconciler",
    pub_export_macro: true,
    export_macro_name: "export_reconciler",
    default_bindings_module: "pintle_guest::bindings",
});
