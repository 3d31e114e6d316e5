//! An in-memory Kubernetes API server, at the level of HTTP: under a real `kube::Client` it stands where a cluster stands.
//!
//! It reads no clock and no randomness of the operating system: time comes from [`Options::clock`], uids from [`Options::seed`], and
//! everything else from the order of the requests. So the same requests get the same replies, byte for byte, and a [`Faults`] can
//! have each of them fail, be late or be lost, and each event of a watch be hidden, doubled or late.
//!
//! ```no_run
//! use pintle_simulator::{ApiServer, Options};
//!
//! let server = ApiServer::new(Options { seed: 7, ..Options::default() });
//! let client = kube::Client::new(server.service("host"), "default");
//! # drop(client);
//! ```

mod act;
mod failure;
mod faults;
mod kinds;
mod random;
mod request;
mod server;
mod service;
mod store;
mod verbs;
mod watch;

pub use act::{Act, Cascade};
pub use failure::Failure;
pub use faults::{Change, EventFate, EventSeen, Fate, Faults, NoFaults, Seen, StreamSeen, Verb};
pub use server::{ApiServer, Clock, Options, Record, Snapshot};
pub use service::{Lost, Service};
pub use watch::Body;
