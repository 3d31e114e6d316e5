//! Writes `crd.yaml` and `config.schema.json` beside Cargo.toml; with `--check`, compares them instead. With `call`, calls the guest with
//! the request on the standard input, which shows the message of a panic.

fn main() -> std::process::ExitCode {
    pintle_guest::schema::run::<__CRATE__::__KIND__>(env!("CARGO_MANIFEST_DIR"))
}
