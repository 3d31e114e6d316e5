//! The children of a Darkroom: ConfigMap, Secret, Deployment, Service and Ingress.

use std::collections::BTreeMap;

use pintle_guest::{Value, base64, json, sha256_hex};

use crate::{
    config::Config,
    resource::{DEFAULT_VERSION, Root, SourceType},
};

/// The annotation on the Pods that changes with their configuration, so that they are replaced: an environment is read once.
const CONFIG_HASH: &str = "deployments.example.com/config-hash";

/// The user of the image proxy. Its older images name none, and would run as root.
const USER: i64 = 65532;

/// The environment of the image proxy, by name.
type Environment = BTreeMap<&'static str, String>;

/// The environment that anybody may read.
pub(crate) fn environment(root: &Root, config: &Config) -> Environment {
    let source = &root.spec.source;
    let kind = source.r#type.name();
    let mut environment = Environment::new();
    let mut set = |name, value: &str| {
        environment.insert(name, value.to_owned());
    };
    set("DEBUG", if config.debug { "true" } else { "false" });
    set("LOG_LEVEL", &config.log_level);
    set("APP_NAME", &root.metadata.name);
    set("APP_VERSION", version(root));
    set("APP_DESCRIPTION", "A realtime image processing service");
    set("PORT", "3000");
    let ttl = root.spec.cache.as_ref().and_then(|cache| cache.ttl_seconds);
    set("CACHE_TIME", &ttl.unwrap_or(config.cache_time_seconds).to_string());
    set("SOURCE_KIND", kind);
    set("SOURCE_HYSTRIX_COMMANDNAME", &format!("{kind}_ADAPTER"));
    set("SOURCE_HYSTRIX_TIMEOUT", "5000");
    set("SOURCE_HYSTRIX_MAXCONCURRENTREQUESTS", "100");
    set("SOURCE_HYSTRIX_REQUESTVOLUMETHRESHOLD", "10");
    set("SOURCE_HYSTRIX_SLEEPWINDOW", "10");
    set("SOURCE_HYSTRIX_ERRORPERCENTTHRESHOLD", "25");
    // The image proxy puts the path of a request behind the address as it is.
    let base_url = source.base_url.as_deref().map(|url| url.trim_end_matches('/'));
    let fields: &[(&'static str, Option<&str>)] = match source.r#type {
        SourceType::WebFolder => &[("SOURCE_BASEURL", base_url)],
        SourceType::S3 => &[
            ("SOURCE_BUCKET_NAME", source.bucket.as_deref()),
            ("SOURCE_BUCKET_REGION", source.region.as_deref()),
            ("SOURCE_BUCKET_ENDPOINT", source.endpoint.as_deref()),
            ("SOURCE_PATHPREFIX", source.path_prefix.as_deref()),
        ],
        SourceType::Other => &[],
    };
    for (name, value) in fields {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            set(name, value);
        }
    }
    environment
}

/// The credentials that stand in the Darkroom itself, encoded as a Secret has them.
pub(crate) fn credentials(root: &Root) -> Option<Environment> {
    let source = &root.spec.source;
    if source.r#type != SourceType::S3 || source.credentials_secret_ref.is_some() {
        return None;
    }
    let (access_key, secret_key) = (source.access_key.as_ref()?, source.secret_key.as_ref()?);
    Some(Environment::from([
        ("SOURCE_BUCKET_ACCESSKEY", base64(access_key)),
        ("SOURCE_BUCKET_SECRETKEY", base64(secret_key)),
    ]))
}

pub(crate) fn config_map(root: &Root, environment: &Environment) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": root.metadata.name},
        "data": environment,
    })
}

pub(crate) fn secret(root: &Root, credentials: &Environment) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": root.metadata.name},
        "type": "Opaque",
        "data": credentials,
    })
}

pub(crate) fn deployment(
    root: &Root,
    config: &Config,
    environment: &Environment,
    credentials: Option<&Environment>,
) -> Value {
    let name = root.metadata.name.as_str();
    let mut env_from = vec![json!({"configMapRef": {"name": name}})];
    if let Some(secret) = secret_name(root) {
        env_from.push(json!({"secretRef": {"name": secret}}));
    }
    let probe = json!({"httpGet": {"path": "/ping", "port": "http"}});
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            // Without replicas: one, or what an autoscaler makes of it.
            "selector": {"matchLabels": {"darkroom": name}},
            "template": {
                "metadata": {
                    "annotations": {CONFIG_HASH: config_hash(environment, credentials)},
                    "labels": {"darkroom": name},
                },
                "spec": {
                    "automountServiceAccountToken": false,
                    // The environment is the configuration; a Service called `cache` must not put CACHE_PORT into it.
                    "enableServiceLinks": false,
                    "securityContext": {
                        "runAsNonRoot": true,
                        "runAsUser": USER,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [{
                        "name": "darkroom",
                        "image": image(root, config),
                        "envFrom": env_from,
                        "ports": [{"name": "http", "containerPort": 3000, "protocol": "TCP"}],
                        "livenessProbe": probe,
                        "readinessProbe": probe,
                        "resources": config.resources,
                        "securityContext": {
                            "allowPrivilegeEscalation": false,
                            "capabilities": {"drop": ["ALL"]},
                        },
                    }],
                },
            },
        },
    })
}

pub(crate) fn service(root: &Root) -> Value {
    let name = &root.metadata.name;
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {
            "type": "ClusterIP",
            "selector": {"darkroom": name},
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP", "targetPort": "http"}],
        },
    })
}

pub(crate) fn ingress(root: &Root, config: &Config, domains: &[String]) -> Value {
    let backend = json!({"service": {"name": root.metadata.name, "port": {"number": 8080}}});
    let rule = |host: &String| json!({"host": host, "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}});
    let mut spec = json!({"rules": domains.iter().map(rule).collect::<Vec<_>>()});
    if let Some(class) = &config.ingress_class_name {
        spec["ingressClassName"] = json!(class);
    }
    if let Some(secret) = &config.tls_secret_name {
        spec["tls"] = json!([{"hosts": domains, "secretName": secret}]);
    }
    if config.default_backend {
        spec["defaultBackend"] = backend;
    }
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": root.metadata.name},
        "spec": spec,
    })
}

fn version(root: &Root) -> &str {
    match root.spec.version.as_str() {
        "" => DEFAULT_VERSION,
        version => version,
    }
}

/// The image: releases are tagged `v0.4.0`, and everything else, such as `latest`, is tagged as it is called.
fn image(root: &Root, config: &Config) -> String {
    if let Some(image) = &root.spec.image {
        return image.clone();
    }
    let version = version(root);
    let release = if version.starts_with(|first: char| first.is_ascii_digit()) { "v" } else { "" };
    format!("{}:{release}{version}", config.image_repository)
}

/// The Secret with the credentials: the one that the root names, or the root's own.
fn secret_name(root: &Root) -> Option<&str> {
    let source = &root.spec.source;
    match (source.r#type, &source.credentials_secret_ref) {
        (SourceType::WebFolder | SourceType::Other, _) => None,
        (SourceType::S3, Some(reference)) => Some(&reference.name),
        (SourceType::S3, None) => Some(&root.metadata.name),
    }
}

/// Changes when the environment does. A Secret that the root only names is not in it: the guest does not see what is in there.
fn config_hash(environment: &Environment, credentials: Option<&Environment>) -> String {
    // JSON, because it tells a name from a value whatever is in them; sorted, because the maps are.
    sha256_hex(json!([environment, credentials]).to_string())
}
