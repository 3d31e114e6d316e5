//! Reconciles Raw (`raw.example.com/v1`) into the objects that its spec has, so that a scenario can have any child.

#[cfg(feature = "schema")]
use pintle_guest::schema::{Crd, CustomResource};
use pintle_guest::{
    Child, ChildKind, Failure, Guest, Kind, Manifest, NoConfig, Object, Request, Response, Value,
};
use serde::Deserialize;

/// The kinds that its children may be of.
const KINDS: [(&str, &str); 9] = [
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("v1", "Service"),
    ("v1", "ServiceAccount"),
    ("v1", "PersistentVolumeClaim"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("batch/v1", "Job"),
    ("autoscaling/v2", "HorizontalPodAutoscaler"),
];

const API_VERSION: &str = "raw.example.com/v1";
const KIND: &str = "Raw";

/// The guest.
pub struct Raw;

pintle_guest::export!(Raw);

/// The objects that should exist.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RawSpec {
    /// Each is a whole object.
    #[cfg_attr(
        feature = "schema",
        schemars(extend("items" = {"type": "object", "x-kubernetes-preserve-unknown-fields": true}))
    )]
    pub objects: Vec<Value>,
}

#[cfg(feature = "schema")]
impl CustomResource for RawSpec {
    type Status = pintle_guest::NoStatus;

    const CRD: Crd = Crd { plural: "raws", singular: "raw", ..Crd::EMPTY };
}

impl Guest for Raw {
    type Root = Object<RawSpec>;
    type Config = NoConfig;

    fn manifest() -> Manifest {
        // A Raw may have Raws.
        let kinds = KINDS.into_iter().chain([(API_VERSION, KIND)]);
        Manifest {
            children: kinds.map(|(api_version, kind)| ChildKind::new(api_version, kind)).collect(),
            ..Manifest::new("raw", env!("CARGO_PKG_VERSION"), Kind::new(API_VERSION, KIND))
        }
    }

    fn reconcile(request: Request<Self::Root, NoConfig>) -> Result<Response, Failure> {
        let children = request.object.spec.objects.into_iter().map(|object| Child::new(id(&object), object));
        Ok(Response { children: children.collect(), ..Response::default() })
    }
}

/// Its kind in lower case and its name: `configmap-photos`.
fn id(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_lowercase();
    format!("{}-{}", text(&object["kind"]), text(&object["metadata"]["name"]))
}
