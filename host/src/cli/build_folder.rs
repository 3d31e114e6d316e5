//! Where cargo puts what it makes of guests on the way to their modules.
//!
//! Nearly all of it is the same for every guest: the SDK and its dependencies. Guests share one folder for it, and each keeps its
//! results in a `target` folder of its own. Cargo names some files after the library alone, so two guests of one name in one folder
//! would be taken for each other. A guest therefore claims the folder while it is built, and removes first what another guest of its
//! name, or another version, left there.

use std::{
    env,
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
};

use super::{
    cargo::{self, Folders, Package, TARGET},
    problem::Problem,
};

/// The build folder of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BuildFolder {
    /// The one that its author chose: with `CARGO_TARGET_DIR`, a config file of cargo, or a workspace.
    Chosen(PathBuf),
    /// The one of all guests for which nobody chose any.
    Shared(PathBuf),
}

/// The right to build in a folder, until it is dropped.
pub(super) struct Claim {
    _lock: File,
}

impl BuildFolder {
    /// The build folder of the guest in `folder`.
    pub(super) fn of(folders: &Folders, folder: &Path) -> Self {
        let is_set = ["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR", "CARGO_BUILD_BUILD_DIR"]
            .iter()
            .any(|name| env::var_os(name).is_some());
        Self::choose(folders, folder, if is_set { None } else { shared() })
    }

    /// The shared folder, if there is one and cargo uses the folders that it uses by default for a package without a workspace.
    fn choose(folders: &Folders, folder: &Path, shared: Option<PathBuf>) -> Self {
        let Folders { workspace_root, target_directory, build_directory } = folders;
        let is_default = workspace_root == folder
            && *target_directory == workspace_root.join("target")
            && build_directory == target_directory;
        match shared {
            Some(shared) if is_default => Self::Shared(shared),
            _ => Self::Chosen(build_directory.clone()),
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Chosen(path) | Self::Shared(path) => path,
        }
    }

    /// Waits for other builds in the folder, and removes what is another guest's of the same name.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub(super) fn claim(&self, package: &Package) -> Result<Claim, Problem> {
        let folder = self.path().join("pintle");
        let cannot = |error: io::Error| Problem::new(format!("{} cannot be used: {error}", folder.display()));
        fs::create_dir_all(&folder).map_err(cannot)?;
        let lock = File::create(folder.join("lock")).map_err(cannot)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                eprintln!("waiting for another build in {}", self.path().display());
                lock.lock().map_err(cannot)?;
            }
            Err(TryLockError::Error(error)) => return Err(cannot(error)),
        }
        let owner = folder.join(&package.library);
        let is = format!("{} {}\n", package.version, package.folder.display());
        if fs::read_to_string(&owner).ok().as_ref() != Some(&is) {
            for what in [&[][..], &["--release", "--target", TARGET]] {
                let mut command = package.cargo();
                command.args(["clean", "--quiet", "--package", &package.name]).args(what);
                cargo::run(&mut command, "cargo clean")?;
            }
            fs::write(&owner, is).map_err(cannot)?;
        }
        Ok(Claim { _lock: lock })
    }
}

/// `pintle/build` in the user's folder for caches.
fn shared() -> Option<PathBuf> {
    let chosen = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let cache = chosen.or_else(|| Some(env::home_dir()?.join(".cache")))?;
    Some(cache.join("pintle/build"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders(root: &str, target: &str, build: &str) -> Folders {
        Folders {
            workspace_root: root.into(),
            target_directory: target.into(),
            build_directory: build.into(),
        }
    }

    #[test]
    fn guests_share_a_folder_unless_their_author_chose_one() {
        let choose = |folders: &Folders| BuildFolder::choose(folders, Path::new("/g"), Some("/cache".into()));
        assert_eq!(
            choose(&folders("/g", "/g/target", "/g/target")),
            BuildFolder::Shared("/cache".into()),
            "a guest for itself"
        );
        for (root, target, build, why) in [
            ("/", "/target", "/target", "a workspace has its folder"),
            ("/g", "/elsewhere", "/elsewhere", "target-dir in a config file"),
            ("/g", "/g/target", "/build", "build-dir in a config file"),
        ] {
            let chosen = choose(&folders(root, target, build));
            assert_eq!(chosen, BuildFolder::Chosen(build.into()), "{why}");
        }
    }

    #[test]
    fn without_a_shared_folder_a_guest_keeps_its_own() {
        let own = BuildFolder::choose(&folders("/g", "/g/target", "/g/target"), Path::new("/g"), None);
        assert_eq!(own, BuildFolder::Chosen("/g/target".into()));
    }
}
