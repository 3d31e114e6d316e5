//! Writes `crd.yaml`, `config.schema.json` and `views.json` beside the guest's Cargo.toml; with `--check`, compares them instead.

fn main() -> std::process::ExitCode {
    pintle_guest::schema::run_both::<darkroom_next::Next, darkroom_next::Documents>(env!(
        "CARGO_MANIFEST_DIR"
    ))
}
