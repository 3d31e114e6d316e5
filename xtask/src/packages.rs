//! The packages of the workspace, as its files name them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::run::{Result, while_doing};

/// The folders of the members, relative to the root.
pub(crate) fn members(root: &Path) -> Result<Vec<PathBuf>> {
    let manifest = root.join("Cargo.toml");
    let text = fs::read_to_string(&manifest).map_err(while_doing(manifest.display()))?;
    Ok(members_in(&text))
}

/// The formatter puts one member on each line.
fn members_in(manifest: &str) -> Vec<PathBuf> {
    let lines = manifest.lines().map(str::trim).skip_while(|line| *line != "members = [").skip(1);
    let names = lines.take_while(|line| *line != "]");
    names.map(|line| line.trim_end_matches(',').trim_matches('"').into()).collect()
}

/// The name of the package in a folder.
pub(crate) fn name(folder: &Path) -> Result<String> {
    let manifest = folder.join("Cargo.toml");
    let text = fs::read_to_string(&manifest).map_err(while_doing(manifest.display()))?;
    let name = text.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    name.map(str::to_owned).ok_or_else(|| format!("{} names no package", manifest.display()).into())
}

/// The names of all integration tests: the files in each member's folder `tests`, and its subfolders with a main.rs.
pub(crate) fn integration_tests(root: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for member in members(root)? {
        let Ok(entries) = root.join(member).join("tests").read_dir() else { continue };
        for entry in entries {
            let path = entry?.path();
            let is_test =
                path.extension().is_some_and(|extension| extension == "rs") || path.join("main.rs").is_file();
            names
                .extend(path.file_stem().filter(|_| is_test).map(|name| name.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    names.dedup();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::root;

    #[test]
    fn the_members_of_this_workspace_and_their_tests_are_found() {
        let members = members(&root()).unwrap();
        assert!(members.contains(&PathBuf::from("host/core")) && members.contains(&PathBuf::from("xtask")));
        for member in &members {
            assert!(root().join(member).join("Cargo.toml").is_file(), "{}", member.display());
        }
        assert_eq!(name(&root().join("host/core")).unwrap(), "pintle-core");
        let tests = integration_tests(&root()).unwrap();
        for test in ["acceptance", "core", "offline", "requirements"] {
            assert!(tests.iter().any(|name| name == test), "{test} of {tests:?}");
        }
    }
}
