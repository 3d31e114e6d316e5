//! Lists the files of the pages with their bytes, so that the program has them in it.

use std::{collections::BTreeMap, env, fs, io, path::Path};

fn main() -> io::Result<()> {
    let dist = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../console/dist");
    println!("cargo::rerun-if-changed={}", dist.display());
    let mut files = BTreeMap::new();
    for folder in ["", "assets/"] {
        for entry in fs::read_dir(dist.join(folder))? {
            let file = entry?.path();
            if let Some(name) = file.file_name().filter(|_| file.is_file()) {
                files.insert(format!("{folder}{}", name.to_string_lossy()), file);
            }
        }
    }
    let list = files.iter().map(|(path, file)| format!("({path:?}, include_bytes!({file:?}) as &[u8]),\n"));
    let folder = env::var("OUT_DIR").map_err(io::Error::other)?;
    fs::write(Path::new(&folder).join("assets.rs"), format!("&[\n{}]", list.collect::<String>()))
}
