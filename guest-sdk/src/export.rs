//! The macro [`export!`](crate::export!), which turns a guest into a WebAssembly component.

/// Makes a component of a guest, once, in the guest's `lib.rs`:
///
/// * `export!(Greeting);` for a guest that reconciles, which is a [`Guest`](crate::Guest);
/// * `export!(views: Farm);` for a guest that serves views, which is a [`Views`](crate::Views);
/// * `export!(Greeting, views: Greetings);` for a guest that does both.
///
/// The component carries generated files, which it takes from beside the guest's Cargo.toml: `config.schema.json`, the schema of the
/// config of a guest that reconciles, and `views.json`, the schemas of views. A guest without `config.schema.json` writes
/// `export!(Greeting, no_config_schema);` and states `config_schema` in its manifest, or has no config.
///
/// In a native build the macro expands to nothing, so that a guest can be tested as an ordinary library.
#[macro_export]
macro_rules! export {
    (views: $views:ty) => {
        #[cfg(target_arch = "wasm32")]
        #[allow(unsafe_code, reason = "the generated exports lift and lower strings across the component boundary")]
        const _: () = {
            struct Component;

            impl $crate::bindings::viewer::exports::pintle::guest::views::Guest for Component {
                fn describe_views() -> ::std::string::String {
                    $crate::call::views::describe::<$views>(::core::include_str!(::core::concat!(
                        ::core::env!("CARGO_MANIFEST_DIR"),
                        "/views.json"
                    )))
                }

                fn show(
                    request: ::std::string::String,
                ) -> ::core::result::Result<::std::string::String, ::std::string::String> {
                    $crate::call::views::show::<$views>(&request)
                }

                fn store(
                    request: ::std::string::String,
                ) -> ::core::result::Result<::std::string::String, ::std::string::String> {
                    $crate::call::views::store::<$views>(&request)
                }
            }

            $crate::bindings::viewer::export_viewer!(Component with_types_in $crate::bindings::viewer);
        };
    };
    ($guest:ty, views: $views:ty) => {
        $crate::export!($guest);
        $crate::export!(views: $views);
    };
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

            impl $crate::bindings::reconciler::exports::pintle::guest::guest::Guest for Component {
                fn describe() -> ::std::string::String {
                    $crate::call::describe::<$guest>($config_schema)
                }

                fn reconcile(
                    request: ::std::string::String,
                ) -> ::core::result::Result<::std::string::String, ::std::string::String> {
                    $crate::call::reconcile::<$guest>(&request)
                }
            }

            $crate::bindings::reconciler::export_reconciler!(Component with_types_in $crate::bindings::reconciler);
        };
    };
}
