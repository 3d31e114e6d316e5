//! The SDK for Pintle guests in Rust.
//!
//! A guest is a pure function from a request to a response. It says which child objects should exist because of one custom
//! resource, its root; the host does the rest. In Rust a guest is one trait over two types of its own:
//!
//! ```
//! use pintle_guest::{Child, ChildKind, Failure, Guest, Kind, Manifest, NoConfig, Object, Request, Response, json};
//!
//! #[derive(serde::Deserialize)]
//! pub struct GreetingSpec {
//!     text: String,
//! }
//!
//! pub struct Greeting;
//!
//! impl Guest for Greeting {
//!     type Root = Object<GreetingSpec>;
//!     type Config = NoConfig;
//!
//!     fn manifest() -> Manifest {
//!         Manifest {
//!             children: vec![ChildKind::new("v1", "ConfigMap")],
//!             ..Manifest::new("greeting", "0.1.0", Kind::new("example.com/v1", "Greeting"))
//!         }
//!     }
//!
//!     fn reconcile(request: Request<Self::Root, NoConfig>) -> Result<Response, Failure> {
//!         let root = &request.object;
//!         Ok(Response {
//!             children: vec![Child::new("text", json!({
//!                 "apiVersion": "v1",
//!                 "kind": "ConfigMap",
//!                 "metadata": {"name": root.metadata.name},
//!                 "data": {"text": root.spec.text},
//!             }))],
//!             ..Response::default()
//!         })
//!     }
//! }
//! ```
//!
//! [`export!`]`(Greeting);` turns it into a component when it is compiled to WebAssembly. In a native build it does nothing, so `cargo
//! test` runs `Greeting::reconcile` as a plain function.
//!
//! A guest can also look at objects that its root does not own ([`Needs`]), patch them ([`Patch`]), and evict Pods ([`Evictions`]).
//! docs/guests.md explains how, with a complete guest.
//!
//! With the feature `schema` a native build of the guest writes its `crd.yaml` and `config.schema.json`; see [`schema`].

#[cfg(target_arch = "wasm32")]
mod allocator;
#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
pub mod bindings;
#[doc(hidden)]
pub mod call;
mod dns;
mod encoding;
mod export;
mod needs;
mod object;
mod plain;
mod read;
mod rollout;
#[cfg(feature = "schema")]
pub mod schema;

pub use dns::{dns_1035_label, dns_1123_label};
pub use encoding::{base64, sha256_hex};
pub use needs::Needs;
pub use object::{Metadata, NoConfig, NoStatus, Object};
pub use pintle_wit::*;
pub use rollout::Rollout;
#[cfg(feature = "schema")]
pub use schemars;
pub use serde;
pub use serde_json::{self, Map, Value, json};

use serde::de::DeserializeOwned;

/// Compiles the examples in docs/guests.md.
#[cfg(doctest)]
#[doc = include_str!("../../docs/guests.md")]
struct Guide;

/// A guest: a pure function from a request to a response. Equal requests must give byte-equal answers.
pub trait Guest {
    /// The custom resource that the guest reconciles; usually an [`Object`] over its spec and status.
    type Root: DeserializeOwned;

    /// What an administrator may set in the Reconciler's `config`; [`NoConfig`] when there is nothing to set.
    type Config: DeserializeOwned + Default;

    /// Whether the guest looks at `request.needs`, which is easiest with [`Needs`]. A guest without needs saves the code that reads them.
    const READS_NEEDS: bool = false;

    /// The guest's name and version, the kind that it reconciles, and the kinds that it answers with.
    ///
    /// `config_schema` may be left out: [`export!`] inserts the generated one.
    fn manifest() -> Manifest;

    /// Computes everything that should exist because of the root, and its status.
    ///
    /// # Errors
    /// A [`Failure`] if there is no answer. The root then keeps its present children and status.
    fn reconcile(request: Request<Self::Root, Self::Config>) -> Result<Response, Failure>;
}

/// The status fields of a response, from a type of the guest's own. A type that is no struct or map gives none.
pub fn status(fields: &impl serde::Serialize) -> Map<String, Value> {
    match serde_json::to_value(fields) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}
