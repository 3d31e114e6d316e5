//! The runtime of the host: its clock and its tasks.
//!
//! Everything here can be replaced by a simulator: [`clock`] is the only place that asks the operating system for the time and for
//! randomness, and a [`Spawner`] may belong to a simulated host, whose tasks a simulator can end at any point. [`remembered`] keeps
//! answers for a while. [`paced`] sends long ones to clients that have to read them. [`logging`], [`metrics`] and [`stop_signal`] are what
//! every process needs besides.

pub mod clock;
pub mod logging;
pub mod metrics;
pub mod paced;
pub mod remembered;
mod signals;
mod spawner;

pub use signals::stop_signal;
pub use spawner::Spawner;
