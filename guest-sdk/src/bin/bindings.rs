//! Writes the bindings of each world into `src/bindings`. With `--check`, compares them instead, and exits with 1 if some are stale.
//!
//! They are kept because what makes them is most of what a guest would be built with: half of its dependencies, for a hundred lines.

use std::{env, error::Error, fs, path::Path, process::ExitCode};

use wit_bindgen_core::{Files, WorldGenerator, wit_parser::Resolve};
use wit_bindgen_rust::Opts;

const WORLDS: [&str; 2] = ["reconciler", "viewer"];

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let check = match env::args().skip(1).collect::<Vec<_>>().as_slice() {
        [] => false,
        [argument] if argument == "--check" => true,
        _ => {
            eprintln!("usage: pintle-guest-bindings [--check]");
            return Ok(ExitCode::from(2));
        }
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut code = ExitCode::SUCCESS;
    for world in WORLDS {
        let bindings = bindings(&folder.join("../wit/worlds"), world)?;
        let path = folder.join(format!("src/bindings/{world}.rs"));
        if fs::read(&path).is_ok_and(|found| found == bindings) {
            continue;
        }
        if check {
            eprintln!("error: guest-sdk/src/bindings/{world}.rs is stale; run: cargo xtask gen");
            code = ExitCode::FAILURE;
        } else {
            fs::write(&path, bindings)?;
            println!("wrote guest-sdk/src/bindings/{world}.rs");
        }
    }
    Ok(code)
}

fn bindings(worlds: &Path, world: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(worlds)?;
    let id = resolve.select_world(&[package], Some(world))?;
    let options = Opts {
        pub_export_macro: true,
        export_macro_name: Some(format!("export_{world}")),
        default_bindings_module: Some(format!("pintle_guest::bindings::{world}")),
        ..Opts::default()
    };
    let mut files = Files::default();
    options.build().generate(&mut resolve, id, &mut files)?;
    let (_, bindings) = files.iter().next().ok_or("there are no bindings")?;
    Ok(bindings.to_vec())
}
