//! Reconciles __KIND__ (`__GROUP__/v1`).

use pintle_guest::{Child, ChildKind, Failure, Guest, Kind, Manifest, NoConfig, Object, Request, Response, json};

// The CRD is generated from this type.
/// What somebody wants to exist.
#[derive(serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Spec {
    /// What the ConfigMap says.
    pub text: String,
}

/// The guest.
pub struct __KIND__;

pintle_guest::export!(__KIND__);

impl Guest for __KIND__ {
    type Root = Object<Spec>;
    type Config = NoConfig;

    fn manifest() -> Manifest {
        Manifest {
            children: vec![ChildKind::new("v1", "ConfigMap")],
            ..Manifest::new("__NAME__", env!("CARGO_PKG_VERSION"), Kind::new("__GROUP__/v1", "__KIND__"))
        }
    }

    fn reconcile(request: Request<Self::Root, NoConfig>) -> Result<Response, Failure> {
        let root = &request.object;
        // The children that should exist, whole, every time: what is left out is deleted.
        let text = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": root.metadata.name},
            "data": {"text": root.spec.text},
        });
        Ok(Response { children: vec![Child::new("text", text)], ..Response::default() })
    }
}

#[cfg(feature = "schema")]
impl pintle_guest::schema::CustomResource for Spec {
    type Status = pintle_guest::NoStatus;
    const CRD: pintle_guest::schema::Crd =
        pintle_guest::schema::Crd { plural: "__PLURAL__", singular: "__SINGULAR__", ..pintle_guest::schema::Crd::EMPTY };
}
