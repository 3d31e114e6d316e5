//! The files of a chart, and what tells one chart from another.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

/// `sha256:` and the digest of the paths and contents of all files in the folder of a chart.
///
/// # Errors
/// When a file cannot be read, or its name is not UTF-8.
pub fn chart_digest(chart: &Path) -> Result<String> {
    let mut hash = Sha256::new();
    for (path, content) in chart_files(chart)? {
        for part in [path.as_bytes(), &content] {
            hash.update(part);
            hash.update([0]);
        }
    }
    let digest: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("sha256:{digest}"))
}

/// Every file in the folder of a chart, with its path in it, in the order of the paths.
///
/// # Errors
/// When a file cannot be read, or its name is not UTF-8.
pub fn chart_files(chart: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(chart).with_context(|| format!("reading {}", chart.display()))? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).context("a name that is not UTF-8")?;
        if path.is_dir() {
            let below = chart_files(&path)?.into_iter();
            files.extend(below.map(|(file, content)| (format!("{name}/{file}"), content)));
        } else {
            files.push((name.to_owned(), fs::read(&path)?));
        }
    }
    files.sort();
    Ok(files)
}
