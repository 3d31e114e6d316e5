//! [`Entry`]: a file that leads a browser to an address.
//!
//! Everybody on a machine may read with what words its programs were started. A file in a folder of one user is read by that user alone.

use std::{
    env,
    fs::{OpenOptions, Permissions},
    io::{self, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use tempfile::{Builder, TempDir};

/// Only the user may enter the folder.
const FOLDER: u32 = 0o700;

/// Only the user may read the file.
const FILE: u32 = 0o600;

/// A file that leads a browser to an address. It is gone with this value.
#[derive(Debug)]
pub(super) struct Entry {
    folder: TempDir,
}

impl Entry {
    /// The way to this address, where the system keeps what belongs to a login, or else where it keeps what is temporary.
    ///
    /// # Errors
    /// When there is nowhere to write.
    pub(super) fn to(url: &str) -> io::Result<Self> {
        // It may be named and belong to somebody else, as after `su`.
        let of_login = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| is_own(folder));
        Self::below(&of_login.unwrap_or_else(env::temp_dir), url)
    }

    fn below(folder: &Path, url: &str) -> io::Result<Self> {
        let permissions = Permissions::from_mode(FOLDER);
        let folder = Builder::new().prefix("pintle-console-").permissions(permissions).tempdir_in(folder)?;
        let entry = Self { folder };
        let mut file = OpenOptions::new().write(true).create_new(true).mode(FILE).open(entry.path())?;
        file.write_all(page(url).as_bytes())?;
        Ok(entry)
    }

    /// The file.
    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join("console.html")
    }
}

/// Whether nobody but this user can put something else in the place of what is in a folder.
fn is_own(folder: &Path) -> bool {
    let user = rustix::process::geteuid().as_raw();
    folder.metadata().is_ok_and(|found| found.is_dir() && found.uid() == user && found.mode() & 0o022 == 0)
}

/// A page that leads on, also where no script runs. The address takes its place in the history of the browser.
fn page(url: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>Pintle</title>\n\
         <noscript><meta http-equiv=\"refresh\" content=\"0; url={url}\"></noscript>\n\
         <script>location.replace(\"{url}\")</script>\n<p><a href=\"{url}\">Open the console</a></p>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "http://127.0.0.1:4711/console/#0123abcd";

    #[test]
    fn only_its_user_reads_the_file_and_it_is_gone_with_its_folder() {
        let parent = tempfile::tempdir().unwrap();
        let entry = Entry::below(parent.path(), URL).unwrap();
        let file = entry.path();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(file.parent().unwrap())), (FILE, FOLDER));
        assert_eq!(std::fs::read_to_string(&file).unwrap().matches(URL).count(), 3);
        assert!(!file.to_str().unwrap().contains("0123abcd"), "what a browser is started with has no secret");
        drop(entry);
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn two_launches_do_not_meet() {
        let parent = tempfile::tempdir().unwrap();
        let (one, other) =
            (Entry::below(parent.path(), URL).unwrap(), Entry::below(parent.path(), URL).unwrap());
        drop(one);
        assert!(other.path().exists());
        assert!(Entry::below(&parent.path().join("missing"), URL).is_err());
    }

    #[test]
    fn a_folder_that_others_may_write_to_is_not_ones_own() {
        let folder = tempfile::tempdir().unwrap();
        for (mode, own) in [(0o700, true), (0o755, true), (0o777, false), (0o770, false), (0o1777, false)] {
            std::fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
            assert_eq!(is_own(folder.path()), own, "{mode:o}");
        }
        assert!(!is_own(&folder.path().join("missing")));
    }
}
