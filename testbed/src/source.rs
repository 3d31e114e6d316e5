//! [`Source`]: whether tests start their own control plane or use an existing cluster.

use std::path::PathBuf;

use anyhow::{Result, ensure};

use crate::{Binaries, ControlPlane, Options};

/// Where a cluster comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A control plane that is started from [`Binaries`], and ends when it is dropped.
    Own,
    /// The cluster of this kubeconfig's current context. It is never started, stopped or cleaned up.
    Existing(PathBuf),
}

impl Source {
    /// [`Source::Existing`] if `PINTLE_TESTBED_KUBECONFIG` names a kubeconfig, else [`Source::Own`]. `KUBECONFIG` is ignored: tests create
    /// and delete what they like, so a cluster is used only if it was named for that purpose.
    ///
    /// # Errors
    /// When the variable names a file that does not exist.
    pub fn from_env() -> Result<Self> {
        match std::env::var_os("PINTLE_TESTBED_KUBECONFIG").filter(|value| !value.is_empty()) {
            None => Ok(Self::Own),
            Some(value) => {
                let path = PathBuf::from(value);
                ensure!(
                    path.is_file(),
                    "PINTLE_TESTBED_KUBECONFIG names {}, which is not a file",
                    path.display()
                );
                Ok(Self::Existing(path))
            }
        }
    }

    /// The cluster: a new one, for which the binaries are built first if necessary, or the existing one. `progress` gets a line for each
    /// thing that may take long. `options` have no effect on an existing cluster.
    ///
    /// # Errors
    /// As [`Binaries::locate_or_build`] and [`ControlPlane::start`], or [`ControlPlane::existing`].
    pub fn control_plane(&self, options: &Options, progress: &mut dyn FnMut(&str)) -> Result<ControlPlane> {
        match self {
            Self::Own => ControlPlane::start(&Binaries::locate_or_build(progress)?, options),
            Self::Existing(kubeconfig) => ControlPlane::existing(kubeconfig),
        }
    }
}
