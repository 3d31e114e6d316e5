//! The console: one router for the browser, on loopback (`pintle console`) and in a cluster (`pintle gateway --console-bind`).
//!
//! Every object is read and written as the caller; the process has no rights of its own here. The files stand in this order, and each uses
//! only those before it:
//!
//! 1. [`problem`], [`memory`], `secret`, `token`, [`place`], [`query`], [`rows`], `happening`, `sse`: values, and how they are read.
//! 2. [`door`]: who may come in. `headers`: what every answer has.
//! 3. [`caller`]: asks the API server as whoever asks us. `reading`: takes its lists apart while they arrive. [`users`]: who callers are. `watches`: how many they have, and how one is read. [`assets`]: the files of the pages.
//! 4. [`documents`]: which views show documents. [`app`]: what serves requests. [`mod@endpoint`]: one line of the route table.
//! 5. `session` and the other files with endpoints: what the lines do. [`rest`]: the documents, at paths of their own.
//! 6. [`table`]: the route table. [`mod@router`]: the way of a request. [`mod@serve`]: connections.

pub mod app;
pub mod assets;
pub mod caller;
mod children;
mod discovery;
pub mod documents;
pub mod door;
pub mod endpoint;
mod events;
#[cfg(test)]
mod fake;
mod happening;
pub mod headers;
mod host;
mod kinds;
pub mod memory;
mod objects;
pub mod openapi;
pub mod place;
mod plan;
pub mod problem;
pub mod query;
mod reading;
pub mod rest;
pub mod router;
pub mod rows;
mod schema;
pub mod secret;
mod sending;
pub mod serve;
pub mod session;
mod sse;
mod stream;
pub mod table;
pub mod token;
mod upload;
pub mod users;
mod watches;
pub mod workshop;

pub use app::{About, App, REQUESTS};
pub use assets::Assets;
pub use caller::Caller;
pub use documents::{DocumentGuest, DocumentView, Provider, Shown};
pub use door::Door;
pub use memory::Memory;
pub use problem::Problem;
pub use router::router;
pub use serve::{bind_loopback, serve};
pub use users::Users;
pub use watches::Watches;
pub use workshop::{Parts, Shop, Workshop};
