//! An in-memory Kubernetes API server at the level of HTTP: a real `kube::Client` uses it in place of a cluster.
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
//!
//! # What is modelled
//!
//! get, list (limit, continue, exact and older versions), watch (bookmarks, 410, ends), create, update, JSON patch, merge patch, server-side
//! apply, delete (preconditions, finalizers, background, foreground, orphan), the `status` subresource, evictions with PodDisruptionBudgets,
//! discovery and access reviews (everybody may do everything), for the kinds that `kinds.rs` lists and for all that CRDs define, with
//! their schemas and their rules in CEL. ConfigMap, Secret, Service, Deployment, Ingress, PodDisruptionBudget and custom kinds are
//! compared with a real API server, request by request, and so are evictions (`tests/conformance.rs`); the other kinds follow the same
//! code and are not compared.
//!
//! # What is refused with 501
//!
//! | what | why |
//! | --- | --- |
//! | kinds of Kubernetes' own groups that are not in `kinds.rs`: quotas, limits, webhooks, admission policies and so on | what they would do to other requests is not modelled |
//! | Namespaces with `pod-security.kubernetes.io/enforce` | nor is Pod Security |
//! | CRDs with a keyword, a format or a pattern that is not evaluated here, with a rule in CEL that does not compile, that uses what is not known (`url()`, `quantity()` and the like), or that compares items of lists with what they were; below `additionalProperties` no rule is | nobody else would notice |
//! | CRDs with several served versions, or conversion by a webhook | objects are shown as they were stored |
//! | strategic merge patch, YAML and protobuf bodies | Pintle sends none |
//! | dry runs, strict field validation | Pintle asks for none |
//! | deletion of a collection | nor those |
//! | subresources other than `status` and `eviction` (`scale`, `log`, `binding`, `token`) | nor those |
//! | field selectors other than by name and namespace, streaming lists | nor those |
//! | `/openapi`, `/version`, `/healthz`, metrics | nobody asks for them here |
//! | more than ten managers of one object that do not apply | the API server folds the oldest together |
//! | empty labels or annotations in an apply of a custom kind | the API server stores them, loses them with the next read, and takes any later write for a change |
//! | a Service that becomes an ExternalName | what the API server stores then is not what it replies |
//! | a status apply on a Service that is not there | the API server takes it for a creation |
//!
//! # What is let pass
//!
//! Nobody can refuse what he does not see. These are not looked at, so that a run on the simulator proves nothing of them:
//!
//! * Authorization, and what admission adds to every Pod.
//! * Of built-in kinds, all validation but that of `validate.rs`; what differs only in the words of a message.
//! * The cost of rules in CEL, and what the API server lets pass of an object that was invalid before and did not change there.
//! * Controllers other than garbage collection, namespaces, Deployments, ReplicaSets, PodDisruptionBudgets and Pods; nodes other than
//!   one of Linux on amd64; conditions of Pods other than becoming ready.

mod act;
mod allocate;
mod apply;
mod controllers;
mod custom;
mod defaults;
mod failure;
mod faults;
mod kinds;
mod quantity;
mod random;
mod request;
mod rules;
mod schema;
mod server;
mod service;
mod store;
mod validate;
mod verbs;
mod watch;

pub use act::{Act, Cascade};
pub use failure::Failure;
pub use faults::{Change, EventFate, EventSeen, Fate, Faults, NoFaults, RequestSeen, StreamSeen, Verb};
pub use server::{ApiServer, Clock, Options, Record, Snapshot};
pub use service::{Lost, Service};
pub use watch::Body;
