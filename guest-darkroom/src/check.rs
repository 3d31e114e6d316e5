//! Checks a Darkroom before the guest answers.
//!
//! What belongs together in a source is checked here alone, for Darkrooms that come from kubectl and for documents of the view alike. What
//! the CRD refuses too is checked again when the guest reconciles, since an object may be older than a rule.

use pintle_guest::{Failure, dns_1035_label, dns_1123_label, reasons};

use crate::resource::{Root, Source, SourceType};

/// Everything that a Darkroom must be.
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
    check_source(&spec.source)
}

/// What a source must be: the fields that its type needs.
pub(crate) fn check_source(source: &Source) -> Result<(), Failure> {
    match source.r#type {
        SourceType::WebFolder => check_web_folder(source),
        SourceType::S3 => check_s3(source),
        SourceType::Other => invalid(
            "spec.source.type",
            "source type validation was not performed, type can only be [WebFolder,S3]",
        ),
    }
}

fn check_web_folder(source: &Source) -> Result<(), Failure> {
    let url = source.base_url.as_deref().unwrap_or_default();
    if url.is_empty() {
        return invalid("spec.source.baseUrl", "baseUrl can't be empty");
    }
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
    let has_keys = source.credentials_secret_ref.is_some();
    let missing: Vec<&str> = [
        ("accessKey", has_keys || given(&source.access_key)),
        ("secretKey", has_keys || given(&source.secret_key)),
        ("region", given(&source.region)),
    ]
    .into_iter()
    .filter_map(|(name, is_given)| (!is_given).then_some(name))
    .collect();
    if let Some(first) = missing.first() {
        let message = format!("required fields missing: {}", missing.join(", "));
        return invalid(&format!("spec.source.{first}"), &message);
    }
    if !given(&source.bucket) {
        return invalid("spec.source.bucket", "is required for a source of type S3");
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
