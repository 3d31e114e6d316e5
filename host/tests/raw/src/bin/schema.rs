//! Writes `crd.yaml` and `config.schema.json` beside the guest's Cargo.toml; with `--check`, compares them instead.

fn main() -> std::process::ExitCode {
    pintle_guest::schema::run::<guest_raw::Raw>(env!("CARGO_MANIFEST_DIR"))
}
