//! The bytes of the modules that scenarios name.

use std::{env, fs, path::PathBuf};

use anyhow::Context;
use pintle_engine::fixtures;
use pintle_simulation::scenario::{Bytes, CUSTOM_API_VERSION, Fixture, ModuleFile};
use serde_json::{Map, Value};

/// A custom section of a component, called `note` and empty.
const NOTE: [u8; 7] = [0, 5, 4, b'n', b'o', b't', b'e'];

/// The bytes of a module.
///
/// # Errors
/// When a guest is not built, or the module says too little.
pub fn resolve(module: &ModuleFile) -> anyhow::Result<Vec<u8>> {
    let mut bytes = unpadded(module)?;
    if module.padded {
        bytes.extend(NOTE);
    }
    Ok(bytes)
}

fn unpadded(module: &ModuleFile) -> anyhow::Result<Vec<u8>> {
    if let Some(name) = &module.guest {
        let path = guests().join(format!("{name}.wasm"));
        return fs::read(&path)
            .with_context(|| format!("{} cannot be read; run: cargo xtask guests", path.display()));
    }
    if let Some(bytes) = module.bytes {
        return Ok(match bytes {
            Bytes::Text => b"This is no module but a sentence.\n".to_vec(),
            Bytes::Empty => Vec::new(),
            Bytes::Core => fixtures::core_module(),
            // It begins as a component does: only its size is wrong.
            Bytes::TooMany => [b"\0asm\x0d\0\x01\0".to_vec(), vec![0; 20 << 20]].concat(),
        });
    }
    let kind = module.reconciles.as_deref().context("reconciles is needed")?;
    let children: Vec<&str> = module.children.iter().map(String::as_str).collect();
    let manifest = fixtures::manifest("acceptance", CUSTOM_API_VERSION, kind, &children);
    let manifest = match module.finalizer {
        true => manifest.replacen('{', r#"{"finalizer":true,"#, 1),
        false => manifest,
    };
    let manifest = declaring(&manifest, &module.observes, &module.manifest)?;
    if let Some(answer) = &module.answers {
        let mut answer = answer.clone();
        answer["apiVersion"] = "guest.pintle.dev/v1".into();
        return Ok(fixtures::answers(&manifest, &answer.to_string()));
    }
    Ok(match module.fixture.context("a module needs a source")? {
        Fixture::Traps => fixtures::traps(&manifest),
        Fixture::Loops => fixtures::loops(&manifest),
        Fixture::Allocates => fixtures::allocates(&manifest),
        Fixture::Recurses => fixtures::recurses(&manifest),
        Fixture::Returns8MiB => fixtures::returns_big(&manifest, 8 << 20),
        Fixture::OutOfBounds => fixtures::out_of_bounds(&manifest),
        Fixture::BrokenJson => {
            fixtures::answers(&manifest, r#"{"apiVersion": "guest.pintle.dev/v1", "children": ["#)
        }
        Fixture::ImportsWasi => fixtures::imports_wasi(&manifest),
        Fixture::WithoutReconcile => fixtures::without_reconcile(&manifest),
        // Some 25 s of a processor's time where neither it nor the compiler is optimised, and a third of that where they are.
        Fixture::CompileBomb => fixtures::compile_bomb(&manifest, 1500, 60, 60),
        Fixture::AsksAnew => fixtures::asks_anew(&manifest),
        Fixture::Fails => {
            let failure = r#"{"apiVersion": "guest.pintle.dev/v1", "reason": "NotToday", "message": "it does not want to"}"#;
            fixtures::fails(&manifest, failure)
        }
    })
}

/// A manifest that also asks to observe these of its kinds of children, and declares this.
fn declaring(manifest: &str, kinds: &[String], more: &Map<String, Value>) -> anyhow::Result<String> {
    let mut manifest: Value = serde_json::from_str(manifest)?;
    if let Some(fields) = manifest.as_object_mut() {
        fields.extend(more.clone());
    }
    for child in manifest["children"].as_array_mut().into_iter().flatten() {
        let named = format!(
            "{}/{}",
            child["apiVersion"].as_str().unwrap_or(""),
            child["kind"].as_str().unwrap_or("")
        );
        if kinds.contains(&named) {
            child["observe"] = true.into();
        }
    }
    Ok(manifest.to_string())
}

/// Where `cargo xtask guests` puts the guests.
#[must_use]
pub fn guests() -> PathBuf {
    if let Some(folder) = env::var_os("PINTLE_GUEST_DIR") {
        return folder.into();
    }
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../target")),
        PathBuf::from,
    );
    target.join("guests")
}
