//! The files of a release, with their checksums. The crates of the SDK are not among them: they go to a registry.

use std::{env::consts::ARCH, fs, path::Path, process::Command};

use anyhow::{Context as _, Result};
use pintle_testbed::{chart_files, output};
use xtask::{CHART, root};

use crate::{
    archive::{Entry, gzip, sha256, tar},
    components,
    image::Image,
};

/// The completions of the command line: the shell, and the name that it looks for.
const COMPLETIONS: [(&str, &str); 3] = [("zsh", "_pintle"), ("bash", "pintle.bash"), ("fish", "pintle.fish")];

/// Writes the files of a release into a folder of their own.
pub(crate) fn write(binary: &Path, folder: &Path) -> Result<()> {
    let target = format!("{ARCH}-unknown-linux-gnu");
    let name = format!("pintle-{}-{target}", env!("CARGO_PKG_VERSION"));
    let manifest = |file: &str| fs::read(root().join("deploy").join(file));
    let files = [
        (format!("{name}.cdx.json"), components::list(&target)?.into_bytes()),
        (format!("{name}.image.tar"), Image::new(fs::read(binary)?)?.archive),
        (format!("{name}.tar.gz"), gzip(&tar(&command_line(binary, &name)?)?)?),
        ("gateway.yaml".to_owned(), manifest("gateway.yaml")?),
        ("install.yaml".to_owned(), manifest("install.yaml")?),
        (format!("pintle-{}.tgz", env!("CARGO_PKG_VERSION")), gzip(&tar(&chart()?)?)?),
    ];
    // What an earlier version left behind is no part of this one.
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    let mut sums = String::new();
    for (name, content) in &files {
        fs::write(folder.join(name), content).with_context(|| format!("{name} cannot be written"))?;
        sums += &format!("{}  {name}\n", sha256(content));
        println!("    {name}: {:.1} MB", content.len() as f64 / 1e6);
    }
    fs::write(folder.join("SHA256SUMS"), sums)?;
    Ok(())
}

/// The chart, as `helm package` lays it out, which leaves out what tests need.
fn chart() -> Result<Vec<Entry>> {
    let files = chart_files(&root().join(CHART))?.into_iter();
    let files = files.filter(|(path, _)| !path.starts_with("ci/"));
    Ok(files.map(|(path, content)| Entry::file(format!("pintle/{path}"), content)).collect())
}

/// The binary with what people read and their shells run, in a folder with this name.
fn command_line(binary: &Path, name: &str) -> Result<Vec<Entry>> {
    let mut entries = vec![Entry::folder(format!("{name}/"))];
    for file in ["LICENSE", "README.md"] {
        entries.push(Entry::file(format!("{name}/{file}"), fs::read(root().join(file))?));
    }
    entries.push(Entry::folder(format!("{name}/completions/")));
    for (shell, file) in COMPLETIONS {
        let script = output(Command::new(binary).args(["completion", shell]), None)?;
        entries.push(Entry::file(format!("{name}/completions/{file}"), script));
    }
    entries.push(Entry::program(format!("{name}/pintle"), fs::read(binary)?));
    Ok(entries)
}
