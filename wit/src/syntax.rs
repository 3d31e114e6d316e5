//! The syntax of the names in these documents, and their largest sizes.
//!
//! Both sides check them: a guest's author before the module is pushed, and the host before it uses a name.

/// The longest path of a field, in bytes. The deepest field of a built-in kind takes some 130.
pub const PATH_BYTES_MAX: usize = 256;
/// The most steps of the path of a field. The deepest field of a built-in kind has 11.
pub const PATH_STEPS_MAX: usize = 16;

/// A DNS label by RFC 1123: lower-case letters, digits and `-`, at most 63.
pub fn is_label(text: &str) -> bool {
    text.len() <= 63 && is_part(text)
}

/// A DNS label by RFC 1035, which begins with a letter. It is the name of a Service, or the version of an API.
pub fn is_rfc_1035_label(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_lowercase()) && is_label(text)
}

/// A DNS subdomain by RFC 1123: labels with dots between them, at most 253 bytes.
pub fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_part)
}

fn is_part(text: &str) -> bool {
    let is_edge = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().copied().is_some_and(is_edge)
        && bytes.last().copied().is_some_and(is_edge)
        && bytes.iter().all(|byte| is_edge(*byte) || *byte == b'-')
}

/// Group and version, as in an object: `apps/v1`, or `v1` for the core group.
pub fn is_api_version(text: &str) -> bool {
    let (group, version) = match text.split_once('/') {
        Some((group, version)) => (Some(group), version),
        None => (None, text),
    };
    is_rfc_1035_label(version) && group.is_none_or(is_subdomain)
}

/// A kind: a letter and then letters, digits and `-`, at most 63. In lower case it is a DNS label.
pub fn is_kind(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic()) && is_label(&text.to_ascii_lowercase())
}

/// What is too large about a field's path, if anything is.
pub fn path_excess(path: &str) -> Option<String> {
    let steps = path.split('.').count();
    if path.len() > PATH_BYTES_MAX {
        Some(format!("a path of {} bytes, the limit is {PATH_BYTES_MAX}", path.len()))
    } else if steps > PATH_STEPS_MAX {
        Some(format!("a path of {steps} steps, the limit is {PATH_STEPS_MAX}"))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_versions_are_those_that_kubernetes_takes() {
        for good in ["v1", "apps/v1", "gateway.networking.k8s.io/v1beta1"] {
            assert!(is_api_version(good), "{good}");
        }
        for bad in ["", "V1", "1", "a/b/c", "/v1", "apps/", "apps/v1?x", "../v1", "a..b/v1", "v1\n"] {
            assert!(!is_api_version(bad), "{bad}");
        }
        for good in ["Pod", "X", "HTTPRoute", "APIService", "darkroom"] {
            assert!(is_kind(good), "{good}");
        }
        for bad in ["", "1Pod", "Pod/status", "Pod.x", "Pod ", "P\u{e4}d", "Pod%2f"] {
            assert!(!is_kind(bad), "{bad}");
        }
        assert!(!is_kind(&"a".repeat(64)) && is_kind(&"a".repeat(63)));
    }

    #[test]
    fn a_path_has_an_end() {
        assert_eq!(path_excess("spec.template.spec"), None);
        assert!(path_excess(&"a".repeat(257)).is_some_and(|said| said.contains("256")));
        assert!(path_excess(&["a"; 17].join(".")).is_some_and(|said| said.contains("17 steps")));
    }
}
