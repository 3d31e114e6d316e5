//! Writes the bindings of the world `reconciler` into `src/bindings/reconciler.rs`. With `--check`, compares them instead, and exits with 1
//! if they are stale.
//!
//! They are kept because what makes them is most of what a guest would be built with: half of its dependencies, for a hundred lines.

use std::{env, error::Error, fs, path::Path, process::ExitCode};

use wit_bindgen_core::{Files, WorldGenerator, wit_parser::Resolve};
use wit_bindgen_rust::Opts;

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
    let bindings = bindings(&folder.join("../wit/worlds"))?;
    let path = folder.join("src/bindings/reconciler.rs");
    if fs::read(&path).is_ok_and(|found| found == bindings) {
        return Ok(ExitCode::SUCCESS);
    }
    if check {
        eprintln!("error: guest-sdk/src/bindings/reconciler.rs is stale; run: cargo xtask gen");
        return Ok(ExitCode::FAILURE);
    }
    fs::write(&path, bindings)?;
    println!("wrote guest-sdk/src/bindings/reconciler.rs");
    Ok(ExitCode::SUCCESS)
}

fn bindings(worlds: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(worlds)?;
    let world = resolve.select_world(&[package], Some("reconciler"))?;
    let options = Opts {
        pub_export_macro: true,
        export_macro_name: Some("export_reconciler".into()),
        default_bindings_module: Some("pintle_guest::bindings".into()),
        ..Opts::default()
    };
    let mut files = Files::default();
    options.build().generate(&mut resolve, world, &mut files)?;
    let (_, bindings) = files.iter().next().ok_or("there are no bindings")?;
    Ok(bindings.to_vec())
}
