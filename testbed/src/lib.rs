//! A real Kubernetes control plane on loopback, for the tests, the demo and the benchmarks: the released etcd, kube-apiserver,
//! kube-controller-manager and kube-scheduler, and kwok for nodes on which Pods only pretend to run. It needs no container engine and no
//! privileges. Where there are privileges, [`Options::node`] brings a node that runs Pods.
//!
//! ```no_run
//! use pintle_testbed::{Options, Source};
//!
//! # fn main() -> anyhow::Result<()> {
//! let source = Source::from_env()?;
//! let cluster = source.control_plane(&Options::default(), &mut |line| eprintln!("{line}"))?;
//! println!("KUBECONFIG={}", cluster.kubeconfig().display());
//! cluster.run_kubectl(&["get", "nodes"], None)?;
//! cluster.stop()?;
//! # Ok(())
//! # }
//! ```
//!
//! | variable | effect |
//! | --- | --- |
//! | `PINTLE_TESTBED_KUBECONFIG` | [`Source::from_env`] answers with the cluster of that kubeconfig instead of starting one |
//! | `KUBEBUILDER_ASSETS` | a folder with kube-apiserver, etcd and kubectl, used instead of building them (see [`Binaries`]) |
//! | `PINTLE_TESTBED_KUBERNETES` | the release that is built: `1.36`, the default, or `1.35` |
//! | `PINTLE_CACHE` | where the built binaries are kept, instead of `$XDG_CACHE_HOME/pintle` or `~/.cache/pintle` |
//! | `PINTLE_PATIENCE` | by how much every wait is longer than 180 seconds: `2` doubles it (see [`eventually`]) |
//! | `PINTLE_TESTBED_KEEP` | `1` keeps the folder of every instance (logs, data, audit log) and prints where it is |

#![allow(
    clippy::disallowed_methods,
    reason = "a real control plane runs on the real clock, and nothing here is simulated"
)]

mod aggregation;
#[cfg(feature = "tokio")]
pub mod asynchronous;
mod binaries;
mod certificates;
mod chart;
mod control_plane;
mod kubeconfig;
mod node;
mod patience;
mod processes;
mod relay;
mod source;

pub use binaries::{Binaries, NodeBinaries, helm};
pub use chart::{chart_digest, chart_files};
pub use control_plane::{ControlPlane, Options, output};
pub use node::NODE_ADDRESS;
pub use patience::{Look, Patience, count_failed_wait, eventually};
pub use processes::{Ended, Server, Signal};
pub use relay::Relay;
pub use source::Source;
