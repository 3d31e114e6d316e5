//! Checks every dependency against `deny.toml`: its licence must be compatible with our Apache-2.0 licence, it must come from an allowed
//! source, and some dependencies are not allowed at all.
//!
//! cargo-deny reads the same file and checks more, but it needs the network and minutes to build, which the first test run must not need.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use spdx::{Expression, Licensee, ParseMode};

/// The part of `deny.toml` that is checked here.
#[derive(Deserialize)]
struct Policy {
    licenses: Licenses,
    sources: Sources,
    bans: Bans,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Sources {
    allow_registry: Vec<String>,
}

#[derive(Deserialize)]
struct Bans {
    deny: Vec<Ban>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Ban {
    #[serde(rename = "crate")]
    name: String,
    reason: String,
    #[serde(default)]
    deny_multiple_versions: bool,
}

/// The output of `cargo metadata`.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    /// Where the package comes from. None for a package of the workspace.
    source: Option<String>,
}

/// Fails if a dependency violates `deny.toml`, and names each such dependency. Standard input is the output of `cargo metadata`.
pub(crate) fn check(workspace: &Path) -> Result<()> {
    let path = workspace.join("deny.toml");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let metadata: Metadata = serde_json::from_reader(std::io::stdin().lock())?;
    let found = judge(&text, &metadata.packages)?;
    if !found.is_empty() {
        bail!("deny.toml does not allow these dependencies:\n  {}", found.join("\n  "));
    }
    println!("    {} packages, all of them as deny.toml allows", metadata.packages.len());
    Ok(())
}

/// The violations, one on each line.
fn judge(policy: &str, packages: &[Package]) -> Result<Vec<String>> {
    let policy: Policy = toml::from_str(policy).context("deny.toml")?;
    ensure!(!packages.is_empty(), "cargo metadata names no packages");
    let allowed = policy.licenses.allow.iter();
    let allowed: Vec<Licensee> =
        allowed.map(|name| Licensee::parse(name).with_context(|| name.clone())).collect::<Result<_>>()?;
    let mut wrong = Vec::new();
    for Package { name, version, license, source } in packages {
        let license = license.as_deref().unwrap_or_default();
        // Some packages write a slash for OR, as cargo once did.
        let is_allowed = Expression::parse_mode(license, ParseMode::LAX).is_ok_and(|expression| {
            expression.evaluate(|wanted| allowed.iter().any(|licensee| licensee.satisfies(wanted)))
        });
        if !is_allowed {
            wrong.push(format!("{name} {version}: the licence {license:?} is not in licenses.allow"));
        }
        let from = source.as_deref().map(|source| source.strip_prefix("registry+").unwrap_or(source));
        if let Some(from) = from.filter(|from| !policy.sources.allow_registry.iter().any(|one| one == from)) {
            wrong.push(format!("{name} {version}: it comes from {from}"));
        }
    }
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        versions.entry(&package.name).or_default().push(&package.version);
    }
    for Ban { name, reason, deny_multiple_versions } in &policy.bans.deny {
        let Some(found) = versions.get(name.as_str()) else { continue };
        if !deny_multiple_versions {
            wrong.push(format!("{name}: {reason}"));
        } else if found.len() > 1 {
            wrong.push(format!("{name} in the versions {}: {reason}", found.join(", ")));
        }
    }
    Ok(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = r#"
        [licenses]
        allow = ["MIT", "Apache-2.0"]
        [sources]
        allow-registry = ["https://example.com/index"]
        [bans]
        deny = [
            { crate = "openssl-sys", reason = "no" },
            { crate = "tokio", deny-multiple-versions = true, reason = "once" },
        ]
    "#;

    fn package(name: &str, version: &str, license: &str, source: Option<&str>) -> Package {
        let (name, version, source) = (name.into(), version.into(), source.map(Into::into));
        Package { name, version, license: Some(license.into()), source }
    }

    fn of_index(name: &str, version: &str, license: &str) -> Package {
        package(name, version, license, Some("registry+https://example.com/index"))
    }

    #[test]
    fn what_the_policy_allows_is_let_through() {
        let packages = [
            package("ours", "1.0.0", "Apache-2.0", None),
            of_index("tokio", "1.0.0", "MIT/GPL-3.0"),
            of_index("other", "1.0.0", "(MIT OR GPL-3.0) AND Apache-2.0"),
        ];
        assert_eq!(judge(POLICY, &packages).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn each_dependency_that_breaks_a_rule_is_named_with_the_rule() {
        let packages = [
            of_index("strict", "1.0.0", "GPL-3.0"),
            package("nameless", "1.0.0", "", None),
            package("elsewhere", "2.0.0", "MIT", Some("git+https://example.com/elsewhere")),
            of_index("openssl-sys", "1.0.0", "MIT"),
            of_index("tokio", "1.0.0", "MIT"),
            of_index("tokio", "2.0.0", "MIT"),
        ];
        assert_eq!(
            judge(POLICY, &packages).unwrap(),
            [
                "strict 1.0.0: the licence \"GPL-3.0\" is not in licenses.allow",
                "nameless 1.0.0: the licence \"\" is not in licenses.allow",
                "elsewhere 2.0.0: it comes from git+https://example.com/elsewhere",
                "openssl-sys: no",
                "tokio in the versions 1.0.0, 2.0.0: once",
            ]
        );
    }
}
