//! The bindings of the worlds, in `guest-sdk/src/bindings`.
//!
//! They are kept because what makes them is most of what a guest would be built with: half of its dependencies, for a hundred lines.

use std::path::Path;

use anyhow::Context as _;
use wit_bindgen_core::{Files, WorldGenerator, wit_parser::Resolve};
use wit_bindgen_rust::Opts;

use crate::File;

const WORLDS: [&str; 2] = ["reconciler", "viewer"];

pub(crate) fn generate(root: &Path) -> anyhow::Result<Vec<File>> {
    let of = |world: &&str| {
        let text = String::from_utf8(bindings(&root.join("wit/worlds"), world)?)?;
        Ok((format!("guest-sdk/src/bindings/{world}.rs"), text))
    };
    WORLDS.iter().map(of).collect()
}

fn bindings(worlds: &Path, world: &str) -> anyhow::Result<Vec<u8>> {
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
    let (_, bindings) = files.iter().next().context("there are no bindings")?;
    Ok(bindings.to_vec())
}
