//! Checks a Darkroom before the guest answers, since an object may be older than a rule of its CRD.

use pintle_guest::{Failure, dns_1035_label, dns_1123_label, reasons};

use crate::resource::{Root, Source, SourceType};

/// What the CRD refuses too. It is checked again because an object may be older than the rule.
pub(crate) fn check(root: &Root) -> Result<(), Failure> {
    if !dns_1035_label(&root.metadata.name) {
        return invalid(
            "metadata.name",
            "must be at most 63 lower-case letters, digits and '-', beginning with a letter: a Service has the same name",
        );
    }
    let spec = &root.spec;
    if !is_tag(&spec.version) {
        return invalid("spec.version", "must be a version such as 0.4.0, or an image tag such as latest");
    }
    if spec.sub_domains.is_empty() {
        return invalid("spec.subDomains", "must name at least one");
    }
    for (index, label) in spec.sub_domains.iter().enumerate() {
        let path = || format!("spec.subDomains[{index}]");
        if !dns_1123_label(label) {
            return invalid(
                &path(),
                "must be one DNS label: lower-case letters, digits and inner '-', without dots",
            );
        }
        if spec.sub_domains[..index].contains(label) {
            return invalid(&path(), "is named twice");
        }
    }
    match spec.source.r#type {
        SourceType::WebFolder => check_web_folder(&spec.source),
        SourceType::S3 => check_s3(&spec.source),
    }
}

fn check_web_folder(source: &Source) -> Result<(), Failure> {
    let url = source.base_url.as_deref().unwrap_or_default();
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    match rest {
        Some(rest) if !rest.is_empty() && !rest.starts_with('/') => Ok(()),
        _ => invalid(
            "spec.source.baseUrl",
            "must be an address that begins with http:// or https://, for a source of type WebFolder",
        ),
    }
}

fn check_s3(source: &Source) -> Result<(), Failure> {
    let given = |field: &Option<String>| field.as_ref().is_some_and(|text| !text.is_empty());
    if !given(&source.bucket) {
        return invalid("spec.source.bucket", "is required for a source of type S3");
    }
    if !given(&source.region) {
        return invalid("spec.source.region", "is required for a source of type S3");
    }
    if source.path_prefix.as_ref().is_some_and(|prefix| !prefix.is_empty() && !prefix.starts_with('/')) {
        return invalid("spec.source.pathPrefix", "must begin with '/'");
    }
    match &source.credentials_secret_ref {
        Some(_) if given(&source.access_key) || given(&source.secret_key) => invalid(
            "spec.source.credentialsSecretRef",
            "stands instead of accessKey and secretKey, not beside them",
        ),
        Some(reference) if reference.name.is_empty() => {
            invalid("spec.source.credentialsSecretRef.name", "must name a Secret")
        }
        None if !given(&source.access_key) || !given(&source.secret_key) => invalid(
            "spec.source.credentialsSecretRef",
            "is required for a source of type S3, or accessKey and secretKey",
        ),
        _ => Ok(()),
    }
}

/// Whether an image can have this tag. Nothing at all stands for the default version, as it does when the field is absent.
fn is_tag(tag: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    // 127, because a version may get a `v` before it, and a tag has at most 128 characters.
    tag.len() <= 127 && tag.bytes().all(inner) && !tag.starts_with(['.', '-'])
}

fn invalid(path: &str, message: &str) -> Result<(), Failure> {
    Err(Failure::terminal(reasons::INVALID_SPEC, message).at(path))
}
