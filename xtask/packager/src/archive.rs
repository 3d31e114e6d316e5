//! Archives that are the same bytes for the same content, whoever makes them and when.

use std::io::Write as _;

use anyhow::Result;
use flate2::{Compression, write::GzEncoder};
use sha2::{Digest as _, Sha256};
use tar::{Builder, EntryType, Header};

/// A file of an archive, or a folder, which has no content.
pub(crate) struct Entry {
    path: String,
    mode: u32,
    content: Option<Vec<u8>>,
}

impl Entry {
    /// A file that everybody may read.
    pub(crate) fn file(path: impl Into<String>, content: impl Into<Vec<u8>>) -> Self {
        Self { path: path.into(), mode: 0o644, content: Some(content.into()) }
    }

    /// A file that everybody may run.
    pub(crate) fn program(path: impl Into<String>, content: Vec<u8>) -> Self {
        Self { mode: 0o755, ..Self::file(path, content) }
    }

    /// A folder that everybody may look into.
    pub(crate) fn folder(path: impl Into<String>) -> Self {
        Self { path: path.into(), mode: 0o755, content: None }
    }

    /// A folder that everybody may write into.
    pub(crate) fn shared_folder(path: impl Into<String>) -> Self {
        Self { mode: 0o1777, ..Self::folder(path) }
    }
}

/// A tar of these, which belong to root.
pub(crate) fn tar(entries: &[Entry]) -> Result<Vec<u8>> {
    let mut tar = Builder::new(Vec::new());
    for Entry { path, mode, content } in entries {
        let sort = if content.is_some() { EntryType::Regular } else { EntryType::Directory };
        let content = content.as_deref().unwrap_or_default();
        let mut header = Header::new_ustar();
        header.set_entry_type(sort);
        header.set_mode(*mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_size(u64::try_from(content.len())?);
        tar.append_data(&mut header, path, content)?;
    }
    Ok(tar.into_inner()?)
}

/// Compresses. The header has neither a name nor a time.
pub(crate) fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(bytes)?;
    Ok(gzip.finish()?)
}

/// The SHA-256 in hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
