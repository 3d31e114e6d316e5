//! A good answer of a guest, and what it is judged by.

use std::collections::BTreeMap;

use pintle_core::{
    Allowed, Binding, KindInfo, StatusSchema,
    desired::SealingKey,
    gate,
    reconciler::{Grants, KindGrant, Limits, NeedGrant, NeedScope, PatchGrant},
    violations::{Violation, Violations},
};
use pintle_wit::{ChildKind, Kind, Manifest, NeedKind, PatchKind};
use serde_json::{Value, json};

/// Kinds that are declared, granted and served.
const KINDS: [(&str, &str); 17] = [
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("apps/v1", "ReplicaSet"),
    ("v1", "ReplicationController"),
    ("v1", "Pod"),
    ("v1", "PodTemplate"),
    ("batch/v1", "Job"),
    ("batch/v1", "CronJob"),
    ("example.com/v1", "Runner"),
    ("vault.example.com/v1", "Secret"),
    ("v1", "Secret"),
    ("v1", "ConfigMap"),
    ("v1", "Service"),
    ("v1", "PersistentVolumeClaim"),
    ("networking.k8s.io/v1", "Ingress"),
    ("v1", "ServiceAccount"),
];

/// The kinds that no grant may give, each granted here nevertheless.
pub(crate) const FORBIDDEN: [(&str, &str); 14] = [
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("apiregistration.k8s.io/v1", "APIService"),
    ("certificates.k8s.io/v1", "CertificateSigningRequest"),
    ("flowcontrol.apiserver.k8s.io/v1", "FlowSchema"),
    ("scheduling.k8s.io/v1", "PriorityClass"),
    ("storage.k8s.io/v1", "StorageClass"),
    ("node.k8s.io/v1", "RuntimeClass"),
    ("authentication.k8s.io/v1", "TokenReview"),
    ("v1", "Namespace"),
    ("v1", "Node"),
    ("v1", "PersistentVolume"),
];

pub(crate) fn root() -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Shop",
        "metadata": {"name": "shop", "namespace": "shops", "uid": "root-uid", "generation": 1,
            "ownerReferences": [{"apiVersion": "example.com/v1", "kind": "Mall", "name": "mall", "uid": "mall-uid"}]},
        "spec": {"credentials": [{"name": "by-root"}]},
    })
}

pub(crate) fn binding() -> Binding {
    let mut manifest = Manifest::new("shop", "0.1.0", Kind::new("example.com/v1", "Shop"));
    let (mut grants, mut kinds) = (Grants::default(), BTreeMap::new());
    let mut declare = |api_version: &str, kind: &str, granted: bool, served: Option<bool>| {
        manifest.children.push(ChildKind::new(api_version, kind));
        if granted {
            let grant =
                KindGrant { api_version: api_version.into(), kinds: vec![kind.into()], namespaces: vec![] };
            grants.children.push(grant);
        }
        if let Some(namespaced) = served {
            kinds.insert(Kind::new(api_version, kind), KindInfo { namespaced });
        }
    };
    for (api_version, kind) in KINDS {
        declare(api_version, kind, true, Some(true));
    }
    for (api_version, kind) in FORBIDDEN {
        declare(api_version, kind, true, Some(true));
    }
    declare("example.com/v1", "Ungranted", false, Some(true));
    declare("example.com/v1", "Unserved", true, None);
    declare("example.com/v1", "Planet", true, Some(false));
    let grant = KindGrant {
        api_version: "example.com/v1".into(),
        kinds: vec!["Undeclared".into()],
        namespaces: vec![],
    };
    grants.children.push(grant);
    kinds.insert(Kind::new("example.com/v1", "Undeclared"), KindInfo { namespaced: true });
    grants.services.types.push("NodePort".into());
    grants.ingress_annotations = vec!["nginx.ingress.kubernetes.io/proxy-body-size".into()];
    powers(&mut manifest, &mut grants);
    Binding {
        reconciler: "shop".into(),
        uid: "reconciler-uid".into(),
        generation: 1,
        field_manager: "pintle-shop.example.com".into(),
        grants,
        limits: Limits { children: 8, ..Limits::default() },
        config: Value::Null.into(),
        digest: "sha256:one".into(),
        manifest,
        kinds,
        duty: pintle_core::Duty::Full,
        status: StatusSchema::Declared(json!({"properties": {
            "phase": {"type": "string"}, "count": {"type": "integer"}, "at": {"type": "string"},
            "parts": {"items": {"properties": {"name": {"type": "string"}}}},
            "observedGeneration": {}, "pintle": {"x-kubernetes-preserve-unknown-fields": true},
            "conditions": {"items": {"x-kubernetes-preserve-unknown-fields": true}},
        }})),
        key: SealingKey::new([7; 32]),
        watched_namespaces: Default::default(),
    }
}

/// Needs, patches and evictions: some declared and granted, some declared alone.
fn powers(manifest: &mut Manifest, grants: &mut Grants) {
    let need = |kind: &str, indexes: &[&str]| NeedKind {
        api_version: if kind == "Planet" { "example.com/v1" } else { "v1" }.into(),
        kind: kind.into(),
        indexes: indexes.iter().map(|path| (*path).into()).collect(),
    };
    manifest.needs = vec![
        need("ConfigMap", &["data.host"]),
        need("Secret", &[]),
        need("Service", &[]),
        need("PersistentVolumeClaim", &[]),
        need("Planet", &[]),
    ];
    let grant = |kind: &str, scope, names: &[&str]| NeedGrant {
        api_version: "v1".into(),
        kinds: vec![kind.into()],
        scope,
        names: names.iter().map(|name| (*name).into()).collect(),
    };
    grants.needs = vec![
        grant("ConfigMap", NeedScope::Namespace, &[]),
        grant("Secret", NeedScope::Namespace, &["seen"]),
        grant("Service", NeedScope::All, &["seen"]),
    ];
    let patch = |kind: &str, fields: &[&str]| PatchKind {
        api_version: if kind == "Pod" { "v1" } else { "apps/v1" }.into(),
        kind: kind.into(),
        fields: fields.iter().map(|path| (*path).into()).collect(),
    };
    manifest.patches = vec![
        patch("Deployment", &["spec.template", "spec.replicas", "metadata.labels"]),
        patch("DaemonSet", &["spec.template"]),
        patch("Role", &["rules"]),
    ];
    manifest.patches[2].api_version = "rbac.authorization.k8s.io/v1".into();
    grants.patches = vec![PatchGrant {
        api_version: "apps/v1".into(),
        kind: "Deployment".into(),
        fields: vec!["spec.template".into(), "metadata.labels".into()],
        force: false,
    }];
    manifest.evictions = true;
    grants.evictions = true;
}

/// Children 0 to 4: Deployment web, Service web, Ingress web, Secret keys, ConfigMap page.
pub(crate) fn good() -> Value {
    let container = |name: &str| {
        json!({
            "name": name, "image": "shop:1",
            "ports": [{"containerPort": 80}],
            "env": [
                {"name": "A", "value": "a"},
                {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "key"}}},
                {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            ],
            "envFrom": [{"configMapRef": {"name": "page"}}],
            "livenessProbe": {"httpGet": {"path": "/", "port": 80}},
            "lifecycle": {"preStop": {"exec": {"command": ["true"]}}},
            "securityContext": {"privileged": false, "allowPrivilegeEscalation": false, "procMount": "Default",
                "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]},
                "seccompProfile": {"type": "RuntimeDefault"}, "appArmorProfile": {"type": "RuntimeDefault"},
                "seLinuxOptions": {"type": "container_t", "level": "s0"}},
        })
    };
    json!({
        "apiVersion": "guest.pintle.dev/v1",
        "children": [
            {"id": "web", "object": {
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": "web", "labels": {"app": "web"}},
                "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {
                        "hostNetwork": false, "serviceAccountName": "default",
                        "securityContext": {"runAsNonRoot": true, "sysctls": [{"name": "net.ipv4.tcp_syncookies", "value": "1"}]},
                        "initContainers": [container("init")],
                        "containers": [container("main")],
                        "ephemeralContainers": [container("debug")],
                        "volumes": [
                            {"name": "a", "secret": {"secretName": "keys"}},
                            {"name": "b", "configMap": {"name": "page"}},
                            {"name": "c", "emptyDir": {}},
                            {"name": "d", "projected": {"sources": [{"secret": {"name": "keys"}}, {"downwardAPI": {"items": []}}]}},
                            {"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}},
                        ],
                    },
                }},
            }},
            {"id": "service", "object": {
                "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shops"},
                "spec": {"type": "NodePort", "selector": {"app": "web"}, "ports": [{"port": 80, "nodePort": 30010}]},
            }},
            {"id": "ingress", "object": {
                "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
                "metadata": {"name": "web", "annotations": {"nginx.ingress.kubernetes.io/proxy-body-size": "8m"}}, "spec": {},
            }},
            {"id": "keys", "object": {
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "type": "Opaque", "data": {"key": "dg=="},
            }},
            {"id": "page", "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "page"}, "data": {"a": "b"}}},
        ],
        "status": {"phase": "Up"},
        "conditions": [{"type": "Progressing", "status": "False", "reason": "Done", "message": "all there"}],
        "events": [{"type": "Normal", "reason": "Opened", "message": "the shop is open"}],
    })
}

/// What the gate says to an answer.
pub(crate) fn judge(binding: &Binding, answer: Value) -> Result<Allowed, Vec<Violation>> {
    judge_all(binding, answer).map_err(|found| found.listed().to_vec())
}

/// The same, with those that are counted alone.
pub(crate) fn judge_all(binding: &Binding, answer: Value) -> Result<Allowed, Violations> {
    judge_for(binding, &root(), answer)
}

/// The same for another root.
pub(crate) fn judge_for(binding: &Binding, root: &Value, answer: Value) -> Result<Allowed, Violations> {
    gate::gate(&binding.context(root), serde_json::from_value(answer).expect("the answer is a response"))
}

/// Sets the value at a JSON pointer, making the maps on the way; `-` at the end appends to a list.
pub(crate) fn set(document: &mut Value, pointer: &str, value: Value) {
    let mut at = document;
    let steps: Vec<String> =
        pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect();
    for step in steps {
        at = if !at.is_array() {
            &mut at[step.as_str()]
        } else if step == "-" {
            let list = at.as_array_mut().expect("a list");
            list.push(Value::Null);
            list.last_mut().expect("not empty")
        } else {
            &mut at[step.parse::<usize>().expect("an index")]
        };
    }
    *at = value;
}
