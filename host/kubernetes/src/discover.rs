//! Discovery of one kind: how the API server serves it, and the paths of its objects.

use kube::discovery;
use pintle_core::{ApiError, KindInfo, object};
use pintle_wit::{Kind, ObjectRef};

use super::Cluster;

/// A kind as the API server serves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The kind.
    pub kind: Kind,
    /// Its name in paths.
    pub plural: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

impl Resource {
    /// The path of an object, or of the kind's collection.
    pub fn path(&self, namespace: Option<&str>, name: Option<&str>) -> String {
        let root = if self.kind.group().is_empty() { "/api" } else { "/apis" };
        let mut path = format!("{root}/{}", self.kind.api_version);
        if let Some(namespace) = namespace.filter(|_| self.namespaced) {
            path.push_str(&format!("/namespaces/{}", super::escape(namespace)));
        }
        path.push_str(&format!("/{}", self.plural));
        if let Some(name) = name {
            path.push_str(&format!("/{}", super::escape(name)));
        }
        path
    }

    /// The path of an object of the kind.
    pub fn path_of(&self, reference: &ObjectRef) -> String {
        self.path(reference.namespace.as_deref(), Some(&reference.name))
    }

    /// The part that the gate needs to know about the kind.
    pub fn info(&self) -> KindInfo {
        KindInfo { namespaced: self.namespaced }
    }

    /// The kind in the form that kube's watchers need.
    pub fn api_resource(&self) -> kube::core::ApiResource {
        let gvk = kube::core::GroupVersionKind::gvk(self.kind.group(), self.kind.version(), &self.kind.kind);
        kube::core::ApiResource::from_gvk_with_plural(&gvk, &self.plural)
    }
}

impl Cluster {
    /// Asks the API server how it serves a kind; `None` if it does not serve it. This asks for one kind at a time, because a discovery of
    /// all kinds fails when any aggregated API is down.
    ///
    /// # Errors
    /// When the API server did not answer the question.
    pub async fn discover(&self, kind: &Kind) -> Result<Option<Resource>, ApiError> {
        if !object::is_kind(kind) {
            // No kind has such a name, and the name would become a part of a path.
            return Ok(None);
        }
        let gvk = kube::core::GroupVersionKind::gvk(kind.group(), kind.version(), &kind.kind);
        let found =
            tokio::time::timeout(super::REQUEST_TIMEOUT, discovery::pinned_kind(&self.client, &gvk)).await;
        match found {
            Ok(Ok((resource, capabilities))) => Ok(Some(Resource {
                kind: kind.clone(),
                plural: resource.plural,
                namespaced: capabilities.scope == discovery::Scope::Namespaced,
            })),
            Ok(Err(kube::Error::Api(status))) if status.code == 404 => Ok(None),
            Ok(Err(kube::Error::Discovery(_))) => Ok(None),
            Ok(Err(error)) => Err(ApiError { message: super::chain(&error), ..ApiError::default() }),
            Err(_) => Err(ApiError { message: "discovery took too long".into(), ..ApiError::default() }),
        }
    }
}
