//! Documents: what a view shows in plain JSON, by REST, instead of objects of Kubernetes.
//!
//! A document is the guest's fields, beside which the host puts the object's name, namespace, version and times.
//!
//! Whether a View may be served so is decided here. [`shape`] maps between objects and documents, [`target`] reads paths, [`problem`] says
//! why a request is refused.

pub mod problem;
pub mod shape;
pub mod target;

use pintle_wit::{Failure, views::ViewManifest};

use super::Access;
use crate::reasons;

/// The paths that are the server's own, beside which documents are served.
const RESERVED: [&str; 13] = [
    "api",
    "apis",
    "assets",
    "console",
    "healthz",
    "livez",
    "metrics",
    "namespaces",
    "openapi",
    "readyz",
    "static",
    "v1",
    "version",
];

/// Whether documents may be at this path: nothing of the server's own is there.
pub fn is_free(path: &str) -> bool {
    !RESERVED.contains(&path)
}

/// Whether a view may be served as a View says: documents at a path, or objects by an aggregated API.
///
/// # Errors
/// `SpecInvalid`, with the field of the View.
pub fn may_be_served(path: Option<&str>, manifest: &ViewManifest, access: Access) -> Result<(), Failure> {
    let invalid = |message: String, at: &str| Err(Failure::terminal(reasons::SPEC_INVALID, message).at(at));
    let name = &manifest.name;
    let Some(path) = path else {
        return match manifest.document {
            None => Ok(()),
            Some(_) => invalid(
                format!(
                    "view {name} shows documents, which are no aggregated API; set rest: {{path: {name}}}"
                ),
                "spec.serve.aggregated",
            ),
        };
    };
    if manifest.document.is_none() {
        let message =
            format!("view {name} shows objects of Kubernetes, and no documents; set aggregated: {{}}");
        return invalid(message, "spec.serve.rest");
    }
    if access == Access::View {
        let message =
            "documents are read and written with the caller's own token, so that access is ViewAndBacking";
        return invalid(message.to_owned(), "spec.access");
    }
    if !crate::object::is_namespace(path) {
        let message = "must be one DNS label: lower-case letters, digits and inner '-'".to_owned();
        return invalid(message, "spec.serve.rest.path");
    }
    if !is_free(path) {
        return invalid(format!("/{path} is the server's own"), "spec.serve.rest.path");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use pintle_wit::{Kind, views::Shown};

    use super::*;

    #[test]
    fn documents_are_served_at_a_path_and_objects_are_not() {
        let documents = ViewManifest::of_documents(Kind::new("a/v1", "A"), &["spec"], &[]);
        let objects = ViewManifest::new(Kind::new("a/v1", "A"), &["spec"], Shown::new("b/v1", "B", "bs"));
        let refused = |path: Option<&str>, manifest: &ViewManifest, access: Access| {
            let refused = may_be_served(path, manifest, access).err()?;
            assert_eq!(refused.reason, reasons::SPEC_INVALID);
            refused.path
        };
        let both = Access::ViewAndBacking;
        assert_eq!(refused(Some("darkrooms"), &documents, both), None);
        assert_eq!(refused(None, &objects, Access::View), None);
        assert_eq!(refused(None, &documents, both).as_deref(), Some("spec.serve.aggregated"));
        assert_eq!(refused(Some("bs"), &objects, both).as_deref(), Some("spec.serve.rest"));
        assert_eq!(refused(Some("darkrooms"), &documents, Access::View).as_deref(), Some("spec.access"));
        for path in ["", "Dark", "a/b", "a.b", "-a", "api", "console", "healthz"] {
            let at = refused(Some(path), &documents, both);
            assert_eq!(at.as_deref(), Some("spec.serve.rest.path"), "{path}");
        }
    }
}
