//! The parts of a Reconciler's spec that decide what its guest may do.

use std::collections::{BTreeMap, BTreeSet};

use pintle_wit::{ChildKind, Failure, Kind, Manifest, NeedKind, PatchKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reasons;

/// What an administrator allows a Reconciler. What is not granted is refused.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Grants {
    /// The kinds of children that the guest may have.
    #[serde(default)]
    pub children: Vec<KindGrant>,
    /// The kinds of objects that the guest may be shown besides its children.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<NeedGrant>,
    /// The kinds of objects that the guest may patch, and which of their fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patches: Vec<PatchGrant>,
    /// Whether the guest may have Pods evicted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub evictions: bool,
    /// Whether the guest may have Pods deleted, which no PodDisruptionBudget stops.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pod_deletions: bool,
    /// What the pod templates of children may do beyond Pod Security baseline, and which objects they may refer to.
    #[serde(default)]
    pub pod_templates: PodTemplateGrants,
    /// What Services may be.
    #[serde(default)]
    pub services: ServiceGrants,
    /// The annotations that an Ingress may carry: they are orders to the controller that all Ingresses of the cluster share.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ingress_annotations: Vec<String>,
}

/// Kinds of one API version.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KindGrant {
    /// Group and version: `apps/v1`, or `v1` for the core group.
    pub api_version: String,
    /// The kinds.
    pub kinds: Vec<String>,
    /// The namespaces in which a root of cluster scope may have them. Those of other roots are in the root's namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
}

/// Kinds that a guest may be shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NeedGrant {
    /// Group and version.
    pub api_version: String,
    /// The kinds.
    pub kinds: Vec<String>,
    /// In the root's namespace alone, or everywhere.
    #[serde(default)]
    pub scope: NeedScope,
    /// The names; none means any, except for Secrets, which are granted by name only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

/// How far a need may look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum NeedScope {
    /// The root's namespace.
    #[default]
    Namespace,
    /// All namespaces, and cluster scope.
    All,
}

/// Kinds and fields that a guest may patch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PatchGrant {
    /// Group and version.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The field paths that may be set.
    pub fields: Vec<String>,
    /// Whether they may also be set where somebody else has set them. Otherwise that is a conflict, which the root tells.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
}

/// What pod templates may do and refer to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PodTemplateGrants {
    /// Secrets, ConfigMaps and PersistentVolumeClaims that are not the root's children and that pod templates may refer to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<ReferenceGrant>,
    /// Exceptions, by the name of the rule that would refuse them, for instance `HostPath`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
}

/// An object that pod templates may refer to: by name, or by a field of the root that holds its name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReferenceGrant {
    /// Secret, ConfigMap or PersistentVolumeClaim.
    pub kind: String,
    /// The name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The namespace in which it is: needed for roots of cluster scope; for others it can only be the root's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The field of the root that holds the name: `spec.source.credentialsSecretRef.name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_root: Option<String>,
}

/// What Services may be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ServiceGrants {
    /// The types: ClusterIP, NodePort, LoadBalancer, ExternalName.
    #[serde(default = "default_service_types")]
    pub types: Vec<String>,
    /// Whether `externalIPs` may be set.
    #[serde(default)]
    pub external_ips: bool,
}

impl Default for ServiceGrants {
    fn default() -> Self {
        Self { types: default_service_types(), external_ips: false }
    }
}

fn default_service_types() -> Vec<String> {
    vec!["ClusterIP".into()]
}

impl Grants {
    /// Whether children of this kind are granted.
    pub fn allows_child(&self, kind: &Kind) -> bool {
        self.children.iter().any(|grant| {
            grant.api_version == kind.api_version && grant.kinds.iter().any(|name| name == &kind.kind)
        })
    }

    /// Whether a guest may be shown any object of this kind.
    pub fn allows_need(&self, kind: &Kind) -> bool {
        self.needs.iter().any(|grant| {
            grant.api_version == kind.api_version
                && grant.kinds.contains(&kind.kind)
                && (is_watchable(kind) || !grant.names.is_empty())
        })
    }

    /// Whether a guest may patch any field of objects of this kind.
    pub fn allows_patch(&self, kind: &Kind) -> bool {
        self.patches.iter().any(|grant| {
            grant.api_version == kind.api_version && grant.kind == kind.kind && !grant.fields.is_empty()
        })
    }

    /// Whether a guest may have Pods go.
    pub fn allows_evictions(&self) -> bool {
        self.evictions || self.pod_deletions
    }

    /// Whether a root of cluster scope may have children of this kind in this namespace.
    pub fn allows_child_in(&self, kind: &Kind, namespace: &str) -> bool {
        self.children.iter().any(|grant| {
            grant.api_version == kind.api_version
                && grant.kinds.iter().any(|name| name == &kind.kind)
                && grant.namespaces.iter().any(|name| name == namespace)
        })
    }

    /// The namespaces in which a root may have children of this kind: its own, or for a root of cluster scope those that the grants
    /// name. Without any, that is nowhere in particular.
    pub fn namespaces_of<'a>(&'a self, kind: &Kind, own: Option<&'a str>) -> BTreeSet<Option<&'a str>> {
        if own.is_some() {
            return BTreeSet::from([own]);
        }
        let grants = self.children.iter().filter(|grant| {
            grant.api_version == kind.api_version && grant.kinds.iter().any(|name| name == &kind.kind)
        });
        let named: BTreeSet<Option<&str>> =
            grants.flat_map(|grant| grant.namespaces.iter().map(|name| Some(name.as_str()))).collect();
        if named.is_empty() { BTreeSet::from([None]) } else { named }
    }

    /// What a manifest declares and these grants of a Reconciler leave out. The gate refuses every answer that uses it.
    pub fn missing(&self, manifest: &Manifest, reconciler: &str) -> Vec<Failure> {
        let mut found = Vec::new();
        let mut check = |granted: bool, reason: &str, message: String| {
            let failure = Failure::terminal(reason, message).at("spec.grants");
            found.extend((!granted).then_some(failure));
        };
        for kind in manifest.children.iter().map(ChildKind::kind) {
            check(self.allows_child(&kind), reasons::KIND_NOT_GRANTED, child_not_granted(reconciler, &kind));
        }
        for NeedKind { api_version, kind, .. } in &manifest.needs {
            let need = Kind::new(api_version, kind);
            let names = if is_watchable(&need) { "" } else { ", names: [NAME]" };
            let grant = format!("needs: - {{apiVersion: {api_version}, kinds: [{kind}]{names}}}");
            let message = not_granted(reconciler, &format!("that the guest sees {need}"), &grant);
            check(self.allows_need(&need), reasons::NEED_NOT_GRANTED, message);
        }
        for PatchKind { api_version, kind, fields } in &manifest.patches {
            let (patch, fields) = (Kind::new(api_version, kind), fields.join(", "));
            let grant = format!("patches: - {{apiVersion: {api_version}, kind: {kind}, fields: [{fields}]}}");
            let message = not_granted(reconciler, &format!("patches of {patch}"), &grant);
            check(self.allows_patch(&patch), reasons::PATCH_NOT_GRANTED, message);
        }
        let message = not_granted(reconciler, "that Pods are evicted", "evictions: true");
        let granted = !manifest.evictions || self.allows_evictions();
        check(granted, reasons::EVICTION_NOT_GRANTED, message);
        found
    }

    /// What `manifest` asks for and no more: the grants of an offline run without a Reconciler.
    pub fn as_declared(manifest: &Manifest) -> Self {
        let children = manifest
            .children
            .iter()
            .map(|child| KindGrant {
                api_version: child.api_version.clone(),
                kinds: vec![child.kind.clone()],
                namespaces: Vec::new(),
            })
            .collect();
        let needs = manifest.needs.iter().map(|need| NeedGrant {
            api_version: need.api_version.clone(),
            kinds: vec![need.kind.clone()],
            scope: NeedScope::All,
            names: Vec::new(),
        });
        let patches = manifest.patches.iter().map(|patch| PatchGrant {
            api_version: patch.api_version.clone(),
            kind: patch.kind.clone(),
            fields: patch.fields.clone(),
            force: false,
        });
        Self {
            children,
            needs: needs.collect(),
            patches: patches.collect(),
            evictions: manifest.evictions,
            pod_deletions: manifest.evictions,
            // A manifest cannot say of which types its Services are.
            services: ServiceGrants {
                types: vec!["ClusterIP".into(), "NodePort".into()],
                ..ServiceGrants::default()
            },
            ..Self::default()
        }
    }
}

/// That a Reconciler does not grant children of a kind, and what to add to it.
pub(crate) fn child_not_granted(reconciler: &str, kind: &Kind) -> String {
    let grant = format!("children: - {{apiVersion: {}, kinds: [{}]}}", kind.api_version, kind.kind);
    not_granted(reconciler, &format!("children of kind {kind}"), &grant)
}

fn not_granted(reconciler: &str, what: &str, grant: &str) -> String {
    format!("Reconciler {reconciler} does not grant {what}; add to its spec.grants.{grant}")
}

/// The limits of every call of a guest and of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Limits {
    /// How long a call may take. 100 ms: a thousand times what the sample guests need, and short enough for a worker to be held up.
    #[schemars(range(min = 1, max = 10_000))]
    pub timeout_milliseconds: u32,
    /// How much memory a call may use. 64 MiB: the sample guests need less than 1.
    #[schemars(range(min = 1, max = 1024))]
    pub memory_mebibytes: u32,
    /// How large an answer may be. 2 MiB: one object in etcd is at most 1.5.
    #[schemars(range(min = 1, max = 16_384))]
    pub response_kibibytes: u32,
    /// How many children an answer may have. 100: each costs a write when it changes, and a hundred are a second of one API server.
    #[schemars(range(min = 0, max = 1000))]
    pub children: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { timeout_milliseconds: 100, memory_mebibytes: 64, response_kibibytes: 2048, children: 100 }
    }
}

impl Limits {
    /// The limits on reading an answer.
    pub fn response(&self) -> pintle_wit::Limits {
        pintle_wit::Limits::of_bytes(self.response_kibibytes as usize * 1024)
    }
}

/// What this host honours in a response, as a request tells it.
pub const CAPABILITIES: [&str; 11] = [
    pintle_wit::capabilities::CHILDREN,
    pintle_wit::capabilities::STAGES,
    pintle_wit::capabilities::STATUS,
    pintle_wit::capabilities::CONDITIONS,
    pintle_wit::capabilities::EVENTS,
    pintle_wit::capabilities::REFUSALS,
    pintle_wit::capabilities::FINALIZER,
    pintle_wit::capabilities::NEEDS,
    pintle_wit::capabilities::PATCHES,
    pintle_wit::capabilities::EVICTIONS,
    pintle_wit::capabilities::STAMPS,
];

/// Kinds that the host may not list or watch. RBAC knows neither label selectors nor metadata-only access, so watching the few
/// Secrets that are children would mean reading all of them.
pub fn is_watchable(kind: &Kind) -> bool {
    !(kind.group().is_empty() && kind.kind == "Secret")
}

/// The verbs of RBAC that a host may need.
const VERBS: [&str; 6] = ["get", "list", "watch", "create", "patch", "delete"];

/// The kinds that a guest uses, its root's among them, with what a host must be allowed to do with their objects. A Reconciler may grant
/// deletions of Pods, which the manifest does not tell.
pub fn rights(manifest: &Manifest, pod_deletions: bool) -> BTreeMap<Kind, Vec<&'static str>> {
    let root = &manifest.reconciles;
    let children: BTreeSet<Kind> = manifest.children.iter().map(ChildKind::kind).collect();
    let patches = manifest.patches.iter().map(|patch| Kind::new(&patch.api_version, &patch.kind));
    let patches: BTreeSet<Kind> = patches.collect();
    let needs = manifest.needs.iter().map(|need| Kind::new(&need.api_version, &need.kind));
    let evicted = manifest.evictions.then(|| Kind::new("v1", "Pod"));
    let mut rights = BTreeMap::new();
    for kind in children.union(&patches).cloned().chain(needs).chain(evicted).chain([root.clone()]) {
        let is_child = children.contains(&kind);
        let is_deleted = pod_deletions && kind.group().is_empty() && kind.kind == "Pod";
        let verbs = VERBS.into_iter().filter(|verb| match *verb {
            "list" | "watch" => is_watchable(&kind),
            // An apply creates with `patch`; the API server asks for `create` as well.
            "create" => is_child,
            // A finalizer is a field of the root's metadata.
            "patch" => is_child || patches.contains(&kind) || manifest.finalizer && kind == *root,
            "delete" => is_child || is_deleted,
            _ => true,
        });
        let verbs = verbs.collect();
        rights.insert(kind, verbs);
    }
    rights
}

/// Whether this host can run a guest with this manifest.
///
/// # Errors
/// `ObserveForbidden`, `IndexForbidden` or `PatchForbidden`, naming the manifest's field.
pub fn supports(manifest: &Manifest) -> Result<(), Failure> {
    let forbidden =
        |reason: &str, message: String, path: String| Err(Failure::terminal(reason, message).at(path));
    for (index, child) in manifest.children.iter().enumerate() {
        if child.observe && !is_watchable(&child.kind()) {
            let message = format!("the host may not watch {}, so a guest cannot observe it", child.kind());
            return forbidden(reasons::OBSERVE_FORBIDDEN, message, format!("children[{index}].observe"));
        }
    }
    for (index, need) in manifest.needs.iter().enumerate() {
        let kind = Kind::new(&need.api_version, &need.kind);
        if !need.indexes.is_empty() && !is_watchable(&kind) {
            let message = format!("the host may not watch {kind}, so it cannot index it: ask for it by name");
            return forbidden(reasons::INDEX_FORBIDDEN, message, format!("needs[{index}].indexes"));
        }
    }
    for (index, patch) in manifest.patches.iter().enumerate() {
        let kind = Kind::new(&patch.api_version, &patch.kind);
        if !is_watchable(&kind) {
            let message = format!("no guest may patch {kind}");
            return forbidden(reasons::PATCH_FORBIDDEN, message, format!("patches[{index}].kind"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn children_live_with_their_root_and_where_the_grants_say() {
        let grant = |kind: &str, namespaces: &[&str]| KindGrant {
            api_version: "v1".into(),
            kinds: vec![kind.into()],
            namespaces: namespaces.iter().map(|name| (*name).into()).collect(),
        };
        let grants = Grants { children: vec![grant("A", &["x"]), grant("B", &["y"])], ..Grants::default() };
        let of = |kind: &str, own| {
            grants.namespaces_of(&Kind::new("v1", kind), own).into_iter().collect::<Vec<_>>()
        };
        assert_eq!(of("A", Some("own")), [Some("own")]);
        assert_eq!(of("B", None), [Some("y")]);
        assert_eq!(of("C", None), [None], "nowhere in particular is everywhere");
    }

    use super::*;

    #[test]
    fn everything_that_a_manifest_declares_and_a_reconciler_does_not_grant_is_told_with_what_to_add() {
        let manifest = Manifest {
            children: vec![ChildKind::new("v1", "Service"), ChildKind::new("apps/v1", "Deployment")],
            needs: vec![NeedKind::new("v1", "Pod"), NeedKind::new("v1", "Secret")],
            patches: vec![PatchKind::new("apps/v1", "Deployment", &["spec.replicas", "spec.paused"])],
            evictions: true,
            ..Manifest::default()
        };
        let told = |grants: &Grants| {
            let missing = grants.missing(&manifest, "web");
            missing.iter().map(ToString::to_string).collect::<Vec<String>>()
        };
        assert_eq!(
            told(&Grants::default()),
            [
                "KindNotGranted: spec.grants: Reconciler web does not grant children of kind v1 Service; add to its spec.grants.children: - {apiVersion: v1, kinds: [Service]}",
                "KindNotGranted: spec.grants: Reconciler web does not grant children of kind apps/v1 Deployment; add to its spec.grants.children: - {apiVersion: apps/v1, kinds: [Deployment]}",
                "NeedNotGranted: spec.grants: Reconciler web does not grant that the guest sees v1 Pod; add to its spec.grants.needs: - {apiVersion: v1, kinds: [Pod]}",
                "NeedNotGranted: spec.grants: Reconciler web does not grant that the guest sees v1 Secret; add to its spec.grants.needs: - {apiVersion: v1, kinds: [Secret], names: [NAME]}",
                "PatchNotGranted: spec.grants: Reconciler web does not grant patches of apps/v1 Deployment; add to its spec.grants.patches: - {apiVersion: apps/v1, kind: Deployment, fields: [spec.replicas, spec.paused]}",
                "EvictionNotGranted: spec.grants: Reconciler web does not grant that Pods are evicted; add to its spec.grants.evictions: true",
            ]
        );
        let mut all = Grants::as_declared(&manifest);
        // No grant gives Secrets but by name.
        all.needs.iter_mut().for_each(|need| need.names = vec!["tls".into()]);
        assert_eq!(told(&all), [""; 0]);
    }

    #[test]
    fn a_manifest_that_asks_for_what_no_host_gives_is_refused_by_name() {
        let refused = |change: fn(&mut Manifest)| {
            let mut manifest = Manifest::default();
            change(&mut manifest);
            supports(&manifest).map_err(|failure| (failure.reason, failure.path.unwrap_or_default()))
        };
        let at = |reason: &str, path: &str| Err((reason.to_owned(), path.to_owned()));
        let secret = || ("v1".to_owned(), "Secret".to_owned());
        assert_eq!(
            refused(|m| m.children.push(ChildKind::new("v1", "Secret").observed())),
            at("ObserveForbidden", "children[0].observe")
        );
        assert_eq!(
            refused(|m| m.needs.push(NeedKind {
                api_version: "v1".into(),
                kind: "Secret".into(),
                indexes: vec!["type".into()]
            })),
            at("IndexForbidden", "needs[0].indexes")
        );
        assert_eq!(
            refused(|m| m.patches.push(PatchKind {
                api_version: "v1".into(),
                kind: "Secret".into(),
                fields: vec![]
            })),
            at("PatchForbidden", "patches[0].kind")
        );
        let (api_version, kind) = secret();
        let manifest = Manifest {
            children: vec![ChildKind::new("v1", "Secret")],
            needs: vec![NeedKind { api_version, kind, indexes: vec![] }],
            evictions: true,
            ..Manifest::default()
        };
        assert_eq!(supports(&manifest), Ok(()));
    }
}
