//! Text that is compared with a file.

use std::{env, fs, path::Path};

use similar::TextDiff;

/// How a text differs from what a file has, line by line, if it does. With `PINTLE_WRITE_SNAPSHOTS` set, the file is written anew instead.
pub(crate) fn difference(file: &Path, text: &str) -> Option<String> {
    let kept = fs::read_to_string(file).unwrap_or_default();
    if kept == text {
        return None;
    }
    if env::var_os("PINTLE_WRITE_SNAPSHOTS").is_some() {
        fs::write(file, text).unwrap();
        return None;
    }
    let lines = TextDiff::from_lines(&kept, text).unified_diff().context_radius(4).to_string();
    let name = file.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap_or(file).display();
    Some(format!(
        "host/{name} differs (-), here is what came out (+):\n{lines}\n\
         If it should be so: PINTLE_WRITE_SNAPSHOTS=1 cargo test --package pintle --test offline\n"
    ))
}
