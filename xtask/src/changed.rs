//! The inner loop of development: checks what differs from the last commit.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Instant,
};

use xtask::{root, say};

use crate::{
    build::PACKAGES,
    run::{Result, cargo, program},
    test,
};

/// Checks the format and the lints of everything (cargo skips what has not changed), and runs the unit tests of the packages that differ
/// from the last commit. If none does, it takes those that the last commit changed.
pub(crate) fn check() -> Result<()> {
    let started = Instant::now();
    say("format");
    cargo(["fmt", "--all", "--check"]).go()?;
    say("lints");
    test::lints(&PACKAGES)?;
    let folders = changed_packages()?;
    let mut words = vec!["test".to_owned(), "--bins".to_owned()];
    for folder in &folders {
        say(format_args!("unit tests of {}", folder.display()));
        let package = cargo(["pkgid"]).folder(&root().join(folder)).output()?;
        words.extend(["--package".to_owned(), package.trim().to_owned()]);
    }
    // cargo refuses this flag where no package has a library.
    words.extend(folders.iter().any(|folder| has(folder, "src/lib.rs")).then(|| "--lib".to_owned()));
    if folders.is_empty() {
        say("no package has changed: no tests to run");
    } else {
        // First without --quiet, which hides what is compiled.
        cargo(&words).args(["--no-run"]).go()?;
        cargo(&words).args(["--quiet"]).go()?;
    }
    say(format_args!("all is well ({:.0} s)", started.elapsed().as_secs_f64()));
    Ok(())
}

/// The folders of the packages whose files have changed.
fn changed_packages() -> Result<BTreeSet<PathBuf>> {
    let git = |words: &[&str]| program("git", words).output();
    let mut files = git(&["diff", "--name-only", "HEAD"])?;
    files.push_str(&git(&["ls-files", "--others", "--exclude-standard"])?);
    if files.is_empty() {
        say("nothing differs from the last commit: what that one changed is checked");
        files = git(&["diff-tree", "--no-commit-id", "--name-only", "-r", "HEAD"])?;
    }
    Ok(files.lines().filter_map(package_of).map(Path::to_path_buf).collect())
}

/// The folder of the package that has this file: the nearest with a manifest, but not the root, whose manifest is the workspace's.
fn package_of(file: &str) -> Option<&Path> {
    let mut folders = Path::new(file).ancestors().skip(1);
    folders.find(|folder| folder.parent().is_some() && has(folder, "Cargo.toml"))
}

fn has(folder: &Path, file: &str) -> bool {
    root().join(folder).join(file).is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_belongs_to_the_nearest_package() {
        assert_eq!(package_of("host/core/src/lib.rs"), Some(Path::new("host/core")));
        assert_eq!(package_of("host/src/main.rs"), Some(Path::new("host")));
        assert_eq!(package_of("hosts/src/lib.rs"), None);
        assert_eq!(package_of("README.md"), None);
    }
}
