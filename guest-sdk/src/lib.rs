//! The SDK for Pintle guests in Rust.
//!
//! A guest is a pure function from a [`Request`] to a [`Response`]. The request has one custom resource, the *root*; the response has
//! the objects that should exist because of it, its *children*, and what its status says. The host does the rest: it watches, calls the
//! guest, checks and applies the answer, repairs drift, and deletes what is no longer wanted.
//!
//! # A guest
//!
//! In Rust a guest is the trait [`Guest`] over two types of its own: the root and the config. `pintle new` creates a folder with all that
//! belongs to one.
//!
//! ```
//! use pintle_guest::{Child, ChildKind, Failure, Guest, Kind, Manifest, NoConfig, Object, Request, Response, json, reasons, serde_json};
//!
//! #[derive(serde::Deserialize)]
//! pub struct GreetingSpec {
//!     text: String,
//! }
//!
//! pub struct Greeting;
//!
//! pintle_guest::export!(Greeting);
//!
//! impl Guest for Greeting {
//!     type Root = Object<GreetingSpec>;
//!     type Config = NoConfig;
//!
//!     fn manifest() -> Manifest {
//!         Manifest {
//!             children: vec![ChildKind::new("v1", "ConfigMap")],
//!             ..Manifest::new("greeting", env!("CARGO_PKG_VERSION"), Kind::new("example.com/v1", "Greeting"))
//!         }
//!     }
//!
//!     fn reconcile(request: Request<Self::Root, NoConfig>) -> Result<Response, Failure> {
//!         let root = &request.object;
//!         if root.spec.text.is_empty() {
//!             return Err(Failure::terminal(reasons::INVALID_SPEC, "must not be empty").at("spec.text"));
//!         }
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
//!
//! // In a native build a guest is a plain function, and this is a test of it:
//! let root = json!({"metadata": {"name": "morning"}, "spec": {"text": "good morning"}});
//! let response = Greeting::reconcile(Request::about(serde_json::from_value(root)?))?;
//! assert_eq!(response.children[0].object["data"]["text"], "good morning");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`export!`] turns the guest into a component when it is compiled to WebAssembly. In a native build it does nothing.
//!
//! # A view
//!
//! A view shows objects of a kind that the API server stores, its *backing* kind, as objects of another kind. In Rust it is the trait
//! [`View`] over what it reads and what it shows; [`Views`] lists the views of a guest.
//!
//! ```
//! use pintle_guest::{Failure, Kind, NoConfig, Shown, Value, View, ViewManifest, Views, serde_json};
//!
//! #[derive(serde::Deserialize)]
//! pub struct Pod { spec: PodSpec }
//! #[derive(serde::Deserialize)]
//! pub struct PodSpec { containers: Vec<Value> }
//!
//! #[derive(serde::Serialize, serde::Deserialize)]
//! pub struct FarmPod { spec: FarmPodSpec }
//! #[derive(serde::Serialize, serde::Deserialize)]
//! pub struct FarmPodSpec { containers: usize }
//!
//! impl View for FarmPod {
//!     type Backing = Pod;
//!     type Shown = FarmPod;
//!     type Config = NoConfig;
//!     const NAME: &'static str = "farmpods";
//!     fn manifest() -> ViewManifest {
//!         let shown = Shown::new("farm.example.com/v1alpha", "FarmPod", "farmpods");
//!         ViewManifest::new(Kind::new("v1", "Pod"), &["spec.containers"], shown)
//!     }
//!     fn show(pod: Pod, _: &NoConfig) -> Result<FarmPod, Failure> {
//!         Ok(FarmPod { spec: FarmPodSpec { containers: pod.spec.containers.len() } })
//!     }
//! }
//! pub struct Farm;
//! impl Views for Farm {
//!     const NAME: &'static str = "farm";
//!     const VERSION: &'static str = env!("CARGO_PKG_VERSION");
//!     type All = (FarmPod,);
//! }
//! # let pod = serde_json::from_value(pintle_guest::json!({"spec": {"containers": [{}, {}]}}))?;
//! # assert_eq!(FarmPod::show(pod, &NoConfig {}).unwrap().spec.containers, 2);
//! # Ok::<(), serde_json::Error>(())
//! ```
//!
//! # What to look up
//!
//! * [`Manifest`] declares what the guest reconciles, creates and asks for.
//! * [`Object`] is a custom resource over the guest's own types for spec and status; [`Request`] has everything that an answer may depend
//!   on.
//! * [`Child`] is an object that should exist. [`Readiness`] says when it counts as ready, and [`Child::in_stage`] lets it wait for others.
//! * [`status()`], [`GuestCondition`] and [`Event`] tell people and tools how things are; [`Rollout`] does so for a Deployment.
//! * [`Failure`] says why there is no answer; [`Refusal`] is what the API server said of a child.
//! * [`Needs`] collects what the guest asks to see ([`Need`]): objects that are not its children, and the time.
//! * [`Patch`] changes objects that the root does not own, and [`Evictions`] has Pods evicted.
//! * [`View`] shows objects of one kind as another, and may store what is written; [`Views`] lists the views of a guest.
//! * [`dns_1035_label`], [`sha256_hex`] and [`base64`] are what most guests need of other crates.
//!
//! docs/guests.md in Pintle's repository explains how these work together, with all grants of a Reconciler and with ways to find a
//! mistake. docs/advanced-guests.md is about needs, patches, evictions and finalizers, with a complete guest.
//!
//! With the feature `schema` a native build of the guest writes its `crd.yaml` and `config.schema.json`: see the module `schema`.

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
mod view;

pub use dns::{dns_1035_label, dns_1123_label};
pub use encoding::{base64, sha256_hex};
pub use needs::Needs;
pub use object::{Metadata, NoConfig, NoStatus, Object};
#[doc(inline)]
pub use pintle_wit::views::{Column, ColumnType, Document, Shown, ViewManifest, ViewsManifest};
#[doc(inline)]
pub use pintle_wit::*;
pub use rollout::Rollout;
#[cfg(feature = "schema")]
pub use schemars;
pub use serde;
pub use serde_json::{self, Map, Value, json};
pub use view::{View, ViewList, Views, nullable};

use serde::de::DeserializeOwned;

/// Compiles the guest in README.md.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct FirstPage;

/// Compiles the examples in docs/guests.md.
#[cfg(doctest)]
#[doc = include_str!("../../docs/guests.md")]
struct Guide;

/// Compiles the examples in docs/advanced-guests.md.
#[cfg(doctest)]
#[doc = include_str!("../../docs/advanced-guests.md")]
struct AdvancedGuide;

/// Compiles the examples in docs/crds.md, and makes the CRD of each.
#[cfg(all(doctest, feature = "schema"))]
#[doc = include_str!("../../docs/crds.md")]
struct CrdsGuide;

/// Compiles the examples in docs/views.md.
#[cfg(doctest)]
#[doc = include_str!("../../docs/views.md")]
struct ViewsGuide;

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
pub fn status(status: &impl serde::Serialize) -> Map<String, Value> {
    fields(status)
}

/// The fields of an object, from a type of the guest's own: what [`View::store`] answers. A type that is no struct or map gives none.
pub fn fields(object: &impl serde::Serialize) -> Map<String, Value> {
    match serde_json::to_value(object) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}
