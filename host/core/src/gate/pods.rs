//! Checks the pod templates of all workload kinds against Pod Security *baseline*, and against rules for what baseline leaves open:
//! service accounts, references and nodes.

use std::{collections::BTreeSet, fmt::Display};

use serde_json::{Map, Value};

use super::{GateContext, Violations, reasons};
use crate::object;

/// Capabilities that baseline lets a container add.
const CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// Sysctls that baseline allows.
const SYSCTLS: [&str; 11] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
];

/// SELinux types that baseline allows.
const SELINUX_TYPES: [&str; 5] =
    ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"];

/// Volumes that reach neither the node nor credentials of a storage system.
const VOLUMES: [&str; 8] = [
    "configMap",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

/// A child of the same answer, of a kind of the core group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Sibling {
    pub(super) namespace: Option<String>,
    pub(super) kind: String,
    pub(super) name: String,
}

/// Judges the pod template of a child, if it has one. Returns the siblings that the template refers to, as (kind, name).
pub(super) fn check(
    context: &GateContext<'_>,
    siblings: &BTreeSet<Sibling>,
    child: &Value,
    name: &str,
    path: &str,
    found: &mut Violations,
) -> Vec<(String, String)> {
    let namespace = context.namespace_of(child).map(ToOwned::to_owned);
    let mut checker = Checker { context, siblings, namespace, name, found, references: Vec::new() };
    let kind = object::kind(child);
    if let ("", "PersistentVolumeClaim", Some(spec)) = (kind.group(), kind.kind.as_str(), child.get("spec")) {
        checker.claim(spec, &format!("{path}.spec"));
    }
    let claims = object::at(child, &["spec", "volumeClaimTemplates"]).and_then(Value::as_array);
    for (index, claim) in claims.into_iter().flatten().enumerate() {
        if let Some(spec) = claim.get("spec") {
            checker.claim(spec, &format!("{path}.spec.volumeClaimTemplates[{index}].spec"));
        }
    }
    let Some(at) = template_path(child) else { return Vec::new() };
    let Some(template) = at.iter().try_fold(child, |value, key| value.get(key)) else { return Vec::new() };
    let path = at.iter().fold(path.to_owned(), |path, key| format!("{path}.{key}"));
    checker.annotations(template, &path);
    if let Some(spec) = template.get("spec") {
        checker.pod(spec, &format!("{path}.spec"));
    }
    checker.references
}

/// The path of the pod template in a workload kind.
fn template_path(child: &Value) -> Option<&'static [&'static str]> {
    let kind = object::kind(child);
    match (kind.group(), kind.kind.as_str()) {
        ("", "Pod") => Some(&[]),
        ("", "PodTemplate") => Some(&["template"]),
        ("", "ReplicationController") | ("apps", _) => Some(&["spec", "template"]),
        ("batch", "CronJob") => Some(&["spec", "jobTemplate", "spec", "template"]),
        ("batch", _) => Some(&["spec", "template"]),
        // A kind of another group may embed a pod template at the usual path, so it is checked too.
        _ if child.pointer("/spec/template/spec/containers").is_some() => Some(&["spec", "template"]),
        _ => None,
    }
}

/// Calls a function with each template in a child: of Pods, of Jobs and of claims.
pub(super) fn each_template(child: &mut Value, change: fn(&mut Map<String, Value>)) {
    let pods = template_path(child).map(|path| format!("/{}", path.join("/")));
    for pointer in pods.into_iter().chain(["/spec/jobTemplate".to_owned()]) {
        child.pointer_mut(&pointer).and_then(Value::as_object_mut).into_iter().for_each(change);
    }
    let claims = child.pointer_mut("/spec/volumeClaimTemplates").and_then(Value::as_array_mut);
    claims.into_iter().flatten().filter_map(Value::as_object_mut).for_each(change);
}

struct Checker<'a> {
    context: &'a GateContext<'a>,
    siblings: &'a BTreeSet<Sibling>,
    /// The child's.
    namespace: Option<String>,
    name: &'a str,
    found: &'a mut Violations,
    references: Vec<(String, String)>,
}

impl Checker<'_> {
    fn refuse(&mut self, rule: &'static str, path: impl Display, what: impl Display) {
        if self.context.grants.pod_templates.allow.iter().any(|allowed| allowed == rule) {
            return;
        }
        let message = format_args!(
            "{}: {what}; an administrator can except it with podTemplates.allow: [{rule}]",
            self.name
        );
        self.found.add(rule, path, message);
    }

    fn annotations(&mut self, template: &Value, path: &str) {
        let annotations = object::at(template, &["metadata", "annotations"]).and_then(Value::as_object);
        for (key, value) in annotations.into_iter().flatten() {
            let profile = value.as_str().unwrap_or_default();
            let at = || format!("{path}.metadata.annotations[{key}]");
            if key.starts_with("container.apparmor.security.beta.kubernetes.io/")
                && profile != "runtime/default"
                && !profile.starts_with("localhost/")
            {
                self.refuse(reasons::APP_ARMOR, at(), format_args!("AppArmor profile {profile:?}"));
            }
            if key.starts_with("seccomp.security.alpha.kubernetes.io/")
                || key.starts_with("container.seccomp.security.alpha.kubernetes.io/")
            {
                self.refuse(reasons::SECCOMP, at(), "seccomp set by an annotation");
            }
        }
    }

    fn pod(&mut self, spec: &Value, path: &str) {
        for key in ["hostNetwork", "hostPID", "hostIPC"] {
            if spec.get(key).is_some_and(is_set) {
                self.refuse(
                    reasons::HOST_NAMESPACES,
                    format_args!("{path}.{key}"),
                    format_args!("{key} is set"),
                );
            }
        }
        if spec.get("nodeName").is_some_and(is_set) {
            self.refuse(
                reasons::NODE_NAME,
                format_args!("{path}.nodeName"),
                "a Pod is put onto a node by the scheduler",
            );
        }
        for key in ["serviceAccountName", "serviceAccount"] {
            let account = object::text(spec, &[key]).unwrap_or_default();
            if !matches!(account, "" | "default") {
                self.refuse(
                    reasons::SERVICE_ACCOUNT,
                    format_args!("{path}.{key}"),
                    format_args!("service account {account:?}"),
                );
            }
        }
        if let Some(security) = spec.get("securityContext") {
            let at = format!("{path}.securityContext");
            self.security(security, &at);
            for (index, sysctl) in list(security, "sysctls").iter().enumerate() {
                let sysctl = object::text(sysctl, &["name"]).unwrap_or_default();
                if !SYSCTLS.contains(&sysctl) {
                    self.refuse(
                        reasons::SYSCTLS,
                        format_args!("{at}.sysctls[{index}].name"),
                        format_args!("sysctl {sysctl:?}"),
                    );
                }
            }
        }
        for (index, secret) in list(spec, "imagePullSecrets").iter().enumerate() {
            self.reference(
                "Secret",
                secret.get("name"),
                format_args!("{path}.imagePullSecrets[{index}].name"),
            );
        }
        for key in ["initContainers", "containers", "ephemeralContainers"] {
            for (index, container) in list(spec, key).iter().enumerate() {
                self.container(container, &format!("{path}.{key}[{index}]"));
            }
        }
        for (index, volume) in list(spec, "volumes").iter().enumerate() {
            self.volume(volume, &format!("{path}.volumes[{index}]"));
        }
    }

    /// The parts of a security context that Pods and containers share.
    fn security(&mut self, security: &Value, path: &str) {
        if object::at(security, &["windowsOptions", "hostProcess"]).is_some_and(is_set) {
            self.refuse(
                reasons::HOST_PROCESS,
                format_args!("{path}.windowsOptions.hostProcess"),
                "a host process",
            );
        }
        if object::text(security, &["seccompProfile", "type"]) == Some("Unconfined") {
            self.refuse(
                reasons::SECCOMP,
                format_args!("{path}.seccompProfile.type"),
                "seccomp is switched off",
            );
        }
        if object::text(security, &["appArmorProfile", "type"]) == Some("Unconfined") {
            self.refuse(
                reasons::APP_ARMOR,
                format_args!("{path}.appArmorProfile.type"),
                "AppArmor is switched off",
            );
        }
        if let Some(options) = security.get("seLinuxOptions") {
            let text = |key: &str| object::text(options, &[key]).unwrap_or_default();
            if !SELINUX_TYPES.contains(&text("type")) || !text("user").is_empty() || !text("role").is_empty()
            {
                self.refuse(
                    reasons::SELINUX,
                    format_args!("{path}.seLinuxOptions"),
                    "SELinux options beyond the baseline",
                );
            }
        }
    }

    fn container(&mut self, container: &Value, path: &str) {
        if let Some(security) = container.get("securityContext") {
            let at = format!("{path}.securityContext");
            self.security(security, &at);
            if security.get("privileged").is_some_and(is_set) {
                self.refuse(reasons::PRIVILEGED, format_args!("{at}.privileged"), "a privileged container");
            }
            if !matches!(object::text(security, &["procMount"]), None | Some("" | "Default")) {
                self.refuse(reasons::PROC_MOUNT, format_args!("{at}.procMount"), "an unmasked /proc");
            }
            let added = object::at(security, &["capabilities", "add"]).and_then(Value::as_array);
            for (index, capability) in added.into_iter().flatten().enumerate() {
                let capability = capability.as_str().unwrap_or_default();
                if !CAPABILITIES.contains(&capability) {
                    let at = format!("{at}.capabilities.add[{index}]");
                    self.refuse(reasons::CAPABILITIES, at, format_args!("capability {capability:?}"));
                }
            }
        }
        for (index, port) in list(container, "ports").iter().enumerate() {
            if port.get("hostPort").is_some_and(is_set) {
                self.refuse(
                    reasons::HOST_PORTS,
                    format_args!("{path}.ports[{index}].hostPort"),
                    "a port of the node",
                );
            }
        }
        for handler in
            ["livenessProbe", "readinessProbe", "startupProbe", "lifecycle.postStart", "lifecycle.preStop"]
        {
            let steps: Vec<&str> = handler.split('.').collect();
            let Some(probe) = object::at(container, &steps) else { continue };
            for call in ["httpGet", "tcpSocket"] {
                if object::text(probe, &[call, "host"]).is_some_and(|host| !host.is_empty()) {
                    let at = format!("{path}.{handler}.{call}.host");
                    self.refuse(reasons::HOST_PROBES, at, "a probe or hook that calls another host");
                }
            }
        }
        for (index, source) in list(container, "envFrom").iter().enumerate() {
            let at = format!("{path}.envFrom[{index}]");
            self.reference(
                "Secret",
                object::at(source, &["secretRef", "name"]),
                format_args!("{at}.secretRef.name"),
            );
            self.reference(
                "ConfigMap",
                object::at(source, &["configMapRef", "name"]),
                format_args!("{at}.configMapRef.name"),
            );
        }
        for (index, variable) in list(container, "env").iter().enumerate() {
            let at = format!("{path}.env[{index}].valueFrom");
            let name = |key: &str| object::at(variable, &["valueFrom", key, "name"]);
            self.reference("Secret", name("secretKeyRef"), format_args!("{at}.secretKeyRef.name"));
            self.reference("ConfigMap", name("configMapKeyRef"), format_args!("{at}.configMapKeyRef.name"));
        }
    }

    fn volume(&mut self, volume: &Value, path: &str) {
        for key in volume.as_object().into_iter().flat_map(|volume| volume.keys()) {
            if key == "hostPath" {
                self.refuse(reasons::HOST_PATH, format_args!("{path}.hostPath"), "a path of the node");
            } else if key != "name" && !VOLUMES.contains(&key.as_str()) {
                self.refuse(
                    reasons::VOLUME_TYPE,
                    format_args!("{path}.{key}"),
                    format_args!("a volume of type {key}"),
                );
            }
        }
        let name = |steps: &[&str]| object::at(volume, steps).cloned();
        self.reference(
            "Secret",
            name(&["secret", "secretName"]).as_ref(),
            format_args!("{path}.secret.secretName"),
        );
        self.reference(
            "ConfigMap",
            name(&["configMap", "name"]).as_ref(),
            format_args!("{path}.configMap.name"),
        );
        let claim = name(&["persistentVolumeClaim", "claimName"]);
        self.reference(
            "PersistentVolumeClaim",
            claim.as_ref(),
            format_args!("{path}.persistentVolumeClaim.claimName"),
        );
        if let Some(spec) = object::at(volume, &["ephemeral", "volumeClaimTemplate", "spec"]) {
            self.claim(spec, &format!("{path}.ephemeral.volumeClaimTemplate.spec"));
        }
        let sources = object::at(volume, &["projected", "sources"]).and_then(Value::as_array);
        for (index, source) in sources.into_iter().flatten().enumerate() {
            let at = format!("{path}.projected.sources[{index}]");
            for key in ["serviceAccountToken", "podCertificate"] {
                if source.get(key).is_some() {
                    self.refuse(
                        reasons::TOKEN_PROJECTION,
                        format_args!("{at}.{key}"),
                        "a projected credential",
                    );
                }
            }
            self.reference(
                "Secret",
                object::at(source, &["secret", "name"]),
                format_args!("{at}.secret.name"),
            );
            self.reference(
                "ConfigMap",
                object::at(source, &["configMap", "name"]),
                format_args!("{at}.configMap.name"),
            );
        }
    }

    /// A claim that is filled from another claim or a snapshot holds a copy of it, so mounting it reads the other one. This is refused
    /// even for a sibling, since nothing holds the copy back while an object of somebody else has the sibling's name.
    fn claim(&mut self, spec: &Value, path: &str) {
        for key in ["dataSource", "dataSourceRef"] {
            let Some(source) = spec.get(key).filter(|source| !source.is_null()) else { continue };
            let text = |key: &str| object::text(source, &[key]).unwrap_or_default();
            let kind = match text("apiGroup") {
                "" => text("kind").to_owned(),
                group => format!("{}.{group}", text("kind")),
            };
            let name = match text("namespace") {
                "" => text("name").to_owned(),
                namespace => format!("{namespace}/{}", text("name")),
            };
            if !self.is_granted(&kind, &name) {
                let message = format_args!(
                    "{}: a claim that is a copy of {kind} {name:?}, which podTemplates.references does not grant",
                    self.name
                );
                self.found.add(reasons::REFERENCE_NOT_GRANTED, format_args!("{path}.{key}"), message);
            }
        }
    }

    fn is_granted(&self, kind: &str, name: &str) -> bool {
        let (root, here) = (self.context.root, self.namespace.as_deref());
        self.context.grants.pod_templates.references.iter().any(|grant| {
            let named = grant.namespace.as_deref();
            // Where a child is, its guest chooses, and what a field says, whoever writes the root.
            let is_place = here.is_some()
                && here == object::namespace(root).or(named)
                && named.is_none_or(|named| here == Some(named));
            let is_name = grant.name.as_deref() == Some(name)
                || grant
                    .from_root
                    .as_ref()
                    .is_some_and(|path| !name.is_empty() && object::strings_at(root, path).contains(&name));
            grant.kind == kind && is_place && is_name
        })
    }

    /// A Pod can read every object that it refers to. So a guest may refer only to objects that its root owns, and to objects that an
    /// administrator granted.
    fn reference(&mut self, kind: &str, name: Option<&Value>, path: impl Display) {
        let Some(name) = name else { return };
        let name = name.as_str().unwrap_or_default();
        let sibling =
            Sibling { namespace: self.namespace.clone(), kind: kind.to_owned(), name: name.to_owned() };
        let is_child = self.siblings.contains(&sibling);
        let is_granted = self.is_granted(kind, name);
        let reference = (kind.to_owned(), name.to_owned());
        if is_child && !is_granted && !self.references.contains(&reference) {
            self.references.push(reference);
        }
        if !is_child && !is_granted {
            let message = format_args!(
                "{}: {kind} {name:?} is neither a child of this root nor granted in podTemplates.references",
                self.name
            );
            self.found.add(reasons::REFERENCE_NOT_GRANTED, path, message);
        }
    }
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Whether a value is anything but null, false, zero and the empty string. A value of a wrong type counts as set.
pub(super) fn is_set(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false))
        && value.as_i64() != Some(0)
        && value.as_str() != Some("")
}
