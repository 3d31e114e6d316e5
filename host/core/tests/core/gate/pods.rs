//! The rows about pod templates: what a Pod, a container and a claim may not do, and where every workload kind keeps its template.

use pintle_core::reasons;
use serde_json::{Value, json};

use crate::gate::table::{Row, more, row};

/// The lists of containers of a Pod.
pub(crate) const CONTAINERS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];

const POD: &str = "children[0].object.spec.template.spec";
const POD_POINTER: &str = "/children/0/object/spec/template/spec";
const WEB: &str = "Deployment \"web\"";

/// What a whole Pod may not do.
pub(crate) fn pods() -> Vec<Row> {
    use reasons::*;
    let pod = |reason, path: &str, pointer: &str, value| {
        row(reason, &format!("{POD}.{path}"), WEB, &format!("{POD_POINTER}/{pointer}"), value)
    };
    let annotation = |reason, key: &str, value: &str| {
        let path = format!("children[0].object.spec.template.metadata.annotations[{key}]");
        let pointer =
            format!("/children/0/object/spec/template/metadata/annotations/{}", key.replace('/', "~1"));
        row(reason, &path, WEB, &pointer, json!(value))
    };
    let security = |reason, path: &str, value| {
        pod(
            reason,
            &format!("securityContext.{path}"),
            &format!("securityContext/{}", path.replace('.', "/")),
            value,
        )
    };
    let volume = |reason, path: &str, value: Value| {
        let mut volume = value;
        volume["name"] = "v".into();
        pod(reason, &format!("volumes[5].{path}"), "volumes/-", volume)
    };
    let source = |reason, path: &str, value: Value| {
        volume(reason, &format!("projected.sources[0].{path}"), json!({"projected": {"sources": [value]}}))
    };
    let mut rows = vec![
        pod(HOST_NAMESPACES, "hostNetwork", "hostNetwork", json!(true)),
        pod(HOST_NAMESPACES, "hostNetwork", "hostNetwork", json!("true")),
        pod(HOST_NAMESPACES, "hostPID", "hostPID", json!(true)),
        pod(HOST_NAMESPACES, "hostIPC", "hostIPC", json!(true)),
        pod(NODE_NAME, "nodeName", "nodeName", json!("node-1")),
        pod(SERVICE_ACCOUNT, "serviceAccountName", "serviceAccountName", json!("admin")),
        pod(SERVICE_ACCOUNT, "serviceAccount", "serviceAccount", json!("admin")),
        pod(
            SYSCTLS,
            "securityContext.sysctls[1].name",
            "securityContext/sysctls/-",
            json!({"name": "kernel.msgmax", "value": "1"}),
        ),
        security(HOST_PROCESS, "windowsOptions.hostProcess", json!(true)),
        security(SECCOMP, "seccompProfile.type", json!("Unconfined")),
        security(APP_ARMOR, "appArmorProfile.type", json!("Unconfined")),
        annotation(APP_ARMOR, "container.apparmor.security.beta.kubernetes.io/main", "unconfined"),
        annotation(SECCOMP, "seccomp.security.alpha.kubernetes.io/pod", "unconfined"),
        annotation(SECCOMP, "container.seccomp.security.alpha.kubernetes.io/main", "unconfined"),
        volume(HOST_PATH, "hostPath", json!({"hostPath": {"path": "/"}})),
        source(TOKEN_PROJECTION, "serviceAccountToken", json!({"serviceAccountToken": {"path": "token"}})),
        source(TOKEN_PROJECTION, "podCertificate", json!({"podCertificate": {"signerName": "x"}})),
        source(REFERENCE_NOT_GRANTED, "secret.name", json!({"secret": {"name": "other"}})),
        source(REFERENCE_NOT_GRANTED, "configMap.name", json!({"configMap": {"name": "other"}})),
        volume(REFERENCE_NOT_GRANTED, "secret.secretName", json!({"secret": {"secretName": "other"}})),
        volume(REFERENCE_NOT_GRANTED, "configMap.name", json!({"configMap": {"name": "other"}})),
        volume(
            REFERENCE_NOT_GRANTED,
            "persistentVolumeClaim.claimName",
            json!({"persistentVolumeClaim": {"claimName": "other"}}),
        ),
        pod(
            REFERENCE_NOT_GRANTED,
            "imagePullSecrets[0].name",
            "imagePullSecrets",
            json!([{"name": "other"}]),
        ),
    ];
    for (key, value) in [("type", "spc_t"), ("user", "root"), ("role", "unconfined_r")] {
        let options = json!({key: value});
        rows.push(pod(SELINUX, "securityContext.seLinuxOptions", "securityContext/seLinuxOptions", options));
    }
    for key in [
        "nfs",
        "iscsi",
        "csi",
        "flexVolume",
        "glusterfs",
        "rbd",
        "cephfs",
        "azureFile",
        "gitRepo",
        "somethingNew",
    ] {
        rows.push(volume(VOLUME_TYPE, key, json!({key: {}})));
    }
    for key in ["dataSource", "dataSourceRef"] {
        let claim = json!({"spec": {key: {"kind": "PersistentVolumeClaim", "name": "other"}}});
        let path = format!("ephemeral.volumeClaimTemplate.spec.{key}");
        rows.push(volume(REFERENCE_NOT_GRANTED, &path, json!({"ephemeral": {"volumeClaimTemplate": claim}})));
    }
    rows
}

/// What a container may not do, in each of the lists of containers.
pub(crate) fn containers(list: &'static str) -> Vec<Row> {
    use reasons::*;
    let container = |reason, path: &str, pointer: &str, value| {
        let at = format!("{POD}.{list}[0].{path}");
        row(reason, &at, WEB, &format!("{POD_POINTER}/{list}/0/{pointer}"), value)
    };
    let security = |reason, path: &str, value| {
        container(
            reason,
            &format!("securityContext.{path}"),
            &format!("securityContext/{}", path.replace('.', "/")),
            value,
        )
    };
    let mut rows = vec![
        security(PRIVILEGED, "privileged", json!(true)),
        security(PRIVILEGED, "privileged", json!("yes")),
        security(PROC_MOUNT, "procMount", json!("Unmasked")),
        security(HOST_PROCESS, "windowsOptions.hostProcess", json!(true)),
        security(SECCOMP, "seccompProfile.type", json!("Unconfined")),
        security(APP_ARMOR, "appArmorProfile.type", json!("Unconfined")),
        container(HOST_PORTS, "ports[1].hostPort", "ports/-", json!({"containerPort": 81, "hostPort": 81})),
    ];
    for capability in ["SYS_ADMIN", "NET_RAW", "NET_ADMIN", "ALL", "net_bind_service"] {
        rows.push(container(
            CAPABILITIES,
            "securityContext.capabilities.add[1]",
            "securityContext/capabilities/add/-",
            json!(capability),
        ));
    }
    for (key, value) in [("type", "spc_t"), ("user", "root"), ("role", "unconfined_r")] {
        rows.push(security(SELINUX, "seLinuxOptions", json!({key: value})));
    }
    for handler in
        ["livenessProbe", "readinessProbe", "startupProbe", "lifecycle.postStart", "lifecycle.preStop"]
    {
        for call in ["httpGet", "tcpSocket"] {
            let path = format!("{handler}.{call}.host");
            let probe = json!({"port": 80, "host": "169.254.169.254"});
            let pointer = format!("{}/{call}", handler.replace('.', "/"));
            rows.push(container(HOST_PROBES, &path, &pointer, probe));
        }
    }
    for key in ["secretRef", "configMapRef"] {
        let path = format!("envFrom[1].{key}.name");
        rows.push(container(REFERENCE_NOT_GRANTED, &path, "envFrom/-", json!({key: {"name": "other"}})));
    }
    for key in ["secretKeyRef", "configMapKeyRef"] {
        let path = format!("env[3].valueFrom.{key}.name");
        let variable = json!({"name": "X", "valueFrom": {key: {"name": "other", "key": "k"}}});
        rows.push(container(REFERENCE_NOT_GRANTED, &path, "env/-", variable));
    }
    rows
}

/// Every kind that carries a pod template, judged where it keeps it.
pub(crate) fn workloads() -> Vec<Row> {
    use reasons::*;
    let mut rows = Vec::new();
    for (api_version, kind, at) in [
        ("v1", "Pod", ""),
        ("v1", "PodTemplate", ".template"),
        ("v1", "ReplicationController", ".spec.template"),
        ("apps/v1", "Deployment", ".spec.template"),
        ("apps/v1", "StatefulSet", ".spec.template"),
        ("apps/v1", "DaemonSet", ".spec.template"),
        ("apps/v1", "ReplicaSet", ".spec.template"),
        ("batch/v1", "Job", ".spec.template"),
        ("batch/v1", "CronJob", ".spec.jobTemplate.spec.template"),
        ("example.com/v1", "Runner", ".spec.template"),
    ] {
        let nested = |template: Value| {
            at.split('.')
                .skip(1)
                .collect::<Vec<_>>()
                .into_iter()
                .rev()
                .fold(template, |below, key| json!({key: below}))
        };
        let bad = json!({"spec": {"hostNetwork": true, "containers": [{"name": "c"}]}});
        rows.push(more(HOST_NAMESPACES, &format!("{at}.spec.hostNetwork"), api_version, kind, nested(bad)));
        for list in CONTAINERS {
            let mut spec = json!({"containers": [{"name": "c"}]});
            spec[list] = json!([{"name": "c", "securityContext": {"privileged": true}}]);
            let path = format!("{at}.spec.{list}[0].securityContext.privileged");
            rows.push(more(PRIVILEGED, &path, api_version, kind, nested(json!({"spec": spec}))));
        }
    }
    for key in ["dataSource", "dataSourceRef"] {
        let source = json!({key: {"kind": "PersistentVolumeClaim", "name": "other"}});
        let template =
            json!({"spec": {"volumeClaimTemplates": [{"metadata": {"name": "d"}, "spec": source}]}});
        let path = format!(".spec.volumeClaimTemplates[0].spec.{key}");
        rows.push(more(REFERENCE_NOT_GRANTED, &path, "apps/v1", "StatefulSet", template));
        let path = format!(".spec.{key}");
        rows.push(more(REFERENCE_NOT_GRANTED, &path, "v1", "PersistentVolumeClaim", json!({"spec": source})));
    }
    rows
}
