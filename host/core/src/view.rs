//! Views: what is decided about a request to a kind whose objects a guest computes from objects of a *backing* kind.
//!
//! The gateway keeps no objects. It maps a request, sends it on to the backing kind, and maps the answer. Everything here is such a mapping,
//! from values to values.
//!
//! * [`served`]: what a View serves, and the [`Lens`] through which one resource is seen.
//! * [`target`]: what the path of a request names.
//! * [`accept`]: in which form a client wants its answer; [`query`]: its options, also as the backing kind is asked with them.
//! * [`document`]: views that show documents in plain JSON (REST) instead of objects of Kubernetes.
//! * [`discovery`] and [`openapi`]: what is served; [`etag`]: whether a client knows it already.
//! * [`cut`]: what is read of a backing object; [`item`]: what is shown of it, as JSON.
//! * [`table`]: objects as rows, as kubectl prints them.
//! * [`names`], [`uid`], [`version`]: the parts of an object's identity, there and back; [`metadata`]: all of it.
//! * [`patch`]: what a client wants changed; [`write`]: what becomes of a backing object when somebody writes.
//! * [`unshowable`]: what becomes of objects that their guest cannot show.
//! * [`rights`]: what it takes to serve a View: roles, and the APIService.
//! * [`status`]: why a request is refused, also by the API server in answer to the one sent on.

pub mod accept;
pub mod cut;
pub mod discovery;
pub mod document;
pub mod etag;
pub mod item;
pub mod metadata;
pub mod names;
pub mod openapi;
pub mod patch;
pub mod query;
pub mod rights;
pub mod served;
pub mod status;
pub mod table;
pub mod target;
pub mod uid;
pub mod unshowable;
pub mod version;
pub mod write;

pub use cut::{BackingObject, Cut, Source};
pub use served::{Access, Backing, Lens, Served, Verb};
pub use status::Status;
pub use unshowable::Unshowable;
pub use version::Epoch;
