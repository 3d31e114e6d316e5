//! Finds the programs of a control plane, and builds those that are missing.

mod build;

use std::env;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail, ensure};

use build::GoModule;

/// The control plane as released by Kubernetes. The module's go.mod also names the release, and says how to change it.
const CONTROL_PLANE: GoModule = GoModule {
    name: "kubernetes",
    version: "v1.36.3",
    // Without its version, the server calls itself v0.0.0-master, and some of its checks fail.
    linker_flags: "-s -w -X k8s.io/component-base/version.gitVersion=v1.36.3 \
                   -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36",
    go_mod: include_str!("../control-plane/go.mod"),
    go_sum: include_str!("../control-plane/go.sum"),
    packages: &[],
    // The package of etcd is called server.
    renamed: &[("server", "etcd")],
};

/// The release before, on which tier two runs the main paths.
const CONTROL_PLANE_BEFORE: GoModule = GoModule {
    version: "v1.35.4",
    linker_flags: "-s -w -X k8s.io/component-base/version.gitVersion=v1.35.4 \
                   -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=35",
    go_mod: include_str!("../control-plane-1.35/go.mod"),
    go_sum: include_str!("../control-plane-1.35/go.sum"),
    ..CONTROL_PLANE
};

const KWOK: GoModule = GoModule {
    name: "kwok",
    version: "v0.8.0",
    linker_flags: "-s -w",
    go_mod: include_str!("../kwok/go.mod"),
    go_sum: include_str!("../kwok/go.sum"),
    packages: &[],
    renamed: &[],
};

/// What of Kubernetes only a node needs. The module is that of the control plane, whose own build stays as it is.
const KUBELET: GoModule = GoModule {
    name: "kubernetes-node",
    // The second has what the packages below need besides.
    go_sum: concat!(include_str!("../control-plane/go.sum"), include_str!("../node/kubernetes.sum")),
    packages: &["k8s.io/kubernetes/cmd/kubelet", "k8s.io/kubernetes/cmd/kube-proxy"],
    renamed: &[],
    ..CONTROL_PLANE
};

const CONTAINERD: GoModule = GoModule {
    name: "containerd",
    version: "v2.4.2",
    linker_flags: "-s -w",
    go_mod: include_str!("../node/go.mod"),
    go_sum: include_str!("../node/go.sum"),
    packages: &[],
    renamed: &[],
};

const HELM: GoModule = GoModule {
    name: "helm",
    version: "v3.21.4",
    // Without these it renders charts as for Kubernetes 1.20.
    linker_flags: "-s -w -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor=1 \
                   -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=36",
    go_mod: include_str!("../helm/go.mod"),
    go_sum: include_str!("../helm/go.sum"),
    packages: &[],
    renamed: &[],
};

/// helm, which is built once as [`Binaries`] are. No control plane needs it.
///
/// # Errors
/// When `go` is not installed, the build fails, or the cache cannot be written.
pub fn helm(progress: &mut dyn FnMut(&str)) -> Result<PathBuf> {
    Ok(HELM.locate_or_build(&cache()?, progress)?.join("helm"))
}

/// The programs that a control plane is made of.
///
/// They are built from Go modules, once. The result is kept in a cache folder (`$PINTLE_CACHE`, else `$XDG_CACHE_HOME/pintle`, else
/// `~/.cache/pintle`) under a name that changes with the versions and with the module files, so a build is never stale.
///
/// `PINTLE_TESTBED_KUBERNETES` says which release of Kubernetes is built: `1.36`, the default, or `1.35`.
///
/// If `KUBEBUILDER_ASSETS` names a folder, it must have kube-apiserver, etcd and kubectl. kube-controller-manager, kube-scheduler and kwok
/// are taken from it if it has them, and are built otherwise. So a folder from another project, which has only the first three, still needs
/// the build, and the controllers may then be of another release than the server.
#[derive(Clone, Debug)]
pub struct Binaries {
    pub(crate) etcd: PathBuf,
    pub(crate) kube_apiserver: PathBuf,
    pub(crate) kube_controller_manager: PathBuf,
    pub(crate) kube_scheduler: PathBuf,
    pub(crate) kubectl: PathBuf,
    pub(crate) kwok: PathBuf,
}

impl Binaries {
    /// Finds the programs, and builds those that do not exist, which takes minutes. Meanwhile `progress` gets a line now and then. If
    /// several processes need a build at the same time, one builds and the others wait for it.
    ///
    /// # Errors
    /// When `go` is not installed, a build fails, the cache cannot be written, or `KUBEBUILDER_ASSETS` lacks one of the three required
    /// programs.
    pub fn locate_or_build(progress: &mut dyn FnMut(&str)) -> Result<Self> {
        let (assets, control_plane) = (assets()?, control_plane()?);
        let given =
            |name: &str| assets.as_ref().map(|folder| folder.join(name)).filter(|path| path.is_file());
        let mut find = |name: &str, module: &GoModule| match given(name) {
            Some(path) => Ok(path),
            None => Ok::<_, anyhow::Error>(module.locate_or_build(&cache()?, progress)?.join(name)),
        };
        Ok(Self {
            etcd: find("etcd", &control_plane)?,
            kube_apiserver: find("kube-apiserver", &control_plane)?,
            kube_controller_manager: find("kube-controller-manager", &control_plane)?,
            kube_scheduler: find("kube-scheduler", &control_plane)?,
            kubectl: find("kubectl", &control_plane)?,
            kwok: find("kwok", &KWOK)?,
        })
    }

    /// Finds kubectl, without a build: a user who names a cluster has a kubectl. Looks in `KUBEBUILDER_ASSETS`, in the cache, and on
    /// `PATH`.
    pub(crate) fn locate_kubectl() -> Result<PathBuf> {
        if let Some(folder) = assets()? {
            return Ok(folder.join("kubectl"));
        }
        let built = control_plane()?;
        let built = cache().ok().and_then(|cache| built.locate(&cache));
        let path = env::var_os("PATH").unwrap_or_default();
        let mut files = built.into_iter().chain(env::split_paths(&path)).map(|folder| folder.join("kubectl"));
        files
            .find(|file| file.is_file())
            .context("no kubectl: put one on PATH, or name its folder in KUBEBUILDER_ASSETS")
    }
}

/// The folders of the programs of a node that runs Pods, which are built once as [`Binaries`] are: kubelet and kube-proxy, of Kubernetes 1.36
/// in any case; containerd with its shim and its client, and the CNI plugins.
#[derive(Clone, Debug)]
pub struct NodeBinaries {
    pub(crate) kubelet: PathBuf,
    pub(crate) containerd: PathBuf,
}

impl NodeBinaries {
    /// Finds the programs, and builds those that do not exist, which takes minutes.
    ///
    /// # Errors
    /// When `go` is not installed, the build fails, or the cache cannot be written.
    pub fn locate_or_build(progress: &mut dyn FnMut(&str)) -> Result<Self> {
        let cache = cache()?;
        Ok(Self {
            kubelet: KUBELET.locate_or_build(&cache, progress)?,
            containerd: CONTAINERD.locate_or_build(&cache, progress)?,
        })
    }
}

fn control_plane() -> Result<GoModule> {
    match env::var("PINTLE_TESTBED_KUBERNETES").as_deref() {
        Err(_) | Ok("" | "1.36") => Ok(CONTROL_PLANE),
        Ok("1.35") => Ok(CONTROL_PLANE_BEFORE),
        Ok(other) => bail!("PINTLE_TESTBED_KUBERNETES is {other}, and must be 1.35 or 1.36"),
    }
}

fn assets() -> Result<Option<PathBuf>> {
    let Some(folder) = directory_variable("KUBEBUILDER_ASSETS") else { return Ok(None) };
    for name in ["kube-apiserver", "etcd", "kubectl"] {
        ensure!(
            folder.join(name).is_file(),
            "KUBEBUILDER_ASSETS names {}, but {name} is not there",
            folder.display()
        );
    }
    // Components start in their own folder, so a relative path would not work.
    Ok(Some(fs::canonicalize(folder)?))
}

fn cache() -> Result<PathBuf> {
    let cache = directory_variable("PINTLE_CACHE")
        .or_else(|| Some(directory_variable("XDG_CACHE_HOME")?.join("pintle")))
        .or_else(|| Some(directory_variable("HOME")?.join(".cache/pintle")))
        .context("no place for the built control plane: set PINTLE_CACHE to a folder")?;
    fs::create_dir_all(&cache).with_context(|| format!("creating {}", cache.display()))?;
    Ok(fs::canonicalize(cache)?)
}

fn directory_variable(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}
