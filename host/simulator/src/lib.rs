//! An in-memory Kubernetes API server at the level of HTTP: a real `kube::Client` uses it instead of a cluster.
//!
//! It reads neither the clock nor random numbers of the operating system. Time comes from [`Options::clock`], uids come from
//! [`Options::seed`], and everything else depends on the order of the requests. So the same requests get the same replies, byte for byte.
//! [`Faults`] can make a request fail, late or lost, and a watch event hidden, duplicated or late.
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
//! get, list (limit, continue, exact and older versions), watch (bookmarks, initial events, 410, ends), create, update, JSON patch, merge
//! patch, server-side apply, delete (preconditions, finalizers, background, foreground, orphan), deletion of collections, the `status`
//! subresource, evictions with PodDisruptionBudgets, dry runs and field validation of each write, metadata alone in place of objects and
//! discovery of the kinds of a group, for the kinds in `kinds.rs` and for all kinds that CRDs define, with their schemas and their CEL
//! rules; `/version` is that of Kubernetes 1.36. [`Access`] answers token reviews and access reviews, and refuses requests; by default
//! everybody may do everything. Clients may impersonate. `tests/conformance` compares ConfigMap, Secret, Service, Deployment, Ingress,
//! PodDisruptionBudget, custom kinds and evictions with a real API server, request by request. The other kinds use the same code, but are
//! not compared.
//!
//! # What is refused with 501
//!
//! | what | why |
//! | --- | --- |
//! | kinds of Kubernetes' own groups, without a dot or below `k8s.io`, that are not in `kinds.rs` and have no CRD: quotas, limits, webhooks, admission policies and so on | their effects on other requests are not modelled |
//! | Namespaces with `pod-security.kubernetes.io/enforce` | Pod Security is not modelled |
//! | CRDs with a keyword, a format or a pattern that is not evaluated here, or with a CEL rule that does not compile or has an unknown function (`quantity()`, `ip()` and the like) | nobody else would notice |
//! | CRDs with several served versions, or conversion by a webhook | objects are shown as they were stored |
//! | strategic merge patch, YAML and protobuf bodies | Pintle sends none |
//! | subresources other than `status` and `eviction` (`scale`, `log`, `binding`, `token`) | Pintle asks for none |
//! | field selectors other than by name and namespace, tables | Pintle asks for none |
//! | `/api`, `/apis`, `/apis/GROUP`, `/openapi`, `/healthz`, metrics | Pintle asks for none |
//! | more than ten managers of one object that do not apply | the API server merges the oldest ones |
//! | empty labels or annotations in an apply of a custom kind | the API server stores them, loses them with the next read, and so counts any later write as a change |
//! | a Service that becomes an ExternalName | the API server's reply differs from what it stores |
//! | a status apply on a Service that does not exist | the API server treats it as a creation |
//!
//! # What is not checked
//!
//! The simulator does not check these, so a run on it proves nothing about them:
//!
//! * Whether a client may impersonate, and what admission adds to every Pod.
//! * The limit of a deletion of a collection: all that is selected is deleted at once.
//! * The token with which a list that has expired goes on inconsistently: it has none.
//! * The validation of built-in kinds, except what `validate.rs` has, and their defaults, except those in `defaults.rs`: a StatefulSet, a
//!   DaemonSet, a Job, a CronJob, a HorizontalPodAutoscaler, a NetworkPolicy and a PersistentVolumeClaim are read by their schema, and
//!   stored as they are, but for the template of a Job, which is immutable. An apply whose base64, quantities, times or integers do not
//!   fit their kind is stored, too. The exact words of messages about built-in kinds.
//! * What `pintle_schema::structural` lists; for instance, the cost of CEL rules is estimated and not counted.
//! * Controllers other than garbage collection, namespaces, Deployments, ReplicaSets, StatefulSets, DaemonSets, PodDisruptionBudgets and
//!   Pods; nodes other than one with Linux on amd64; conditions of Pods other than those that lead to Ready; the strategy of a Deployment,
//!   and its revisions other than their number.

mod access;
mod act;
mod allocate;
mod apply;
mod controllers;
mod custom;
mod defaults;
mod failure;
mod faults;
mod kinds;
mod random;
mod request;
mod selector;
mod server;
mod service;
mod store;
mod validate;
mod verbs;
mod watch;

pub use access::{Access, Action, Unrestricted, User, Verdict};
pub use act::{Act, Cascade};
pub use failure::Failure;
pub use faults::{Change, EventFate, EventSeen, Fate, Faults, NoFaults, RequestSeen, StreamSeen, Verb};
pub use server::{ApiServer, Clock, Options, Record, Revision, Snapshot};
pub use service::{Lost, Service};
pub use watch::Body;
