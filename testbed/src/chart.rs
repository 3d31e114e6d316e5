//! What tells one chart from another.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

/// `sha256:` and the digest of the paths and contents of all files in the folder of a chart.
///
/// # Errors
/// When a file cannot be read, or its name is not UTF-8.
pub fn chart_digest(chart: &Path) -> Result<String> {
    let mut files = files_of(chart)?;
    files.sort();
    let mut hash = Sha256::new();
    for file in files {
        let path = file.strip_prefix(chart)?.to_str().context("a name that is not UTF-8")?;
        for part in [path.as_bytes(), &fs::read(&file)?] {
            hash.update(part);
            hash.update([0]);
        }
    }
    let digest: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("sha256:{digest}"))
}

fn files_of(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(files_of(&path)?);
        } else {
            files.push(path);
        }
    }
    Ok(files)
}
