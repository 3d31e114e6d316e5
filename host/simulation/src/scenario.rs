//! Acceptance tests as files: objects, steps, expectations. One runner runs them, on the real control plane and on any other [`Backend`].
//!
//! ```yaml
//! about: A child that somebody deletes is made again.
//! objects:
//!   - {apiVersion: my.domain/v1, kind: WebServer, metadata: {name: shop}, spec: {image: "nginx:1.23.1"}}
//! steps:
//!   - name: it becomes ready
//!     expect:
//!       - {object: my.domain/v1/WebServer/shop, condition: Ready=True}
//!   - name: its Service is deleted, and is back
//!     delete: {object: v1/Service/shop-service}
//!     expect:
//!       - {object: v1/Service/shop-service, uid: new}
//! ```
//!
//! A step that swaps may have a `plan`, which is made before the swap, and compared with what the swap does.
//!
//! Each run has a namespace of its own, `$NS`. An object without a namespace is in it. A cluster-scoped object has `$RUN` in its name, so
//! that scenarios can run at the same time. `$UID(v1/ConfigMap/name)` is the uid of an existing object, and `$ANY` matches any value.
//!
//! An object in another namespace is named by fields: `{apiVersion: v1, kind: Service, namespace: other, name: shop-service}`. So is a
//! condition that has a message.

mod backend;
mod custom_kind;
mod format;
mod matching;
mod run;
mod short;

pub use backend::{Backend, Call, Mark};
pub use custom_kind::API_VERSION as CUSTOM_API_VERSION;
pub use format::{
    Bytes, Calls, Cascade, ConditionIs, CustomKind, Deletion, Edit, Expectation, Fixture, ModuleFile, Only,
    OnlyOn, PlanExpectation, Scenario, ScenarioStep, Stop, Swap, UidIs, Without,
};
pub use matching::differences;
pub use run::{Failed, Names, Runner};
