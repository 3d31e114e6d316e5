//! Writes `crd.yaml` and `config.schema.json` beside Cargo.toml; with `--check`, compares them instead.

fn main() -> std::process::ExitCode {
    pintle_guest::schema::run::<__CRATE__::__KIND__>(env!("CARGO_MANIFEST_DIR"))
}
