//! Every dependency's licence must allow our use under Apache-2.0.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use spdx::{Expression, Licensee, ParseMode};

/// What we accept, with what it asks of us. Nothing here asks for more than to be named.
const ACCEPTED: [&str; 11] = [
    "Apache-2.0",
    // As wasmtime and its parts have it: an exception that only takes duties away.
    "Apache-2.0 WITH LLVM-exception",
    "MIT",
    "MIT-0",
    "ISC",
    "Zlib",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "Unicode-3.0",
    "Unlicense",
    // The list of certificate authorities, which is data.
    "CDLA-Permissive-2.0",
];

/// Fails when a dependency's licence is none of those that we accept. Standard input is what `cargo metadata` says.
pub(crate) fn check() -> Result<()> {
    let accepted: Vec<Licensee> = ACCEPTED
        .iter()
        .map(|name| Licensee::parse(name).with_context(|| (*name).to_owned()))
        .collect::<Result<_>>()?;
    let metadata: Value = serde_json::from_reader(std::io::stdin().lock())?;
    let packages =
        metadata.get("packages").and_then(Value::as_array).context("cargo metadata names no packages")?;
    let mut refused = Vec::new();
    for package in packages {
        let text = |key: &str| package.get(key).and_then(Value::as_str).unwrap_or_default();
        // Some write a slash for OR, as cargo once did.
        let fine = Expression::parse_mode(text("license"), ParseMode::LAX).is_ok_and(|licence| {
            licence.evaluate(|wanted| accepted.iter().any(|licensee| licensee.satisfies(wanted)))
        });
        if !fine {
            refused.push(format!("{} {}: {:?}", text("name"), text("version"), text("license")));
        }
    }
    ensure!(refused.is_empty(), "licences that nobody has looked at: {}", refused.join("; "));
    println!("    {} packages, all of them under licences that allow our use", packages.len());
    Ok(())
}
