//! The built binary, the files of deploy/ and docs/, and the guests of this repository, without a control plane.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "what helps a test may fail it")]

mod alerts;
mod cli;
mod deploy;
mod docs;
mod in_the_way;
mod snapshot;
mod views;

use std::{
    fs,
    path::{Path, PathBuf},
};

use pintle_offline::documents;
use serde_json::Value;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// The objects of a file.
fn objects(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    let found =
        documents::parse(&path.display().to_string(), &text).unwrap_or_else(|error| panic!("{error}"));
    found.into_iter().map(|document| document.value).collect()
}
