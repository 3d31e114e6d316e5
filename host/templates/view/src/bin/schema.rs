//! Writes `views.json` beside Cargo.toml; with `--check`, compares it instead. With `show` or `store`, calls the guest with the request on
//! the standard input, which shows the message of a panic.

fn main() -> std::process::ExitCode {
    pintle_guest::schema::run_views::<__CRATE__::Guest>(env!("CARGO_MANIFEST_DIR"))
}
