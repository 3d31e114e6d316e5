//! The list of what the image is made of, as CycloneDX JSON: crates, packages of the console's pages, and what is linked without being
//! either.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    ffi::OsStr,
    fs,
    process::Command,
};

use anyhow::{Context as _, Result};
use pintle_testbed::output;
use serde_json::{Value, json};
use xtask::root;

/// Something that the image is made of.
struct Component {
    /// Its package URL.
    url: String,
    name: String,
    version: String,
    licence: String,
}

/// The list for the binary of this target.
pub(crate) fn list(target: &str) -> Result<String> {
    // With the features that the binary is built with, which `cargo metadata` does not tell.
    let words = "tree --locked --package pintle --edges normal,no-proc-macro --prefix depth --target";
    let words: Vec<&str> = words.split(' ').chain([target, "--format", " {p}|{l}"]).collect();
    let tool = |variable: &str, name: &str| env::var_os(variable).unwrap_or_else(|| name.into());
    let cargo = tool("CARGO", "cargo");
    let tree = ask(&cargo, &words)?;
    let pages: Value = serde_json::from_str(&fs::read_to_string(root().join("console/package-lock.json"))?)?;
    let mut others = packages(&pages);
    let compiler = ask(&tool("RUSTC", "rustc"), &["--version"])?;
    let library = ask("getconf".as_ref(), &["GNU_LIBC_VERSION"])?;
    let authorities = ask(&cargo, &["pkgid", "webpki-root-certs"])?;
    let versions = [
        ("generic", "rust-std", compiler.split_whitespace().nth(1), "MIT OR Apache-2.0"),
        ("generic", "glibc", library.split_whitespace().nth(1), "LGPL-2.1-or-later"),
        ("cargo", "webpki-root-certs", authorities.trim().rsplit(['@', '#']).next(), "CDLA-Permissive-2.0"),
    ];
    for (sort, name, version, licence) in versions {
        let version = version.with_context(|| format!("the version of {name} is unknown"))?;
        others.push(Component::new(sort, name, version, licence));
    }
    Ok(format!("{:#}\n", document(&tree, others)?))
}

/// What a tool prints.
fn ask(tool: &OsStr, words: &[&str]) -> Result<String> {
    output(Command::new(tool).args(words).current_dir(root()), None)
}

/// The packages that the console's pages have in them, of npm's lock file. Others are for tests.
fn packages(lock: &Value) -> Vec<Component> {
    let packages = lock["packages"].as_object().into_iter().flatten();
    let packages = packages.filter(|(path, package)| !path.is_empty() && package["dev"] != true);
    let packages = packages.filter_map(|(path, package)| {
        let name = path.rsplit("node_modules/").next()?;
        Some(Component::new("npm", name, package["version"].as_str()?, package["license"].as_str()?))
    });
    packages.collect()
}

/// The list, of what `cargo tree` prints for the binary, and of what else the binary has in it.
fn document(tree: &str, others: Vec<Component>) -> Result<Value> {
    let mut components = BTreeMap::new();
    let mut needs: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut path: Vec<String> = Vec::new();
    for line in tree.lines() {
        let read = dependency(line);
        let (depth, component) = read.with_context(|| format!("cargo tree has printed: {line}"))?;
        path.truncate(depth);
        if let Some(parent) = path.last() {
            needs.entry(parent.clone()).or_default().insert(component.url.clone());
        }
        path.push(component.url.clone());
        components.insert(component.url.clone(), component);
    }
    let program = path.first().context("cargo tree has printed nothing")?;
    let mut described = components.remove(program).context("the tree has no root")?.described();
    described["type"] = "application".into();
    for component in others {
        needs.entry(program.clone()).or_default().insert(component.url.clone());
        components.insert(component.url.clone(), component);
    }
    let components: Vec<Value> = components.values().map(Component::described).collect();
    let needs: Vec<Value> = needs.iter().map(|(url, on)| json!({"ref": url, "dependsOn": on})).collect();
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": described},
        "components": components,
        "dependencies": needs,
    }))
}

/// How deep in the tree a line is, and its crate: `1 serde v1.0.228 (proc-macro)|MIT OR Apache-2.0 (*)`.
fn dependency(line: &str) -> Option<(usize, Component)> {
    let (depth, line) = line.split_once(' ')?;
    // The mark of a crate whose dependencies have been printed before.
    let (package, licence) = line.trim_end_matches(" (*)").rsplit_once('|')?;
    let mut words = package.split(' ');
    let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
    Some((depth.parse().ok()?, Component::new("cargo", name, version, licence)))
}

impl Component {
    fn new(sort: &str, name: &str, version: &str, licence: &str) -> Self {
        Self {
            url: format!("pkg:{sort}/{}@{version}", name.replace('@', "%40")),
            name: name.to_owned(),
            version: version.to_owned(),
            // As crates wrote it before there was a grammar for it.
            licence: licence.replace('/', " OR "),
        }
    }

    fn described(&self) -> Value {
        json!({
            "type": "library",
            "bom-ref": self.url,
            "purl": self.url,
            "name": self.name,
            "version": self.version,
            "licenses": [{"expression": self.licence}],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_every_crate_and_page_once_and_who_needs_it() {
        let tree = "0 pintle v0.1.0 (/home/me/host)|Apache-2.0\n1 a v1.0.0|MIT/Apache-2.0\n2 b v2.0.0|MIT\n1 b v2.0.0|MIT (*)\n";
        let lock = json!({"packages": {
            "": {"license": "Apache-2.0"},
            "node_modules/@x/view": {"version": "6.0.0", "license": "MIT"},
            "node_modules/esbuild": {"version": "1.0.0", "license": "MIT", "dev": true},
        }});
        let list = document(tree, packages(&lock)).unwrap();
        assert_eq!(list["metadata"]["component"]["purl"], "pkg:cargo/pintle@0.1.0");
        let urls: Vec<&Value> =
            list["components"].as_array().unwrap().iter().map(|component| &component["purl"]).collect();
        assert_eq!(urls, ["pkg:cargo/a@1.0.0", "pkg:cargo/b@2.0.0", "pkg:npm/%40x/view@6.0.0"]);
        assert_eq!(list["components"][0]["licenses"], json!([{"expression": "MIT OR Apache-2.0"}]));
        let needs = json!([
            {"ref": "pkg:cargo/a@1.0.0", "dependsOn": ["pkg:cargo/b@2.0.0"]},
            {"ref": "pkg:cargo/pintle@0.1.0",
             "dependsOn": ["pkg:cargo/a@1.0.0", "pkg:cargo/b@2.0.0", "pkg:npm/%40x/view@6.0.0"]},
        ]);
        assert_eq!(list["dependencies"], needs);
        assert!(!list.to_string().contains("/home"), "where it was built");
    }
}
