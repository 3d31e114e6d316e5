//! The gateway: serves what guests show of other objects as an API of their own.
//!
//! It keeps no objects: a request is mapped, sent on to the API server, and its answer mapped back. What is decided about that stands in
//! [`pintle_core::view`]; here it is carried out.
//!
//! - [`run()`]: the gateway as a process; [`Host`]: what of it a simulator starts too; [`server`]: its connections.
//! - [`tls`]: the certificate of the server, and what the handshake checks of a client: it is the API server's front proxy.
//! - [`identity`]: who the caller is. [`reviews`]: what the API server is asked about it. [`authorize`](mod@authorize): whether it may do
//!   what it asks for. [`admission`]: whether there is room for it.
//! - [`answer`]: the way of a request. `read`, `list`, `watch`, `write` (and `patching`) and `delete` are the verbs, [`upstream`] asks
//!   the API server, and [`show`] asks guests.
//! - `room`: the memory that an answer takes. `events`: what watches share.
//! - `console`: the door of people, which has nothing to do with views: it sends on what callers ask, with their own tokens.
//! - [`directory`]: what is served; `control` keeps it.

pub mod admission;
pub mod answer;
pub mod authorize;
mod body;
mod console;
mod control;
mod delete;
pub mod directory;
pub mod documents;
mod events;
mod flags;
mod health;
mod host;
pub mod identity;
mod list;
mod local;
pub mod metrics;
pub mod over;
mod patching;
mod read;
pub mod reply;
pub mod reviews;
mod room;
mod run;
pub mod server;
pub mod show;
mod sort;
pub mod tls;
pub mod upstream;
mod watch;
mod write;

pub use flags::Flags;
pub use host::Host;
pub use local::LocalDocuments;
pub use pintle_kubernetes::items;
pub use run::run;
