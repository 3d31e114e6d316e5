//! Checks Services, Ingresses and Secrets among the children: what they may open to others.

use serde_json::Value;

use super::{GateContext, Violations, reasons};
use crate::object;

/// Types of Secrets that make a controller put credentials into them, or that join nodes to the cluster.
const CREDENTIAL_SECRETS: [&str; 2] =
    ["kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token"];

pub(super) fn check(
    context: &GateContext<'_>,
    child: &Value,
    name: &str,
    path: &str,
    found: &mut Violations,
) {
    let kind = object::kind(child);
    match (kind.group(), kind.kind.as_str()) {
        ("", "Service") => service(context, child, name, path, found),
        ("networking.k8s.io" | "extensions", "Ingress") => ingress(context, child, name, path, found),
        ("", "Secret") => secret(child, name, path, found),
        _ => {}
    }
}

fn service(context: &GateContext<'_>, child: &Value, name: &str, path: &str, found: &mut Violations) {
    let grants = &context.grants.services;
    let service_type = object::text(child, &["spec", "type"]).unwrap_or("ClusterIP");
    if !grants.types.iter().any(|granted| granted == service_type) {
        let message =
            format_args!("{name} is of type {service_type}, granted are: {}", grants.types.join(", "));
        found.add(reasons::SERVICE_TYPE_NOT_GRANTED, format_args!("{path}.spec.type"), message);
    }
    let external = object::at(child, &["spec", "externalIPs"]).and_then(Value::as_array);
    if external.is_some_and(|addresses| !addresses.is_empty()) && !grants.external_ips {
        let message = format_args!("{name} has external IPs; grant services.externalIps to allow it");
        found.add(reasons::EXTERNAL_IPS_NOT_GRANTED, format_args!("{path}.spec.externalIPs"), message);
    }
}

fn ingress(context: &GateContext<'_>, child: &Value, name: &str, path: &str, found: &mut Violations) {
    let annotations = object::at(child, &["metadata", "annotations"]).and_then(Value::as_object);
    for key in annotations.into_iter().flat_map(|annotations| annotations.keys()) {
        if !context.grants.ingress_annotations.contains(key) {
            let message = format_args!("{name} carries {key}; grant it in ingressAnnotations to allow it");
            found.add(
                reasons::INGRESS_ANNOTATION_NOT_GRANTED,
                format_args!("{path}.metadata.annotations[{key}]"),
                message,
            );
        }
    }
}

fn secret(child: &Value, name: &str, path: &str, found: &mut Violations) {
    if let Some(secret_type) = object::text(child, &["type"])
        && CREDENTIAL_SECRETS.contains(&secret_type)
    {
        let message =
            format_args!("{name} is of type {secret_type}, which hands out credentials of the cluster");
        found.add(reasons::SECRET_TYPE_FORBIDDEN, format_args!("{path}.type"), message);
    }
}
