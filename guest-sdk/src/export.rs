//! The macro [`export!`](crate::export!), which turns a guest into a WebAssembly component.

/// Makes a component of a guest: `export!(Greeting);`, once, in the guest's `lib.rs`.
///
/// The component carries the JSON Schema of the guest's config, which it takes from `config.schema.json` beside the guest's
/// Cargo.toml. A guest without that file writes `export!(Greeting, no_config_schema);` and states `config_schema` in its
/// manifest, or has no config.
///
/// In a native build the macro expands to nothing, so that a guest can be tested as an ordinary library.
#[macro_export]
macro_rules! export {
    ($guest:ty) => {
        $crate::export!(@ $guest, ::core::option::Option::Some(::core::include_str!(::core::concat!(
            ::core::env!("CARGO_MANIFEST_DIR"),
            "/config.schema.json"
        ))));
    };
    ($guest:ty, no_config_schema) => {
        $crate::export!(@ $guest, ::core::option::Option::None);
    };
    (@ $guest:ty, $config_schema:expr) => {
        #[cfg(target_arch = "wasm32")]
        #[allow(unsafe_code, reason = "the generated exports lift and lower strings across the component boundary")]
        const _: () = {
            struct Component;

            impl $crate::bindings::exports::pintle::guest::guest::Guest for Component {
                fn describe() -> ::std::string::String {
                    $crate::call::describe::<$guest>($config_schema)
                }

                fn reconcile(
                    request: ::std::string::String,
                ) -> ::core::result::Result<::std::string::String, ::std::string::String> {
                    $crate::call::reconcile::<$guest>(&request)
                }
            }

            $crate::bindings::export_reconciler!(Component with_types_in $crate::bindings);
        };
    };
}
