//! Packs what `cargo xtask image` and `cargo xtask release` make, and checks the image with other programs. Packs the images of tests, too.
//! People call it through `cargo xtask`, which has built a static `pintle` before. The variable `PINTLE_REVISION` has the commit that it was built from.

mod archive;
mod check;
mod components;
mod image;
mod pods;
mod release;

use std::env;

use anyhow::bail;
use xtask::IMAGE;

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["image", binary, file] => image::write(binary.as_ref(), file.as_ref(), IMAGE),
        ["image", binary, file, name] => image::write(binary.as_ref(), file.as_ref(), name),
        ["pods", folder] => pods::write(folder.as_ref()),
        ["push", file, name] => image::push(file.as_ref(), name),
        ["check", binary] => check::run(binary.as_ref()),
        ["release", binary, folder] => release::write(binary.as_ref(), folder.as_ref()),
        _ => bail!("call it through cargo xtask"),
    }
}
