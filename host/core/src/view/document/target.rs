//! [`Target`]: what the path of a request for documents names.

use percent_encoding::percent_decode_str;

use super::problem::Refusal;
use crate::object;

/// The namespace of a document when nobody names another.
pub const DEFAULT_NAMESPACE: &str = "default";

/// The documents of a view, or one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The path of the view: `darkrooms`.
    pub path: String,
    /// The namespace, if it is named.
    pub namespace: Option<String>,
    /// The document; none for all of them.
    pub name: Option<String>,
}

impl Target {
    /// Reads the path of a URI, and the namespace of its query: `/darkrooms`, `/darkrooms/NAME`, the same behind `/namespaces/NAMESPACE`, and
    /// all of them behind `/api`. None if it is no such path.
    ///
    /// # Errors
    /// 400 for what can be no name: it would become another path at the API server.
    pub fn read(path: &str, namespace: Option<&str>) -> Option<Result<Self, Refusal>> {
        let path = path.strip_suffix('/').unwrap_or(path);
        let mut segments: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
        if segments.first() == Some(&"api") {
            segments.remove(0);
        }
        let (of_path, rest) = match segments.as_slice() {
            ["namespaces", of_path, rest @ ..] => (Some(*of_path), rest),
            rest => (None, rest),
        };
        let (view, name) = match rest {
            [view] => (*view, None),
            [view, name] => (*view, Some(*name)),
            _ => return None,
        };
        // The path of a view needs no decoding.
        (object::is_namespace(view) && super::is_free(view))
            .then(|| Self::checked(view, of_path, namespace, name))
    }

    fn checked(
        view: &str,
        of_path: Option<&str>,
        of_query: Option<&str>,
        name: Option<&str>,
    ) -> Result<Self, Refusal> {
        let of_path = of_path.map(|text| named(text, object::is_namespace)).transpose()?;
        let of_query = of_query.filter(|text| !text.is_empty());
        if let Some(text) = of_query.filter(|text| !object::is_namespace(text)) {
            return Err(Refusal::bad_request(format!("{text:?} is no name of a namespace")));
        }
        let namespace = match (of_path, of_query) {
            (Some(path), Some(query)) if path != query => {
                return Err(Refusal::bad_request("the path and the parameter name different namespaces"));
            }
            (path, query) => path.or_else(|| query.map(ToOwned::to_owned)),
        };
        let name = name.map(|text| named(text, object::is_name)).transpose()?;
        Ok(Self { path: view.to_owned(), namespace, name })
    }

    /// The namespace of one document.
    pub fn namespace_of_one(&self) -> &str {
        self.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE)
    }
}

/// A segment, decoded once: what follows works with names.
fn named(segment: &str, is_name: fn(&str) -> bool) -> Result<String, Refusal> {
    let decoded = percent_decode_str(segment).decode_utf8().ok();
    match decoded.filter(|name| is_name(name)) {
        Some(name) => Ok(name.into_owned()),
        None => Err(Refusal::bad_request(format!("{segment:?} is no DNS name, as names are"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The namespace and the name.
    type Named = (Option<String>, Option<String>);

    fn read(path: &str, query: Option<&str>) -> Option<Result<Named, u16>> {
        let target = Target::read(path, query)?;
        Some(target.map(|of| (of.namespace, of.name)).map_err(|refusal| refusal.status))
    }

    #[test]
    fn a_path_names_documents_everywhere_in_a_namespace_or_one() {
        let named = |namespace: Option<&str>, name: Option<&str>| {
            Some(Ok((namespace.map(Into::into), name.map(Into::into))))
        };
        for root in ["", "/api"] {
            assert_eq!(read(&format!("{root}/darkrooms"), None), named(None, None));
            assert_eq!(read(&format!("{root}/darkrooms/"), Some("")), named(None, None));
            assert_eq!(read(&format!("{root}/darkrooms/a.b"), Some("n")), named(Some("n"), Some("a.b")));
            assert_eq!(read(&format!("{root}/namespaces/n/darkrooms"), None), named(Some("n"), None));
            assert_eq!(
                read(&format!("{root}/namespaces/n/darkrooms/a%2Db"), Some("n")),
                named(Some("n"), Some("a-b"))
            );
        }
        let target = Target::read("/darkrooms/a", None).unwrap().unwrap();
        assert_eq!(target.namespace_of_one(), "default");
    }

    #[test]
    fn other_paths_are_somebody_elses() {
        for path in [
            "",
            "/",
            "darkrooms",
            "/api",
            "/darkrooms/a/b",
            "/api/v1/kinds/x",
            "/api/v1/kinds",
            "/console",
            "/healthz",
            "/console/x.js/y",
            "/a.b",
            "/Dark",
            "/%64arkrooms",
        ] {
            assert_eq!(read(path, None), None, "{path}");
        }
    }

    #[test]
    fn what_would_become_another_path_is_refused() {
        for name in ["a%2Flog", "a%3Fwatch=1", "..", "%2e%2e", "a%00", "%ff", "A", "a%25b", "a b"] {
            assert_eq!(read(&format!("/darkrooms/{name}"), None), Some(Err(400)), "{name}");
            assert_eq!(read(&format!("/namespaces/{name}/darkrooms"), None), Some(Err(400)), "{name}");
            assert_eq!(read("/darkrooms", Some(name)), Some(Err(400)), "{name}");
        }
        assert_eq!(read("/namespaces/a/darkrooms", Some("b")), Some(Err(400)));
    }
}
