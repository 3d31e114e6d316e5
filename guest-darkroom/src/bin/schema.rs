//! Writes `crd.yaml`, `config.schema.json` and `views.json` beside the guest's Cargo.toml; with `--check`, compares them instead.

fn main() -> std::process::ExitCode {
    pintle_guest::schema::run_both::<guest_darkroom::Darkroom, guest_darkroom::Documents>(env!(
        "CARGO_MANIFEST_DIR"
    ))
}
