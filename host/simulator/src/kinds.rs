//! The kinds that are served, and how.

use std::sync::{Arc, LazyLock};

use pintle_schema::{builtin, shape::Shape, structural::Structural};
use pintle_wit::Kind;
use serde_json::Value;

use crate::{
    Failure,
    request::Path,
    store::{Key, Store},
};

/// A served kind.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) namespaced: bool,
    /// Whether it has a status subresource.
    pub(crate) status: bool,
    /// Whether the API server counts the changes of its spec in a generation.
    pub(crate) generation: bool,
    /// Whether a CRD defines it.
    pub(crate) custom: bool,
    /// The schema of its CRD.
    pub(crate) structural: Option<Structural>,
    schema: Value,
}

impl Served {
    pub(crate) fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }

    /// Whether a key is that of an object of this kind.
    pub(crate) fn has(&self, key: &Key) -> bool {
        self.plural == key.resource && self.group == key.group
    }

    /// Whether it is this kind of Kubernetes' own.
    pub(crate) fn is(&self, kind: &str) -> bool {
        !self.custom && self.kind == kind
    }

    /// The name in the API server's messages.
    pub(crate) fn qualified(&self) -> String {
        self.with_group(&self.plural)
    }

    /// The name in messages about invalid objects.
    pub(crate) fn qualified_kind(&self) -> String {
        self.with_group(&self.kind)
    }

    fn with_group(&self, name: &str) -> String {
        if self.group.is_empty() { name.to_owned() } else { format!("{name}.{}", self.group) }
    }

    pub(crate) fn shape(&self) -> Shape<'_> {
        Shape::new(builtin::definitions(), &self.schema)
    }
}

fn api_version(group: &str, version: &str) -> String {
    match group {
        "" => version.into(),
        group => format!("{group}/{version}"),
    }
}

const STATUS: u8 = 1;
const GENERATION: u8 = 2;
const NAMESPACED: u8 = 4;
const BUILTIN: [(&str, &str, &str, &str, u8); 24] = [
    ("", "v1", "ConfigMap", "configmaps", NAMESPACED),
    ("", "v1", "Namespace", "namespaces", STATUS),
    ("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", NAMESPACED | STATUS),
    ("", "v1", "Pod", "pods", NAMESPACED | STATUS | GENERATION),
    ("", "v1", "Secret", "secrets", NAMESPACED),
    ("", "v1", "Service", "services", NAMESPACED | STATUS),
    ("", "v1", "ServiceAccount", "serviceaccounts", NAMESPACED),
    (
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        STATUS | GENERATION,
    ),
    ("apps", "v1", "DaemonSet", "daemonsets", NAMESPACED | STATUS | GENERATION),
    ("apps", "v1", "Deployment", "deployments", NAMESPACED | STATUS | GENERATION),
    ("apps", "v1", "ReplicaSet", "replicasets", NAMESPACED | STATUS | GENERATION),
    ("apps", "v1", "StatefulSet", "statefulsets", NAMESPACED | STATUS | GENERATION),
    ("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", NAMESPACED | STATUS),
    ("batch", "v1", "CronJob", "cronjobs", NAMESPACED | STATUS | GENERATION),
    ("batch", "v1", "Job", "jobs", NAMESPACED | STATUS | GENERATION),
    ("coordination.k8s.io", "v1", "Lease", "leases", NAMESPACED),
    ("events.k8s.io", "v1", "Event", "events", NAMESPACED),
    ("networking.k8s.io", "v1", "Ingress", "ingresses", NAMESPACED | STATUS | GENERATION),
    ("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", NAMESPACED | GENERATION),
    ("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", NAMESPACED | STATUS | GENERATION),
    ("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", 0),
    ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", 0),
    ("rbac.authorization.k8s.io", "v1", "Role", "roles", NAMESPACED),
    ("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", NAMESPACED),
];

static SERVED: LazyLock<Vec<Arc<Served>>> = LazyLock::new(|| {
    let served = BUILTIN.iter().map(|&(group, version, kind, plural, flags)| Served {
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        plural: plural.into(),
        namespaced: flags & NAMESPACED != 0,
        status: flags & STATUS != 0,
        generation: flags & GENERATION != 0,
        custom: false,
        structural: None,
        schema: builtin::schema(&Kind::new(api_version(group, version), kind)).unwrap_or_default(),
    });
    served.map(Arc::new).collect()
});

/// The answer to a request for a kind that is not served here: 404 as from the API server, or 501 if the group is one of Kubernetes' own,
/// so that the API server may have that kind.
pub(crate) fn unknown(group: &str, what: &str) -> Failure {
    let is_builtin = !group.contains('.') || group.ends_with(".k8s.io");
    if is_builtin && !what.is_empty() {
        return Failure::not_modelled(&format!("{what} of the group {group:?}"));
    }
    Failure::unknown_path()
}

/// The kind that a path names.
///
/// # Errors
/// There is none: [`unknown`].
pub(crate) fn find(store: &Store, path: &Path) -> Result<Arc<Served>, Failure> {
    let Path { group, version, resource, .. } = path;
    let is_named = |served: &&Arc<Served>| {
        served.plural == *resource && served.group == *group && served.version == *version
    };
    all(store).find(is_named).cloned().ok_or_else(|| unknown(group, resource))
}

/// The kind of an object, by its apiVersion and kind.
pub(crate) fn of(store: &Store, api_version: &str, kind: &str) -> Option<Arc<Served>> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    all(store)
        .find(|served| served.kind == kind && served.group == group && served.version == version)
        .cloned()
}

/// Every kind, in the order of discovery.
pub(crate) fn all(store: &Store) -> impl Iterator<Item = &Arc<Served>> {
    SERVED.iter().chain(store.custom_kinds())
}

/// The kinds of a CRD, one for each served version.
pub(crate) fn custom(crd: &Value) -> impl Iterator<Item = Served> + '_ {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let versions = crd["spec"]["versions"].as_array().into_iter().flatten();
    versions.filter(|version| version["served"] == true).map(move |version| Served {
        group: text(&crd["spec"]["group"]),
        version: text(&version["name"]),
        kind: text(&crd["spec"]["names"]["kind"]),
        plural: text(&crd["spec"]["names"]["plural"]),
        namespaced: crd["spec"]["scope"] != "Cluster",
        status: version.pointer("/subresources/status").is_some(),
        generation: true,
        custom: true,
        // A CRD whose schema does not compile is refused.
        structural: Structural::of_crd(&version["schema"]["openAPIV3Schema"]).ok(),
        schema: builtin::with_metadata(&version["schema"]["openAPIV3Schema"]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_about_the_simulator_names_the_kinds_that_it_knows() {
        let kinds = BUILTIN.map(|(group, version, kind, ..)| Kind::new(api_version(group, version), kind));
        let lines: String = kinds.iter().map(|kind| format!("- {kind}\n")).collect();
        let page = include_str!("../../../docs/simulator.md");
        assert!(page.contains(&format!(":\n\n{lines}\n")), "docs/simulator.md lacks this list:\n{lines}");
    }

    #[test]
    fn every_built_in_kind_has_a_schema() {
        for served in SERVED.iter() {
            assert!(served.shape().member("metadata").is_some(), "{}", served.kind);
        }
    }
}
