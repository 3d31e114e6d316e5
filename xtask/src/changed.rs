//! The inner loop of development: checks what differs from the last commit.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Instant,
};

use crate::{
    packages,
    progress::Board,
    run::{Result, cargo, program, root, say},
    test,
};

/// Checks the format and the lints of everything (cargo skips what has not changed), and runs the unit tests of the packages that differ
/// from the last commit. If none does, it takes those that the last commit changed.
pub(crate) fn check() -> Result<()> {
    let started = Instant::now();
    let board = Board::new();
    say("format");
    cargo(["fmt", "--all", "--check"]).go()?;
    say("lints");
    test::lints(&board)?;
    let changed = changed_packages()?;
    if changed.is_empty() {
        say("no package has changed: no tests to run");
    } else {
        let list = changed.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        say(format_args!("unit tests of {list}"));
        let packages = changed.iter().flat_map(|package| ["--package", package]);
        let words = || cargo(["test", "--lib", "--bins"]).args(packages.clone());
        board.cargo("tests", words().args(["--no-run"]))?;
        words().args(["--quiet"]).go()?;
    }
    say(format_args!("all is well ({:.0} s)", started.elapsed().as_secs_f64()));
    Ok(())
}

/// The names of the packages whose files have changed.
fn changed_packages() -> Result<BTreeSet<String>> {
    let git = |words: &[&str]| program("git", words).output();
    let mut files = git(&["diff", "--name-only", "HEAD"])?;
    files.push_str(&git(&["ls-files", "--others", "--exclude-standard"])?);
    if files.is_empty() {
        say("nothing differs from the last commit: what that one changed is checked");
        files = git(&["diff-tree", "--no-commit-id", "--name-only", "-r", "HEAD"])?;
    }
    let members = packages::members(&root())?;
    let folders: BTreeSet<&PathBuf> = files.lines().filter_map(|file| member_of(&members, file)).collect();
    folders.into_iter().map(|folder| packages::name(&root().join(folder))).collect()
}

/// The member that has this file: the one with the nearest folder.
fn member_of<'a>(members: &'a [PathBuf], file: &str) -> Option<&'a PathBuf> {
    let holds = |member: &&PathBuf| Path::new(file).starts_with(member);
    members.iter().filter(holds).max_by_key(|member| member.components().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_belongs_to_the_nearest_package() {
        let members = ["host", "host/core", "xtask"].map(PathBuf::from);
        assert_eq!(member_of(&members, "host/core/src/lib.rs"), Some(&members[1]));
        assert_eq!(member_of(&members, "host/src/lib.rs"), Some(&members[0]));
        assert_eq!(member_of(&members, "hosts/src/lib.rs"), None);
        assert_eq!(member_of(&members, "README.md"), None);
    }
}
