//! Writes the published JSON Schemas into `schemas/`. With `--check`, compares them instead, and exits with 1 if one is stale.

use std::{env, fs, path::Path, process::ExitCode};

fn main() -> ExitCode {
    let check = match env::args().skip(1).collect::<Vec<_>>().as_slice() {
        [] => false,
        [argument] if argument == "--check" => true,
        _ => {
            eprintln!("usage: pintle-wit-schemas [--check]");
            return ExitCode::from(2);
        }
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
    let mut stale = false;
    for (name, schema) in pintle_wit::schema::published() {
        // `Display` with `#` prints indented and cannot fail.
        let content = format!("{schema:#}\n");
        let path = folder.join(name);
        if fs::read_to_string(&path).is_ok_and(|found| found == content) {
            continue;
        }
        if check {
            stale = true;
            eprintln!(
                "error: wit/schemas/{name} is stale; run `cargo run -p pintle-wit --features schema --bin pintle-wit-schemas`"
            );
        } else if let Err(error) = fs::create_dir_all(&folder).and_then(|()| fs::write(&path, content)) {
            eprintln!("error: {} cannot be written: {error}", path.display());
            return ExitCode::FAILURE;
        } else {
            println!("wrote wit/schemas/{name}");
        }
    }
    if stale { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
