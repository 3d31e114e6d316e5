//! Writes `views.json` beside the guest's Cargo.toml; with `--check`, compares it instead.

fn main() -> std::process::ExitCode {
    pintle_guest::schema::run_views::<guest_tickets::Tickets>(env!("CARGO_MANIFEST_DIR"))
}
