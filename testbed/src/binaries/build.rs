//! Builds tools from a Go module, once, and keeps them in the cache folder.

use std::env::consts::{ARCH, OS};
use std::fs::{self, File, TryLockError};
use std::io::{BufRead as _, BufReader, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use sha2::{Digest as _, Sha256};

use crate::processes::last_lines;

/// How often a build says how far it is.
const PROGRESS_EVERY: Duration = Duration::from_secs(20);

/// A Go module whose tools are built and cached. Its files are part of this program, so that the build works from any folder.
pub(super) struct GoModule {
    pub(super) name: &'static str,
    pub(super) version: &'static str,
    pub(super) linker_flags: &'static str,
    pub(super) go_mod: &'static str,
    pub(super) go_sum: &'static str,
    /// What is built instead of the module's tools, if anything is named.
    pub(super) packages: &'static [&'static str],
    /// Tools that get another name than their packages.
    pub(super) renamed: &'static [(&'static str, &'static str)],
}

impl GoModule {
    /// The folder of the built tools, if they have been built before.
    pub(super) fn locate(&self, cache: &Path) -> Option<PathBuf> {
        // The folder gets this name only when it is complete.
        Some(cache.join(self.key())).filter(|folder| folder.is_dir())
    }

    pub(super) fn locate_or_build(&self, cache: &Path, progress: &mut dyn FnMut(&str)) -> Result<PathBuf> {
        if let Some(folder) = self.locate(cache) {
            return Ok(folder);
        }
        let lock = cache.join(format!("{}.lock", self.name));
        let lock = File::create(&lock).with_context(|| format!("creating {}", lock.display()))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                progress(&format!("waiting for another process that builds {} {}", self.name, self.version));
                lock.lock().context("waiting for the other build")?;
            }
            Err(TryLockError::Error(error)) => return Err(error).context("locking the cache"),
        }
        match self.locate(cache) {
            Some(folder) => Ok(folder),
            None => self.build(cache, progress),
        }
    }

    /// Builds in a folder beside the final one, and renames it when it is complete. Only the holder of the lock may call this.
    fn build(&self, cache: &Path, progress: &mut dyn FnMut(&str)) -> Result<PathBuf> {
        let Self { name, version, .. } = self;
        let partial = cache.join(format!("{name}.partial"));
        if partial.exists() {
            // Left by a build that was interrupted.
            fs::remove_dir_all(&partial)?;
        }
        let bin = partial.join("bin");
        fs::create_dir_all(&bin).with_context(|| format!("creating {}", bin.display()))?;
        fs::write(partial.join("go.mod"), self.go_mod)?;
        fs::write(partial.join("go.sum"), self.go_sum)?;

        progress(&format!("building {name} {version} from its Go modules, once; a cold build takes minutes"));
        let targets: &[&str] = if self.packages.is_empty() { &["tool"] } else { self.packages };
        let of = packages(&partial, targets).map_or_else(String::new, |packages| format!(" of {packages}"));
        let mut go = go(&partial)
            .args(["build", "-v", "-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags"])
            .args([self.linker_flags, "-o"])
            .arg(&bin)
            .args(targets)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| {
                let missing = error.kind() == ErrorKind::NotFound;
                anyhow::Error::from(error).context(if missing { GO_IS_MISSING } else { "starting go" })
            })?;
        let (mut said, mut compiled, mut last) = (String::new(), 0, Instant::now());
        let lines = go.stderr.take().into_iter().flat_map(|stderr| BufReader::new(stderr).lines());
        for line in lines.map_while(Result::ok) {
            // With -v, go prints each package that it compiles, and its downloads as `go: downloading`. It does not name what is in its cache.
            compiled += usize::from(!line.contains(' '));
            if last.elapsed() >= PROGRESS_EVERY {
                last = Instant::now();
                progress(&format!("{name}: {compiled}{of} packages, now {line}"));
            }
            said += &line;
            said.push('\n');
        }
        let status = go.wait()?;
        ensure!(status.success(), "building {name} {version} failed ({status}):\n{}", last_lines(&said, 20));

        for (from, to) in self.renamed {
            fs::rename(bin.join(from), bin.join(to))?;
        }
        let folder = cache.join(self.key());
        fs::rename(&bin, &folder).with_context(|| format!("moving the build to {}", folder.display()))?;
        fs::remove_dir_all(&partial)?;
        progress(&format!("built {name} {version}"));
        Ok(folder)
    }

    fn key(&self) -> String {
        let mut hash = Sha256::new();
        for part in [self.go_mod, self.go_sum, self.linker_flags].iter().chain(self.packages) {
            hash.update(part);
            hash.update([0]);
        }
        let digest: String = hash.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        format!("{}-{}-{OS}-{ARCH}-{digest}", self.name, self.version)
    }
}

/// go, in the folder of this module.
fn go(module: &Path) -> Command {
    let mut go = Command::new("go");
    go.current_dir(module).env("CGO_ENABLED", "0").env("GOWORK", "off").stdin(Stdio::null());
    go
}

/// The number of packages that these of a module consist of; none if go does not say. The build, which comes next, shows the reason.
fn packages(module: &Path, targets: &[&str]) -> Option<usize> {
    let listed =
        go(module).args(["list", "-mod=readonly", "-deps"]).args(targets).stderr(Stdio::null()).output();
    let listed = listed.ok().filter(|listed| listed.status.success())?;
    Some(String::from_utf8_lossy(&listed.stdout).lines().count())
}

const GO_IS_MISSING: &str = "`go` is not on PATH, and the test control plane is built from Go modules. Install Go 1.26 or newer, \
     or set KUBEBUILDER_ASSETS to a folder with kube-apiserver, etcd, kubectl, kube-controller-manager, kube-scheduler and kwok, \
     or set PINTLE_TESTBED_KUBECONFIG to the kubeconfig of a cluster that may be used for tests";
